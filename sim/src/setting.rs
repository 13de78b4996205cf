//! The settings of a run as its results report them: path and hosts of the first flow.

use crate::plan::{Access, Direction, Flow, Plan, Traffic};
use airmend_proto::Instant;
use airmend_proto::link::{ErrorModel, goodput_bound};
use airmend_proto::tcp::{CongestionControl, Profile};
use std::time::Duration;

/// The settings that every result has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// The agent of the first station on the path; none without a station.
    pub agent: Option<&'static str>,
    /// The sender's congestion control.
    pub cc: &'static str,
    /// `down` if the data leaves stations on their air side.
    pub direction: &'static str,
    /// The rate of the air hop in the direction of the data; of the last hop if there is no air
    /// hop. In bit/s.
    pub rate_bps: u64,
    /// One-way delay of all air hops.
    pub air_delay: Duration,
    /// One-way delay of all other hops.
    pub wired_delay: Duration,
    /// The error process of the air hop in the direction of the data.
    pub errors: ErrorModel,
    /// Application bytes of each bulk flow.
    pub bytes: Option<u64>,
    /// The number of flows.
    pub flows: usize,
    /// The upper bound of the goodput in the long run, in bit/s; `None` where flows take different
    /// paths. That of a run is [`Plan::bound_of_run`].
    pub bound_bps: Option<f64>,
}

impl Plan {
    /// The settings that results report.
    pub fn setting(&self) -> Setting {
        let Some(flow) = self.flows.first() else { return Setting::default() };
        let path: Vec<&Direction> = self.path(flow).collect();
        let air = path.iter().find(|direction| direction.air).or(path.last());
        let delay = |air: bool| {
            path.iter()
                .filter(|direction| direction.air == air)
                .map(|direction| direction.delay)
                .sum()
        };
        let station = flow.stations.first().map(|station| &self.stations[*station as usize]);
        let first = flow.stations.first().map(|station| self.hosts + station);
        let enters_from_air = path.iter().any(|hop| hop.air && Some(hop.to) == first);
        let same_path = self.flows.iter().all(|other| self.is_same_path(flow, other));
        Setting {
            agent: station.map(|station| station.agent.name()),
            cc: cc(&flow.profiles[0]),
            direction: if enters_from_air { "up" } else { "down" },
            rate_bps: air.map_or(0, |direction| direction.rate_bps),
            air_delay: delay(true),
            wired_delay: delay(false),
            errors: air.map_or(ErrorModel::None, |direction| direction.errors),
            bytes: match flow.traffic {
                Traffic::Bulk(bytes) => bytes,
                Traffic::Messages { bytes, .. } => Some(bytes),
                _ => None,
            },
            flows: self.flows.len(),
            bound_bps: same_path.then(|| self.bound_bps(flow, None)),
        }
    }

    /// The upper bound of the goodput of a run that took so many seconds from its first flow's
    /// start, in bit/s: over a link that varies, it is that of this time. `None` where flows take
    /// different paths.
    pub fn bound_of_run(&self, seconds: f64) -> Option<f64> {
        let flow = self.flows.first()?;
        if !self.flows.iter().all(|other| self.is_same_path(flow, other)) {
            return None;
        }
        let start = self.flows.iter().map(|flow| flow.start).min().unwrap_or_default();
        let from = Instant::ZERO + start;
        let took = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let time = (!took.is_zero()).then(|| [from, from + took]);
        Some(self.bound_bps(flow, time))
    }

    /// (1) of the bounds: whoever repeats a frame, each attempt takes its time on the link. In the
    /// long run, or between two times.
    fn bound_bps(&self, flow: &Flow, time: Option<[Instant; 2]>) -> f64 {
        let [sender, receiver] = &flow.profiles;
        let options = if sender.timestamps && receiver.timestamps { 12 } else { 0 };
        let frame = u32::from(sender.mss.min(receiver.mss)) + 40;
        let payload = frame - 40 - options;
        let hop = |(number, direction): (u32, &Direction)| {
            let answer = (40 + options, receiver.ack.every);
            let rate = |time: Duration| (f64::from(8 * frame) / time.as_secs_f64()).round() as u64;
            let (bits, rate_bps) = match direction.access {
                None => (u64::from(frame) * 8, direction.rate_bps),
                Some(Access::FamaNcs(mac)) => {
                    let time = mac.mean_exchange(frame, answer.0, answer.1);
                    (mac.packet_bits(frame), rate(time))
                }
                Some(Access::Dcf(wifi)) => {
                    (wifi.frame_bits(frame), rate(wifi.time_of_packet(frame, answer.0, answer.1)))
                }
            };
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
        };
        flow.route.iter().copied().zip(self.path(flow)).map(hop).fold(f64::INFINITY, f64::min)
    }

    /// Whether two flows share all channels, in the same direction, and meet the same there.
    fn is_same_path(&self, one: &Flow, other: &Flow) -> bool {
        let key = |direction: &u32| {
            let Direction { channel, delay, variation, trace, errors, .. } =
                self.directions[*direction as usize];
            (channel, direction % 2, delay, variation, trace, errors)
        };
        one.route == other.route || one.route.iter().map(key).eq(other.route.iter().map(key))
    }

    fn path<'a>(&'a self, flow: &'a Flow) -> impl Iterator<Item = &'a Direction> {
        flow.route.iter().map(|direction| &self.directions[*direction as usize])
    }
}

fn cc(profile: &Profile) -> &'static str {
    match (profile.congestion, profile.recovery) {
        (CongestionControl::Cubic { .. }, _) => "cubic",
        (CongestionControl::Bbr, _) => "bbr",
        (CongestionControl::Reno, recovery) => recovery.name(),
    }
}
