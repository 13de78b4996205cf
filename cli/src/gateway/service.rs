//! What the gateway tells the service manager that started it, if one did: that it is ready, and
//! now and then that it is alive.

use sd_notify::NotifyState;
use std::time::{Duration, Instant};

/// The service manager, or nobody.
pub(super) struct Service {
    /// How often it wants a sign of life, if it waits for one.
    interval: Option<Duration>,
    last_sign: Instant,
}

impl Service {
    /// Whom the environment names.
    pub(super) fn new() -> Self {
        // Half of what it allows: a sign that comes a little late is not missed.
        let interval = sd_notify::watchdog_enabled().map(|longest| longest / 2);
        Self { interval, last_sign: Instant::now() }
    }

    /// Flows are mended from now on.
    pub(super) fn ready(&self, status: &str) {
        tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// The loop has come around once more.
    pub(super) fn alive(&mut self) {
        if self.interval.is_some_and(|interval| self.last_sign.elapsed() >= interval) {
            self.last_sign = Instant::now();
            tell(&[NotifyState::Watchdog]);
        }
    }

    /// Nothing more is mended.
    pub(super) fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }
}

fn tell(states: &[NotifyState<'_>]) {
    // A service manager that does not listen is no reason to stop mending.
    let _ = sd_notify::notify(states);
}
