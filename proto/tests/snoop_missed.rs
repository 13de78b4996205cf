//! `snoop` when packets have crossed that it was not shown.

use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Options};
use airmend_proto::{Forwarder, Instant, LinkSignal, LinkType, Packet, Port};

const FIXED: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
const MOBILE: ([u8; 4], u16) = ([10, 0, 1, 2], 5000);
const LEN: u32 = 1000;

fn data(number: u32) -> Packet {
    SegmentBuilder::new(FIXED, MOBILE)
        .seq(SeqNumber(number * LEN))
        .flags(Flags::ACK)
        .payload(&[7; LEN as usize])
        .build(LinkType::Ip)
}

/// An ACK up to the packet with this number that has another one too.
fn ack(next: u32, sacked: Option<u32>) -> Packet {
    let block = |number: u32| (SeqNumber(number * LEN), SeqNumber((number + 1) * LEN));
    let options = Options { sack: sacked.map(block).into_iter().collect(), ..Options::default() };
    SegmentBuilder::new(MOBILE, FIXED)
        .ack(SeqNumber(next * LEN))
        .flags(Flags::ACK)
        .options(options)
        .build(LinkType::Ip)
}

struct World {
    agent: Forwarder,
    now: Instant,
}

impl World {
    fn new() -> Self {
        let agent = AgentConfig::by_name("snoop").expect("a known agent");
        let limits = Limits::default();
        let agent = Forwarder::new(agent.build(limits, 1), limits.egress);
        Self { agent, now: Instant::from_millis(1) }
    }

    /// What leaves to each side, [to the wire, to the air], when this packet comes.
    fn give(&mut self, from: Port, packet: Packet) -> [Vec<Packet>; 2] {
        self.now += std::time::Duration::from_millis(5);
        self.agent.handle_packet(self.now, from, packet);
        [Port::Wired, Port::Air]
            .map(|side| std::iter::from_fn(|| self.agent.poll_transmit(self.now, side)).collect())
    }
}

/// Four packets have left, and the first has been acknowledged.
fn under_way() -> World {
    let mut world = World::new();
    for number in 0..4 {
        world.give(Port::Wired, data(number));
    }
    world.give(Port::Air, ack(1, None));
    world
}

#[test]
fn a_hole_is_mended_and_hidden() {
    let mut world = under_way();
    let [to_wire, to_air] = world.give(Port::Air, ack(1, Some(3)));
    assert_eq!(to_air, [data(1), data(2)]);
    assert_ne!(to_wire, [ack(1, Some(3))], "the block is kept from the sender");
}

#[test]
fn what_was_sent_before_packets_were_missed_is_left_to_the_sender() {
    let mut world = under_way();
    let flow = FlowKey { wired: FIXED.into(), air: MOBILE.into() };
    world.agent.handle_link(world.now, LinkSignal::ObservationGap(flow));
    assert_eq!(world.agent.load().flows, 1);
    let [to_wire, to_air] = world.give(Port::Air, ack(1, Some(3)));
    assert_eq!(to_air, [], "the ACK that told of the others may have been missed");
    assert_eq!(to_wire, [ack(1, Some(3))]);
    // What is sent from here on is mended as before.
    for number in 4..7 {
        world.give(Port::Wired, data(number));
    }
    world.give(Port::Air, ack(4, None));
    let [_, to_air] = world.give(Port::Air, ack(4, Some(6)));
    assert_eq!(to_air, [data(4), data(5)]);
}
