//! `airmend map` from the outside: its tables, its picture, and what it refuses.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

const TWO_WIRES: &str = "sweep.wired_delay.values=[\"5ms\", \"9ms\"]";
const SHORT: &[&str] = &["--set", "time_limit=2s", "--set", "sweep.wired_delay.values=[\"5ms\"]"];

#[test]
fn a_map_has_a_cell_for_each_combination() {
    let place = Place::new("map-cells");
    let axes =
        ["--agents", "tulip,plain", "--x", "links.air.rate=20mbit,50mbit", "--y", "loss=0%,5%"];
    let one_delay = ["--set", "sweep.air_delay.values=[\"5ms\"]", "--json"];
    let output = place.map(&[&axes[..], &one_delay[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let cells: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(cells.len(), 8, "{text}");
    let share = |agent: &str, rate: &str, loss: &str| {
        let is_it = |cell: &&Value| {
            cell["agent"] == agent && cell["links_air_rate"] == rate && cell["loss"] == loss
        };
        cells.iter().find(is_it).and_then(|cell| cell["of_bound"].as_f64()).expect("a cell")
    };
    for rate in ["20mbit", "50mbit"] {
        let plain = share("plain", rate, "5%");
        assert!(plain < share("plain", rate, "0%"), "{text}");
        assert!(plain < share("tulip", rate, "5%"), "{text}");
    }
    let picture = fs::read_to_string(place.svg()).expect("a picture");
    assert!(picture.starts_with("<svg") && picture.contains("tulip"), "{picture}");
}

#[test]
fn tables_name_agents_and_rows() {
    let place = Place::new("map-tables");
    let output = place.map(&[
        "--agents",
        "plain",
        "--y",
        "loss=5%",
        "--rows",
        "air_delay=1ms,20ms",
        "--x",
        "links.air.queue=20,100",
    ]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.contains("plain, air delay 1ms") && text.contains("plain, air delay 20ms"),
        "{text}"
    );
    assert_eq!(text.matches("loss \\ links_air_queue").count(), 2, "{text}");
    assert!(text.trim_end().ends_with("map.svg"), "{text}");
}

#[test]
fn what_is_no_map_gets_one_sentence() {
    let place = Place::new("map-errors");
    for (flags, says) in [
        (&["--x", "los"][..], "los is no sweep of the scenario; it sweeps agent, air_delay, loss"),
        (&["--x", "links.air.rate"], "needs values"),
        (&["--x", "links.air.rate=2mbit,4mbot"], "rate \"4mbot\" must be a number"),
        (&["--x", "links.air.rate=2mbit,4mbit", "--set", TWO_WIRES], "one setting too many"),
        (&["--agents", "snup"], "unknown agent \"snup\""),
        (
            &["--y", "loss=5%", "--x", "wired_delay", "--set", "sweep.air_delay.values=[]"],
            "a list of at least one value",
        ),
    ] {
        let output = place.map(flags);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{flags:?}: {stderr}");
        assert!(stderr.contains(says), "{flags:?}: {stderr}");
    }
    assert!(!place.svg().exists());
}

/// A directory of its own for each test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("airmend-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        Self(directory)
    }

    fn svg(&self) -> PathBuf {
        self.0.join("map.svg")
    }

    fn map(&self, flags: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_airmend"))
            .arg("map")
            .args(SHORT)
            .args(flags)
            .arg("--svg")
            .arg(self.svg())
            .output()
            .expect("airmend runs")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
