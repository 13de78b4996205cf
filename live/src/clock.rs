//! The wall clock as the machines' time: nanoseconds since the run began.

use airmend_proto::Instant;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// `CLOCK_MONOTONIC` minus the beginning of the run. Copies share the beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Duration,
}

impl Clock {
    /// A clock that begins now.
    pub(crate) fn start() -> Self {
        Self { start: monotonic() }
    }

    /// Now.
    pub(crate) fn now(&self) -> Instant {
        self.at(monotonic())
    }

    /// A time of `CLOCK_MONOTONIC`; the beginning of the run if it was before.
    pub(crate) fn at(&self, monotonic: Duration) -> Instant {
        Instant::ZERO + monotonic.saturating_sub(self.start)
    }

    /// Time from now to `at`; zero if that has passed.
    pub(crate) fn until(&self, at: Instant) -> Duration {
        at.since(self.now())
    }
}

/// `CLOCK_MONOTONIC`: the time since some moment, which no administrator sets.
pub(crate) fn monotonic() -> Duration {
    read(ClockId::CLOCK_MONOTONIC)
}

/// `CLOCK_REALTIME`: the time since 1970, which may jump.
pub(crate) fn realtime() -> Duration {
    read(ClockId::CLOCK_REALTIME)
}

/// Converts times of `CLOCK_REALTIME` that were not long ago to `CLOCK_MONOTONIC`.
pub(crate) fn from_realtime() -> impl Fn(Duration) -> Duration {
    let (now, today) = (monotonic(), realtime());
    move |at| now.saturating_sub(today.saturating_sub(at))
}

/// The time that the calling thread has spent on a CPU.
pub(crate) fn thread_time() -> Duration {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: ClockId) -> Duration {
    // Both clocks exist on every Linux.
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}
