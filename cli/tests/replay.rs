//! Replays through the command line.

#[path = "kit/doctor.rs"]
mod doctor;

use airmend_testkit::Suite;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Output};

const LABORATORY: [(&str, fn()); 1] = [(
    "a_run_recorded_and_replayed_gives_the_same_outputs",
    a_run_recorded_and_replayed_gives_the_same_outputs,
)];
const ANYWHERE: [(&str, fn()); 1] = [(
    "what_cannot_be_replayed_ends_in_one_sentence",
    what_cannot_be_replayed_ends_in_one_sentence,
)];

fn main() -> ExitCode {
    let lacks = doctor::lacks("run the laboratory");
    Suite::default().tests(lacks.as_deref(), LABORATORY).tests(None, ANYWHERE).run(None)
}

/// One code in three worlds: what real kernels sent through the agent in real time, sent again in
/// virtual time, makes it send the same packets in the same order.
fn a_run_recorded_and_replayed_gives_the_same_outputs() {
    let file = Scratch::new("run");
    for (name, flags) in [
        ("losses", ["--loss", "0.05", "--flows", "3"].as_slice()),
        ("settings", &["--loss", "0.05", "--agent", "snoop95", "--set", "dupack_threshold=2"]),
        // A short queue drops, and a slow link makes timers run while it is busy.
        ("congestion", &["--loss", "0.1", "--rate", "2mbit", "--queue", "8", "--ipv6"]),
        ("uplink", &["--loss", "0.05", "--direction", "up"]),
        // The recording is of the agent, which stands in the mobile host.
        ("mobile", &["--loss", "0.05", "--direction", "up", "--place", "mobile"]),
        ("plain", &["--agent", "plain", "--loss", "0.02"]),
    ] {
        let run = ["lab", "run", "--json", "--bytes", "300kB", "--wired-delay", "10ms", "--pcap"];
        let recorded = airmend(&[&run, [file.path()].as_slice(), flags].concat());
        let replayed = airmend(&["replay", file.path(), "--check", "--json"]);
        let stderr = String::from_utf8_lossy(&replayed.stderr);
        assert!(replayed.status.success() && stderr.is_empty(), "{name}: {stderr}");
        let (recorded, replayed) = (last_line(&recorded), last_line(&replayed));
        assert_eq!(replayed["check"]["difference"], Value::Null, "{name}");
        assert!(replayed["check"]["outputs"].as_u64() > Some(100), "{name}: {replayed}");
        assert_eq!(replayed["check"]["outputs"], replayed["check"]["same"], "{name}");
        assert_eq!(replayed["agent"], recorded["agent"], "{name}");
        let counters = |row: &Value| row["agent_counters"]["local_retransmits"].as_u64();
        assert_eq!(counters(&replayed), counters(&recorded), "{name}");
    }
    // The plain run, now with the agent that it could have had.
    let text = words(&airmend(&["replay", file.path(), "--agent", "snoop95"]));
    for word in ["10.77.0.1", "lost on the air", "Estimated stall time saved"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    let other = airmend(&["replay", file.path(), "--agent", "snoop95", "--check"]);
    assert!(sentence(&other, 2).contains("leave out --agent"));
}

fn what_cannot_be_replayed_ends_in_one_sentence() {
    let missing = sentence(&airmend(&["replay", "/nowhere/run.pcapng"]), 1);
    assert!(missing.starts_with("airmend: /nowhere/run.pcapng cannot be read"), "{missing}");
    let file = Scratch::new("header");
    for (contents, words) in
        [(b"not a capture".to_vec(), "is no capture"), (pcap_header(1), "holds no packet")]
    {
        fs::write(&file.0, contents).expect("the file can be written");
        let sentence = sentence(&airmend(&["replay", file.path()]), 1);
        assert!(sentence.contains(words), "{sentence}");
    }
    for (flags, words) in [
        (["--mobile", "10.0.0.0/33"].as_slice(), "10.0.0.0/24"),
        (&["--agent", "snoop96"], "plain, snoop95"),
        (&["--air", "wlan0", "--mobile", "10.0.0.1"], "exclude each other"),
    ] {
        let sentence = sentence(&airmend(&[&["replay", file.path()], flags].concat()), 2);
        assert!(sentence.contains(words), "{sentence}");
    }
}

/// The head of a pcap file with this link type (little endian, microseconds).
fn pcap_header(link_type: u8) -> Vec<u8> {
    let mut header = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    header.extend([0; 8]);
    header.extend([0, 0, 1, 0, link_type, 0, 0, 0]);
    header
}

fn airmend(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airmend")).args(arguments).output().expect("airmend runs")
}

fn words(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn last_line(output: &Output) -> Value {
    let text = words(output);
    serde_json::from_str(text.lines().last().unwrap_or_default()).expect("the line is JSON")
}

/// One line on stderr that begins with the program's name, and this exit status.
fn sentence(output: &Output, status: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    assert!(stderr.starts_with("airmend: ") && stderr.lines().count() == 1, "{stderr:?}");
    stderr
}

/// A file that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("airmend-replay-{name}-{}.pcapng", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("the path is text")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
