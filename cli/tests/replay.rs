//! Replays through the command line.

#[path = "kit/doctor.rs"]
mod doctor;

use airmend_proto::LinkType;
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Flags;
use airmend_testkit::Suite;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Output};

const LABORATORY: [(&str, fn()); 1] = [(
    "a_run_recorded_and_replayed_gives_the_same_outputs",
    a_run_recorded_and_replayed_gives_the_same_outputs,
)];
const ANYWHERE: [(&str, fn()); 4] = [
    ("where_nothing_can_be_seen_nothing_is_said", where_nothing_can_be_seen_nothing_is_said),
    ("what_cannot_be_replayed_ends_in_one_sentence", what_cannot_be_replayed_ends_in_one_sentence),
    ("losses_and_copies_are_told_as_they_are", losses_and_copies_are_told_as_they_are),
    ("an_error_names_its_cause", an_error_names_its_cause),
];

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

/// One segment, sent six times and never acknowledged; each packet is captured twice.
fn losses_and_copies_are_told_as_they_are() {
    let file = Scratch::new("outage");
    let sends = (0..6).map(|time| (200 << time, data(0)));
    let packets = [(0, ack(0))].into_iter().chain(sends).flat_map(|packet| [packet; 2]);
    fs::write(&file.0, pcap(packets)).expect("the file can be written");
    let text = words(&airmend(&["replay", file.path()]));
    for word in [
        "1 segment lost on the air: 0 repaired first by the agent, 1 by the sender",
        "retransmitted what was lost 5 times",
        "1 segment lost and not acknowledged",
        "Left out: 7 packets captured twice",
    ] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    let run = last_line(&airmend(&["replay", file.path(), "--json"]));
    let counts = ["lost", "unacknowledged", "sender_retransmits"];
    assert_eq!(counts.map(|name| run[name].as_u64()), [1, 1, 5].map(Some), "{run}");
    assert_eq!(run["left_out"]["copies"], 7, "{run}");
}

/// One direction only, and captures at one of the hosts.
fn where_nothing_can_be_seen_nothing_is_said() {
    let file = Scratch::new("vantage");
    let replay = |packets: Vec<(u32, SegmentBuilder<'static>)>| {
        fs::write(&file.0, pcap(packets)).expect("the file can be written");
        let text = words(&airmend(&["replay", file.path()]));
        (text, last_line(&airmend(&["replay", file.path(), "--json"])))
    };
    let down = || (0..40).map(|n| (20 * n, data(n)));
    let (text, run) = replay(down().chain([(900, data(7))]).collect());
    let unknown = "1 flow: losses are unknown, since no acknowledgment";
    assert!(text.contains(unknown) && !text.contains("lost on the air"), "{text}");
    assert_eq!((&run["lost"], run["one_way_flows"].as_u64()), (&Value::Null, Some(1)), "{run}");

    let (text, run) = replay((0..40).map(|n| (20 * n, ack(n))).collect());
    assert!(text.contains("No data to a mobile host is in the capture"), "{text}");
    assert_eq!((&run["lost"], run["flows"].as_u64()), (&Value::Null, Some(0)), "{run}");

    let at_once = down().flat_map(|(at, data)| [(at, data), (at, ack(at / 20 + 1))]);
    let (text, run) = replay(at_once.collect());
    assert!(text.contains("1 flow: captured at the mobile host itself"), "{text}");
    assert_eq!(run["lost"].as_u64(), Some(0), "{run}");

    // The fixed host answers the SYN at once.
    let syn = |packet: SegmentBuilder<'static>| packet.flags(Flags::SYN);
    let shaken = [(0, syn(ack(0))), (0, syn(SegmentBuilder::new(SERVER, MOBILE)))];
    let later = down().flat_map(|(at, data)| [(at + 50, data), (at + 55, ack(at / 20 + 1))]);
    let (text, _) = replay(shaken.into_iter().chain(later).collect());
    assert!(text.contains("1 flow: captured at the fixed host itself"), "{text}");
}

fn an_error_names_its_cause() {
    let file = Scratch::new("cause");
    let trace = |packets: &[(u32, SegmentBuilder<'static>)]| {
        fs::write(&file.0, pcap(packets.iter().copied())).expect("the file can be written");
        sentence(&airmend(&["replay", "--trace", "/nonexistent/x.csv", file.path()]), 1)
    };
    let nothing = trace(&[(0, data(0))]);
    assert!(nothing.contains("it shows neither the rate nor"), "{nothing}");
    // Ten segments every 100 ms.
    let sent = (0..200).map(|n| (n / 10 * 100 + n % 10, n));
    let transfer = sent.flat_map(|(at, n)| [(at, data(n)), (at + 20, ack(n + 1))]);
    let mut transfer: Vec<_> = transfer.collect();
    transfer.sort_by_key(|(at, _)| *at);
    let nowhere = trace(&transfer);
    let why = format!("no trace of {}: /nonexistent/x.csv cannot be written: No ", file.path());
    assert!(nowhere.contains(&why), "{nowhere}");
}

const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
const MOBILE: ([u8; 4], u16) = ([10, 0, 1, 2], 5000);

/// A segment of the download.
fn data(number: u32) -> SegmentBuilder<'static> {
    let down = SegmentBuilder::new(SERVER, MOBILE).ack(SeqNumber(1));
    down.seq(SeqNumber(1 + number * 1_000)).payload_len(1_000)
}

/// The acknowledgment of so many.
fn ack(segments: u32) -> SegmentBuilder<'static> {
    let up = SegmentBuilder::new(MOBILE, SERVER).seq(SeqNumber(1));
    up.ack(SeqNumber(1 + segments * 1_000))
}

/// A capture of raw IP; each packet with its time in milliseconds.
fn pcap(packets: impl IntoIterator<Item = (u32, SegmentBuilder<'static>)>) -> Vec<u8> {
    let mut file = pcap_header(101);
    for (at, packet) in packets {
        let packet = packet.build(LinkType::Ip);
        let bytes = packet.bytes();
        let fields = [at / 1_000, at % 1_000 * 1_000, bytes.len() as u32, packet.wire_len()];
        file.extend(fields.into_iter().flat_map(u32::to_le_bytes));
        file.extend(bytes);
    }
    file
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
