//! Flows whose acknowledgments take another way: every agent that keeps flows counts them.

mod common;

use airmend_proto::agents::{self, AgentConfig, Limits};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{Forwarder, Instant, LinkType, Port};
use common::agents::forwarder;

const FIXED: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
const MOBILE: ([u8; 4], u16) = ([10, 0, 1, 2], 5000);

fn pass(agent: &mut Forwarder, millis: u64, from: Port, segment: SegmentBuilder<'_>) {
    let now = Instant::from_millis(millis);
    agent.handle_packet(now, from, segment.flags(Flags::ACK).build(LinkType::Ip));
    if agent.poll_timeout().is_some_and(|due| due.at <= now) {
        agent.handle_timeout(now);
    }
    for side in Port::BOTH {
        while agent.poll_transmit(now, side).is_some() {}
    }
}

fn data(number: u32) -> SegmentBuilder<'static> {
    SegmentBuilder::new(FIXED, MOBILE).seq(SeqNumber(1 + number * 1_000)).payload_len(1_000)
}

#[test]
fn data_without_acknowledgments_is_noticed_within_a_second() {
    let mut agents_with_flows = 0;
    for name in agents::names() {
        let config = AgentConfig::by_name(name).expect("a name of the registry");
        let mut agent = forwarder(&config, Limits::default());
        for number in 0..10 {
            pass(&mut agent, 100 * u64::from(number), Port::Wired, data(number));
        }
        assert_eq!(agent.unanswered(), 0, "{name}: an answer may still come");
        pass(&mut agent, 1_000, Port::Wired, data(10));
        if agent.load().flows == 0 {
            continue;
        }
        agents_with_flows += 1;
        assert_eq!(agent.unanswered(), 1, "{name}");
        let ack = SegmentBuilder::new(MOBILE, FIXED).ack(SeqNumber(11_001));
        pass(&mut agent, 1_001, Port::Air, ack);
        assert_eq!((agent.load().flows, agent.unanswered()), (1, 0), "{name}");
    }
    assert!(agents_with_flows >= 3);
}
