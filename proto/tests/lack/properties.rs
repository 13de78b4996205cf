//! A station keeps its promises whatever arrives; failing cases shrink.

use crate::hostile::{Step, play};
use airmend_proto::agents::lack::frame::{Ack, Frame, FrameKind, run};
use airmend_proto::agents::lack::{Order, Settings};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{LinkSignal, LinkType, Packet};
use proptest::prelude::*;
use std::time::Duration;

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0u32..12, 1 => any::<u32>(), 1 => 4_090u32..4_100]
}

fn epoch() -> impl Strategy<Value = u32> {
    prop_oneof![12 => Just(1), 12 => Just(2), 1 => 0u32..5, 1 => any::<u32>()]
}

fn ack() -> impl Strategy<Value = Ack> {
    (number(), number(), any::<[u32; 2]>()).prop_map(|(next, serial, [correct, erroneous])| Ack {
        next: SeqNumber(next),
        serial: SeqNumber(serial),
        delay: Duration::ZERO,
        correct,
        erroneous,
    })
}

fn frame() -> impl Strategy<Value = Frame> {
    use FrameKind as K;
    let kind = prop::sample::select(&[K::Ack, K::Packet, K::Packet, K::Once, K::Skip, K::Hello]);
    let after = prop::option::of(prop_oneof![0u16..4, any::<u16>()]);
    let numbers = (epoch(), epoch(), number(), number(), after);
    (kind, numbers, prop::option::of(ack()), 0usize..1_500).prop_map(
        |(kind, (from, to, serial, seq, after), ack, len)| {
            let payload = Packet::new(LinkType::Ip, vec![seq as u8; len].into());
            let (serial, seq) = (SeqNumber(serial), SeqNumber(seq));
            let frame = Frame::bare(kind, run(from, to));
            match kind {
                K::Hello => Frame::hello(from, to),
                K::Ack => Frame { ack, ..frame },
                K::Skip => Frame { serial, seq, after, ack, ..frame },
                K::Packet | K::Once => {
                    Frame { serial, seq, after, ack, payload: Some(payload), ..frame }
                }
            }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let packet = prop::collection::vec(any::<u8>(), 0..60).prop_map(|mut bytes| {
        // Often TCP over IPv4, whose sequence numbers meet.
        let fixed =
            [(0, 0x45), (2, 0), (3, 60), (6, 0), (7, 0), (9, 6), (24, 0), (25, 0), (32, 80)];
        for (at, byte) in fixed {
            if bytes.len() > 40 {
                bytes[at] = byte;
                bytes[12..24].fill(1);
            }
        }
        Packet::new(LinkType::Ip, bytes.into())
    });
    prop_oneof![
        8 => frame().prop_map(Step::Frame),
        2 => (frame(), 0usize..60).prop_map(|(frame, intact)| Step::Damaged(frame, intact)),
        6 => packet.prop_map(Step::Packet),
        6 => (0usize..4, 0usize..4).prop_map(|(frames, packets)| Step::Take(frames, packets)),
        1 => Just(Step::Signal(LinkSignal::Sent)),
        1 => Just(Step::Signal(LinkSignal::Leaving)),
        2 => (0u64..200_000).prop_map(|micros| Step::Wait(Duration::from_micros(micros))),
        1 => prop::collection::vec(any::<u8>(), 0..60).prop_map(Step::Bytes),
    ]
}

proptest! {
    #[test]
    fn a_station_keeps_its_promises(
        steps in prop::collection::vec(step(), 1..120),
        in_flow: bool,
        adaptive: bool,
        half_duplex: bool,
        idle_copies: bool,
        gap_eack in 0u32..4,
        window in 1u32..6,
    ) {
        let profile = if in_flow { Settings::flow() } else { Settings::default() };
        let settings = Settings { adaptive, half_duplex, idle_copies, gap_eack, window, ..profile };
        prop_assert_eq!(settings.order == Order::Flow, in_flow);
        play(&settings, &steps).map_err(TestCaseError::fail)?;
    }
}
