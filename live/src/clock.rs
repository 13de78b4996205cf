//! The wall clock as the machines' time: nanoseconds since the run began.

use airmend_proto::Instant;
use std::time::Duration;

/// `CLOCK_MONOTONIC` minus the beginning of the run. Copies share the beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: std::time::Instant,
}

impl Clock {
    /// A clock that begins now.
    pub(crate) fn start() -> Self {
        Self { start: std::time::Instant::now() }
    }

    /// Now.
    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }

    /// Time from now to `at`; zero if that has passed.
    pub(crate) fn until(&self, at: Instant) -> Duration {
        at.since(self.now())
    }
}
