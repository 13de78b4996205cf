//! The least or largest value of a window of time.

use crate::time::Instant;
use core::time::Duration;

/// An extreme of the last one to two windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extreme {
    value: Duration,
    previous: Duration,
    since: Instant,
}

impl Extreme {
    pub(super) fn new(now: Instant, value: Duration) -> Self {
        Self { value, previous: value, since: now }
    }

    pub(super) fn get(&self, pick: fn(Duration, Duration) -> Duration) -> Duration {
        pick(self.value, self.previous)
    }

    pub(super) fn sample(
        &mut self,
        now: Instant,
        sample: Duration,
        window: Duration,
        pick: fn(Duration, Duration) -> Duration,
    ) {
        if now.since(self.since) >= window {
            *self = Self { value: sample, previous: self.value, since: now };
        } else {
            self.value = pick(self.value, sample);
        }
    }
}
