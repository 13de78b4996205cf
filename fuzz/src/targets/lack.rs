//! Bytes as a LACK frame, and as a sequence of times, frames and packets for one end of a link
//! with small limits: what is read is written as it was, and the end keeps its promises.

#[path = "../../../proto/tests/link/hostile.rs"]
mod hostile;
#[path = "../link_input.rs"]
mod link_input;

/// The agent under test.
mod kit {
    pub(crate) use airmend_proto::agents::lack::frame::Frame;
    pub(crate) use airmend_proto::agents::lack::{Lack as Station, Settings};

    /// The queues of an end: two classes, and what its senders have sent before.
    pub(crate) const QUEUES: usize = 3;
}

use self::hostile::play;
use self::link_input::steps;
use crate::input::Input;
use airmend_proto::agents::lack::Settings;
use airmend_proto::agents::lack::frame::{Ack, Frame, FrameKind, run};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{LinkType, Packet};
use core::time::Duration;

pub(crate) fn fuzz(data: &[u8]) {
    check_frame(data);
    let mut input = Input(data);
    let switches = input.byte();
    let profile = if switches & 1 != 0 { Settings::flow() } else { Settings::default() };
    let settings = Settings {
        half_duplex: switches & 2 != 0,
        adaptive: switches & 4 != 0,
        idle_copies: switches & 8 != 0,
        gap_eack: u32::from(switches >> 4 & 1),
        window: 1 + u32::from(switches >> 5),
        ..profile
    };
    if let Err(error) = play(&settings, &steps(&mut input, frame)) {
        panic!("{error}");
    }
}

fn check_frame(data: &[u8]) {
    let packet = Packet::new(LinkType::Frame, data.to_vec().into());
    let _ = Frame::parse_damaged(data);
    if let Ok(frame) = Frame::parse(&packet) {
        let again = Frame::parse(&frame.emit());
        assert_eq!(again, Ok(frame), "what is read is written as it was");
    }
}

fn frame(input: &mut Input<'_>) -> Frame {
    use FrameKind as K;
    let head = input.byte();
    let kinds = [K::Ack, K::Packet, K::Once, K::Skip, K::Hello, K::Packet, K::Packet, K::Ack];
    let kind = kinds[usize::from(head & 7)];
    let epochs = input.byte();
    let epoch = |bits: u8, usual: u32| match bits {
        0..12 => usual,
        other => u32::from(other) - 11,
    };
    let (from, to) = (epoch(epochs & 15, 2), epoch(epochs >> 4, 1));
    let ack = (head & 8 != 0).then(|| Ack {
        next: SeqNumber(input.number()),
        serial: SeqNumber(input.number()),
        delay: Duration::ZERO,
        correct: input.number(),
        erroneous: input.number(),
    });
    let (serial, seq) = (SeqNumber(input.number()), SeqNumber(input.number()));
    let after = (head & 16 != 0).then(|| input.number() as u16);
    let payload = vec![head; usize::from(input.word() % 1_500)];
    let payload = Some(Packet::new(LinkType::Ip, payload.into()));
    let frame = Frame::bare(kind, run(from, to));
    match kind {
        K::Hello => Frame::hello(from, to),
        K::Ack => Frame { ack, ..frame },
        K::Skip => Frame { serial, seq, after, ack, ..frame },
        K::Packet | K::Once => Frame { serial, seq, after, ack, payload, ..frame },
    }
}
