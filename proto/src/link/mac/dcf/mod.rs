//! The distributed coordination function of 802.11 as a state machine: wait until the channel is
//! idle, count down a backoff, send, wait for the acknowledgment, send again.
//!
//! All stations hear each other. Those whose backoffs end together collide, and no frame of a
//! collision arrives (no capture). Everything that an exchange draws is drawn as it begins, so its
//! end is known then. After an exchange, successful or not, all stations wait alike: the time of a
//! response that does not come, and a DIFS, are an EIFS. A frame whose acknowledgment is lost is
//! sent again, and its receiver drops the copy. Where the physical layer has aggregates, one
//! exchange carries several frames, each with errors of its own, and the receiver delivers them in
//! the order of their numbers [IEEE 802.11-2020 §10.3, §10.25].

mod contention;
mod order;
mod params;
mod phy;
mod station;
#[cfg(test)]
mod tests;

pub use params::DcfParams;
pub use phy::Phy;

use crate::link::medium::{Medium, Output, Pair, Path, Paths, on_one_channel};
use crate::link::{ErrorProcess, Fate, LinkCounters};
use crate::packet::Packet;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use order::Order;
use station::{Sent, Station};

/// A channel that 802.11 stations share.
pub struct Dcf {
    params: DcfParams,
    stations: Vec<Station>,
    paths: Paths,
    /// For each path the number of its next new frame, and its receiver.
    numbers: Vec<u64>,
    orders: Vec<Order>,
    channel: Channel,
    /// Frames that propagate, in the order of arrival.
    arrivals: VecDeque<Arrival>,
    outputs: VecDeque<Output>,
    /// The time of the outputs.
    happened_at: Instant,
}

/// The state of the channel.
enum Channel {
    /// Backoffs count down from then on.
    Idle(Instant),
    /// Stations send until then, with the response to them or the wait for it.
    Busy { until: Instant, exchanges: Vec<Exchange> },
}

/// The frames that a station sends in its turn.
struct Exchange {
    by: usize,
    sent: Vec<Sent>,
    acknowledged: bool,
}

/// A frame that has been received.
struct Arrival {
    at: Instant,
    path: usize,
    number: u64,
    packet: Packet,
}

impl Dcf {
    /// An idle channel. No path is longer than the delay of `params`.
    pub fn new(params: DcfParams, pairs: Vec<Pair>) -> Self {
        let (stations, paths) = on_one_channel(pairs, |random| Station::new(random, &params));
        let mut orders = Vec::new();
        orders.resize_with(paths.0.len(), Order::default);
        Self {
            params,
            stations,
            numbers: vec![0; paths.0.len()],
            paths,
            orders,
            channel: Channel::Idle(Instant::ZERO),
            arrivals: VecDeque::new(),
            outputs: VecDeque::new(),
            happened_at: Instant::ZERO,
        }
    }

    fn next_event(&self) -> Option<Instant> {
        let arrival = self.arrivals.front().map(|arrival| arrival.at);
        let channel = match &self.channel {
            Channel::Busy { until, .. } => Some(*until),
            Channel::Idle(from) => {
                let slot = self.params.phy.slot;
                self.stations.iter().filter_map(|station| station.sends_at(*from, slot)).min()
            }
        };
        let lifetime = self.params.receive_lifetime;
        let expiries = self.orders.iter().filter_map(|order| order.expires_at(lifetime));
        arrival.into_iter().chain(channel).chain(expiries).min()
    }

    /// Begins an exchange if the backoff of one or several stations has ended.
    fn begin_if_due(&mut self, now: Instant, from: Instant) {
        let DcfParams { phy, delay, .. } = self.params;
        let sends_at = |station: &Station| station.sends_at(from, phy.slot);
        if self.stations.iter().filter_map(sends_at).all(|at| at > now) {
            return;
        }
        // Until the carrier reaches the others, they begin as well.
        let begins = |station: &Station| sends_at(station).is_some_and(|at| at <= now + delay);
        let senders: Vec<usize> =
            (0..self.stations.len()).filter(|number| begins(&self.stations[*number])).collect();
        for (number, station) in self.stations.iter_mut().enumerate() {
            if !senders.contains(&number) {
                station.freeze(from, now, phy.slot);
            }
        }
        let collides = senders.len() > 1;
        let (mut until, mut exchanges) = (now, Vec::with_capacity(senders.len()));
        for by in senders {
            let (places, bits) = self.stations[by].next_frames(&self.params, &mut self.numbers);
            let (end, exchange) = match collides {
                true => self.collide(now, by, &places, bits),
                false => self.exchange(now, by, &places, bits),
            };
            until = until.max(end);
            exchanges.push(exchange);
        }
        self.channel = Channel::Busy { until, exchanges };
    }

    /// What a station sends is lost in a collision: its RTS if it announces its frames. Returns the
    /// end of its wait for a response.
    fn collide(
        &mut self,
        now: Instant,
        by: usize,
        places: &[usize],
        bits: u64,
    ) -> (Instant, Exchange) {
        let announces = self.announces(by, places);
        let sent = places.iter().map(|place| Sent { place: *place, intact: false }).collect();
        let end = if announces {
            now + self.params.announcement_time()
        } else {
            let airtime = self.count_frames(by, places, bits, |counters| counters.collided += 1);
            now + airtime + self.params.response_time(self.params.ack_time())
        };
        (end, Exchange { by, sent, acknowledged: false })
    }

    /// A station alone sends its frames. Returns the end of the exchange.
    fn exchange(
        &mut self,
        now: Instant,
        by: usize,
        places: &[usize],
        bits: u64,
    ) -> (Instant, Exchange) {
        let mut start = now;
        let mut sent: Vec<Sent> =
            places.iter().map(|place| Sent { place: *place, intact: false }).collect();
        let Some(path) = self.stations[by].queue.front().map(|frame| frame.path) else {
            return (now, Exchange { by, sent, acknowledged: false });
        };
        if self.announces(by, places) {
            let cleared = self.clear_to_send(now, path);
            start = now + self.params.announcement_time();
            if !cleared {
                return (start, Exchange { by, sent, acknowledged: false });
            }
            start += self.params.phy.sifs;
        }
        let airtime = self.count_frames(by, places, bits, |_| {});
        let end = start + airtime;
        let mut begins = start + self.params.phy.preamble;
        let mut any_intact = false;
        for sent in &mut sent {
            let frame = &mut self.stations[by].queue[sent.place];
            let bits = self.params.frame_bits(frame.packet.wire_len());
            let airtime = self.params.data_time(bits) - self.params.phy.preamble;
            let Path { errors, counters, delay, .. } = &mut self.paths.0[path];
            let fate = errors.draw(begins, airtime, bits);
            begins += airtime;
            match fate {
                Fate::Intact => {}
                Fate::Damaged(_) => counters.damaged += 1,
                Fate::Lost => counters.lost += 1,
            }
            sent.intact = fate == Fate::Intact;
            any_intact |= sent.intact;
            if let (true, false, Some(number)) = (sent.intact, frame.received, frame.number) {
                frame.received = true;
                let packet = frame.packet.clone();
                self.arrivals.push_back(Arrival { at: end + *delay, path, number, packet });
            }
        }
        let (response, response_bits) = (self.params.ack_time(), self.params.ack_bits());
        let answers_at = end + self.params.delay + self.params.phy.sifs;
        let acknowledged = any_intact
            && self.response_errors(path).draw(answers_at, response, response_bits) == Fate::Intact;
        (end + self.params.response_time(response), Exchange { by, sent, acknowledged })
    }

    /// Whether an RTS and the CTS that answers it arrive.
    fn clear_to_send(&mut self, now: Instant, path: usize) -> bool {
        let ((rts, rts_bits), (cts, cts_bits)) = (self.params.rts(), self.params.cts());
        let answers_at = now + rts + self.params.delay + self.params.phy.sifs;
        self.paths.0[path].control_errors.draw(now, rts, rts_bits) == Fate::Intact
            && self.response_errors(path).draw(answers_at, cts, cts_bits) == Fate::Intact
    }

    /// The errors of responses to the frames of a path.
    fn response_errors(&mut self, path: usize) -> &mut Box<dyn ErrorProcess + Send> {
        let Path { from, to, .. } = self.paths.0[path];
        let back = self.paths.find(to, from).unwrap_or(path);
        &mut self.paths.0[back].control_errors
    }

    fn announces(&self, by: usize, places: &[usize]) -> bool {
        let queue = &self.stations[by].queue;
        let bytes =
            places.iter().filter_map(|place| queue.get(*place)).map(|f| f.packet.wire_len());
        self.params.announces(bytes.sum())
    }

    /// Counts the frames that a station sends; returns their airtime.
    fn count_frames(
        &mut self,
        by: usize,
        places: &[usize],
        bits: u64,
        count: impl Fn(&mut LinkCounters),
    ) -> Duration {
        let airtime = self.params.data_time(bits);
        let queue = &self.stations[by].queue;
        for (number, place) in places.iter().enumerate() {
            let Some(frame) = queue.get(*place) else { continue };
            let counters = &mut self.paths.0[frame.path].counters;
            counters.frames += 1;
            counters.bytes += u64::from(frame.packet.wire_len());
            if number == 0 {
                counters.busy = counters.busy.saturating_add(airtime);
            }
            count(counters);
        }
        airtime
    }

    /// The exchanges are over, and stations that can take packets are asked for them.
    fn end(&mut self, now: Instant) {
        let idle = Channel::Idle(now + self.params.phy.difs());
        let Channel::Busy { exchanges, .. } = core::mem::replace(&mut self.channel, idle) else {
            return;
        };
        for Exchange { by, sent, acknowledged } in exchanges {
            let station = &mut self.stations[by];
            for frame in station.settle(&self.params, &sent, acknowledged) {
                let (path, received) = (frame.path, frame.received);
                if !received {
                    self.paths.0[path].counters.given_up += 1;
                    self.deliver(now, path, frame.number, None);
                }
            }
            if self.takes_packets(by) {
                self.outputs.push_back(Output::Ready(by));
            }
        }
    }

    /// Hands a frame to the receiver of its path, or nothing in its place.
    fn deliver(&mut self, now: Instant, path: usize, number: Option<u64>, packet: Option<Packet>) {
        let Path { from, to, .. } = self.paths.0[path];
        let outputs = &mut self.outputs;
        let leave = |packet| outputs.push_back(Output::Delivery { from, to, packet });
        if let Some(number) = number {
            self.orders[path].take(now, number, packet, leave);
        }
    }

    /// Releases what has waited for a missing frame for too long.
    fn expire(&mut self, now: Instant) {
        let lifetime = self.params.receive_lifetime;
        for (order, path) in self.orders.iter_mut().zip(&self.paths.0) {
            let (from, to, outputs) = (path.from, path.to, &mut self.outputs);
            let leave = |packet| outputs.push_back(Output::Delivery { from, to, packet });
            order.expire(now, lifetime, leave);
        }
    }

    /// Whether a station has fewer packets than one exchange carries.
    fn takes_packets(&self, station: usize) -> bool {
        self.stations[station].queue.len() < self.params.aggregate
    }
}

impl Medium for Dcf {
    fn can_send(&self, _now: Instant, from: usize) -> bool {
        self.takes_packets(from)
    }

    fn free_at(&self, _from: usize) -> Option<Instant> {
        None
    }

    fn send(&mut self, now: Instant, from: usize, to: usize, packet: Packet) -> bool {
        let Some(path) = self.paths.find(from, to) else { return false };
        if !self.stations[from].has_room(&self.params, &packet) {
            self.paths.0[path].counters.dropped += 1;
            return false;
        }
        let is_busy = match self.channel {
            Channel::Idle(from) => now < from,
            Channel::Busy { .. } => true,
        };
        self.stations[from].push(now, path, packet, is_busy);
        true
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.outputs.is_empty() { self.next_event() } else { Some(self.happened_at) }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            self.happened_at = at;
            if let Some(Arrival { path, number, packet, .. }) =
                self.arrivals.pop_front_if(|arrival| arrival.at <= at)
            {
                self.deliver(at, path, Some(number), Some(packet));
                continue;
            }
            self.expire(at);
            match self.channel {
                Channel::Busy { until, .. } if until <= at => self.end(at),
                Channel::Idle(from) => self.begin_if_due(at, from),
                Channel::Busy { .. } => {}
            }
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn counters(&self, from: usize, to: usize) -> LinkCounters {
        self.paths.counters(from, to)
    }
}

impl fmt::Debug for Dcf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dcf").field("params", &self.params).finish_non_exhaustive()
    }
}
