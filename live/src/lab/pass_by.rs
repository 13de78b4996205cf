//! Flows that pass the agent by, through the very queue that it feeds: the second mobile host of a
//! fairness run.
//!
//! The queue belongs to the agent, so these packets must go through it. They are disguised on the
//! way in as what no agent can mend, packets encrypted by IPsec, and get their face back on the way
//! out. The agent treats them as it treats any such traffic of a second host: it forwards them in
//! the order of arrival, in the same class and under the same limit as the packets that it mends.

use super::network::topology::pair_of;
use airmend_proto::agent::LinkSignal;
use airmend_proto::{Agent, Deadline, Event, Instant, LinkType, Packet, Port};

/// Protocol numbers in an IP header.
const TCP: u8 = 6;
const ESP: u8 = 50;

/// An agent that mends the first pair's flows only.
pub(crate) struct PassBy {
    agent: Box<dyn Agent + Send>,
}

impl PassBy {
    pub(crate) fn new(agent: Box<dyn Agent + Send>) -> Self {
        Self { agent }
    }
}

impl Agent for PassBy {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        self.agent.handle_packet(now, from, exchanged(packet, TCP, ESP));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.agent.handle_timeout(now);
    }

    fn handle_link(&mut self, now: Instant, signal: LinkSignal) {
        self.agent.handle_link(now, signal);
    }

    fn poll_transmit(&mut self, now: Instant, to: Port) -> Option<Packet> {
        Some(exchanged(self.agent.poll_transmit(now, to)?, ESP, TCP))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.agent.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.agent.poll_event()
    }
}

/// A packet of another pair than the first with its protocol number `old` made `new`; not the
/// frame of a link, in which such a packet travels in disguise.
///
/// The header checksum stays that of the true header: only the agent sees the other one, and no
/// agent reads it.
fn exchanged(packet: Packet, old: u8, new: u8) -> Packet {
    if packet.link_type() != LinkType::Ip {
        return packet;
    }
    let bytes = packet.bytes();
    let at = if bytes.first().is_some_and(|byte| byte >> 4 == 4) { 9 } else { 6 };
    if pair_of(bytes) == 0 || bytes.get(at) != Some(&old) {
        return packet;
    }
    let mut bytes = bytes.to_vec();
    bytes[at] = new;
    Packet::new(LinkType::Ip, bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::wire::build::SegmentBuilder;
    use airmend_proto::wire::tcp::Segment;
    use std::net::SocketAddr;

    /// Forwards what it cannot read as TCP, and keeps the rest.
    #[derive(Default)]
    struct Illiterate(Vec<Packet>);

    impl Agent for Illiterate {
        fn handle_packet(&mut self, _: Instant, _: Port, packet: Packet) {
            if Segment::parse(&packet).is_err() {
                self.0.push(packet);
            }
        }
        fn handle_timeout(&mut self, _: Instant) {}
        fn poll_transmit(&mut self, _: Instant, _: Port) -> Option<Packet> {
            self.0.pop()
        }
        fn poll_timeout(&self) -> Option<Deadline> {
            None
        }
        fn poll_event(&mut self) -> Option<Event> {
            None
        }
    }

    #[test]
    fn the_agent_cannot_read_the_second_pair_and_its_packets_leave_unchanged() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        for [first, second] in
            [["10.77.0.1:80", "10.77.1.1:80"], ["[fd77::1]:80", "[fd77:0:0:1::1]:80"]]
        {
            let mut agent = PassBy::new(Box::<Illiterate>::default());
            let packet = |from, to| {
                SegmentBuilder::new(address(from), address(to)).payload(b"data").build(LinkType::Ip)
            };
            let mut passes = |packet: &Packet| {
                agent.handle_packet(Instant::ZERO, Port::Wired, packet.clone());
                agent.poll_transmit(Instant::ZERO, Port::Air)
            };
            assert_eq!(passes(&packet(first, first)), None);
            let unmended = packet(second, second);
            assert_eq!(passes(&unmended), Some(unmended));
        }
    }
}
