//! What tests on several machines share: waiting, processes, and checked bytes.

pub(crate) mod raw;
pub(crate) mod unread;

pub(crate) use airmend_testkit::{PATIENCE, Result, bytes, has_steady_clock, lacks_guest, until};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) fn airmend() -> Command {
    Command::new(env!("CARGO_BIN_EXE_airmend"))
}

/// A path of its own; what is there goes with the value.
pub(crate) struct TempFile(pub(crate) PathBuf);

impl TempFile {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("airmend-test-{}-{number}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl AsRef<Path> for TempFile {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

/// A process whose standard output is a pipe; killed when the test is over.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn signal(&self, signal: Signal) -> Result {
        Ok(kill(Pid::from_raw(self.0.id().try_into()?), signal)?)
    }

    /// SIGKILL, and waits for its end.
    pub(crate) fn kill(&mut self) -> Result {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        until("the end of a process", || self.0.try_wait().ok().flatten())
    }

    /// Ends it as an operator does; its exit status, and the figures that it printed last.
    pub(crate) fn end(&mut self) -> Result<(ExitStatus, Value)> {
        self.signal(Signal::SIGTERM)?;
        let status = self.wait()?;
        let mut text = String::new();
        self.0.stdout.take().ok_or("stdout is piped")?.read_to_string(&mut text)?;
        let last = text.lines().last().ok_or("it printed no figures")?;
        Ok((status, serde_json::from_str(last)?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only where it has ended and was waited for.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
