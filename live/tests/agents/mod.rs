//! Agents that misbehave.

use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{Agent, Deadline, Event, Instant, Packet, Port};

/// Panics on one packet.
pub(crate) struct Panicking {
    agent: Box<dyn Agent + Send>,
    packets_left: u32,
}

impl Panicking {
    /// Behaves as `agent` for so many packets.
    pub(crate) fn new(agent: Box<dyn Agent + Send>, packets: u32) -> Self {
        Self { agent, packets_left: packets }
    }
}

impl Agent for Panicking {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        self.packets_left = self.packets_left.checked_sub(1).expect("this agent has a bug");
        self.agent.handle_packet(now, from, packet);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.agent.handle_timeout(now);
    }
    fn poll_transmit(&mut self, now: Instant, to: Port) -> Option<Packet> {
        self.agent.poll_transmit(now, to)
    }
    fn poll_timeout(&self) -> Option<Deadline> {
        self.agent.poll_timeout()
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.agent.poll_event()
    }
}

/// Breaks a rule that holds for every agent.
pub(crate) struct Cheating {
    agent: Box<dyn Agent + Send>,
    edit: fn(&mut Vec<u8>, &Segment),
}

impl Cheating {
    /// Acknowledges what the mobile host has not received.
    pub(crate) fn acknowledging(agent: Box<dyn Agent + Send>) -> Self {
        let edit = |bytes: &mut Vec<u8>, segment: &Segment| {
            if segment.flags.intersects(Flags::ACK) && !segment.flags.intersects(Flags::SYN) {
                let field = usize::from(segment.transport_offset) + 8;
                bytes[field..field + 4].copy_from_slice(&(segment.ack + 1).0.to_be_bytes());
            }
        };
        Self { agent, edit }
    }

    /// Changes the last byte of each data packet.
    pub(crate) fn changing_payload(agent: Box<dyn Agent + Send>) -> Self {
        let edit = |bytes: &mut Vec<u8>, segment: &Segment| {
            if segment.payload_len > 0
                && let Some(last) = bytes.last_mut()
            {
                *last ^= 1;
            }
        };
        Self { agent, edit }
    }
}

impl Agent for Cheating {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        let mut bytes = packet.bytes().to_vec();
        if let Ok(segment) = Segment::parse(&packet) {
            (self.edit)(&mut bytes, &segment);
        }
        self.agent.handle_packet(now, from, Packet::new(packet.link_type(), bytes.into()));
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.agent.handle_timeout(now);
    }
    fn poll_transmit(&mut self, now: Instant, to: Port) -> Option<Packet> {
        self.agent.poll_transmit(now, to)
    }
    fn poll_timeout(&self) -> Option<Deadline> {
        self.agent.poll_timeout()
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.agent.poll_event()
    }
}
