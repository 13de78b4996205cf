//! The gateway as a service manager and an operator see it: readiness, signs of life, what it may
//! still do, reload and end. In a network namespace of its own; needs root.

use airmend_testkit::{PATIENCE, Suite, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that goes with the value.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A gateway on one end of a pair, and the socket of its service manager.
struct Service {
    child: Child,
    manager: UnixDatagram,
    says: BufReader<ChildStderr>,
    directory: Temporary,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SET_UP: &str = "ip link add air0 type veth peer name mobile0 && ip link set air0 up && \
                      exec \"$0\" gateway air0 --json --config \"$1\" --socket \"$2\"";

impl Service {
    fn start(attach: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("airmend-service-{}-{number}", std::process::id());
        let directory = Temporary(std::env::temp_dir().join(name));
        fs::create_dir_all(&directory.0).unwrap();
        let path = |name: &str| directory.0.join(name);
        fs::write(path("air0.toml"), format!("attach = \"{attach}\"")).unwrap();
        let manager = UnixDatagram::bind(path("notify")).unwrap();
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut child = Command::new("unshare")
            .args(["--net", "sh", "-c", SET_UP, env!("CARGO_BIN_EXE_airmend")])
            .args([path("air0.toml"), path("status.sock")])
            .env("NOTIFY_SOCKET", path("notify"))
            .env("WATCHDOG_USEC", "200000")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(child.stderr.take().unwrap());
        Self { child, manager, says, directory }
    }

    fn configure(&self, text: &str) {
        fs::write(self.configuration(), text).unwrap();
    }

    fn configuration(&self) -> PathBuf {
        self.directory.0.join("air0.toml")
    }

    /// Waits for a datagram with this in it.
    #[track_caller]
    fn await_notice(&self, wanted: &str) -> String {
        loop {
            let mut bytes = [0; 4096];
            let length = self.manager.recv(&mut bytes).expect(wanted);
            let notice = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if notice.contains(wanted) {
                return notice;
            }
        }
    }

    /// Waits for a line on stderr with this in it.
    #[track_caller]
    fn await_line(&mut self, wanted: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let length = self.says.read_line(&mut line).unwrap();
            assert!(length > 0, "no line with {wanted:?} in:\n{all}");
            if line.contains(wanted) {
                return line;
            }
            all += &line;
        }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// The capability sets of every thread, each once.
    fn capabilities(&self) -> Vec<String> {
        let tasks = Path::new("/proc").join(self.child.id().to_string()).join("task");
        let mut sets: Vec<String> = Vec::new();
        for task in fs::read_dir(tasks).unwrap() {
            let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let wanted = |line: &&str| line.starts_with("Cap") || line.starts_with("NoNewPrivs");
            let lines: Vec<&str> = status.lines().filter(wanted).collect();
            sets.push(lines.join(" ").replace('\t', ""));
        }
        sets.sort_unstable();
        sets.dedup();
        sets
    }
}

const TESTS: [(&str, fn()); 3] = [
    (
        "a_service_manager_is_told_and_an_operator_can_reload",
        a_service_manager_is_told_and_an_operator_can_reload,
    ),
    ("a_manager_that_hangs_is_not_waited_for", a_manager_that_hangs_is_not_waited_for),
    (
        "what_must_be_detached_at_the_end_keeps_the_right_to",
        what_must_be_detached_at_the_end_keeps_the_right_to,
    ),
];

fn main() -> ExitCode {
    let lacks = (!Uid::effective().is_root()).then_some("only root can run a gateway");
    Suite::default().tests(lacks, TESTS).run(None)
}

const NONE: &str = "0000000000000000";
const NET_ADMIN_NET_RAW_BPF: &str = "0000008000003000";

fn sets(capabilities: &str) -> String {
    format!(
        "CapInh:{NONE} CapPrm:{capabilities} CapEff:{capabilities} CapBnd:{NONE} CapAmb:{NONE} \
         NoNewPrivs:1"
    )
}

fn a_service_manager_is_told_and_an_operator_can_reload() {
    let mut service = Service::start("tcx");
    let ready = service.await_notice("READY=1");
    assert!(ready.contains("STATUS=mending with snoop what leaves through air0"), "{ready}");
    service.await_notice("WATCHDOG=1");
    assert_eq!(service.capabilities(), [sets(NONE)], "nothing is left after set-up");

    service.configure("\nflow = []");
    service.signal(Signal::SIGHUP);
    let line = service.await_line("nothing has changed");
    let place = format!("{}:2: unknown key `flow`", service.configuration().display());
    assert!(line.contains(&place), "{line}");

    service.configure("attach = \"tcx\"\nflows = [\"port:443\"]\nmark = 5");
    service.signal(Signal::SIGHUP);
    let line = service.await_line("until a restart");
    assert!(line.trim_end().ends_with(": mark"), "{line}");

    // Told once, with what would help, and the rules of before stay.
    service.configure("attach = \"tcx\"\nflows = [\"port:80\"]\npriority = \"1:10\"");
    service.signal(Signal::SIGHUP);
    let line = service.await_line("nothing has changed");
    assert_eq!(line.matches("keep-privileges").count(), 1, "{line}");
    service.configure("attach = \"tcx\"\nflows = [\"port:443\"]");
    service.signal(Signal::SIGHUP);
    let line = service.await_line("airmend: ");
    assert!(line.ends_with("was read again\n"), "{line}");

    service.signal(Signal::SIGTERM);
    service.await_notice("STOPPING=1");
    let mut report = String::new();
    service.child.stdout.take().unwrap().read_to_string(&mut report).unwrap();
    assert!(service.child.wait().unwrap().success());
    assert_eq!(report.lines().count(), 1, "{report}");
    assert!(serde_json::from_str::<serde_json::Value>(&report).unwrap().is_object());
}

/// The manager's socket is full, and nobody reads it: the loop goes on over many of the watchdog's
/// intervals.
fn a_manager_that_hangs_is_not_waited_for() {
    let service = Service::start("tcx");
    service.await_notice("READY=1");
    let full = UnixDatagram::unbound().unwrap();
    full.set_nonblocking(true).unwrap();
    while full.send_to(b"", service.directory.0.join("notify")).is_ok() {}
    let seconds = || {
        let mut status = Command::new(env!("CARGO_BIN_EXE_airmend"));
        status.args(["status", "--json", "--socket"]).arg(service.directory.0.join("status.sock"));
        let printed = status.output().unwrap().stdout;
        let status: Option<serde_json::Value> = serde_json::from_slice(&printed).ok();
        status.and_then(|status| status["uptime_seconds"].as_f64())
    };
    let begin = until("a status", seconds).unwrap();
    until("a later status", || seconds().filter(|now| now - begin > 1.0)).unwrap();
}

fn what_must_be_detached_at_the_end_keeps_the_right_to() {
    let service = Service::start("clsact");
    service.await_notice("READY=1");
    let (none, three) = (sets(NONE), sets(NET_ADMIN_NET_RAW_BPF));
    let found = service.capabilities();
    assert!(found.contains(&three), "{found:?}");
    assert!(found.iter().all(|set| [&none, &three].contains(&set)), "{found:?}");
}
