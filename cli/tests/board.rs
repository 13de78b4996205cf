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

/// The simulator and the agents make to the digit what is recorded of these cells. A change that is
/// meant to move them records them anew.
#[test]
fn cells_of_the_recorded_run_are_made_again_exactly() {
    let place = Place::new("board-recorded");
    let only = [
        "objects: size 10kB, queue in front, wired 5ms",
        "queue-behind: queue 10 + 2 ms, 1 BDP, flows 1, loss 5%",
        "link-long: delay 2ms, loss 1%",
    ];
    let flags: Vec<&str> = only.iter().flat_map(|cells| ["--only", cells]).collect();
    let output = place.board(&[&["--json"], &flags[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let recorded = fs::read_to_string(root().join(BASELINE)).expect("a recorded run");
    let recorded: Vec<Value> = lines(&recorded);
    let cells = lines(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(cells.len(), 2 * (4 + 1 + 1));
    for cell in cells {
        let is_same =
            |line: &&Value| ["family", "cell", "agent"].iter().all(|key| line[key] == cell[key]);
        assert!(
            recorded.iter().find(is_same) == Some(&cell),
            "{cell}\nis recorded as\n{:?}\nIf the change is wanted, see what moved (tools/board), \
             and record it: tools/board --record {BASELINE} (these cells alone: --only ...)",
            recorded.iter().find(is_same).map(Value::to_string)
        );
    }
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
    assert!(text.contains("4 cells compared: none moved by more than its noise"), "{text}");

    // What had more before is worse now.
    let better: Vec<String> = json_lines(&fs::read_to_string(&record).expect("a record"))
        .into_iter()
        .map(|mut line| {
            if line["cell"] == "loss 2%" && line["agent"] == "snoop" {
                let shares = line["share"].as_array().cloned().unwrap_or_default();
                let more = shares.iter().filter_map(Value::as_f64).map(|share| share * 1.5);
                line["share"] = more.collect();
            }
            line.to_string()
        })
        .collect();
    fs::write(&record, better.join("\n")).expect("a record");
    let worse = place.board(&[&family, "--baseline", &record]);
    let text = String::from_utf8_lossy(&worse.stdout);
    assert!(text.contains("0 better, 1 worse"), "{text}");
    assert!(text.contains("worse by family: short share 1 of 4"), "{text}");
    assert!(text.contains("short: loss 2%"), "{text}");
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
