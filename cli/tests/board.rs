//! `airmend board` from the outside: a few cells of the recorded run, what moved, what it refuses.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

const BASELINE: &str = "experiments/board/baseline.jsonl";

/// A family of two cells that run in no time.
const FAMILY: &str = r#"
title = "A short hop"
runs = 2
time_limit = "3s"

[board]
weight = 2
target = 0.9
agents = ["plain", "snoop"]
near = ["bs"]
clean = { links.air.errors = {} }

[hosts]
fh = { profile = "linux" }
mh = { profile = "linux" }

[stations]
bs = { agent = "plain" }

[links.wired]
between = ["fh", "bs"]
rate = "100mbit"
delay = "10ms"

[links.air]
between = ["bs", "mh"]
air = true
rate = "5mbit"
delay = "2ms"

[flows.transfer]
from = "fh"
to = "mh"

[sweep]
loss = { key = "links.air.errors.loss", values = ["0%", "2%"] }
"#;

/// Nothing is worse than it is recorded by more than its noise, in cells that the day chooses. The
/// simulator makes each cell to the digit until the program changes.
#[test]
fn recorded_cells_of_the_day_are_no_worse() {
    let output = Place::new("board-recorded").board(&["--check", "--baseline", BASELINE]);
    println!("{}", String::from_utf8_lossy(&output.stdout));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}\nsee what moved: tools/board");
}

#[test]
fn what_got_worse_than_its_record_is_named() {
    let place = Place::new("board-worse");
    let family = place.file("short.toml", FAMILY);
    let record = place.path("record.jsonl");
    let made = place.board(&[&family, "--record", &record]);
    let text = String::from_utf8_lossy(&made.stdout);
    assert!(made.status.success() && text.contains("score"), "{made:?}");

    // The same program moves nothing, whatever the number of jobs.
    let same = place.board(&[&family, "--baseline", &record, "--jobs", "3"]);
    let text = String::from_utf8_lossy(&same.stdout);
    assert!(
        text.contains("4 cells compared: 4 to the digit, none moved by more than its noise"),
        "{text}"
    );

    // What had more before is worse now.
    let made = fs::read_to_string(&record).expect("a record");
    fs::write(&record, with_shares(&made, 1.5)).expect("a record");
    let worse = place.board(&[&family, "--baseline", &record]);
    let text = String::from_utf8_lossy(&worse.stdout);
    assert!(text.contains("0 better, 1 worse"), "{text}");
    assert!(text.contains("worse by family: short share 1 of 4"), "{text}");
    assert!(text.contains("short: loss 2%"), "{text}");

    // A check fails for that, and for nothing else.
    let check = || place.board(&[&family, "--check", "--baseline", &record]);
    let failed = check();
    let stderr = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && stderr.contains("1 figures are worse"), "{stderr}");
    for factor in [1.001, 0.5] {
        fs::write(&record, with_shares(&made, factor)).expect("a record");
        let passed = check();
        let text = String::from_utf8_lossy(&passed.stdout);
        assert!(passed.status.success() && text.contains("3 to the digit"), "{factor}: {text}");
    }
    // What is not recorded is not checked.
    fs::write(&record, "").expect("a record");
    let stderr = String::from_utf8_lossy(&check().stderr).into_owned();
    assert!(stderr.contains("no cell"), "{stderr}");
}

/// A record in which one cell has so much more.
fn with_shares(record: &str, factor: f64) -> String {
    let line = |mut line: Value| {
        if line["cell"] == "loss 2%" && line["agent"] == "snoop" {
            let shares = line["share"].as_array().cloned().unwrap_or_default();
            let more = shares.iter().filter_map(Value::as_f64).map(|share| share * factor);
            line["share"] = more.collect();
        }
        line.to_string()
    };
    json_lines(record).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn agents_side_by_side_are_compared_with_the_first() {
    let place = Place::new("board-agents");
    let family = place.file("short.toml", FAMILY);
    let output = place.board(&[&family, "--agents", "snoop,plain,tulip"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("against snoop (plain)"), "{text}");
    assert!(text.contains("worse by family: short share 1 of 2"), "{text}");
    // There is no far end for a link protocol here.
    assert!(!text.contains("tulip "), "{text}");
}

#[test]
fn a_seed_chooses_the_same_cells_again() {
    let place = Place::new("board-quick");
    let values: Vec<String> = (1..30).map(|loss| format!("\"{loss}%\"")).collect();
    let many = FAMILY.replace("\"0%\", \"2%\"", &values.join(", "));
    let family = place.file("many.toml", &many);
    let cells = |seed: &str| -> Vec<Value> {
        let output = place.board(&[&family, "--quick", "--seed", seed, "--json"]);
        let lines = lines(&String::from_utf8_lossy(&output.stdout));
        lines.iter().map(|line| line["cell"].clone()).collect()
    };
    let [one, again, other] = ["1", "1", "2"].map(cells);
    assert_eq!(one.len(), 8);
    assert_eq!(one, again);
    assert_ne!(one, other);
}

#[test]
fn what_is_no_board_gets_one_sentence() {
    let place = Place::new("board-errors");
    let bare = place.file("bare.toml", &without(FAMILY, "[board]", "[hosts]"));
    let wrong = place.file("wrong.toml", &FAMILY.replace("near = [\"bs\"]", "near = [\"bx\"]"));
    let light = place.file("light.toml", &FAMILY.replace("weight = 2", "weight = 0"));
    let family = place.file("short.toml", FAMILY);
    let damaged = place.file("damaged.jsonl", "{}\n");
    for (flags, says) in [
        (&[bare.as_str()][..], "needs a table [board]"),
        (&[&wrong], "unknown station `bx`"),
        (&[&light], "`weight` must be more than 0"),
        (&[&family, "--only", "nothing"], "no cell has such a name"),
        (&[&family, "--agents", "snup"], "known agents are"),
        (&[&family, "--agents", "snoop:x"], "write AGENT:KEY=VALUE"),
        (&[&family, "--agents", "tulip,lack"], "a place for these agents"),
        (&[&family, "--seed", "3"], "--quick"),
        (&[&family, "--check"], "--baseline"),
        (&[&family, "--baseline", &damaged], "damaged.jsonl:1 is no line of a board"),
    ] {
        let output = place.board(flags);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{flags:?}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{flags:?}: {stderr}");
        assert!(stderr.contains(says), "{flags:?}: {stderr}");
    }
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The lines without the program that made them.
fn lines(text: &str) -> Vec<Value> {
    let mut lines = json_lines(text);
    for line in &mut lines {
        if let Some(fields) = line.as_object_mut() {
            fields.remove("at");
        }
    }
    lines
}

/// `text` without what is between two of its words.
fn without(text: &str, from: &str, to: &str) -> String {
    let (before, rest) = text.split_once(from).expect("its beginning");
    let (_, after) = rest.split_once(to).expect("its end");
    format!("{before}{to}{after}")
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A directory of its own for each test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("airmend-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        Self(directory)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).expect("a file");
        self.path(name)
    }

    fn board(&self, flags: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_airmend"))
            .current_dir(root())
            .arg("board")
            .args(flags)
            .args(["--out", &self.path("board.jsonl")])
            .output()
            .expect("airmend runs")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
