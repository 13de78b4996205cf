//! Whatever arrives from the link, in whatever order and at whatever time: memory stays within its
//! limits, timers make progress, and what leaves towards the network layer had arrived.

use airmend_proto::agents::Limits;
use airmend_proto::agents::egress::EgressLimits;
use airmend_proto::agents::tulip::{Order, Settings, Tulip};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tulip::{Ack, Frame, Kind};
use airmend_proto::{Agent, Instant, LinkSignal, LinkType, Packet, Side};
use proptest::prelude::*;
use std::time::Duration;

pub(crate) const LIMITS: Limits =
    Limits { flows: 1, cache_bytes: 2_000, egress: EgressLimits { air: 5, wired: 5 } };

/// One thing that happens to an end.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Wait(Duration),
    Frame(Frame),
    Bytes(Vec<u8>),
    Packet(Packet),
    Signal(LinkSignal),
    /// The link takes so many frames, the network layer so many packets.
    Take(usize, usize),
}

/// Plays the steps against an end in epoch 1; the error is a sentence.
pub(crate) fn play(settings: &Settings, steps: &[Step]) -> Result<(), String> {
    let mut agent = Tulip::new(LIMITS, settings.clone(), 1);
    let mut now = Instant::ZERO;
    let mut arrived: Vec<Packet> = Vec::new();
    for step in steps {
        match step {
            Step::Wait(time) => {
                let end = now + *time;
                // An end that is not answered probes for ever, but not for nothing.
                for _ in 0..100 {
                    let Some(due) = agent.poll_timeout().filter(|due| due.at <= end) else { break };
                    now = now.max(due.at);
                    agent.handle_timeout(now);
                    if agent.poll_timeout().is_some_and(|next| next.at <= now) {
                        return Err(format!("`{}` is due again at once", due.why));
                    }
                    take(&mut agent, now, 10, 0, &arrived)?;
                }
                now = end;
                agent.handle_timeout(now);
            }
            Step::Frame(frame) => {
                arrived.extend(frame.payload.clone());
                agent.handle_packet(now, Side::Air, frame.emit());
            }
            Step::Bytes(bytes) => {
                let packet = Packet::new(LinkType::Tulip, bytes.clone().into());
                arrived.extend(Frame::parse(&packet).ok().and_then(|frame| frame.payload));
                agent.handle_packet(now, Side::Air, packet);
            }
            Step::Packet(packet) => agent.handle_packet(now, Side::Wired, packet.clone()),
            Step::Signal(signal) => agent.handle_link(now, *signal),
            Step::Take(frames, packets) => take(&mut agent, now, *frames, *packets, &arrived)?,
        }
        // One packet may be in hand when the limit is reached.
        let held = agent.held_bytes();
        if held > LIMITS.cache_bytes + 1_500 {
            return Err(format!("{held} bytes are held"));
        }
        let (queued, _) = agent.backlog();
        if queued > 2 * LIMITS.egress.air + settings.window as usize {
            return Err(format!("{queued} packets wait"));
        }
        while agent.poll_event().is_some() {}
    }
    take(&mut agent, now, 10_000, 10_000, &arrived)
}

fn take(
    agent: &mut Tulip,
    now: Instant,
    frames: usize,
    packets: usize,
    arrived: &[Packet],
) -> Result<(), String> {
    for _ in 0..frames {
        let Some(frame) = agent.poll_transmit(now, Side::Air) else { break };
        Frame::parse(&frame).map_err(|why| format!("sent a frame that is {why}"))?;
    }
    if frames >= 10_000 && agent.poll_transmit(now, Side::Air).is_some() {
        return Err("it sends without end".into());
    }
    for _ in 0..packets {
        let Some(packet) = agent.poll_transmit(now, Side::Wired) else { break };
        if !arrived.contains(&packet) {
            return Err(format!("released what never arrived: {packet:?}"));
        }
    }
    Ok(())
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0u32..12, 1 => any::<u32>(), 1 => 4_090u32..4_100]
}

fn epoch() -> impl Strategy<Value = u32> {
    prop_oneof![12 => Just(1), 12 => Just(2), 1 => 0u32..5, 1 => any::<u32>()]
}

fn ack() -> impl Strategy<Value = Ack> {
    let vector = prop::collection::vec(any::<u8>(), 0..4);
    (number(), number(), vector).prop_map(|(next, heard, vector)| Ack {
        next: SeqNumber(next),
        heard: SeqNumber(heard),
        delay: Duration::ZERO,
        vector: vector.into(),
    })
}

fn frame() -> impl Strategy<Value = Frame> {
    let kind = prop_oneof![
        Just(Kind::Control),
        Just(Kind::Reliable),
        Just(Kind::Reliable),
        Just(Kind::Unreliable),
        Just(Kind::Skip)
    ];
    let numbers = (epoch(), epoch(), number(), number(), prop_oneof![0u16..4, any::<u16>()]);
    (kind, any::<[bool; 2]>(), numbers, prop::option::of(ack()), 0usize..1_500).prop_map(
        |(kind, [poll, more], (from, to, serial, seq, after), ack, len)| {
            let has_payload = matches!(kind, Kind::Reliable | Kind::Unreliable);
            let payload = Packet::new(LinkType::Ip, vec![seq as u8; len].into());
            Frame {
                kind,
                poll,
                more,
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
        4 => Just(LinkSignal::Sent),
        1 => Just(LinkSignal::Damaged),
        1 => Just(LinkSignal::Idle)
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
        3 => signal.prop_map(Step::Signal),
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
    ) {
        let order = if in_flow { Order::Flow } else { Order::Destination };
        let settings =
            Settings { half_duplex, adaptive, order, strobe, window, ..Settings::default() };
        play(&settings, &steps).map_err(TestCaseError::fail)?;
    }
}
