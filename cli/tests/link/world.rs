//! Two machines, each a namespace, and the processes that run in them.

use crate::kit::{Process, Result, TempFile, airmend, until};
use airmend_live::lab::Namespace;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::{ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The outer addresses of the two machines.
pub(crate) const LEFT: &str = "192.0.2.1";
pub(crate) const RIGHT: &str = "192.0.2.2";
/// Their addresses on the link.
pub(crate) const INNER: [&str; 2] = ["10.9.0.1", "10.9.0.2"];

/// Two namespaces with a cable between them.
pub(crate) struct World {
    pub(crate) left: Namespace,
    pub(crate) right: Namespace,
    /// A key file that both may use.
    pub(crate) key: TempFile,
    /// The link protocol of both ends.
    arq: &'static str,
}

impl World {
    pub(crate) fn new() -> Result<Self> {
        Self::with("tulip")
    }

    /// With this link protocol.
    pub(crate) fn with(arq: &'static str) -> Result<Self> {
        let (left, right) = (Namespace::new()?, Namespace::new()?);
        left.ip(&format!(
            "link add eth0 type veth peer name eth0 netns {}\n\
             link set lo up\nlink set eth0 up\n\
             address add {LEFT}/24 dev eth0\n\
             address add 2001:db8::1/64 dev eth0 nodad\n",
            right.path().display()
        ))?;
        right.ip(&format!(
            "link set lo up\nlink set eth0 up\n\
             address add {RIGHT}/24 dev eth0\n\
             address add 2001:db8::2/64 dev eth0 nodad\n"
        ))?;
        let key = TempFile::new("key");
        let made = airmend().arg("keygen").arg(&key.0).output()?;
        assert!(made.status.success(), "{made:?}");
        Ok(Self { left, right, key, arq })
    }

    /// The left one and the right one.
    pub(crate) fn hosts(&self) -> [&Namespace; 2] {
        [&self.left, &self.right]
    }

    /// Starts the end that waits, at the right.
    pub(crate) fn listen(&self, address: &str) -> Result<Link> {
        self.end(&self.right, INNER[1], &["--listen", address])
    }

    /// Starts the end that speaks first, at the left.
    pub(crate) fn dial(&self, address: &str) -> Result<Link> {
        self.end(&self.left, INNER[0], &["--peer", address])
    }

    /// Starts an end with these flags.
    pub(crate) fn end(&self, namespace: &Namespace, inner: &str, flags: &[&str]) -> Result<Link> {
        Link::start(namespace, self.command(inner, flags))
    }

    /// The command line of an end.
    pub(crate) fn command(&self, inner: &str, flags: &[&str]) -> Command {
        let mut command = airmend();
        command.args(["link", "--json", "--address", &format!("{inner}/24"), "--arq", self.arq]);
        command.arg("--key-file").arg(&self.key.0).args(flags);
        command
    }
}

/// One end of a link: a process of its own.
pub(crate) struct Link {
    process: Process,
    stderr: BufReader<ChildStderr>,
}

impl Link {
    /// Starts the process and waits until its interface is up.
    pub(crate) fn start(namespace: &Namespace, mut command: Command) -> Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process(namespace.run(|| Ok(command.spawn()))??);
        let stderr = BufReader::new(process.0.stderr.take().ok_or("stderr is piped")?);
        let mut link = Self { process, stderr };
        let line = link.line()?;
        if !line.contains(" is up, MTU ") {
            return Err(format!("it did not start: {line}").into());
        }
        Ok(link)
    }

    /// The next line of its stderr.
    pub(crate) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stderr.read_line(&mut line)?;
        Ok(line)
    }

    /// The next line of its stderr, if it comes within this time.
    pub(crate) fn line_within(&mut self, time: Duration) -> Result<Option<String>> {
        if self.stderr.buffer().is_empty() {
            let mut fds = [PollFd::new(self.stderr.get_ref().as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, PollTimeout::try_from(time)?)? == 0 {
                return Ok(None);
            }
        }
        self.line().map(Some)
    }

    /// The next line with these words. Others may come at any time, as that about first windows
    /// does when the path has become slower.
    pub(crate) fn said(&mut self, words: &str) -> Result<String> {
        let wait = Duration::from_millis(10);
        until(words, || self.line_within(wait).ok()?.filter(|line| line.contains(words)))
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.0.id()
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result {
        self.process.signal(signal)
    }

    pub(crate) fn kill(mut self) -> Result {
        self.process.kill()
    }

    /// Ends it as an operator does; its exit status, and what it counted.
    pub(crate) fn end(mut self) -> Result<(ExitStatus, Value)> {
        self.process.end()
    }
}

/// Gives an interface this queue, such as `netem delay 10ms`.
pub(crate) fn queue(namespace: &Namespace, device: &str, queue: &str) -> Result {
    let command = format!("qdisc add dev {device} root {queue}\n");
    run(Some(namespace), "tc", &["-batch", "-"], &command).map(drop)
}

/// Runs a program with this on its standard input; what it printed.
pub(crate) fn run(
    namespace: Option<&Namespace>,
    program: &str,
    flags: &[&str],
    input: &str,
) -> Result<String> {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    command.env("PATH", path).args(flags).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match namespace {
        Some(namespace) => namespace.run(|| Ok(command.spawn()))??,
        None => command.spawn()?,
    };
    child.stdin.take().ok_or("stdin is piped")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
