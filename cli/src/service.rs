//! Notifications to the service manager that started the program, if one did: readiness, and the
//! watchdog. A thread sends them: where the manager's socket is full, the loop must not wait.

use crate::log_lines::LogLines;
use airmend_live::tunnel::{inherited, send_file};
use anyhow::Result;
use sd_notify::NotifyState;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

/// The name of the file that the service manager keeps.
const INTERFACE: &str = "interface";

/// The interface that the service manager has kept since an earlier run.
pub(crate) fn kept_interface() -> Option<File> {
    let mut files = sd_notify::listen_fds_with_names().ok()?;
    let (number, _) = files.find(|(_, name)| name == INTERFACE)?;
    inherited(number).ok()
}

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

    /// Has this interface kept while the program is not there: it stays over a restart, with its
    /// addresses and routes, and packets wait in it. The manager closes it at the end of the
    /// service.
    pub(crate) fn keep_interface(&self, device: BorrowedFd<'_>) {
        if self.manager.is_some() {
            // One that was kept before may be another one.
            let remove = format!("FDSTOREREMOVE=1\nFDNAME={INTERFACE}");
            let keep = format!("FDSTORE=1\nFDNAME={INTERFACE}");
            // A manager that keeps nothing is no reason not to begin.
            let _ = sd_notify::notify(&[NotifyState::Custom(&remove)]);
            let _ = hand_over(&keep, device);
        }
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

/// A notification with an open file, which never waits.
fn hand_over(states: &str, file: BorrowedFd<'_>) -> io::Result<()> {
    let path = std::env::var_os("NOTIFY_SOCKET").ok_or(ErrorKind::NotFound)?;
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect(path)?;
    send_file(&socket, states.as_bytes(), file)
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
