//! A laboratory that runs is changed, watched and entered by other processes.

#[path = "kit/doctor.rs"]
mod doctor;

use airmend_testkit::{Suite, until};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::{env, fs};

/// Sends as much as somebody takes, from the moment on that somebody has connected.
const SERVER: &str = "exec python3 -c \"import socket; s = socket.create_server(('', 7000))\n\
                      while True:\n  c, _ = s.accept()\n  \
                      try:\n    while True: c.sendall(b'x' * 65536)\n  except OSError: pass\"";
const CLIENT: &str = "import socket; s = socket.create_connection(('fh', 7000), timeout=300)\n\
                      while s.recv(65536): pass";

fn main() -> ExitCode {
    let is_missing = || Command::new("python3").arg("--version").output().is_err();
    let lacks = doctor::lacks("run the laboratory");
    let lacks = lacks.or_else(|| is_missing().then(|| "python3 is not there".to_owned()));
    let tests: [(&str, fn()); 3] = [
        ("errors_rate_and_agent_change", errors_rate_and_agent_change),
        ("what_cannot_change_is_refused", what_cannot_change_is_refused),
        ("a_host_is_entered", a_host_is_entered),
    ];
    Suite::default().tests(lacks.as_deref(), tests).run(None)
}

fn errors_rate_and_agent_change() {
    let mut lab = Lab::start("change", &["--agent", "plain"]);
    let begin = lab.seen(|seen| count(seen, "/links/air_down/frames") > 300);
    assert_eq!(count(&begin, "/links/air_down/lost"), 0, "{begin}");
    lab.done(&["set", "loss=5%", "agent=snoop"]);
    let mended = lab.seen(|seen| count(seen, "/repairs") > 20);
    assert_eq!(mended["agent"], "snoop");
    assert!(count(&mended, "/links/air_down/lost") > 0, "{mended}");
    assert!(mended["air"].as_str().is_some_and(|air| air.contains("5 % loss")), "{mended}");
    let ping = lab.seen(|seen| seen["ping_ms"].as_f64().is_some_and(|ping| ping > 84.0));
    lab.done(&["set", "agent=plain", "loss=0%", "rate=2mbit", "air-delay=100ms"]);
    // What was in the queues before has gone.
    lab.seen(|seen| seen["ping_ms"].as_f64().is_some_and(|ping| ping > 280.0));
    let [first, last] = [0, 1].map(|_| {
        std::thread::sleep(std::time::Duration::from_secs(1));
        lab.seen(|_| true)
    });
    assert_eq!(count(&first, "/repairs"), count(&last, "/repairs"), "nobody repairs any more");
    let bits = 8 * (count(&last, "/links/air_down/bytes") - count(&first, "/links/air_down/bytes"));
    let seconds = last["seconds"].as_f64().unwrap() - first["seconds"].as_f64().unwrap();
    let rate = bits as f64 / seconds;
    assert!(rate < 2.4e6, "{rate} bits per second; {ping}");
    // A person sees the same.
    let mut watching = lab.command(&["watch", "--interval", "100ms"]);
    let mut watching = watching.stdout(Stdio::piped()).spawn().expect("airmend runs");
    let mut lines = BufReader::new(watching.stdout.take().expect("a pipe")).lines();
    let seen: Vec<String> = lines.by_ref().take(5).map_while(Result::ok).collect();
    assert!(seen[0].starts_with("plain · air 2 Mb/s, 100 ms") && seen.len() == 5, "{seen:?}");
    lab.interrupt();
    let directory = lab.directory.clone();
    lines.for_each(drop);
    assert!(watching.wait().expect("it ends with the laboratory").success());
    let is_gone = || fs::read_dir(&directory).ok()?.next().is_none().then_some(());
    until("the socket going", is_gone).expect("nothing is left");
    let report = lab.report();
    assert_eq!(report["agent"], "plain", "{report}");
    let sets = report["changes"].as_array().expect("changes").iter().map(|change| &change["set"]);
    let made = ["loss=5% agent=snoop", "agent=plain loss=0% rate=2mbit air-delay=100ms"];
    assert!(sets.eq(&made), "{report}");
    assert!(report["changes"][0]["seconds"].as_f64() < report["changes"][1]["seconds"].as_f64());
}

fn what_cannot_change_is_refused() {
    let empty = Lab::place("none");
    let output = lab(&empty, &["set", "loss=5%"]).output().expect("airmend runs");
    refused(&output, "no laboratory of this user runs");
    fs::remove_dir_all(&empty).expect("a directory");
    let radios = Lab::start("refused", &["--half-duplex"]);
    radios.seen(|_| true);
    for (change, words) in [
        (&["loss=5%"][..], "half-duplex radios"),
        (&["agent=tulip"], "has an agent at each end"),
        (&["los=5%"], "did you mean loss?"),
        (&["loss"], "KEY=VALUE"),
        (&["agent=nobody"], "nobody"),
    ] {
        let change = [&["set"], change].concat();
        refused(&radios.command(&change).output().expect("airmend runs"), words);
    }
    refused(&radios.command(&["set", "loss=1%", "--pid", "1"]).output().unwrap(), "process 1");
    let links = Lab::start("link", &["--agent", "tulip"]);
    links.seen(|_| true);
    links.done(&["set", "loss=1%"]);
    refused(&links.command(&["set", "agent=plain"]).output().unwrap(), "both ends of the air");
    let kernel = Lab::start("kernel", &["--agent", "plain", "--path", "kernel"]);
    kernel.seen(|_| true);
    kernel.done(&["set", "loss=1%", "air-delay=5ms"]);
    refused(&kernel.command(&["set", "rate=1mbit"]).output().unwrap(), "a kernel's queue");
    refused(&kernel.command(&["set", "agent=snoop"]).output().unwrap(), "it is a kernel alone");
}

fn a_host_is_entered() {
    let lab = Lab::start("shell", &[]);
    lab.seen(|_| true);
    for (host, address) in [("mh", "10.77.0.2"), ("fh", "10.77.0.1")] {
        let words = ["shell", "--at", host, "--", "sh", "-c", "ip -br address; getent hosts mh"];
        let output = lab.command(&words).output().expect("airmend runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains(address), "{output:?}");
        assert!(text.lines().last().is_some_and(|line| line.starts_with("10.77.0.2")), "{text}");
    }
    let output = lab.command(&["shell", "--", "/no/such/program"]).output().unwrap();
    refused_with(&output, 1, "/no/such/program cannot be run");
}

/// A laboratory with a transfer that does not end, which lives in a directory of its own.
struct Lab {
    process: Child,
    place: PathBuf,
    directory: PathBuf,
}

impl Lab {
    fn place(name: &str) -> PathBuf {
        let place = env::temp_dir().join(format!("airmend-test-{}-{name}", std::process::id()));
        fs::create_dir_all(&place).expect("a directory");
        place
    }

    fn start(name: &str, flags: &[&str]) -> Self {
        let place = Self::place(name);
        let mut command = lab(&place, &["exec", "--serve", SERVER]);
        command.args(flags).args(["--json", "--", "python3", "-c", CLIENT]);
        let report = fs::File::create(place.join("report")).expect("a file");
        let process = command.stderr(report).spawn().expect("airmend runs");
        let user = nix::unistd::geteuid();
        let directory = place.join(format!("airmend-lab-{user}"));
        let lab = Self { process, place, directory };
        let listens = || fs::read_dir(&lab.directory).ok()?.next().map(drop);
        until("the laboratory listening", listens).expect("a socket");
        lab
    }

    fn interrupt(&self) {
        let pid = nix::unistd::Pid::from_raw(self.process.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).ok();
    }

    /// The report at its end.
    fn report(&mut self) -> Value {
        self.process.wait().expect("it ends");
        let text = fs::read_to_string(self.place.join("report")).expect("a file");
        let line = text.lines().last().expect("a report");
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn command(&self, words: &[&str]) -> Command {
        lab(&self.place, words)
    }

    fn done(&self, words: &[&str]) {
        let output = self.command(words).output().expect("airmend runs");
        assert!(output.status.success(), "{words:?}: {output:?}");
    }

    /// What a watcher sees, as soon as it is what is wanted.
    fn seen(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        until("what was waited for", || {
            let mut watching = self.command(&["watch", "--json"]);
            let watching = watching.stdout(Stdio::piped()).stderr(Stdio::null());
            let mut watching = watching.spawn().expect("airmend runs");
            let out = watching.stdout.take().expect("a pipe");
            let mut line = String::new();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).ok();
            watching.kill().ok();
            watching.wait().ok();
            serde_json::from_str(&line).ok().filter(&is_wanted)
        })
        .expect("it is seen")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.interrupt();
        self.process.wait().ok();
        fs::remove_dir_all(&self.place).ok();
    }
}

fn lab(place: &PathBuf, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airmend"));
    command.arg("lab").args(words).env("XDG_RUNTIME_DIR", place);
    command
}

fn count(seen: &Value, pointer: &str) -> u64 {
    seen.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {seen}"))
}

fn refused(output: &Output, words: &str) {
    refused_with(output, 2, words);
}

fn refused_with(output: &Output, code: i32, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words) && said.lines().count() == 1, "{words}: {said}");
}
