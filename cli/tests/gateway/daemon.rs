//! The gateway's process, as an operator runs it.

use crate::kit::{PATIENCE, Process, Result, TempFile, airmend, until};
use crate::world::FAST_CLASS;
use airmend_live::lab::Namespace;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Losses by which a gateway is judged.
const JUDGED: u64 = 60;

/// A gateway at work; killed when the test is over.
pub(crate) struct Daemon {
    process: Process,
    socket: PathBuf,
    said: Arc<Mutex<Vec<String>>>,
    listening: Option<JoinHandle<()>>,
}

impl Daemon {
    /// Starts a gateway and waits until it is at work; the error is what it said.
    pub(crate) fn start(base: &Namespace, interface: &str, flags: &[&str]) -> Result<Self> {
        let socket = socket();
        let command = command(interface, &socket, flags);
        Self::launch(base, command, socket)
    }

    /// The same for a command line that is to answer at this socket.
    pub(crate) fn launch(base: &Namespace, mut command: Command, socket: PathBuf) -> Result<Self> {
        let mut process = Process(base.spawn(&mut command)?);
        let stderr = BufReader::new(process.0.stderr.take().ok_or("stderr is piped")?);
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let listening = thread::spawn(move || {
            for line in stderr.lines().map_while(std::result::Result::ok) {
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        let mut daemon = Self { process, socket, said, listening: Some(listening) };
        let begin = Instant::now();
        while !daemon.said().iter().any(|line| line.contains(" what leaves through ")) {
            if daemon.process.0.try_wait()?.is_some() || begin.elapsed() > PATIENCE {
                daemon.process.kill().ok();
                daemon.listening.take().map(JoinHandle::join);
                return Err(daemon.said().join("\n").into());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(daemon)
    }

    /// Where it answers.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The lines on stderr so far.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result {
        self.process.signal(signal)
    }

    /// What `airmend status --json` tells, once it tells something: a gateway gives up a client
    /// that the machine did not let run for two seconds.
    pub(crate) fn status(&self) -> Result<Value> {
        let mut error = None;
        let answer = until("a status", || status(&self.socket).map_err(|e| error = Some(e)).ok());
        answer.map_err(|waited| error.unwrap_or(waited))
    }

    /// Waits until it has mended at least so many losses; how many, then.
    pub(crate) fn mended(&self, least: u64) -> Result<u64> {
        let mut last = None;
        until("mending", || {
            last = self.status().ok();
            last.as_ref().map(repairs).filter(|repairs| *repairs >= least)
        })
        .map_err(|error| format!("{error}; the last status: {last:?}").into())
    }

    /// Waits until more than half of what was lost in the air meanwhile is mended: of the next
    /// [`JUDGED`] losses, or of as many after them. Where a gateway cannot do that, it never does.
    pub(crate) fn mends_most(&self, mut lost: impl FnMut() -> u64) -> Result {
        let mut before = (lost(), repairs(&self.status()?));
        let mut last = (0, 0);
        until("mending of most losses", || {
            // In this order: what is lost later is not repaired yet.
            let all_lost = lost();
            let now = (all_lost, repairs(&self.status().ok()?));
            last = (now.0 - before.0, now.1 - before.1);
            if last.0 < JUDGED {
                return None;
            }
            before = now;
            (2 * last.1 > last.0).then_some(())
        })
        .map_err(|error| format!("{error}: {} repairs of {} losses", last.1, last.0))?;
        println!("{} repairs of {} losses", last.1, last.0);
        Ok(())
    }

    /// Bytes of memory that are its own (`VmRSS`).
    pub(crate) fn memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS")?;
        Ok(kilobytes.parse::<u64>()? << 10)
    }

    /// How long its loop has been ready to run without a processor to run on.
    pub(crate) fn run_delay(&self) -> Result<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.process.0.id()))?;
        let nanos = text.split_whitespace().nth(1).ok_or("no run delay")?;
        Ok(Duration::from_nanos(nanos.parse()?))
    }

    /// SIGKILL, and waits for its end.
    pub(crate) fn kill(mut self) -> Result {
        self.process.kill()
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        let status = self.process.wait()?;
        self.listening.take().map(JoinHandle::join);
        Ok(status)
    }

    /// Ends the gateway with SIGTERM and returns its last status.
    pub(crate) fn end(mut self) -> Result<Value> {
        let (status, figures) = self.process.end()?;
        assert!(status.success(), "{status}: {:?}", self.said());
        // A debug build checks every packet.
        assert_eq!(figures["counters"]["broken_rules"], 0, "{:?}", self.said());
        Ok(figures)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It fails only where it has ended and was waited for.
        self.process.kill().ok();
        fs::remove_file(&self.socket).ok();
        self.listening.take().map(JoinHandle::join);
    }
}

/// What `airmend status --json` tells of the gateway that answers there.
pub(crate) fn status(socket: &Path) -> Result<Value> {
    let mut airmend = airmend();
    let output = airmend.args(["status", "--json", "--socket"]).arg(socket).output()?;
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout)?),
        false => Err(String::from_utf8_lossy(&output.stderr).into()),
    }
}

/// Losses mended so far, as a status or the last words tell.
pub(crate) fn repairs(status: &Value) -> u64 {
    let repairs = status["repairs"].as_object();
    repairs.map_or(0, |causes| causes.values().filter_map(Value::as_u64).sum())
}

/// A gateway's command line; the machine may have a gateway and a configuration of its own, for
/// such an interface too.
pub(crate) fn command(interface: &str, socket: &Path, flags: &[&str]) -> Command {
    let mut airmend = default_command(interface, socket);
    airmend.args(["--priority", FAST_CLASS]).args(flags);
    airmend
}

/// The same with the interface's own priority for repairs.
pub(crate) fn default_command(interface: &str, socket: &Path) -> Command {
    let mut airmend = airmend();
    airmend.args(["gateway", interface, "--json", "--config", "/dev/null", "--socket"]).arg(socket);
    airmend.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    airmend
}

/// A path of its own.
pub(crate) fn socket() -> PathBuf {
    TempFile::new("gateway.sock").0.clone()
}
