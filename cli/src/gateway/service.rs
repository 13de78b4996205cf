//! Notifications to the service manager that started the gateway, if one did: readiness, and the
//! watchdog.

use sd_notify::NotifyState;
use std::time::{Duration, Instant};

/// The service manager, if there is one.
pub(super) struct Service {
    /// The interval of watchdog notifications, if the service manager expects them.
    interval: Option<Duration>,
    last_notification: Instant,
}

impl Service {
    /// The service manager that the environment names.
    pub(super) fn new() -> Self {
        // Half of the watchdog timeout: a notification that is a little late is in time.
        let interval = sd_notify::watchdog_enabled().map(|longest| longest / 2);
        Self { interval, last_notification: Instant::now() }
    }

    /// Reports that flows are mended from now on.
    pub(super) fn ready(&self, status: &str) {
        notify(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// Notifies the watchdog, once in each interval; call it at every turn of the loop.
    pub(super) fn watchdog(&mut self) {
        if self.interval.is_some_and(|interval| self.last_notification.elapsed() >= interval) {
            self.last_notification = Instant::now();
            notify(&[NotifyState::Watchdog]);
        }
    }

    /// Reports that nothing is mended any more.
    pub(super) fn stopping(&self) {
        notify(&[NotifyState::Stopping]);
    }
}

fn notify(states: &[NotifyState<'_>]) {
    // A service manager that does not listen is no reason to stop mending.
    let _ = sd_notify::notify(states);
}
