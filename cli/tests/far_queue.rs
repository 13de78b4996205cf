//! The laboratory with a modem between the base station and the air, in whose queue data waits.

#[path = "kit/doctor.rs"]
mod doctor;

use airmend_testkit::Suite;
use serde_json::Value;
use std::process::{Command, ExitCode, Output};

/// Frames that the base station's own queue holds, and the modem's. The first would soon overflow
/// if data waited there; how many frames a late loop lets arrive at once depends on the wired rate.
const NEAR: [&str; 4] = ["--queue", "50", "--wired-rate", "40mbit"];
const FAR: &str = "40";
/// Frames that may be on their way through the modem when a run ends, beside those in its queue.
const IN_BETWEEN: u64 = 8;

const GATEWAY: [(&str, fn()); 1] = [("gateway_and_snoop", gateway_and_snoop)];
const LABORATORY: [(&str, fn()); 5] = [
    ("loop_alone", loop_alone),
    ("loop_and_snoop95", loop_and_snoop95),
    ("kernel_alone", kernel_alone),
    ("the_air_loses_behind_the_far_queue", the_air_loses_behind_the_far_queue),
    (
        "what_is_lost_beyond_the_air_the_sender_repairs",
        what_is_lost_beyond_the_air_the_sender_repairs,
    ),
];
const ANYWHERE: [(&str, fn()); 1] =
    [("what_a_modem_cannot_do_is_refused", what_a_modem_cannot_do_is_refused)];

fn main() -> ExitCode {
    Suite::default()
        .tests(doctor::lacks("run the gateway").as_deref(), GATEWAY)
        .tests(doctor::lacks("run the laboratory").as_deref(), LABORATORY)
        .tests(None, ANYWHERE)
        .run(None)
}

fn loop_alone() {
    the_far_queue_is_the_bottleneck("inline", "plain");
}

fn loop_and_snoop95() {
    the_far_queue_is_the_bottleneck("inline", "snoop95");
}

fn kernel_alone() {
    the_far_queue_is_the_bottleneck("kernel", "plain");
}

fn gateway_and_snoop() {
    the_far_queue_is_the_bottleneck("gateway", "snoop");
}

/// CUBIC fills the modem's queue and no other, in the loop and where a kernel forwards.
fn the_far_queue_is_the_bottleneck(path: &str, agent: &str) {
    let flags = [&NEAR[..], &["--far-queue", FAR, "--bytes", "3MB"]].concat();
    let row = run(path, agent, &flags);
    assert_eq!(row["far_queue"], FAR, "{row}");
    assert_eq!((&row["completed"], &row["port_drops"]), (&true.into(), &0.into()), "{row}");
    let [air, modem] = ["air_down", "modem_down"].map(|name| Link::of(&row, name));
    let links = format!("{path}, {agent}: air {air:?}, modem {modem:?}");
    assert!(air.dropped > 0, "{links}");
    assert_eq!(modem.dropped, 0, "{links}");
    let drops = &row["agent_counters"]["egress_drops_air"];
    assert!(drops.is_null(), "{path}, {agent}: {drops} drops at the base station");
    // What the modem drops has been sent, and never reaches the air.
    let passed = air.frames + air.dropped;
    let queued = FAR.parse::<u64>().expect("a number") + IN_BETWEEN;
    assert!((passed..=passed + queued).contains(&modem.frames), "{links}");
    let bytes = row["wire_bytes_per_byte"].as_f64().unwrap_or(0.0) * 3e6;
    assert!((bytes - modem.bytes as f64).abs() < 1e3, "{bytes} bytes, {links}");
}

/// The link repairs what the air loses, and the sender what the wired hop beyond it loses.
fn what_is_lost_beyond_the_air_the_sender_repairs() {
    let flags = ["--far-wired", "100mbit,5ms,0.01", "--loss", "0.05", "--bytes", "1MB"];
    let row = run("inline", "tulip", &flags);
    assert_eq!((&row["completed"], &row["far_wired"]), (&true.into(), &flags[1].into()), "{row}");
    let far = Link::of(&row, "far_wired_down");
    assert!(far.lost > 0, "{far:?}");
    // Late frames make it send a few in vain; what the air lost it need not know.
    let retransmits = row["sender"]["retransmits"].as_u64().expect("a number");
    let on_the_air = Link::of(&row, "air_down").lost;
    let range = far.lost..far.lost + on_the_air / 2;
    assert!(range.contains(&retransmits), "{retransmits} not in {range:?}");
}

/// Losses come after the modem's queue: what is lost has taken its time on the air, and the queue
/// drops nothing for it.
fn the_air_loses_behind_the_far_queue() {
    let flags = ["--far-queue", "1000", "--loss", "0.1", "--bytes", "300kB"];
    let row = run("inline", "plain", &flags);
    let [air, modem] = ["air_down", "modem_down"].map(|name| Link::of(&row, name));
    assert_eq!((air.dropped, &row["completed"]), (0, &true.into()), "{row}");
    assert!(air.lost > 5, "{air:?}");
    assert!((air.frames..=air.frames + IN_BETWEEN).contains(&modem.frames), "{air:?} {modem:?}");
}

/// What has no place beside a modem is bad usage, in one sentence.
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

/// The counters of a link.
#[derive(Debug)]
struct Link {
    frames: u64,
    lost: u64,
    dropped: u64,
    bytes: u64,
}

impl Link {
    fn of(row: &Value, name: &str) -> Self {
        let field = |field: &str| {
            let value = row["links"][name][field].as_u64();
            value.unwrap_or_else(|| panic!("no {field} of {name} in {row}"))
        };
        let [frames, lost, dropped, bytes] = ["frames", "lost", "dropped", "bytes"].map(field);
        Self { frames, lost, dropped, bytes }
    }
}

/// A row of the laboratory.
fn run(path: &str, agent: &str, flags: &[&str]) -> Value {
    let what = ["--path", path, "--agent", agent, "--cc", "cubic", "--json"];
    let output = airmend(&[&what, flags].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{path}, {agent}: {stderr}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn airmend(flags: &[&str]) -> Output {
    let mut airmend = Command::new(env!("CARGO_BIN_EXE_airmend"));
    airmend.args(["lab", "run"]).args(flags).output().expect("airmend runs")
}
