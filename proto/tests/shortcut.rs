//! What the gateway's program in the kernel takes for granted when it lets a packet of the mobile
//! pass without asking: that every agent would pass it too, at once and as it is.

mod common;

use airmend_proto::agents::Limits;
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{Forwarder, Instant, Port};
use common::agents::{forwarder, tight};
use common::packet::Tcp;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use std::collections::BTreeMap;
use std::time::Duration;

/// Where the sequence numbers of every flow begin: just before they wrap.
const ISN: u32 = u32::MAX - 999;
const FLOWS: u16 = 2;

#[derive(Clone, Debug)]
enum Step {
    Wait(Duration),
    Arrive(Tcp),
}

/// `airmend_ingress` of `gateway.bpf.c`.
#[derive(Default)]
struct Kernel {
    /// By flow, the highest ACK that has passed.
    acked: BTreeMap<u16, u32>,
}

impl Kernel {
    /// Whether the mobile's packet passes without being asked about.
    fn passes(&mut self, tcp: &Tcp) -> bool {
        if tcp.flags.intersects(Flags::SYN) {
            self.acked.remove(&tcp.flow);
        }
        let known = self.acked.get(&tcp.flow).copied();
        let advances = match (known, tcp.ack) {
            (Some(known), Some(ack)) => (ack.wrapping_sub(known) as i32) > 0,
            _ => false,
        };
        let connects = tcp.flags.intersects(Flags::SYN.union(Flags::RST));
        if let Some(ack) = tcp.ack.filter(|_| !connects && (advances || known.is_none())) {
            self.acked.insert(tcp.flow, ack);
        }
        let is_plain = tcp.options.is_empty() || tcp.options.starts_with(&[1, 1, 8, 10]);
        if connects || tcp.ack.is_none() {
            return true;
        }
        if tcp.len > 0 || tcp.flags.intersects(Flags::FIN) {
            return is_plain;
        }
        advances && is_plain && !tcp.flags.intersects(Flags::URG)
    }
}

/// Whether the agent would have passed whatever the kernel passes.
fn play(mut agent: Forwarder, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut kernel, mut now) = (Kernel::default(), Instant::ZERO);
    for (step, id) in steps.iter().zip(1..) {
        let tcp = match step {
            Step::Wait(time) => {
                now += *time;
                agent.handle_timeout(now);
                let _ = leaves(&mut agent, now, Port::Wired);
                continue;
            }
            Step::Arrive(tcp) => tcp,
        };
        let packet = tcp.packet(id);
        let passes = tcp.sender == Port::Air && kernel.passes(tcp);
        if tcp.sender == Port::Wired && tcp.flags.intersects(Flags::SYN) {
            kernel.acked.remove(&tcp.flow);
        }
        agent.handle_packet(now, tcp.sender, packet.clone());
        let left = leaves(&mut agent, now, Port::Wired);
        if passes {
            prop_assert!(left.contains(&packet), "step {id} would not pass: {tcp:?}");
        }
    }
    Ok(())
}

/// Takes everything out of the agent; what leaves for this side.
fn leaves(agent: &mut Forwarder, now: Instant, side: Port) -> Vec<airmend_proto::Packet> {
    let left = std::iter::from_fn(|| agent.poll_transmit(now, side)).collect();
    while agent.poll_transmit(now, side.opposite()).is_some() {}
    while agent.poll_event().is_some() {}
    left
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_the_kernel_passes_every_agent_would(steps in prop::collection::vec(step(), 1..150)) {
        for config in tight() {
            play(forwarder(&config, Limits::default()), &steps)?;
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let wait = prop_oneof![3 => 0u64..30_000, 1 => 30_000u64..2_000_000];
    prop_oneof![
        5 => data().prop_map(Step::Arrive),
        5 => answer().prop_map(Step::Arrive),
        2 => wait.prop_map(|micros| Step::Wait(Duration::from_micros(micros))),
    ]
}

/// Places of a stream where data, its copies and ACKs meet, across the wrap.
fn place() -> impl Strategy<Value = u32> + Clone {
    (0u32..30).prop_map(|index| ISN.wrapping_add(index * 100))
}

fn data() -> impl Strategy<Value = Tcp> {
    let len = prop_oneof![6 => Just(100u16), 1 => Just(0u16), 1 => 1u16..300];
    (0..FLOWS, place(), len, control(), timestamps()).prop_map(
        |(flow, seq, len, flags, options)| Tcp {
            flags,
            options,
            ..Tcp::new(flow, Port::Wired, seq, len, ISN)
        },
    )
}

fn answer() -> impl Strategy<Value = Tcp> {
    let len = prop_oneof![5 => Just(0u16), 1 => Just(50u16)];
    let window = prop_oneof![5 => Just(500u16), 1 => any::<u16>()];
    let sack = prop::collection::vec((place(), 1u32..300), 1..4).prop_map(sack);
    let options = prop_oneof![2 => timestamps(), 2 => sack];
    let ack = prop_oneof![20 => place().prop_map(Some), 1 => Just(None)];
    (0..FLOWS, ack, len, window, control(), options).prop_map(
        |(flow, ack, len, window, flags, options)| Tcp {
            ack,
            window,
            flags,
            options,
            ..Tcp::new(flow, Port::Air, ISN, len, ISN)
        },
    )
}

fn timestamps() -> impl Strategy<Value = Vec<u8>> {
    let both = |(a, b)| vec![1, 1, 8, 10, 0, 0, 0, a, 0, 0, 0, b];
    prop_oneof![1 => Just(Vec::new()), 1 => (0u8..9, 0u8..9).prop_map(both)]
}

/// A SACK option of blocks with these left edges and lengths.
fn sack(blocks: Vec<(u32, u32)>) -> Vec<u8> {
    let mut option = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
    for (left, len) in blocks {
        option.extend(left.to_be_bytes());
        option.extend(left.wrapping_add(len).to_be_bytes());
    }
    option
}

fn control() -> impl Strategy<Value = Flags> + Clone {
    let any = (0u16..512).prop_map(|bits| Flags(bits & !Flags::ACK.0));
    prop_oneof![
        30 => Just(Flags::default()),
        5 => Just(Flags::PSH),
        2 => Just(Flags::FIN),
        1 => Just(Flags::SYN),
        1 => Just(Flags::URG),
        1 => any,
    ]
}
