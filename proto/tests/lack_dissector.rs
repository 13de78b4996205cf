//! Wireshark shows what is in a frame: `docs/wireshark/lack.lua` in tshark, if that is installed.

#[path = "link/tshark.rs"]
mod shark;

use airmend_proto::LinkType;
use airmend_proto::agents::lack::frame::{Ack, Frame, FrameKind};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_testkit::Suite;
use shark::{lacks, tshark};
use std::process::ExitCode;
use std::time::Duration;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/wireshark/lack.lua");
/// DLT_USER1: whoever writes the file says what it means.
const USER1: u32 = 148;

const FIELDS: [&str; 15] = [
    "lack.kind",
    "lack.run",
    "lack.from",
    "lack.to",
    "lack.length",
    "lack.serial",
    "lack.seq",
    "lack.after",
    "lack.ack.next",
    "lack.ack.highest_serial",
    "lack.ack.cack",
    "lack.ack.eack",
    "tcp.dstport",
    "lack.bad_version",
    "lack.bad_checksum",
];

const TESTS: [(&str, fn()); 1] = [("tshark_shows_every_field", tshark_shows_every_field)];

fn main() -> ExitCode {
    Suite::default().tests(lacks(), TESTS).run(None)
}

fn frame(kind: FrameKind, ack: Option<Ack>) -> Frame {
    let segment = SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 9, 0, 1], 5000));
    let has_payload = matches!(kind, FrameKind::Packet | FrameKind::Once);
    Frame {
        serial: SeqNumber(77),
        seq: SeqNumber(5),
        after: (kind == FrameKind::Once).then_some(2),
        ack,
        payload: has_payload.then(|| segment.payload(b"airmend").build(LinkType::Ip)),
        ..Frame::bare(kind, 0x1234_5678)
    }
}

fn tshark_shows_every_field() {
    let ack = Ack {
        next: SeqNumber(u32::MAX),
        serial: SeqNumber(1),
        delay: Duration::from_micros(1_600),
        correct: 0b1001,
        erroneous: 0b0010,
    };
    let emit = |frame: Frame| frame.emit().bytes().to_vec();
    let mut version = emit(frame(FrameKind::Skip, None));
    version[0] = 0x73;
    let mut damaged = emit(frame(FrameKind::Skip, None));
    damaged[17] = 9;
    let packets = [
        emit(frame(FrameKind::Packet, Some(ack))),
        emit(frame(FrameKind::Once, None)),
        emit(frame(FrameKind::Skip, None)),
        emit(Frame { ack: Some(Ack { erroneous: 0, ..ack }), ..frame(FrameKind::Ack, None) }),
        emit(Frame::hello(7, 9)),
        version,
        damaged,
    ];
    let run = "0x12345678";
    let acks = "4294967295|1|1,4294967294";
    let expected = [
        format!("1|{run}|||47|77|5||{acks}|0|5000||"),
        format!("2|{run}|||47|77|5|2|||||5000||"),
        format!("3|{run}|||0|77|5||||||||"),
        format!("0|{run}|||||||{acks}||||"),
        "4||0x00000007|0x00000009|||||||||||".to_owned(),
        "3|||||||||||||1|".to_owned(),
        format!("3|{run}|||0|77|9||||||||1"),
    ];
    let shown = tshark((SCRIPT, &FIELDS), "lack-frames.pcap", USER1, &packets);
    let shown: Vec<_> = shown.iter().map(|line| line.replace("True", "1")).collect();
    assert_eq!(shown.len(), expected.len());
    for (shown, expected) in shown.iter().zip(&expected) {
        assert_eq!(shown, expected);
    }
}
