//! Whatever arrives, in whatever order and at whatever time: an agent keeps what it promises.
//!
//! Failing cases shrink; their seed is kept in `invariants.regressions` and tried first next time.

mod common;

use airmend_proto::agents::Limits;
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{LinkType, Port};
use common::agents::{tight, vary};
use common::hostile::{ISN, Step, TINY, play};
use common::packet::{Foreign, Tcp};
use common::transfer::{Choice, sack, transfer};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use std::num::NonZeroU16;
use std::time::Duration;

/// More flows than the table of [`TINY`] holds.
const FLOWS: u16 = 6;

fn config() -> ProptestConfig {
    let persistence = FileFailurePersistence::WithSource("regressions");
    ProptestConfig { failure_persistence: Some(Box::new(persistence)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    // [C-11] No ACK above what the mobile sent, none merged, split or made up; [C-8] nothing
    // suppressed that says more than a duplicate ACK.
    #[test]
    fn agents_keep_their_promises(steps in steps(), choices: u64, tiny: bool) {
        play_all(&steps, choices, if tiny { TINY } else { Limits::default() })?;
    }

    #[test]
    fn agents_keep_their_promises_within_one_window(
        steps in prop::collection::vec(prop_oneof![4 => tcp(near(), 1), 1 => wait()], 1..200),
        choices: u64,
    ) {
        play_all(&steps, choices, Limits::default())?;
    }

    // [C-27, C-28, C-29, C-30] Data with holes, and timestamps of clocks that go on, from either
    // side and in the sending host.
    #[test]
    fn agents_keep_their_promises_of_a_sender_with_timestamps(
        steps in prop_oneof![
            transfers(Port::Air, false),
            transfers(Port::Wired, false),
            transfers(Port::Wired, true),
        ],
        choices: u64,
    ) {
        play_all(&steps, choices, Limits::default())?;
    }
}

fn play_all(steps: &[Step], choices: u64, limits: Limits) -> Result<(), TestCaseError> {
    tight()
        .try_for_each(|agent| play(&vary(agent, choices), limits, steps))
        .map_err(TestCaseError::fail)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => tcp(near(), FLOWS),
        2 => tcp(anywhere(), FLOWS),
        3 => wait(),
        1 => (side(), any::<bool>()).prop_map(|(side, open)| Step::CanSend(side, open)),
        1 => foreign(),
        1 => bytes(),
    ];
    prop::collection::vec(step, 1..120)
}

/// A transfer: segments of which some are left out or sent again, and ACKs of the other host, most
/// of them answered at once.
fn transfers(sender: Port, is_in_host: bool) -> impl Strategy<Value = Vec<Step>> {
    let blocks =
        prop_oneof![2 => Just(Vec::new()), 3 => prop::collection::vec((0u32..12, 1u32..4), 1..3)];
    let wait = prop_oneof![Just(0u64), 0u64..40_000, 40_000u64..120_000];
    let choice = (any::<bool>(), 0u32..4, blocks, prop::bool::weighted(0.1), wait).prop_map(
        |(is_ack, number, blocks, is_report, wait)| Choice {
            is_ack,
            number,
            blocks,
            is_report,
            wait: Duration::from_micros(wait),
        },
    );
    prop::collection::vec(choice, 1..60)
        .prop_map(move |choices| transfer(sender, is_in_host, choices))
}

/// Places of a stream where data, its resegmented copies and ACKs meet, across the wrap.
fn near() -> impl Strategy<Value = u32> + Clone {
    (0u32..30).prop_map(|index| ISN.wrapping_add(index * 100))
}

/// Hostile numbers: anywhere, and where comparisons turn around.
fn anywhere() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![
        any::<u32>(),
        (-3i32..3).prop_map(|offset| ISN.wrapping_add(1 << 31).wrapping_add_signed(offset)),
        (-3i32..3).prop_map(|offset| ISN.wrapping_add(1 << 30).wrapping_add_signed(offset)),
    ]
}

fn tcp(number: impl Strategy<Value = u32> + Clone, flows: u16) -> impl Strategy<Value = Step> {
    let len = prop_oneof![3 => Just(100u16), 1 => Just(200u16), 1 => 0u16..300];
    let size = prop_oneof![4 => Just(None), 1 => Just(NonZeroU16::new(100))];
    let data = (0..flows, number.clone(), len, control(), 0u8..4, size).prop_map(
        |(flow, seq, len, flags, ecn, segment_size)| Tcp {
            flags,
            ecn,
            segment_size: segment_size.filter(|size| size.get() < len),
            ..Tcp::new(flow, Port::Wired, seq, len, ISN)
        },
    );
    let mobile_len = prop_oneof![9 => Just(0u16), 1 => Just(50u16)];
    let window = prop_oneof![5 => Just(500u16), 1 => any::<u16>()];
    let ack = (0..flows, number, mobile_len, window, control()).prop_map(
        |(flow, ack, len, window, flags)| Tcp {
            window,
            flags,
            ..Tcp::new(flow, Port::Air, ISN, len, ack)
        },
    );
    let sack = prop::collection::vec((near(), 0u32..300), 1..4).prop_map(blocks);
    let options = prop_oneof![
        4 => Just(Vec::new()),
        4 => sack,
        1 => (0u8..3, 0u8..3).prop_map(|(a, b)| vec![1, 1, 8, 10, 0, 0, 0, a, 0, 0, 0, b]),
        1 => prop::collection::vec(any::<u8>(), 4).prop_map(Vec::from),
    ];
    (prop_oneof![data, ack], any::<bool>(), options).prop_map(|(tcp, ipv6, options)| {
        // One address family per flow would hide that both share the table.
        Step::Tcp(Tcp { ipv6: ipv6 && tcp.flow % 2 == 1, options, ..tcp })
    })
}

/// A SACK option of blocks with these left edges and lengths.
fn blocks(blocks: Vec<(u32, u32)>) -> Vec<u8> {
    sack(blocks.into_iter().map(|(left, len)| (left, left.wrapping_add(len))))
}

fn control() -> impl Strategy<Value = Flags> + Clone {
    prop_oneof![
        30 => Just(Flags::default()),
        5 => Just(Flags::PSH),
        2 => Just(Flags::FIN),
        1 => Just(Flags::SYN),
        1 => Just(Flags::RST),
        1 => (0u16..256).prop_map(|bits| Flags(bits & !Flags::ACK.0)),
    ]
}

fn wait() -> impl Strategy<Value = Step> {
    let micros = prop_oneof![
        4 => 0u64..30_000,
        2 => 30_000u64..500_000,
        1 => 500_000u64..10_000_000,
    ];
    micros.prop_map(|micros| Step::Wait(Duration::from_micros(micros)))
}

fn foreign() -> impl Strategy<Value = Step> {
    let kinds = vec![Foreign::Udp, Foreign::Fragment, Foreign::Malformed, Foreign::NotIp];
    (side(), prop::sample::select(kinds), 0u16..60)
        .prop_map(|(side, kind, len)| Step::Foreign(side, kind, len))
}

fn bytes() -> impl Strategy<Value = Step> {
    let link_type = prop_oneof![Just(LinkType::Ip), Just(LinkType::Ethernet)];
    (side(), link_type, prop::collection::vec(any::<u8>(), 0..80))
        .prop_map(|(side, link_type, bytes)| Step::Bytes(side, link_type, bytes))
}

fn side() -> impl Strategy<Value = Port> {
    prop_oneof![Just(Port::Air), Just(Port::Wired)]
}
