//! Wireshark shows what is in a frame: `docs/wireshark/tulip.lua` in tshark, if that is installed.

#[path = "link/tshark.rs"]
mod shark;

use airmend_proto::agents::Compressor;
use airmend_proto::agents::tulip::frame::{Ack, Frame, FrameKind};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{Ecn, LinkType, Packet};
use airmend_testkit::Suite;
use shark::{lacks, tshark};
use std::process::ExitCode;
use std::time::Duration;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/wireshark/tulip.lua");
/// DLT_USER0: whoever writes the file says what it means.
const USER0: u32 = 147;
const ETHERNET: u32 = 1;

const FIELDS: [&str; 23] = [
    "tulip.kind",
    "tulip.flags.poll",
    "tulip.flags.more",
    "tulip.length",
    "tulip.from",
    "tulip.to",
    "tulip.serial",
    "tulip.seq",
    "tulip.after",
    "tulip.ack.next",
    "tulip.ack.highest_serial",
    "tulip.ack.delay",
    "tulip.ack.arrived",
    "tcp.dstport",
    "tulip.bad_version",
    "tulip.flags.answers_ce",
    "tulip.ack.covered",
    "tulip.ack.marks",
    "tulip.ack.missing",
    "tulip.repair.packets",
    "tulip.flags.reads_repairs",
    "tulip.reads_clock",
    "tulip.ack.clock",
];

/// Of version 2, whose numbers are cut to their lowest bytes.
const SHORT_FIELDS: [&str; 19] = [
    "tulip.version",
    "tulip.short.kind",
    "tulip.short.poll",
    "tulip.short.answers_ce",
    "tulip.serial",
    "tulip.seq",
    "tulip.after",
    "tulip.ack.next",
    "tulip.ack.highest_serial",
    "tulip.ack.delay",
    "tulip.ack.covered",
    "tulip.ack.marks",
    "tulip.ack.missing",
    "tulip.short.becomes",
    "tulip.short.context",
    "tcp.dstport",
    "tulip.repair.packets",
    "tulip.short.reads_clock",
    "tulip.ack.clock",
];

const TESTS: [(&str, fn()); 3] = [
    ("tshark_shows_every_field", tshark_shows_every_field),
    ("tshark_shows_the_short_form", tshark_shows_the_short_form),
    ("tshark_finds_frames_behind_their_ethertype", tshark_finds_frames_behind_their_ethertype),
];

fn main() -> ExitCode {
    Suite::default().tests(lacks(), TESTS).run(None)
}

fn frame(kind: FrameKind, ack: Option<Ack>) -> Frame {
    let segment = SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 9, 0, 1], 5000));
    let has_payload = matches!(kind, FrameKind::Reliable | FrameKind::Unreliable);
    Frame {
        kind,
        poll: kind == FrameKind::Reliable,
        more: kind == FrameKind::Skip,
        by_serial: false,
        reads_version_2: true,
        reads_repairs: kind == FrameKind::Control,
        answers_ce: kind == FrameKind::Unreliable,
        outer_ecn: Ecn::NotEct,
        from: 0x1234_5678,
        to: 0x9abc_def0,
        serial: SeqNumber(77),
        seq: SeqNumber(5),
        after: if kind == FrameKind::Control { 1 } else { 2 },
        ack,
        payload: has_payload.then(|| segment.payload(b"airmend").build(LinkType::Ip)),
    }
}

/// A combination of nine packets, of which all are in it.
fn repair(serial: u32) -> Frame {
    let combination = Packet::new(LinkType::Ip, vec![7; 30].into());
    Frame {
        serial: SeqNumber(serial),
        after: 0xf009,
        payload: Some(combination),
        ..frame(FrameKind::Repair, None)
    }
}

fn ack() -> Ack {
    let vector = vec![0b0000_0011, 0b1000_0000].into();
    let (next, highest_serial) = (SeqNumber(u32::MAX), SeqNumber(9));
    Ack {
        next,
        highest_serial,
        delay: Duration::from_micros(1_600),
        covered: None,
        marks: None,
        clock: None,
        vector,
    }
}

fn tshark_shows_every_field() {
    let mut broken = frame(FrameKind::Control, None).emit().bytes().to_vec();
    broken[0] = 0x70;
    let emit = |kind, ack| frame(kind, ack).emit().bytes().to_vec();
    let packets = [
        emit(FrameKind::Reliable, Some(ack())),
        emit(FrameKind::Unreliable, None),
        emit(FrameKind::Skip, None),
        emit(FrameKind::Control, Some(ack())),
        broken,
        emit(FrameKind::Unreliable, Some(Ack { covered: Some(64), marks: Some(3), ..ack() })),
        emit(FrameKind::Skip, Some(Ack { covered: Some(64), clock: Some(1_000), ..ack() })),
        repair(77).emit().bytes().to_vec(),
    ];
    let epochs = "0x12345678|0x9abcdef0";
    let expected = [
        format!("1|1|0|47|{epochs}|77|5|2|4294967295|9|1.6|0,1,15|5000||0|||||||"),
        format!("2|0|0|47|{epochs}|77|5|2|||||5000||1|||||||"),
        format!("3|0|1|0|{epochs}|77|5|2|||||||0|||||||"),
        format!("0|0|0|0|{epochs}|77|5||4294967295|9|1.6|0,1,15|||0|||||1|1|"),
        format!("0|0|0|0|{epochs}|77|5|||||||1|0|||||1|1|"),
        format!("2|0|0|47|{epochs}|77|5|2|4294967295|9|1.6||5000||1|64|3|9,8,4294967290||||"),
        format!("3|0|1|0|{epochs}|77|5|2|4294967295|9|1.6||||0|64||9,8,4294967290||||128"),
        format!("4|0|0|30|{epochs}|77|5||||||||0||||9|||"),
    ];
    let shown = tshark((SCRIPT, &FIELDS), "tulip-frames.pcap", USER0, &packets);
    assert_eq!(shown.len(), expected.len());
    for (shown, expected) in shown.iter().zip(&expected) {
        assert_eq!(shown.replace("True", "1").replace("False", "0"), *expected);
    }
}

/// A TCP segment that becomes a context, one whose headers are differences from it, and what
/// answers them.
fn tshark_shows_the_short_form() {
    let (own, peer) = (0x1234_5678, 0x9abc_def0);
    let mut ends = [Compressor::new(true, 1), Compressor::new(true, 1)];
    let mut cross = |from: usize, frame: Frame| {
        let epochs = [(own, peer), (peer, own)][from];
        let frame = Frame { from: epochs.0, to: epochs.1, by_serial: true, ..frame };
        let (bytes, is_short) = ends[from].compress(frame.emit());
        ends[1 - from].expand(Packet::new(LinkType::Frame, bytes.clone())).expect("readable");
        (bytes.to_vec(), is_short)
    };
    let control = Frame { serial: SeqNumber(0), ..frame(FrameKind::Control, None) };
    (0..2).for_each(|end| drop(cross(end, control.clone())));
    let numbered = |serial, after, ack| {
        let (serial, seq) = (SeqNumber(serial), SeqNumber(5));
        Frame { serial, seq, after, ..frame(FrameKind::Reliable, ack) }
    };
    let report = Ack {
        next: SeqNumber(6),
        highest_serial: SeqNumber(2),
        covered: Some(64),
        marks: Some(3),
        clock: Some(1_000),
        vector: vec![0b10].into(),
        ..ack()
    };
    let vector = vec![].into();
    let heard = Ack { highest_serial: SeqNumber(1), clock: None, vector, ..report.clone() };
    let answer = |ack| Frame {
        answers_ce: true,
        serial: SeqNumber(0),
        ..frame(FrameKind::Control, Some(ack))
    };
    let shown = [
        cross(0, numbered(1, 0, None)),
        cross(1, answer(heard)),
        cross(0, numbered(2, 300, None)),
        cross(1, answer(report)),
        cross(0, repair(3)),
    ];
    assert!(shown.iter().all(|(_, is_short)| *is_short));
    let packets = shown.map(|(bytes, _)| bytes);
    let expected = [
        "2|1|1|0|1|5|0|||||||0||5000|||",
        "2|0|0|1|0|||6|1|1.6|64|3||||||1|",
        "2|1|1|0|2|5|300||||||||0||||",
        "2|0|0|1|0|||6|2|1.6|64|3|1|||||1|128",
        "2|0|0|0|3|5|||||||||||9||",
    ];
    let shown = tshark((SCRIPT, &SHORT_FIELDS), "tulip-short.pcap", USER0, &packets);
    assert_eq!(shown.len(), expected.len());
    for (shown, expected) in shown.iter().zip(expected) {
        assert_eq!(shown.replace("True", "1").replace("False", "0"), expected);
    }
}

fn tshark_finds_frames_behind_their_ethertype() {
    let packet: Packet = frame(FrameKind::Reliable, None).emit();
    let mut bytes = vec![2; 12];
    bytes.extend([0x88, 0xb5, 5, 0, 0, 0]);
    bytes.extend(packet.bytes());
    let shown = tshark((SCRIPT, &FIELDS), "tulip-ethernet.pcap", ETHERNET, &[bytes]);
    assert!(shown[0].starts_with("1|") && shown[0].contains("|77|5|2|"), "{}", shown[0]);
}
