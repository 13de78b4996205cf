//! What the gateway's programs in the kernel do without asking the daemon. They take for granted
//! that every agent would pass a packet of the mobile that they let pass, at once and as it is. The
//! kernel runs the programs; where this user may not load them, the tests are ignored.

#[path = "../../proto/tests/common/mod.rs"]
mod common;
mod kernel;
#[path = "kernel/timestamps.rs"]
mod timestamps;

use airmend_proto::agents::Limits;
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::tcp::Flags;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Forwarder, Instant, Port};
use airmend_testkit::Suite;
use common::agents::{forwarder, tight};
use common::packet::Tcp;
use kernel::{Kernel, Verdict};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};
use std::cell::RefCell;
use std::process::ExitCode;
use std::time::Duration;

/// Where the sequence numbers of every flow begin: just before they wrap.
const ISN: u32 = u32::MAX - 999;
const FLOWS: u16 = 2;

fn main() -> ExitCode {
    let lacks = Kernel::load().err();
    Suite::default().tests(lacks.as_deref(), TESTS).run(None)
}

const TESTS: [(&str, fn()); 5] = [
    ("what_the_kernel_passes_every_agent_would", what_the_kernel_passes_every_agent_would),
    ("what_no_host_takes_is_no_ack", what_no_host_takes_is_no_ack),
    ("a_syn_keeps_the_highest_ack", a_syn_keeps_the_highest_ack),
    ("what_was_repaired_gets_its_timestamp_again_once", timestamps::restored_once),
    ("what_was_not_repaired_keeps_its_timestamp", timestamps::kept),
];

/// An IP header that states no length or more than there is: neither hosts nor agents read an ACK
/// there, and so it must not count as the highest that has passed.
fn what_no_host_takes_is_no_ack() {
    let mut kernel = Kernel::load().expect("it was loaded before");
    for ipv6 in [false, true] {
        let tcp = Tcp { ipv6, ..Tcp::new(0, Port::Air, ISN, 0, ISN) };
        let right = frame(&tcp.packet(0));
        let at = if ipv6 { 14 + 4 } else { 14 + 2 };
        for length in [0u16, 100] {
            let mut wrong = right.clone();
            wrong[at..at + 2].copy_from_slice(&length.to_be_bytes());
            kernel.note(&flow(&tcp));
            assert_eq!(kernel.run(&wrong), Verdict::Passes { reported: false }, "{length}");
            assert_eq!(kernel.acked(&flow(&tcp)), None, "{length}");
        }
        assert_eq!(kernel.run(&right), Verdict::Diverted);
        assert_eq!(kernel.acked(&flow(&tcp)), Some(u64::from(ISN)));
    }
}

/// Anybody can send a SYN in mid-connection: an old ACK after it does not begin the flow anew. An
/// ACK of another connection does.
fn a_syn_keeps_the_highest_ack() {
    let mut kernel = Kernel::load().expect("it was loaded before");
    let ack =
        |at: u32| Tcp { ack: Some(ISN.wrapping_add(at)), ..Tcp::new(0, Port::Air, ISN, 0, ISN) };
    let flow = flow(&ack(0));
    kernel.note(&flow);
    for (at, verdict, highest) in [
        (1000, Verdict::Diverted, 1000),
        (2000, Verdict::Passes { reported: true }, 2000),
        (500, Verdict::Diverted, 2000),
    ] {
        assert_eq!(kernel.run(&frame(&ack(at).packet(0))), verdict, "{at}");
        assert_eq!(kernel.acked(&flow), Some(u64::from(ISN.wrapping_add(highest))), "{at}");
    }
    let another = 0u32.wrapping_sub(1 << 21);
    for (at, highest) in [(500, 2000), (2000, 2000), (2100, 2100), (another, another)] {
        kernel.note_syn(&flow);
        assert_eq!(kernel.run(&frame(&ack(at).packet(0))), Verdict::Diverted, "{at}");
        assert_eq!(kernel.acked(&flow), Some(u64::from(ISN.wrapping_add(highest))), "{at}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Wait(Duration),
    Arrive(Tcp),
}

/// Whether the agent would have passed whatever the kernel passes.
fn play(mut agent: Forwarder, kernel: &mut Kernel, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut now = Instant::ZERO;
    for step in steps {
        if let Step::Arrive(tcp) = step {
            kernel.note(&flow(tcp));
        }
    }
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
        let mut passes = false;
        if tcp.sender == Port::Air {
            passes = matches!(kernel.run(&frame(&packet)), Verdict::Passes { .. });
        } else if tcp.flags.intersects(Flags::SYN) {
            kernel.note_syn(&flow(tcp));
        }
        agent.handle_packet(now, tcp.sender, packet.clone());
        let left = leaves(&mut agent, now, Port::Wired);
        if passes {
            prop_assert!(left.contains(&packet), "step {id} would not pass: {tcp:?}");
        }
    }
    Ok(())
}

/// An IP packet in an Ethernet frame.
fn frame(packet: &airmend_proto::Packet) -> Vec<u8> {
    let kind = match packet.bytes().first().map_or(0, |first| first >> 4) {
        6 => 0x86ddu16,
        _ => 0x0800,
    };
    [&[2; 12], &kind.to_be_bytes()[..], packet.bytes()].concat()
}

fn flow(tcp: &Tcp) -> FlowKey {
    FlowKey::of(&Segment::parse(&tcp.packet(0)).expect("a segment"), tcp.sender)
}

/// Takes everything out of the agent; what leaves for this side.
fn leaves(agent: &mut Forwarder, now: Instant, side: Port) -> Vec<airmend_proto::Packet> {
    let left = std::iter::from_fn(|| agent.poll_transmit(now, side)).collect();
    while agent.poll_transmit(now, side.opposite()).is_some() {}
    while agent.poll_event().is_some() {}
    left
}

fn what_the_kernel_passes_every_agent_would() {
    let mut kernel = Kernel::load().expect("it was loaded before");
    let config = Config {
        cases: 500,
        source_file: Some(file!()),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..Config::default()
    };
    let kernel = RefCell::new(&mut kernel);
    let result = TestRunner::new(config).run(&prop::collection::vec(step(), 1..150), |steps| {
        tight().try_for_each(|config| {
            play(forwarder(&config, Limits::default()), &mut kernel.borrow_mut(), &steps)
        })
    });
    result.unwrap_or_else(|why| panic!("{why}"));
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
