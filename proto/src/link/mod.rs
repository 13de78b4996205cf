//! The link model: queue, serialise, draw fate, propagate, deliver.
//!
//! A lost frame has used its airtime. A frame is a packet's `wire_len` bytes and nothing more: IP
//! headers count, link-layer framing does not (a MAC with overhead is a lower rate, or one of
//! [`mac`]).

mod bound;
mod errors;
pub mod mac;
#[cfg(test)]
mod tests;

pub use bound::goodput_bound;
pub use errors::{ErrorModel, ErrorProcess, Fate};

use crate::packet::Packet;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt;
use core::time::Duration;

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
    /// How far ahead of the serialiser `can_send` already says yes. Zero in virtual time; in real
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

/// What one direction of a link has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames accepted; each of them is serialised, also one that gets lost.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of these frames, lost on the air.
    pub lost: u64,
    /// Of these frames, damaged on the air. They are not delivered: the receiver's checksum would
    /// refuse them.
    pub damaged: u64,
    /// Frames refused by the full queue; not among `frames`.
    pub dropped: u64,
    /// Airtime of all accepted frames.
    pub busy: Duration,
}

/// One direction of a link as a state machine.
///
/// Since the queue is first in, first out, the whole way of a frame is known as soon as it is
/// accepted: it starts when the serialiser is free, meets its fate then, and arrives (or does not)
/// an airtime and a propagation delay later. What remains is a list of arrivals.
pub struct Link {
    params: LinkParams,
    errors: Box<dyn ErrorProcess + Send>,
    /// When the last bit of the last frame leaves the serialiser, rounded down.
    busy_until: Instant,
    /// What that rounding cut off, in units of 1/rate nanoseconds.
    remainder: u128,
    /// When each frame that may still be queued begins to be serialised.
    starts: VecDeque<Instant>,
    arrivals: VecDeque<Delivery>,
    counters: LinkCounters,
}

impl Link {
    /// An idle link. Its queue is never longer than [`FRAME_LIMIT`].
    pub fn new(params: LinkParams, errors: Box<dyn ErrorProcess + Send>) -> Self {
        let queue_frames = params.queue_frames.min(FRAME_LIMIT);
        Self {
            params: LinkParams { queue_frames, ..params },
            errors,
            busy_until: Instant::ZERO,
            remainder: 0,
            starts: VecDeque::new(),
            arrivals: VecDeque::new(),
            counters: LinkCounters::default(),
        }
    }

    /// Whether the serialiser's backlog is at most the lookahead, and the queue has room.
    #[must_use]
    pub fn can_send(&self, now: Instant) -> bool {
        self.free_at() <= now
    }

    /// When [`Self::can_send`] turns true; in the past if it already is.
    #[must_use]
    pub fn free_at(&self) -> Instant {
        let lookahead = u64::try_from(self.params.lookahead.as_nanos()).unwrap_or(u64::MAX);
        let near = Instant::from_nanos(self.busy_until.as_nanos().saturating_sub(lookahead));
        near.max(self.room_at())
    }

    /// Takes a frame. False: the queue is full and the frame is dropped, and counted.
    pub fn send(&mut self, now: Instant, packet: Packet) -> bool {
        while self.starts.front().is_some_and(|&start| start <= now) {
            self.starts.pop_front();
        }
        if now < self.room_at() || self.arrivals.len() >= FRAME_LIMIT {
            self.counters.dropped += 1;
            return false;
        }
        let start = self.busy_until.max(now);
        if start > now {
            self.starts.push_back(start);
        }
        let bits = packet.wire_bits();
        let end = self.serialise(start, bits);
        self.counters.frames += 1;
        self.counters.bytes += u64::from(packet.wire_len());
        self.counters.busy = self.counters.busy.saturating_add(end - start);
        match self.errors.draw(start, end - start, bits) {
            Fate::Intact => {
                self.arrivals.push_back(Delivery { at: end + self.params.delay, packet });
            }
            Fate::Damaged => self.counters.damaged += 1,
            Fate::Lost => self.counters.lost += 1,
        }
        true
    }

    /// The next frame that has arrived by now, in the order in which frames were sent.
    #[must_use]
    pub fn poll_delivery(&mut self, now: Instant) -> Option<Delivery> {
        if self.next_delivery()? > now {
            return None;
        }
        self.arrivals.pop_front()
    }

    /// When the next frame arrives, if one is under way.
    #[must_use]
    pub fn next_delivery(&self) -> Option<Instant> {
        self.arrivals.front().map(|delivery| delivery.at)
    }

    /// What the link has done so far.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// When the queue has room: at once unless it is full, then as its first frame leaves it. With
    /// no queue at all there is room when the serialiser is free.
    fn room_at(&self) -> Instant {
        match self.starts.len().checked_sub(self.params.queue_frames) {
            None => Instant::ZERO,
            Some(first) => self.starts.get(first).copied().unwrap_or(self.busy_until),
        }
    }

    /// Occupies the serialiser from `start` on and returns the end of it.
    ///
    /// Back-to-back frames carry the fraction of a nanosecond over, so that the long-run rate is
    /// exact at any rate. After an idle time there is nothing to carry: the fraction has passed.
    fn serialise(&mut self, start: Instant, bits: u64) -> Instant {
        let carried = if start == self.busy_until { self.remainder } else { 0 };
        let rate = u128::from(self.params.rate_bps.max(1));
        let scaled = u128::from(bits) * 1_000_000_000 + carried;
        self.remainder = scaled % rate;
        let nanos = u64::try_from(scaled / rate).unwrap_or(u64::MAX);
        self.busy_until = start + Duration::from_nanos(nanos);
        self.busy_until
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("params", &self.params)
            .field("busy_until", &self.busy_until)
            .field("under_way", &self.arrivals.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
