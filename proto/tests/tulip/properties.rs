//! An end keeps its promises whatever arrives; failing cases shrink.

use crate::hostile::{Step, play};
use airmend_proto::agents::tulip::frame::{Ack, Frame, FrameKind};
use airmend_proto::agents::tulip::{Order, Settings};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{Ecn, LinkSignal, LinkType, Packet};
use proptest::prelude::*;
use std::time::Duration;

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0u32..12, 1 => any::<u32>(), 1 => 4_090u32..4_100]
}

fn epoch() -> impl Strategy<Value = u32> {
    prop_oneof![12 => Just(1), 12 => Just(2), 1 => 0u32..5, 1 => any::<u32>()]
}

fn ack() -> impl Strategy<Value = Ack> {
    let vector = prop::collection::vec(any::<u8>(), 0..4);
    let report = (prop::option::of(0u16..40), prop::option::of(0u16..4), any::<Option<u16>>());
    (number(), number(), report, vector).prop_map(|(next, highest_serial, report, vector)| Ack {
        next: SeqNumber(next),
        highest_serial: SeqNumber(highest_serial),
        delay: Duration::ZERO,
        covered: report.0,
        marks: report.1,
        clock: report.2,
        vector: vector.into(),
    })
}

fn frame() -> impl Strategy<Value = Frame> {
    let kind = prop_oneof![
        Just(FrameKind::Control),
        Just(FrameKind::Reliable),
        Just(FrameKind::Reliable),
        Just(FrameKind::Unreliable),
        Just(FrameKind::Skip),
        Just(FrameKind::Repair)
    ];
    let numbers = (epoch(), epoch(), number(), number(), prop_oneof![0u16..4, any::<u16>()]);
    (kind, any::<([bool; 6], u8)>(), numbers, prop::option::of(ack()), 0usize..1_500).prop_map(
        |(kind, (flags, ecn), (from, to, serial, seq, after), ack, len)| {
            let [poll, more, by_serial, reads_version_2, answers_ce, reads_repairs] = flags;
            let has_payload = !matches!(kind, FrameKind::Control | FrameKind::Skip);
            let payload = Packet::new(LinkType::Ip, vec![seq as u8; len].into());
            Frame {
                kind,
                poll,
                more,
                by_serial,
                reads_version_2,
                reads_repairs: reads_repairs && kind == FrameKind::Control,
                answers_ce,
                outer_ecn: Ecn::of_traffic_class(ecn),
                from,
                to,
                serial: SeqNumber(serial),
                seq: SeqNumber(seq),
                after,
                ack,
                payload: has_payload.then_some(payload),
            }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let signal = prop_oneof![
        4 => Just(Step::Signal(LinkSignal::Sent)),
        1 => (frame(), 0usize..60).prop_map(|(frame, intact)| Step::Damaged(frame, intact)),
        1 => Just(Step::Signal(LinkSignal::Idle))
    ];
    let packet = prop::collection::vec(any::<u8>(), 0..60).prop_map(|mut bytes| {
        // Often TCP over IPv4, so that it is reliable.
        for (at, byte) in [(0, 0x45), (2, 0), (3, 60), (6, 0), (7, 0), (9, 6)] {
            if bytes.len() > 40 {
                bytes[at] = byte;
            }
        }
        Packet::new(LinkType::Ip, bytes.into())
    });
    prop_oneof![
        8 => frame().prop_map(Step::Frame),
        6 => packet.prop_map(Step::Packet),
        6 => (0usize..4, 0usize..4).prop_map(|(frames, packets)| Step::Take(frames, packets)),
        3 => signal,
        2 => (0u64..200_000).prop_map(|micros| Step::Wait(Duration::from_micros(micros))),
        1 => prop::collection::vec(any::<u8>(), 0..60).prop_map(Step::Bytes),
    ]
}

proptest! {
    #[test]
    fn an_end_keeps_its_promises(
        steps in prop::collection::vec(step(), 1..120),
        half_duplex: bool,
        adaptive: bool,
        in_flow: bool,
        strobe in 1u32..4,
        window in 1u32..6,
        idle_copies in 0u32..3,
    ) {
        let order = if in_flow { Order::Flow } else { Order::Destination };
        let settings = Settings {
            half_duplex,
            adaptive,
            order,
            strobe,
            window,
            idle_copies,
            ..Settings::default()
        };
        play(&settings, &steps).map_err(TestCaseError::fail)?;
    }
}
