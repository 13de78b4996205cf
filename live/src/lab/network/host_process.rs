//! A program of the user on a host, in the namespaces of the host.

use super::host_namespaces::HostNamespaces;
use crate::lab::error::LabError;
use crate::sys;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A program that is told to end has so long.
const GRACE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(5);
/// `TCP_LISTEN`, in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// A program at work, which does not outlive this value.
#[derive(Debug)]
pub(crate) struct HostProcess {
    pid: Pid,
    /// Whether it leads a process group of its own.
    is_leader: bool,
    inside: Arc<HostNamespaces>,
    /// Waits for its end, in the namespaces that the program has.
    thread: Option<JoinHandle<io::Result<ExitStatus>>>,
}

impl HostProcess {
    /// Starts a program with its arguments; its files are those of this process.
    pub(crate) fn start(
        inside: &Arc<HostNamespaces>,
        words: &[OsString],
    ) -> Result<Self, LabError> {
        let (program, arguments) =
            words.split_first().ok_or(LabError::Config("there is no command to run"))?;
        let mut command = Command::new(program);
        command.args(arguments);
        Self::spawn(inside, command, false)
    }

    /// Starts a shell's command line in the background.
    pub(crate) fn start_shell(inside: &Arc<HostNamespaces>, line: &str) -> Result<Self, LabError> {
        let mut command = Command::new("/bin/sh");
        // Its output is no part of what the command prints.
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        Self::spawn(inside, command, true)
    }

    fn spawn(
        inside: &Arc<HostNamespaces>,
        mut command: Command,
        is_leader: bool,
    ) -> Result<Self, LabError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |source| LabError::Program { program: program.clone(), source };
        let namespaces = Arc::clone(inside);
        let (started, starting) = sync_channel(1);
        let thread = thread::spawn(move || {
            let child = namespaces.enter().and_then(|()| sys::spawn_mortal(&mut command));
            let mut child = match child {
                Ok(child) => child,
                Err(error) => {
                    started.send(Err(error)).ok();
                    return Err(io::ErrorKind::NotFound.into());
                }
            };
            started.send(Ok(Pid::from_raw(child.id().cast_signed()))).ok();
            child.wait()
        });
        let pid = starting.recv().map_err(|_| failed(io::ErrorKind::Other.into()))?;
        let pid = pid.map_err(failed)?;
        Ok(Self { pid, is_leader, inside: Arc::clone(inside), thread: Some(thread) })
    }

    /// Waits until something listens for TCP connections on the host, or this program has had
    /// nothing to do for as long as `idle`; not longer than `limit`.
    pub(crate) fn wait_for_listener(
        &self,
        idle: Duration,
        limit: Duration,
    ) -> Result<(), LabError> {
        let begin = Instant::now();
        let (group, mut worked, mut last) = (self.pid, begin, 0);
        let namespaces = Arc::clone(&self.inside);
        let waiting = move || {
            namespaces.enter_network()?;
            while !listens() && worked.elapsed() < idle && begin.elapsed() < limit {
                let now = processor_time(group);
                if now > last {
                    (worked, last) = (Instant::now(), now);
                }
                thread::sleep(POLL);
            }
            Ok::<_, io::Error>(())
        };
        let waited = thread::spawn(waiting).join();
        let waited = waited.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        waited.map_err(LabError::socket("looking for a server"))
    }

    /// How it has ended, if it has.
    pub(crate) fn poll(&mut self) -> Result<Option<ExitStatus>, LabError> {
        let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) else {
            return Ok(None);
        };
        let status = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        status.map(Some).map_err(LabError::socket("waiting for a program"))
    }

    /// Ends it at once.
    pub(crate) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Whether the program is at work, or one that it started and that ignores the signal to end.
    fn is_there(&self) -> bool {
        let is_running = self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        is_running || self.is_leader && killpg(self.pid, None).is_ok()
    }

    fn signal(&self, signal: Signal) {
        // It fails only where the program has ended.
        match self.is_leader {
            true => killpg(self.pid, signal).ok(),
            false => nix::sys::signal::kill(self.pid, signal).ok(),
        };
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        let begin = Instant::now();
        if self.thread.is_some() {
            self.signal(Signal::SIGTERM);
        }
        while self.is_there() {
            if begin.elapsed() > GRACE {
                self.kill();
            }
            thread::sleep(POLL);
        }
    }
}

/// What the processes of a group have used of the processors so far, in the kernel's ticks.
fn processor_time(group: Pid) -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_group = |stat: &str| {
        // After the name in brackets: state, parent, group; user and system time are the 12th and
        // the 13th.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number)?.parse::<u64>().ok();
        (field(2)? == u64::from(group.as_raw().unsigned_abs())).then_some(field(11)? + field(12)?)
    };
    processes
        .filter_map(|process| fs::read_to_string(process.path().join("stat")).ok())
        .filter_map(|stat| of_group(&stat))
        .sum()
}

/// Whether a socket of the calling thread's namespace listens.
fn listens() -> bool {
    ["tcp", "tcp6"].into_iter().any(|file| {
        let text = fs::read_to_string(format!("/proc/thread-self/net/{file}"));
        let text = text.unwrap_or_default();
        // The fourth column is the state.
        text.lines().any(|line| line.split_whitespace().nth(3) == Some(LISTEN))
    })
}
