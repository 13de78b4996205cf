//! The gateway's process, as an operator runs it.

use crate::world::{FAST_CLASS, PATIENCE, Result, until};
use airmend_live::lab::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A gateway at work; killed when the test is over.
pub(crate) struct Daemon {
    child: Child,
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
        let mut child = base.spawn(&mut command)?;
        let stderr = BufReader::new(child.stderr.take().ok_or("stderr is piped")?);
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let listening = thread::spawn(move || {
            for line in stderr.lines().map_while(std::result::Result::ok) {
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        let mut daemon = Self { child, socket, said, listening: Some(listening) };
        let begin = Instant::now();
        while !daemon.said().iter().any(|line| line.contains(" what leaves through ")) {
            if daemon.child.try_wait()?.is_some() || begin.elapsed() > PATIENCE {
                daemon.child.kill().ok();
                daemon.child.wait()?;
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
        Ok(kill(Pid::from_raw(self.child.id().try_into()?), signal)?)
    }

    /// What `airmend status --json` tells.
    pub(crate) fn status(&self) -> Result<Value> {
        let mut airmend = airmend();
        airmend.args(["status", "--json", "--socket"]).arg(&self.socket);
        let output = airmend.output()?;
        match output.status.success() {
            true => Ok(serde_json::from_slice(&output.stdout)?),
            false => Err(String::from_utf8_lossy(&output.stderr).into()),
        }
    }

    /// Waits until it has mended at least so many losses; how many, then.
    pub(crate) fn mended(&self, least: u64) -> Result<u64> {
        until("mending", || {
            self.status().ok().map(|status| repairs(&status)).filter(|repairs| *repairs >= least)
        })
    }

    /// Bytes of memory that are its own (`VmRSS`).
    pub(crate) fn memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS")?;
        Ok(kilobytes.parse::<u64>()? << 10)
    }

    /// SIGKILL, and waits for its end.
    pub(crate) fn kill(mut self) -> Result {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        let status = until("the gateway's end", || self.child.try_wait().ok().flatten())?;
        self.listening.take().map(JoinHandle::join);
        Ok(status)
    }

    /// Ends the gateway with SIGTERM and returns its last status.
    pub(crate) fn end(mut self) -> Result<Value> {
        self.signal(Signal::SIGTERM)?;
        let status = self.wait()?;
        let mut text = String::new();
        self.child.stdout.take().ok_or("stdout is piped")?.read_to_string(&mut text)?;
        assert!(status.success(), "{status}: {:?}", self.said());
        let last = text.lines().last().ok_or("it printed no figures")?;
        let status: Value = serde_json::from_str(last)?;
        // A debug build checks every packet.
        assert_eq!(status["counters"]["broken_rules"], 0, "{:?}", self.said());
        Ok(status)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail only where it has ended and was waited for.
        self.child.kill().ok();
        self.child.wait().ok();
        fs::remove_file(&self.socket).ok();
        self.listening.take().map(JoinHandle::join);
    }
}

/// Losses mended so far, as a status or the last words tell.
pub(crate) fn repairs(status: &Value) -> u64 {
    let repairs = status["repairs"].as_object();
    repairs.map_or(0, |causes| causes.values().filter_map(Value::as_u64).sum())
}

pub(crate) fn airmend() -> Command {
    Command::new(env!("CARGO_BIN_EXE_airmend"))
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
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("airmend-gateway-{}-{number}.sock", std::process::id()))
}
