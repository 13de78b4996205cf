//! Bytes as a TULIP frame, and as a sequence of times, frames and packets for one end of a link
//! with small limits: what is read is written as it was, and the end keeps its promises. And as
//! packets that cross compressed among frames in short form that nobody has written.

#[path = "../compressed.rs"]
mod compressed;
#[path = "../../../proto/tests/link/hostile.rs"]
mod hostile;
#[path = "../link_input.rs"]
mod link_input;

/// The agent under test.
mod kit {
    pub(crate) use airmend_proto::agents::tulip::frame::Frame;
    pub(crate) use airmend_proto::agents::tulip::{Settings, Tulip as Station};

    /// The queues of an end: two classes.
    pub(crate) const QUEUES: usize = 2;
}

use self::hostile::play;
use self::link_input::steps;
use crate::input::Input;
use airmend_proto::agents::tulip::frame::{Ack, Frame, FrameKind};
use airmend_proto::agents::tulip::{Order, Settings};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{Ecn, LinkType, Packet};
use core::time::Duration;

pub(crate) fn fuzz(data: &[u8]) {
    check_frame(data);
    compressed::check(data);
    let mut input = Input(data);
    let switches = input.byte();
    let settings = Settings {
        half_duplex: switches & 1 != 0,
        adaptive: switches & 2 != 0,
        order: if switches & 4 != 0 { Order::Flow } else { Order::Destination },
        strobe: 1 + u32::from(switches >> 3 & 3),
        window: 1 + u32::from(switches >> 5),
        ..Settings::default()
    };
    if let Err(error) = play(&settings, &steps(&mut input, frame)) {
        panic!("{error}");
    }
}

fn check_frame(data: &[u8]) {
    let packet = Packet::new(LinkType::Frame, data.to_vec().into());
    if let Ok(frame) = Frame::parse(&packet) {
        let again = Frame::parse(&frame.emit());
        assert_eq!(again, Ok(frame), "what is read is written as it was");
    }
}

fn frame(input: &mut Input<'_>) -> Frame {
    let head = input.byte();
    let kind = match input.byte() % 5 {
        0 => FrameKind::Control,
        1 => FrameKind::Reliable,
        2 => FrameKind::Unreliable,
        3 => FrameKind::Skip,
        _ => FrameKind::Repair,
    };
    let epochs = input.byte();
    let epoch = |bits: u8, usual: u32| match bits {
        0..12 => usual,
        other => u32::from(other) - 11,
    };
    let ack = (head & 16 != 0).then(|| Ack {
        next: SeqNumber(input.number()),
        highest_serial: SeqNumber(input.number()),
        delay: Duration::ZERO,
        covered: (head & 32 != 0).then(|| input.number() as u16),
        marks: (head & 40 == 40).then(|| input.number() as u16),
        clock: (head & 36 == 36).then(|| input.number() as u16),
        vector: vec![input.byte(); usize::from(head >> 6)].into(),
    });
    let has_payload = !matches!(kind, FrameKind::Control | FrameKind::Skip);
    let payload = vec![head; usize::from(input.word() % 1_500)];
    Frame {
        kind,
        poll: head & 4 != 0,
        more: head & 8 != 0,
        by_serial: head & 32 != 0,
        reads_version_2: head & 64 != 0,
        reads_repairs: head & 1 != 0 && kind == FrameKind::Control,
        answers_ce: head & 128 != 0,
        outer_ecn: Ecn::of_traffic_class(head >> 4),
        from: epoch(epochs & 15, 2),
        to: epoch(epochs >> 4, 1),
        serial: SeqNumber(input.number()),
        seq: SeqNumber(input.number()),
        after: input.number() as u16,
        ack,
        payload: has_payload.then(|| Packet::new(LinkType::Ip, payload.into())),
    }
}
