//! Notifications to the service manager that started the program, if one did: readiness, and the
//! watchdog. A thread sends them: where the manager's socket is full, the loop must not wait.

use crate::log_lines::LogLines;
use anyhow::Result;
use sd_notify::NotifyState;
use std::io::{self, ErrorKind, Write};
use std::time::{Duration, Instant};

/// The service manager, if there is one.
pub(crate) struct Service {
    manager: Option<LogLines>,
    /// The interval of watchdog notifications, if the service manager expects them.
    interval: Option<Duration>,
    last_notification: Instant,
}

impl Service {
    /// The service manager that the environment names.
    ///
    /// # Errors
    /// There can be no thread, or it keeps capabilities.
    pub(crate) fn new() -> Result<Self> {
        let is_there = std::env::var_os("NOTIFY_SOCKET").is_some();
        let manager = is_there.then(|| LogLines::new(Manager, |_| String::new())).transpose()?;
        // Half of the watchdog timeout: a notification that is a little late is in time.
        let interval = sd_notify::watchdog_enabled().map(|longest| longest / 2);
        Ok(Self { manager, interval, last_notification: Instant::now() })
    }

    /// Reports that everything is set up.
    pub(crate) fn ready(&self, status: &str) {
        self.tell(format!("{}\n{}", NotifyState::Ready, NotifyState::Status(status)));
    }

    /// Notifies the watchdog, once in each interval; call it at every turn of the loop.
    pub(crate) fn watchdog(&mut self) {
        if self.interval.is_some_and(|interval| self.last_notification.elapsed() >= interval) {
            self.last_notification = Instant::now();
            self.tell(NotifyState::Watchdog.to_string());
        }
    }

    /// Reports that the end has begun.
    pub(crate) fn stopping(&self) {
        self.tell(NotifyState::Stopping.to_string());
    }

    fn tell(&self, states: String) {
        if let Some(manager) = &self.manager {
            manager.push(states);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // A service manager that does not listen is no reason to stop, nor to end badly.
        let _ = self.manager.as_ref().map(LogLines::finish);
    }
}

/// Each call is one notification.
struct Manager;

impl Write for Manager {
    fn write(&mut self, states: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(states).map_err(|_| ErrorKind::InvalidInput)?;
        sd_notify::notify(&[NotifyState::Custom(text)]).map(|()| states.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
