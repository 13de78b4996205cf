//! Two machines, each a namespace, and the processes that run in them.

use airmend_live::lab::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub(crate) type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
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
}

impl World {
    pub(crate) fn new() -> Result<Self> {
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
        Ok(Self { left, right, key })
    }

    /// Starts the end that waits, at the right.
    pub(crate) fn listen(&self, address: &str) -> Result<Link> {
        self.end(&self.right, INNER[1], &["--listen", address])
    }

    /// Starts the end that speaks first, at the left.
    pub(crate) fn dial(&self, address: &str) -> Result<Link> {
        self.end(&self.left, INNER[0], &["--peer", address])
    }

    fn end(&self, namespace: &Namespace, inner: &str, flags: &[&str]) -> Result<Link> {
        let mut command = airmend();
        command.args(["link", "--json", "--address", &format!("{inner}/24")]);
        command.arg("--key-file").arg(&self.key.0).args(flags);
        Link::start(namespace, command)
    }
}

/// A file name of its own; the file goes with the value.
pub(crate) struct TempFile(pub(crate) PathBuf);

impl TempFile {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("airmend-link-{}-{number}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(crate) fn airmend() -> Command {
    Command::new(env!("CARGO_BIN_EXE_airmend"))
}

/// One end of a link: a process of its own, killed when the test is over.
pub(crate) struct Link {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Link {
    /// Starts the process and waits until its interface is up.
    pub(crate) fn start(namespace: &Namespace, mut command: Command) -> Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = namespace.run(|| Ok(command.spawn()))??;
        let stderr = BufReader::new(child.stderr.take().ok_or("stderr is piped")?);
        let mut link = Self { child, stderr };
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

    pub(crate) fn signal(&self, signal: Signal) -> Result {
        Ok(kill(Pid::from_raw(self.child.id().try_into()?), signal)?)
    }

    pub(crate) fn kill(mut self) -> Result {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Ends it as an operator does; its exit status, and what it counted.
    pub(crate) fn end(mut self) -> Result<(ExitStatus, Value)> {
        self.signal(Signal::SIGTERM)?;
        let status = self.child.wait()?;
        let mut text = String::new();
        self.child.stdout.take().ok_or("stdout is piped")?.read_to_string(&mut text)?;
        let last = text.lines().last().ok_or("it printed no figures")?;
        Ok((status, serde_json::from_str(last)?))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tries until it works, or for as long as the patience lasts.
pub(crate) fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> Result<T> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(value) = attempt() {
            return Ok(value);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(format!("{what} did not happen").into())
}
