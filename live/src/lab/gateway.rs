//! The gateway daemon beside the kernel of the base station: a process of its own, as an operator
//! runs it.

use super::config::AirQueue;
use super::error::LabError;
use super::network::air_queue;
use super::network::interface::AIR;
use super::network::namespace::{Namespace, is_initial_user_namespace};
use crate::sys;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// One of these is in the line on stderr with which a gateway reports that it is ready.
const READY: [&str; 2] = ["mending with", "observing"];
/// The longest time that a gateway may take to start, and to end. One that fails ends this wait at
/// once; in a guest on a busy machine a start has taken more than ten seconds.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The interval of checks whether a gateway has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Bytes of its report, and of one line on stderr, at most.
const MAX_REPORT: u64 = 1 << 20;
const MAX_LINE: u64 = 1 << 16;

/// The program of the gateway and its arguments.
#[derive(Clone, Debug)]
pub struct GatewayCommand {
    /// The program `airmend`.
    pub program: PathBuf,
    /// The arguments after `gateway INTERFACE`, without priority and output: agent, settings.
    pub arguments: Vec<String>,
}

/// What a gateway tells at its end.
#[derive(Debug, Deserialize, PartialEq)]
pub(crate) struct GatewayReport {
    /// The counters of the agent, by event.
    pub(crate) agent_counters: BTreeMap<String, u64>,
    /// Times that the heartbeat timed out and the kernel passed every packet.
    pub(crate) heartbeat_timeouts: u64,
    /// The observation of a gateway that only observes, as in its report.
    pub(crate) observation: Option<serde_json::Value>,
}

/// A gateway at work, with the real-time priority that the loop has: on a busy machine its figures
/// would else be those of the machine's scheduler. It ends with this value, and if that is never
/// dropped, with the thread that started it.
pub(crate) struct Gateway {
    child: Child,
    /// The socket of the gateway's telemetry server.
    socket: PathBuf,
    log: Arc<GatewayLog>,
    stderr: Option<JoinHandle<()>>,
    stdout: Option<JoinHandle<io::Result<String>>>,
}

/// The last line of a gateway on stderr, and whether stderr has ended.
#[derive(Default)]
struct GatewayLog {
    last: Mutex<String>,
    has_ended: AtomicBool,
}

impl Gateway {
    /// Starts `command` on the air interface of the base station, which has this queue, and waits
    /// until it is at work.
    pub(crate) fn start(
        command: &GatewayCommand,
        station: &Namespace,
        queue: AirQueue,
    ) -> Result<Self, LabError> {
        if !is_initial_user_namespace() {
            return Err(LabError::GatewayNeedsRoot);
        }
        let socket = std::env::temp_dir().join(format!("airmend-lab-{}.sock", std::process::id()));
        let mut process = Command::new(&command.program);
        process
            .args(["gateway", AIR, "--json"])
            .args(air_queue::priority(queue).into_iter().flat_map(|class| ["--priority", class]))
            // The machine may have a gateway and a configuration of its own, for such a name too.
            .args(["--config", "/dev/null", "--socket"])
            .arg(&socket)
            .args(&command.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Signals of the terminal to the laboratory must not reach the gateway.
            .process_group(0);
        let child = sys::spawn_inside(&mut process, station.file());
        let child = child.map_err(|error| failed("could not be started", error.to_string()))?;
        let (ready, is_ready) = channel();
        let mut gateway = Self { child, socket, log: Arc::default(), stderr: None, stdout: None };
        if let Some(stderr) = gateway.child.stderr.take() {
            let log = Arc::clone(&gateway.log);
            gateway.stderr = Some(thread::spawn(move || listen(stderr, &log, &ready)));
        }
        let stdout = gateway.child.stdout.take();
        gateway.stdout = stdout.map(|stdout| thread::spawn(move || report(stdout)));
        match is_ready.recv_timeout(TIMEOUT) {
            Ok(()) => Ok(gateway),
            Err(_) => Err(failed("did not start", gateway.last_line())),
        }
    }

    /// Whether it has ended by itself, which it should not.
    pub(crate) fn has_ended(&self) -> bool {
        self.log.has_ended.load(Ordering::Relaxed)
    }

    /// Ends it and reads its report.
    pub(crate) fn finish(mut self) -> Result<GatewayReport, LabError> {
        if self.has_ended() {
            return Err(failed("ended in the middle of the run", self.last_line()));
        }
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, Signal::SIGTERM)
            .map_err(|error| failed("could not be ended", error.to_string()))?;
        let patience = Instant::now() + TIMEOUT;
        while self.child.try_wait().map_err(LabError::socket("waiting for the gateway"))?.is_none()
        {
            if Instant::now() >= patience {
                return Err(failed("did not end after SIGTERM", self.last_line()));
            }
            thread::sleep(POLL_INTERVAL);
        }
        let read = self.stdout.take().map(|thread| thread.join());
        let text = read.and_then(Result::ok).and_then(Result::ok).unwrap_or_default();
        parse(&text).ok_or_else(|| failed("ended without a report", self.last_line()))
    }

    fn last_line(&self) -> String {
        let last = self.log.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_empty() { "there was nothing on stderr".to_owned() } else { last.clone() }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Both fail only where it has ended and was waited for.
        self.child.kill().ok();
        self.child.wait().ok();
        // One that was killed leaves it.
        fs::remove_file(&self.socket).ok();
        if let Some(stderr) = self.stderr.take() {
            stderr.join().ok();
        }
    }
}

/// Keeps the last line, and signals `ready` at a line with one of `READY`.
fn listen(stderr: ChildStderr, log: &GatewayLog, ready: &Sender<()>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while matches!((&mut stderr).take(MAX_LINE).read_until(b'\n', &mut line), Ok(1..)) {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim().trim_start_matches("airmend: ").to_owned();
        if READY.iter().any(|ready| text.contains(ready)) {
            // Nobody waits for a second one.
            ready.send(()).ok();
        }
        if !text.is_empty() {
            *log.last.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
        line.clear();
    }
    log.has_ended.store(true, Ordering::Relaxed);
}

fn report(stdout: ChildStdout) -> io::Result<String> {
    let mut text = String::new();
    stdout.take(MAX_REPORT).read_to_string(&mut text)?;
    Ok(text)
}

/// The last line is one JSON object.
fn parse(text: &str) -> Option<GatewayReport> {
    serde_json::from_str(text.lines().last()?).ok()
}

fn failed(what: &'static str, said: String) -> LabError {
    LabError::Gateway { what, said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_the_last_line() {
        let text =
            "{\"agent_counters\":{\"local_retransmits\":3},\"heartbeat_timeouts\":1,\"more\":[]}\n";
        let agent_counters = BTreeMap::from([("local_retransmits".to_owned(), 3)]);
        assert_eq!(
            parse(text),
            Some(GatewayReport { agent_counters, heartbeat_timeouts: 1, observation: None })
        );
        for wrong in ["", "mending", "{\"agent_counters\":{}}", "{\"heartbeat_timeouts\":1}"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
