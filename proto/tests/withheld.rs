//! What agents withhold reaches the sender when the runner ends, and when packets of the flow have
//! crossed that the agent was not shown.

use airmend_proto::agents::{AGENTS, AgentConfig, Limits};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Options};
use airmend_proto::{Forwarder, Instant, LinkSignal, LinkType, Packet, Port};
use std::time::Duration;

const FIXED: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
const LEN: u32 = 1000;
/// The ports of two flows of one mobile host.
const PORTS: [u16; 2] = [5000, 5001];

fn mobile(port: u16) -> ([u8; 4], u16) {
    ([10, 0, 1, 2], port)
}

fn data(port: u16, number: u32) -> Packet {
    SegmentBuilder::new(FIXED, mobile(port))
        .seq(SeqNumber(number * LEN))
        .flags(Flags::ACK)
        .payload(&[7; LEN as usize])
        .build(LinkType::Ip)
}

/// An ACK up to the packet with this number that has the one before `sacked` too.
fn ack(port: u16, next: u32, sacked: Option<u32>) -> Packet {
    let block = |end: u32| (SeqNumber((next + 1) * LEN), SeqNumber(end * LEN));
    let options = Options { sack: sacked.map(block).into_iter().collect(), ..Options::default() };
    SegmentBuilder::new(mobile(port), FIXED)
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
    /// Six packets of each flow have left, and the first of them has been acknowledged.
    fn new(agent: &str) -> Self {
        let agent = AgentConfig::by_name(agent).expect("a name of the registry");
        let limits = Limits::default();
        let agent = Forwarder::new(agent.build(limits, 1), limits.egress);
        let mut world = Self { agent, now: Instant::from_millis(1) };
        for port in PORTS {
            for number in 0..6 {
                world.give(Port::Wired, data(port, number));
            }
            world.give(Port::Air, ack(port, 1, None));
        }
        world
    }

    /// What leaves towards the wire when this packet comes.
    fn give(&mut self, from: Port, packet: Packet) -> Vec<Packet> {
        self.now += Duration::from_micros(100);
        self.agent.handle_packet(self.now, from, packet);
        self.leaves()
    }

    fn leaves(&mut self) -> Vec<Packet> {
        while self.agent.poll_transmit(self.now, Port::Air).is_some() {}
        std::iter::from_fn(|| self.agent.poll_transmit(self.now, Port::Wired)).collect()
    }

    fn signal(&mut self, signal: LinkSignal) -> Vec<Packet> {
        self.agent.handle_link(self.now, signal);
        self.leaves()
    }

    /// The second packet of a flow is missing: the last duplicate ACK, if that is withheld.
    fn lose(&mut self, port: u16) -> Option<Packet> {
        let mut withheld = None;
        for end in 3..6 {
            let ack = ack(port, 1, Some(end));
            withheld = self.give(Port::Air, ack.clone()).is_empty().then_some(ack);
        }
        withheld
    }
}

/// Every agent that stands alone, and how many of them withhold something here.
fn each(test: impl Fn(&str) -> bool) -> usize {
    let alone = AGENTS.iter().filter(|agent| agent.link.is_none());
    alone.filter(|agent| test(agent.name)).count()
}

#[test]
fn all_that_is_withheld_leaves_at_the_end() {
    let withholding = each(|agent| {
        let mut world = World::new(agent);
        let withheld = PORTS.map(|port| world.lose(port));
        let left = world.signal(LinkSignal::Stop);
        let mut expected: Vec<Packet> = withheld.into_iter().flatten().collect();
        let is_any = !expected.is_empty();
        for packet in left {
            let place = expected.iter().position(|expected| *expected == packet);
            expected.remove(place.unwrap_or_else(|| panic!("{agent} sent something else")));
        }
        assert_eq!(expected, [], "{agent} keeps it for ever");
        assert_eq!(world.signal(LinkSignal::Stop), [], "{agent}: once");
        is_any
    });
    assert!(withholding >= 2, "snoop and snoop95 at least: {withholding}");
}

#[test]
fn only_the_flow_with_a_gap_forgets() {
    let withholding = each(|agent| {
        let mut world = World::new(agent);
        let [missed, other] = PORTS.map(|port| world.lose(port));
        let key = FlowKey { wired: FIXED.into(), air: mobile(PORTS[0]).into() };
        let left = world.signal(LinkSignal::ObservationGap(key));
        assert_eq!(left, Vec::from_iter(missed), "{agent}");
        // The other one is as before.
        let next = ack(PORTS[1], 1, Some(6));
        let passed = world.give(Port::Air, next);
        assert_eq!(passed.is_empty(), other.is_some(), "{agent}");
        other.is_some()
    });
    assert!(withholding >= 2, "snoop and snoop95 at least: {withholding}");
}

#[test]
fn a_gap_of_an_unknown_flow_is_none() {
    each(|agent| {
        let mut world = World::new(agent);
        for port in PORTS {
            world.lose(port);
        }
        let key = FlowKey { wired: FIXED.into(), air: mobile(1).into() };
        assert_eq!(world.signal(LinkSignal::ObservationGap(key)), [], "{agent}");
        true
    });
}

#[test]
fn another_agent_takes_over_and_nothing_is_left_behind() {
    let port = PORTS[0];
    for agent in AGENTS.iter().filter(|agent| agent.link.is_none()) {
        let name = agent.name;
        let mut world = World::new(name);
        let withheld = world.lose(port);
        // What has not departed yet goes on, too.
        world.agent.handle_packet(world.now, Port::Wired, data(port, 6));
        let next = AgentConfig::by_name("snoop").expect("a name of the registry");
        drop(world.agent.replace_agent(world.now, next.build(Limits::default(), 1)));
        let released = world.agent.poll_transmit(world.now, Port::Wired);
        assert_eq!(released, withheld, "{name}");
        let mut departed = Vec::new();
        while let Some(packet) = world.agent.poll_transmit(world.now, Port::Air) {
            departed.push(packet);
        }
        assert!(departed.contains(&data(port, 6)), "{name}: {departed:?}");
        // The new agent repairs what it has seen depart, and nothing else.
        for number in 7..12 {
            world.give(Port::Wired, data(port, number));
        }
        world.give(Port::Air, ack(port, 8, None));
        world.agent.handle_packet(world.now, Port::Air, ack(port, 8, Some(12)));
        world.agent.handle_timeout(world.now + Duration::from_secs(1));
        let repair = world.agent.poll_transmit(world.now + Duration::from_secs(1), Port::Air);
        assert_eq!(repair, Some(data(port, 8)), "{name}");
    }
}
