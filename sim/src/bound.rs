//! The upper bound of the goodput of a plan's flows.

use crate::plan::{Access, AirmailSpec, Direction, Flow, Plan, Traffic};
use crate::world::most_of_rate;
use airmend_proto::Instant;
use airmend_proto::link::goodput_bound;
use std::collections::BTreeSet;
use std::time::Duration;

/// The packets of a flow.
struct Packets {
    /// Bytes of a packet, and of its data.
    frame: u32,
    payload: u32,
    /// Bytes of what returns, and how many for each packet.
    answer: u32,
    answers: f64,
}

impl Packets {
    fn of(flow: &Flow) -> Self {
        if let Traffic::Datagrams { size, .. } = flow.traffic {
            return Self { frame: size + 28, payload: size, answer: 0, answers: 0.0 };
        }
        let [sender, receiver] = &flow.profiles;
        let options = if sender.timestamps && receiver.timestamps { 12 } else { 0 };
        let frame = u32::from(sender.mss.min(receiver.mss)) + 40;
        let answers = 1.0 / f64::from(receiver.ack.every.max(1));
        Self { frame, payload: frame - 40 - options, answer: 40 + options, answers }
    }
}

impl Plan {
    /// The upper bound of the goodput of a run that took so many seconds from its first flow's
    /// start, in bit/s: over a link that varies, it is that of this time. `None` where flows take
    /// different paths.
    pub fn bound_of_run(&self, seconds: f64) -> Option<f64> {
        let start = self.flows.iter().map(|flow| flow.start).min().unwrap_or_default();
        let from = Instant::ZERO + start;
        let took = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.bound_bps((!took.is_zero()).then(|| [from, from + took]))
    }

    /// In the long run, or between two times: the least of all hops, of the flow whose packets have
    /// the most data. Whoever repeats a frame, each attempt takes its time on the link.
    pub(crate) fn bound_bps(&self, time: Option<[Instant; 2]>) -> Option<f64> {
        let flow = self.flows.first()?;
        if !self.flows.iter().all(|other| self.is_same_path(flow, other)) {
            return None;
        }
        let of_flow = |flow: &Flow| {
            let hops =
                flow.route.iter().map(|hop| self.bound_of_hop(*hop, &Packets::of(flow), time));
            hops.fold(f64::INFINITY, f64::min)
        };
        Some(self.flows.iter().map(of_flow).fold(0.0, f64::max))
    }

    fn bound_of_hop(&self, number: u32, packets: &Packets, time: Option<[Instant; 2]>) -> f64 {
        let direction = &self.directions[number as usize];
        let &Packets { frame, payload, answer, answers } = packets;
        let rate = |time: Duration| (f64::from(8 * frame) / time.as_secs_f64()).round() as u64;
        let (bits, rate_bps) = match direction.access {
            None => (u64::from(frame) * 8, direction.rate_bps),
            Some(Access::FamaNcs(mac)) => {
                (mac.packet_bits(frame), rate(mac.mean_exchange(frame, answer, answers)))
            }
            Some(Access::Dcf(wifi)) => {
                let senders = self.senders(direction, number % 2);
                let time = wifi.time_of_packet(frame, answer, answers, senders);
                (wifi.frame_bits(frame), rate(time))
            }
        };
        if let Some(AirmailSpec { fec, .. }) = direction.airmail {
            let rate_bps = direction.rate_bps as f64 * most_of_rate(frame, direction.errors, fec);
            return goodput_bound(rate_bps as u64, u64::MAX, payload, frame, 0.0);
        }
        let frame_error = direction.errors.frame_error(bits);
        if let Some(varies) = self.varies(direction) {
            let way = &varies[number as usize % 2];
            let arriving = match time {
                None => way.mean_arriving_bps(rate_bps, frame_error),
                Some([from, to]) => way.arriving_bps(from, to, rate_bps, frame_error),
            };
            return goodput_bound(arriving as u64, u64::MAX, payload, frame, 0.0);
        }
        goodput_bound(rate_bps, u64::MAX, payload, frame, frame_error)
    }

    /// How many stations send data on the channel of a direction this way.
    fn senders(&self, direction: &Direction, way: u32) -> u32 {
        let channel = direction.channel;
        let on_channel =
            |hop: &&u32| **hop % 2 == way && self.directions[**hop as usize].channel == channel;
        let hops = self.flows.iter().flat_map(|flow| &flow.route).filter(on_channel);
        let from = hops.map(|hop| self.directions[(*hop ^ 1) as usize].to);
        from.collect::<BTreeSet<u32>>().len() as u32
    }
}
