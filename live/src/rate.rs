//! Events that others can cause, bounded in time: work, and messages about it.

use airmend_proto::Instant;
use std::time::Duration;

/// Events at this interval on average, and at most so many at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    interval: Duration,
    burst: u32,
}

impl Rate {
    pub(crate) const fn every(interval: Duration, burst: u32) -> Self {
        Self { interval, burst }
    }

    pub(crate) const fn per_second(events: u32, burst: u32) -> Self {
        Self { interval: Duration::from_nanos(1_000_000_000 / events as u64), burst }
    }
}

/// Takes events at a rate: the generic cell rate algorithm (ITU-T I.371).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    /// The time at which no event would be owed any more.
    settled: Instant,
}

impl Bucket {
    /// Whether one more event is within the rate.
    pub(crate) fn take(&mut self, rate: Rate, now: Instant) -> bool {
        let settled = self.settled.max(now);
        let is_within = settled - now <= rate.interval * rate.burst.saturating_sub(1);
        if is_within {
            self.settled = settled + rate.interval;
        }
        is_within
    }

    /// Whether events still count against the next ones.
    pub(crate) fn owes(&self, now: Instant) -> bool {
        self.settled > now
    }
}

/// Messages of one kind.
const MESSAGES: Rate = Rate::every(Duration::from_secs(10), 5);

/// The limit of one kind of message: five at once, then one in ten seconds; the others are counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageLimit {
    bucket: Bucket,
    left_out: u64,
}

impl MessageLimit {
    /// Takes one more message: `None` if it is left out, and otherwise how many were left out since
    /// the last one that was not.
    pub fn take(&mut self, now: Instant) -> Option<u64> {
        let is_within = self.bucket.take(MESSAGES, now);
        self.left_out += u64::from(!is_within);
        is_within.then(|| std::mem::take(&mut self.left_out))
    }

    /// How many were left out, once, if one of them may be made up for now.
    pub fn take_left_out(&mut self, now: Instant) -> Option<u64> {
        let may_follow = self.left_out > 0 && self.bucket.take(MESSAGES, now);
        may_follow.then(|| std::mem::take(&mut self.left_out))
    }
}
