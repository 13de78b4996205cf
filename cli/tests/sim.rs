//! `airmend sim` from the outside: results on disk and on stdout, and when they are made again.

use airmend_sim::open_results;
use airmend_testkit::until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const SCENARIO: &str = r#"
title = "Two agents at two error rates"
runs = 2
time_limit = "10min"
trace = true
measure = ["local_retransmits"]

[hosts]
fh = { profile = "bsd95" }
mh = { profile = "bsd95" }

[stations]
bs = { agent = "plain" }

[links.wired]
between = ["fh", "bs"]
rate = "10mbit"
delay = "1ms"

[links.air]
between = ["bs", "mh"]
air = true
rate = "2mbit"
delay = "4ms"

[flows.transfer]
from = "fh"
to = "mh"
bytes = "100kB"

[sweep]
agent = { key = "stations.bs.agent", values = ["plain", "snoop95"] }
loss = { key = "links.air.errors.loss", values = [0, "2%"] }
air_ms = { key = "links.air.delay", from = "4ms", to = "8ms", step = 4 }
"#;

#[test]
fn outside_the_sources_the_list_says_what_to_do() {
    let elsewhere = std::env::temp_dir();
    let listed = Command::new(env!("CARGO_BIN_EXE_airmend"))
        .args(["sim", "list"])
        .current_dir(elsewhere)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&listed.stderr);
    assert!(!listed.status.success() && said.contains("name scenario files"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn the_same_bytes_whatever_the_number_of_jobs() {
    let place = Place::new("sim-jobs", SCENARIO);
    let one = place.run(&["--json", "--jobs", "1"]);
    let three = place.run(&["--json", "--jobs", "3", "--again"]);
    assert_eq!(one.status.code(), Some(0), "{one:?}");
    assert_eq!(String::from_utf8_lossy(&one.stdout), String::from_utf8_lossy(&three.stdout));
    let lines = json_lines(&one);
    assert_eq!(lines.len(), 8 * 2 + 8);
    for line in &lines {
        assert_eq!(line["world"], "sim");
        assert_eq!(line["experiment"], "scenario");
        assert!(line["air_ms"] == 4 || line["air_ms"] == 8, "{line}");
        assert!(line["loss"] == 0 || line["loss"] == 0.02, "{line}");
    }
    let summary = lines.iter().rfind(|line| line["summary"] == true).expect("there are summaries");
    assert_eq!(summary["agent"], "snoop95");
    assert_eq!((&summary["runs"], &summary["completed"]), (&2.into(), &2.into()));
    assert!(summary["goodput_sd_bps"].as_u64() > Some(0), "{summary}");
    assert!(summary["measures_mean"]["local_retransmits"].as_f64() > Some(0.0), "{summary}");
    let mut trace = String::new();
    let mut file = open_results(&place.0.join("out/scenario.trace.jsonl.gz")).unwrap();
    file.read_to_string(&mut trace).unwrap();
    assert!(trace.contains(r#""kind":"local_retransmit""#) && trace.contains(r#""kind":"ack""#));
}

#[test]
fn what_is_known_is_not_measured_again() {
    let place = Place::new("sim-known", SCENARIO);
    let marked = "{\"summary\":true,\"goodput_mean_bps\":123456789}\n".repeat(8);
    let results = place.0.join("out/scenario.jsonl");
    assert!(place.text(&[]).contains("local retransmits"));
    // Results on disk are used again; any change repeats the run.
    fs::write(&results, &marked).unwrap();
    assert!(place.text(&[]).contains("123.5"));
    assert!(!place.text(&["--set", "seed=5"]).contains("123.5"));
    fs::write(&results, &marked).unwrap();
    assert!(!place.text(&[]).contains("123.5"), "the results were of another seed");
    fs::write(&results, &marked).unwrap();
    assert!(!place.text(&["--again"]).contains("123.5"));
    fs::write(&results, &marked).unwrap();
    fs::write(place.0.join("scenario.toml"), SCENARIO.replace("100kB", "101kB")).unwrap();
    assert!(!place.text(&[]).contains("123.5"));
}

#[test]
fn an_interrupted_run_leaves_no_results() {
    let place = Place::new("sim-stop", &SCENARIO.replace("100kB", "1000GB"));
    let child = place.command(&["--set", "time_limit=100h"]).stderr(Stdio::piped()).spawn();
    let child = child.expect("airmend starts");
    // Until it handles signals, they end it, as they end any program; SIGTERM is the last of them.
    until("handling signals", || catches(child.id(), Signal::SIGTERM).then_some(())).unwrap();
    let pid = Pid::from_raw(child.id().try_into().expect("a process id"));
    kill(pid, Signal::SIGINT).expect("the process still runs");
    let output = child.wait_with_output().expect("airmend ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr, "airmend: scenario has no results: the run was stopped\n");
    assert!(!place.0.join("out/scenario.key").exists());
}

/// Whether a process handles a signal (proc_pid_status(5)).
fn catches(pid: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask, 16).ok());
    caught.is_some_and(|mask| mask >> (signal as u32 - 1) & 1 == 1)
}

#[test]
fn a_bad_scenario_is_bad_usage() {
    let place = Place::new("sim-bad", &SCENARIO.replace("\"1ms\"", "\"1 parsec\""));
    let output = place.run(&[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("airmend: ") && stderr.contains("scenario.toml:18: "), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn experiments_are_listed() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../experiments");
    let output = Command::new(env!("CARGO_BIN_EXE_airmend")).args(["sim", "list", root]).output();
    let text = String::from_utf8(output.expect("airmend runs").stdout).expect("it is text");
    assert!(text.contains("snoop95/fig4") && text.contains("S0-60"), "{text}");
}

fn json_lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

/// A directory with one scenario, which goes with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, scenario: &str) -> Self {
        let place = std::env::temp_dir().join(format!("airmend-{name}-{}", std::process::id()));
        fs::create_dir_all(&place).expect("a directory can be made");
        fs::write(place.join("scenario.toml"), scenario).expect("a file can be written");
        Self(place)
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airmend"));
        command.args(["sim", "run"]).arg(self.0.join("scenario.toml"));
        command.arg("--out").arg(self.0.join("out")).args(flags);
        command
    }

    fn run(&self, flags: &[&str]) -> Output {
        self.command(flags).output().expect("airmend runs")
    }

    fn text(&self, flags: &[&str]) -> String {
        let output = self.run(flags);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it is text")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
