//! Hostile peers of known kinds, and what they may cost at most: steps over the state, memory,
//! retransmissions, and the repairs of an honest flow beside them [C-23, C-24, C-26].

use super::{Settings, Snoop, cache};
use crate::agent::{Agent, Verdict};
use crate::agents::limits::Limits;
use crate::packet::{LinkType, Packet};
use crate::port::Port;
use crate::time::Instant;
use crate::wire::build::SegmentBuilder;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Options};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

const HOST: [u8; 4] = [10, 0, 0, 1];
const MOBILE: [u8; 4] = [10, 0, 1, 2];
/// The port of the honest flow.
const HONEST: u16 = 9;

struct World {
    agent: Snoop,
    now: Instant,
    packets: u64,
    repairs: u64,
    /// The flow and sequence number of each repair.
    repaired: Vec<(u16, u32)>,
}

impl World {
    fn new(cache_bytes: usize) -> Self {
        let limits = Limits { cache_bytes, ..Limits::default() };
        let agent = Snoop::new(Settings::default(), limits, 1);
        let now = Instant::from_millis(1);
        Self { agent, now, packets: 0, repairs: 0, repaired: Vec::new() }
    }

    fn run(&mut self, packet: Option<(Port, Packet)>) -> Option<Verdict> {
        let verdict = packet.map(|(from, packet)| {
            self.packets += 1;
            let verdict = self.agent.handle_packet(self.now, from, &packet);
            if from == Port::Wired {
                self.agent.handle_departure(self.now, Port::Air, &packet);
            }
            verdict
        });
        if self.agent.poll_timeout().is_some_and(|due| due.at <= self.now) {
            self.agent.handle_timeout(self.now);
        }
        while self.agent.poll_enqueue().is_some() {}
        while let Some(repair) = self.agent.poll_transmit(self.now, Port::Air) {
            self.agent.confirm_departure(self.now, Port::Air, &repair);
            self.repairs += 1;
            if let Ok(segment) = crate::wire::tcp::Segment::parse(&repair) {
                self.repaired.push((segment.destination.port, segment.seq.0));
            }
        }
        while self.agent.poll_event().is_some() {}
        verdict
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.agent.poll_timeout().filter(|due| due.at <= end) {
            self.now = self.now.max(due.at);
            self.run(None);
        }
        self.now = end;
    }

    fn data(&mut self, flow: u16, seq: u32, len: u32) {
        self.run(Some((Port::Wired, data(flow, seq, len, b'x'))));
    }

    fn ack(&mut self, flow: u16, ack: u32, sack: &[(u32, u32)]) -> Option<Verdict> {
        let sack = sack.iter().map(|&(left, right)| (SeqNumber(left), SeqNumber(right))).collect();
        let packet = SegmentBuilder::new((MOBILE, flow), (HOST, 80))
            .ack(SeqNumber(ack))
            .window(u16::MAX)
            .options(Options { sack, ..Options::default() })
            .build(LinkType::Ip);
        self.run(Some((Port::Air, packet)))
    }

    /// An honest flow of 40 segments, of which the fourth is lost, over 10 ms of air.
    fn honest_flow_is_repaired(&mut self, base: u32) {
        let at = |number: u32| base + number * 1_000;
        self.data(HONEST, at(0), 1_000);
        self.wait(Duration::from_millis(10));
        self.ack(HONEST, at(1), &[]);
        (1..6).for_each(|number| self.data(HONEST, at(number), 1_000));
        self.wait(Duration::from_millis(10));
        self.ack(HONEST, at(3), &[]);
        let verdict = self.ack(HONEST, at(3), &[(at(4), at(5))]);
        assert_eq!(verdict, Some(Verdict::Withhold));
        assert_eq!(self.repaired.last(), Some(&(HONEST, at(3))));
        self.wait(Duration::from_millis(10));
        self.ack(HONEST, at(6), &[]);
    }
}

fn data(flow: u16, seq: u32, len: u32, byte: u8) -> Packet {
    SegmentBuilder::new((HOST, 80), (MOBILE, flow))
        .seq(SeqNumber(seq))
        .ack(SeqNumber(1))
        .payload(&vec![byte; len as usize])
        .build(LinkType::Ip)
}

/// A window of so many segments, after a first one that was acknowledged.
fn window(world: &mut World, flow: u16, segments: u32, len: u32) {
    world.data(flow, 0, len);
    world.wait(Duration::from_millis(4));
    world.ack(flow, len, &[]);
    (1..=segments).for_each(|number| world.data(flow, number * len, len));
    world.wait(Duration::from_millis(4));
}

#[test]
fn blocks_of_single_bytes_cost_no_more_than_segments() {
    let mut world = World::new(256 << 20);
    window(&mut world, 1, 700, 1_448);
    let before = (cache::steps(), world.packets);
    for number in 0..20_000u32 {
        let left = 2_000 + number % 500_000 * 2;
        world.ack(1, 1_448, &[(left, left + 1), (left + 100_000, left + 100_001)]);
    }
    let (steps, packets) = (cache::steps() - before.0, world.packets - before.1);
    assert!(steps < 20 * packets, "{steps} steps for {packets} packets");
    assert_eq!(world.repairs, 0);
    world.honest_flow_is_repaired(0);
}

#[test]
fn segments_of_single_bytes_cost_a_bounded_number_of_steps() {
    let mut world = World::new(256 << 20);
    window(&mut world, 1, 100_000, 1);
    let before = (cache::steps(), world.packets);
    for number in 0..4_000u32 {
        // Every other segment from the oldest on.
        let left = 3 + number * 4;
        world.ack(1, 1, &[(left, left + 1), (left + 2, left + 3)]);
    }
    let (steps, packets) = (cache::steps() - before.0, world.packets - before.1);
    assert!(steps < 100 * packets, "{steps} steps for {packets} packets");
    assert!(world.agent.load().cache_bytes < 16 << 20, "{:?}", world.agent.load());
    world.honest_flow_is_repaired(0);
}

#[test]
fn retransmissions_end_for_a_mobile_that_acknowledges_only_the_newest() {
    let mut world = World::new(256 << 20);
    window(&mut world, 1, 200, 1_000);
    for number in 0..1_300u32 {
        let newest = 201_000 + number * 10;
        world.data(1, newest, 10);
        world.wait(Duration::from_millis(1));
        world.ack(1, 1_000, &[(newest, newest + 10)]);
    }
    assert!(world.repairs <= 32 + 1_301, "{} repairs", world.repairs);
}

#[test]
fn memory_that_another_flow_gave_back_counts_before_it_is_used() {
    for limit in (2_000..20_000).step_by(50) {
        let mut world = World::new(limit);
        (1..6).for_each(|flow| world.data(flow, 0, 100));
        (1..6).for_each(|flow| _ = world.ack(flow, 100, &[]));
        (1..6).for_each(|flow| world.data(flow, 100, 900));
        let held = world.agent.load().cache_bytes;
        assert!(held <= limit, "{held} bytes of {limit}");
    }
}

#[test]
fn what_arrives_again_after_the_mobile_discarded_it_earns_no_repair() {
    let mut world = World::new(256 << 20);
    window(&mut world, 1, 200, 1_000);
    for hole in 1..50u32 {
        world.ack(1, hole * 1_000, &[((hole + 1) * 1_000, 201_000)]);
        world.wait(Duration::from_millis(4));
        // The number stops at data that was acknowledged selectively.
        world.ack(1, (hole + 1) * 1_000, &[]);
        world.wait(Duration::from_millis(4));
    }
    assert!(world.repairs <= 32 + 201, "{} repairs", world.repairs);
    assert!(world.repairs > 100, "{} repairs", world.repairs);
}

#[test]
fn nothing_is_sent_to_a_mobile_that_never_answered() {
    let mut world = World::new(256 << 20);
    for number in 0..500u16 {
        world.data(100 + number % 5, u32::from(number) * 1_000, 1_000);
    }
    world.wait(Duration::from_secs(10));
    assert_eq!((world.repairs, world.agent.load().flows), (0, 5));
    let empty = world.agent.load().cache_bytes;
    assert!(empty < 50_000, "{empty} bytes are left");
}

#[test]
fn many_new_flows_share_the_retransmissions_that_none_has_earned() {
    let mut world = World::new(256 << 20);
    for flow in 1_000..2_000u16 {
        world.data(flow, 0, 1_000);
        world.ack(flow, 1_000, &[]);
        (1..100).for_each(|number| world.data(flow, number * 1_000, 1_000));
        world.wait(Duration::from_millis(1));
        world.ack(flow, 1_000, &[(99_000, 100_000)]);
    }
    // 4096 of all flows, and one for each segment that arrived, twice.
    assert!(world.repairs <= 4_096 + 2 * 3_000, "{} repairs", world.repairs);
    assert!(world.repairs > 4_000, "{} repairs", world.repairs);
}

#[test]
fn flows_that_hold_all_they_can_leave_room_for_others() {
    let mut world = World::new(4 << 20);
    for flow in 100..110u16 {
        world.data(flow, 0, 1_000);
        world.ack(flow, 1_000, &[]);
        (1..4_000).for_each(|number| world.data(flow, number * 1_000, 1_000));
    }
    let load = world.agent.load();
    assert!(load.cache_bytes < 4 << 20 && load.cache_bytes > 1 << 20, "{load:?}");
    world.honest_flow_is_repaired(0);
}

/// [C-22] Of a lossy flow over 10 ms of air, the share of losses that is repaired, beside a flow
/// of a nearer host behind the same address, which loses one of so many packets and then pauses.
fn repaired_beyond_a_nearer_host(interval: u32) -> f64 {
    const NEAR: u16 = 1;
    let mut world = World::new(256 << 20);
    let near = |world: &mut World| {
        for number in 0..1_000u32 {
            world.data(NEAR, number * 1_000, 1_000);
            world.wait(Duration::from_millis(1));
            let (at, after) = (number * 1_000, number * 1_000 + 1_000);
            if number % interval == interval - 1 {
                world.data(NEAR, after, 1_000);
                world.ack(NEAR, at, &[(after, after + 1_000)]);
            }
            world.ack(NEAR, after, &[]);
        }
    };
    near(&mut world);
    let (mut losses, mut repaired) = (0, 0);
    let mut holes: Vec<u32> = Vec::new();
    for number in 0..5_000u32 {
        let at = number * 1_000;
        world.data(HONEST, at, 1_000);
        if number % 100 == 50 {
            holes.push(number);
            losses += 1;
        }
        world.wait(Duration::from_millis(1));
        let Some(arrived) = number.checked_sub(10) else { continue };
        // The sender mends after 40 ms what is not repaired.
        let is_open = |hole: &u32| arrived < hole + 50;
        holes.retain(is_open);
        let hole = holes.iter().copied().find(|&hole| hole <= arrived);
        let Some(hole) = hole else {
            world.ack(HONEST, (arrived + 1) * 1_000, &[]);
            continue;
        };
        if arrived > hole {
            world.ack(HONEST, hole * 1_000, &[((hole + 1) * 1_000, (arrived + 1) * 1_000)]);
        }
        if world.repaired.contains(&(HONEST, hole * 1_000)) {
            repaired += 1;
            holes.retain(|&other| other != hole);
        }
    }
    f64::from(repaired) / f64::from(losses)
}

#[test]
fn a_nearer_host_behind_the_same_address_ends_no_mending() {
    // Where the nearer host loses nothing, more is lost than without a queue, again and again.
    for (interval, least) in [(50, 0.9), (u32::MAX, 0.7)] {
        let share = repaired_beyond_a_nearer_host(interval);
        assert!(
            share > least,
            "{share} of the losses, where the nearer host loses 1 of {interval}"
        );
    }
}

#[test]
fn forged_bytes_are_not_delivered_in_place_of_the_lost_ones() {
    let mut world = World::new(256 << 20);
    world.data(1, 0, 1_000);
    world.wait(Duration::from_millis(4));
    world.ack(1, 1_000, &[]);
    // The forgery comes first, and then the sender's own data, which is lost on the air.
    world.run(Some((Port::Wired, data(1, 1_000, 1_000, b'!'))));
    world.data(1, 1_000, 1_000);
    world.data(1, 2_000, 1_000);
    world.wait(Duration::from_millis(4));
    let verdict = world.ack(1, 1_000, &[(2_000, 3_000)]);
    assert_eq!((world.repairs, verdict), (0, Some(Verdict::Pass)));
}

#[test]
fn a_damaged_packet_is_replaced_by_a_good_one_and_never_sent() {
    let good = data(1, 1_000, 1_000, b'x');
    let mut bytes = good.bytes().to_vec();
    *bytes.last_mut().unwrap() = b'y';
    let damaged = Packet::new(LinkType::Ip, bytes.into());
    for good_follows in [false, true] {
        let mut world = World::new(256 << 20);
        world.data(1, 0, 1_000);
        world.wait(Duration::from_millis(4));
        world.ack(1, 1_000, &[]);
        world.run(Some((Port::Wired, damaged.clone())));
        if good_follows {
            world.run(Some((Port::Wired, good.clone())));
        }
        world.data(1, 2_000, 1_000);
        world.wait(Duration::from_millis(4));
        world.ack(1, 1_000, &[(2_000, 3_000)]);
        assert_eq!(world.repairs, u64::from(good_follows));
    }
}

#[test]
fn forged_data_beyond_the_window_does_not_end_suppression() {
    let mut world = World::new(256 << 20);
    window(&mut world, 1, 5, 1_000);
    world.data(1, 1 << 29, 1_000);
    let verdict = world.ack(1, 1_000, &[(2_000, 3_000)]);
    assert_eq!((world.repairs, verdict), (1, Some(Verdict::Withhold)));
}

#[test]
fn an_uncached_hole_is_never_withheld() {
    // The cache holds the first segment only: the loss of no other can be seen.
    let mut world = World::new(4_500);
    window(&mut world, 1, 1, 1_000);
    (2..40).for_each(|number| world.data(1, number * 1_000, 1_000));
    let mut withheld = 0;
    for number in 2..40u32 {
        world.wait(Duration::from_millis(90));
        let verdict = world.ack(1, 1_000, &[(2_000, number * 1_000 + 1_000)]);
        withheld += u32::from(verdict == Some(Verdict::Withhold));
    }
    assert!(withheld <= 2, "{withheld} of 38 ACKs were withheld");
}

#[test]
fn a_forged_reset_costs_no_ack() {
    let mut world = World::new(256 << 20);
    window(&mut world, 1, 5, 1_000);
    assert_eq!(world.ack(1, 1_000, &[(2_000, 3_000)]), Some(Verdict::Withhold));
    for seq in (0..u32::MAX - 100_000).step_by(1 << 16).skip(1) {
        let reset = SegmentBuilder::new((HOST, 80), (MOBILE, 1))
            .seq(SeqNumber(seq))
            .flags(Flags::RST)
            .build(LinkType::Ip);
        world.run(Some((Port::Wired, reset)));
    }
    assert_eq!(world.ack(1, 1_000, &[(2_000, 4_000)]), Some(Verdict::Withhold));
}
