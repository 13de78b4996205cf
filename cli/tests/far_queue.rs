//! The laboratory with a modem between the base station and the air, in whose queue data waits.

use serde_json::Value;
use std::process::{Command, Output};

/// Frames that the base station's own queue holds, and the modem's. The first is so short that the
/// least wait in it would be seen as drops.
const NEAR: &str = "20";
const FAR: &str = "40";

/// CUBIC fills the modem's queue and no other, in the loop and where a kernel forwards.
#[test]
fn the_far_queue_is_the_bottleneck() {
    for (path, agent) in
        [("inline", "plain"), ("inline", "snoop95"), ("kernel", "plain"), ("gateway", "snoop")]
    {
        let Some(row) = run(path, agent, &["--queue", NEAR, "--far-queue", FAR]) else { continue };
        assert_eq!(row["far_queue"], FAR, "{row}");
        assert_eq!((&row["completed"], &row["port_drops"]), (&true.into(), &0.into()), "{row}");
        let link = |name: &str, field: &str| row["links"][name][field].as_u64();
        assert!(link("air_down", "dropped") > Some(0), "{path}, {agent}: {row}");
        assert_eq!(link("modem_down", "dropped"), Some(0), "{path}, {agent}: {row}");
        assert!(row["agent_counters"]["egress_drops_air"].is_null(), "{path}, {agent}: {row}");
        // What the modem drops has been sent, and never reaches the air.
        let frames = link("air_down", "frames").zip(link("air_down", "dropped"));
        let on_way = frames.map(|(sent, dropped)| sent + dropped);
        assert_eq!(link("modem_down", "frames"), on_way, "{path}, {agent}: {row}");
        assert!(row["wire_bytes_per_byte"].as_f64() > Some(1500.0 / 1448.0), "{row}");
    }
}

/// Losses come after the modem's queue: what is lost has taken its time on the air, and the queue
/// drops nothing for it.
#[test]
fn the_air_loses_behind_the_far_queue() {
    let Some(row) = run("inline", "plain", &["--far-queue", "1000", "--loss", "0.1"]) else {
        return;
    };
    let air = &row["links"]["air_down"];
    assert_eq!((&air["dropped"], &row["completed"]), (&0.into(), &true.into()), "{row}");
    assert!(air["lost"].as_u64() > Some(10), "{row}");
    assert_eq!(row["links"]["modem_down"]["frames"], air["frames"], "{row}");
}

/// What has no place beside a modem is bad usage, in one sentence.
#[test]
fn what_a_modem_cannot_do_is_refused() {
    let refused = [
        (&["0"][..], "fq_codel"),
        (&["red"], "fq_codel"),
        (&["40", "--agent", "tulip"], "--agent tulip"),
        (&["40", "--direction", "up"], "--direction up"),
        (&["40", "--half-duplex"], "--half-duplex"),
        (&["40", "--path", "kernel", "--agent", "plain", "--air-queue", "fifo"], "--air-queue"),
    ];
    for (flags, words) in refused {
        let output = airmend(&[&["--far-queue"], flags].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {stderr}");
        assert!(stderr.contains(words) && stderr.lines().count() == 1, "{stderr}");
    }
}

/// A row of the laboratory; `None` where this machine cannot run it.
fn run(path: &str, agent: &str, flags: &[&str]) -> Option<Value> {
    let what = ["--path", path, "--agent", agent, "--cc", "cubic", "--bytes", "3MB", "--json"];
    let output = airmend(&[&what, flags].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lacks = |what: &&str| stderr.contains(what);
    if let Some(what) = ["needs root", "network namespace", "BPF", "tcx"].iter().find(|w| lacks(w))
    {
        eprintln!("skipped: this machine lacks something ({what}): {stderr}");
        return None;
    }
    assert!(output.status.success() && stderr.is_empty(), "{path}, {agent}: {stderr}");
    Some(serde_json::from_slice(&output.stdout).expect("one JSON object"))
}

fn airmend(flags: &[&str]) -> Output {
    let mut airmend = Command::new(env!("CARGO_BIN_EXE_airmend"));
    airmend.args(["lab", "run"]).args(flags).output().expect("airmend runs")
}
