//! The link model: queue, serialise, draw fate, propagate, deliver.
//!
//! A lost frame has used its airtime. A frame is a packet's `wire_len` bytes and nothing more: IP
//! headers count, link-layer framing does not (a MAC with overhead is a lower rate, or one of
//! [`mac`]).

mod bound;
mod counters;
mod discipline;
mod errors;
mod full_duplex;
mod generator;
pub mod mac;
mod managed;
mod medium;
#[cfg(test)]
mod tests;
pub mod trace;
mod variation;

pub use bound::goodput_bound;
pub use counters::LinkCounters;
pub use discipline::{CoDelParams, QueueDiscipline};
pub use errors::{ErrorModel, ErrorProcess, Fate, parse_burst, parse_fading};
pub use full_duplex::FullDuplex;
pub use generator::{DropRates, PacketErrorGenerator, Way};
pub use managed::Managed;
pub use medium::{Conditions, Medium, Output, Pair};
pub use variation::{DelayProcess, DelayVariation, VariableDelay};

use crate::packet::Packet;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use medium::{Path, Paths, cut};
use trace::{RateProcess, VariableRate};

/// Frames that one direction holds at most, whatever its parameters say: queued, being serialised
/// or propagating. It is 12 seconds of full frames at 1 Gb/s.
pub const FRAME_LIMIT: usize = 1 << 20;

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkParams {
    /// Bits per second.
    pub rate_bps: u64,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Frames that wait at most behind the one being serialised.
    pub queue_frames: usize,
    /// The backlog of the serialiser up to which `can_send` is true. Zero in virtual time; in real
    /// time it is the driver ring that keeps the link busy across a late wake-up.
    pub lookahead: Duration,
}

/// A frame that came out of a link.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// When its last bit arrived.
    pub at: Instant,
    /// The frame.
    pub packet: Packet,
}

/// One direction of a link as a state machine.
///
/// Since frames are serialised in the order in which they come, the whole way of a frame is known
/// as soon as it is accepted: it starts when the serialiser is free, meets its fate then, and
/// arrives (or does not) an airtime and a propagation delay later. What remains is a list of
/// arrivals.
///
/// By itself it has one sender; in a [`FullDuplex`] medium several senders, each with a queue of
/// its own, share the serialiser, and the path from sender to receiver decides fate and delay.
pub struct Link {
    params: LinkParams,
    /// That of the parameters in nanoseconds.
    lookahead: u64,
    paths: Paths,
    /// When the last bit of the last frame leaves the serialiser, rounded down.
    busy_until: Instant,
    /// What that rounding cut off, in units of 1/rate nanoseconds.
    remainder: u64,
    /// Takes the place of the constant rate.
    variable: Option<Box<RateProcess>>,
    /// For each sender, when each frame that may still be queued begins to be serialised.
    queues: Vec<VecDeque<Instant>>,
    /// Frames on their way, in the order of arrival.
    arrivals: VecDeque<(Instant, Output)>,
}

impl Link {
    /// An idle link with one sender. Its queue is never longer than [`FRAME_LIMIT`].
    pub fn new(params: LinkParams, errors: Box<dyn ErrorProcess + Send>) -> Self {
        let path = Path {
            from: 0,
            to: 1,
            delay: params.delay,
            variation: None,
            errors,
            control_errors: ErrorModel::None.process(0, 0, 0),
            tells_damage: false,
            counters: LinkCounters::default(),
        };
        Self::of_paths(params, 1, Paths::new(vec![path]))
    }

    /// An idle link from any of so many senders, with the delays of the paths.
    fn of_paths(params: LinkParams, senders: usize, paths: Paths) -> Self {
        let queue_frames = params.queue_frames.min(FRAME_LIMIT);
        Self {
            params: LinkParams { queue_frames, ..params },
            lookahead: u64::try_from(params.lookahead.as_nanos()).unwrap_or(u64::MAX),
            paths,
            busy_until: Instant::ZERO,
            remainder: 0,
            variable: None,
            queues: vec![VecDeque::new(); senders],
            arrivals: VecDeque::new(),
        }
    }

    /// Lets the rate vary.
    fn vary(&mut self, rate: Option<&VariableRate>) {
        self.variable = rate.map(|rate| Box::new(rate.process()));
    }

    /// Whether the serialiser's backlog is at most the lookahead, and the queue has room.
    #[must_use]
    pub fn can_send(&self, now: Instant) -> bool {
        self.free_at() <= now
    }

    /// When [`Self::can_send`] turns true; in the past if it already is.
    #[must_use]
    pub fn free_at(&self) -> Instant {
        self.free_for(0)
    }

    /// Takes a frame. False: the queue is full and the frame is dropped, and counted.
    pub fn send(&mut self, now: Instant, packet: Packet) -> bool {
        self.send_on(now, 0, packet)
    }

    /// The next frame that has arrived by now, in the order of arrival.
    #[must_use]
    pub fn poll_delivery(&mut self, now: Instant) -> Option<Delivery> {
        let at = self.next_delivery()?;
        match self.take_arrival(now)? {
            Output::Delivery { packet, .. } => Some(Delivery { at, packet }),
            _ => None,
        }
    }

    /// When the next frame arrives, if one is under way.
    #[must_use]
    pub fn next_delivery(&self) -> Option<Instant> {
        self.arrivals.front().map(|(at, _)| *at)
    }

    /// The counters of the link.
    pub fn counters(&self) -> LinkCounters {
        self.paths.0[0].counters
    }

    /// Changes the conditions of frames that come from now on; `way` numbers the random stream.
    fn change(&mut self, to: &Conditions, seed: u64, link: u32, way: u8) {
        if let Some(rate_bps) = to.rate_bps {
            // The fraction of a nanosecond is one of the old rate.
            (self.params.rate_bps, self.remainder) = (rate_bps, 0);
        }
        for path in &mut self.paths.0 {
            path.delay = to.delay.unwrap_or(path.delay);
            if let Some(errors) = to.errors {
                path.errors = errors.process(seed, link, way);
            }
        }
    }

    /// A queue that waits for the serialiser has room no later than that is free.
    fn free_for(&self, sender: usize) -> Instant {
        if self.lookahead == 0 {
            return self.busy_until;
        }
        let near = Instant::from_nanos(self.busy_until.as_nanos().saturating_sub(self.lookahead));
        near.max(room_at(&self.queues[sender], self.params.queue_frames, self.busy_until))
    }

    fn find(&self, from: usize, to: usize) -> Option<usize> {
        self.paths.find(from, to)
    }

    fn send_on(&mut self, now: Instant, place: usize, packet: Packet) -> bool {
        let path = &mut self.paths.0[place];
        let Path { from, to, errors, counters, delay, variation, tells_damage, .. } = path;
        let queue = &mut self.queues[*from];
        while queue.front().is_some_and(|&start| start <= now) {
            queue.pop_front();
        }
        let room_at = room_at(queue, self.params.queue_frames, self.busy_until);
        if now < room_at || self.arrivals.len() >= FRAME_LIMIT {
            counters.dropped += 1;
            return false;
        }
        let start = self.busy_until.max(now);
        if start > now {
            queue.push_back(start);
        }
        let bits = packet.wire_bits();
        let follows = start == self.busy_until;
        let end = if let Some(rate) = &mut self.variable {
            rate.end(start, follows, &packet)
        } else {
            let carried = if follows { self.remainder } else { 0 };
            let (airtime, remainder) = airtime(bits, self.params.rate_bps, carried);
            self.remainder = remainder;
            start + airtime
        };
        self.busy_until = end;
        let airtime = end - start;
        counters.frames += 1;
        counters.bytes += u64::from(packet.wire_len());
        counters.busy = counters.busy.saturating_add(airtime);
        let arrives =
            end + *delay + variation.as_mut().map_or(Duration::ZERO, |it| it.draw(start, end));
        match errors.draw(start, airtime, bits) {
            Fate::Intact => {
                let (at, from, to) = (arrives, *from, *to);
                self.arrive(at, Output::Delivery { from, to, packet });
            }
            Fate::Damaged(intact) => {
                counters.damaged += 1;
                if *tells_damage {
                    let (at, to, packet) = (arrives, *to, cut(&packet, intact));
                    self.arrive(at, Output::Damaged { to, packet });
                }
            }
            Fate::Lost => counters.lost += 1,
        }
        true
    }

    #[inline]
    fn arrive(&mut self, at: Instant, output: Output) {
        let earlier = |(other, _): &(Instant, Output)| *other <= at;
        if self.arrivals.back().is_none_or(earlier) {
            self.arrivals.push_back((at, output));
        } else {
            // Its path is shorter than those of others, or has become shorter.
            self.arrivals.insert(self.arrivals.partition_point(earlier), (at, output));
        }
    }

    /// The next frame that has arrived by now.
    fn take_arrival(&mut self, now: Instant) -> Option<Output> {
        if self.next_delivery()? > now {
            return None;
        }
        self.arrivals.pop_front().map(|(_, output)| output)
    }

    fn counters_of(&self, from: usize, to: usize) -> LinkCounters {
        self.paths.counters(from, to)
    }
}

/// When a sender's queue has room: at once unless it is full, then as its first frame leaves it.
/// With no queue at all there is room when the serialiser is free.
fn room_at(queue: &VecDeque<Instant>, queue_frames: usize, busy_until: Instant) -> Instant {
    match queue.len().checked_sub(queue_frames) {
        None => Instant::ZERO,
        Some(first) => queue.get(first).copied().unwrap_or(busy_until),
    }
}

/// How long so many bits take, and what rounding down cuts off, in units of 1/rate nanoseconds.
///
/// Back-to-back frames carry the fraction of a nanosecond over, so that the long-run rate is exact
/// at any rate. After an idle time there is nothing to carry: the fraction has passed.
fn airtime(bits: u64, rate_bps: u64, carried: u64) -> (Duration, u64) {
    let rate = rate_bps.max(1);
    let scaled = bits.checked_mul(1_000_000_000).and_then(|scaled| scaled.checked_add(carried));
    let (nanos, remainder) = if let Some(scaled) = scaled {
        (scaled / rate, scaled % rate)
    } else {
        let (scaled, rate) =
            (u128::from(bits) * 1_000_000_000 + u128::from(carried), u128::from(rate));
        (u64::try_from(scaled / rate).unwrap_or(u64::MAX), (scaled % rate) as u64)
    };
    (Duration::from_nanos(nanos), remainder)
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("params", &self.params)
            .field("busy_until", &self.busy_until)
            .field("under_way", &self.arrivals.len())
            .finish_non_exhaustive()
    }
}
