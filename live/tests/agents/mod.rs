//! Agents that misbehave.

use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{Agent, Instant, Packet, Port, Verdict};

/// Lets so many packets pass, and panics on the next.
pub(crate) struct Panicking(pub(crate) u32);

impl Agent for Panicking {
    fn handle_packet(&mut self, _now: Instant, _from: Port, _packet: &Packet) -> Verdict {
        self.0 = self.0.checked_sub(1).unwrap_or_else(|| {
            // Unwinds without the message of a panic, which looks like a failure in a log.
            std::panic::resume_unwind(Box::new("this agent has a defect"))
        });
        Verdict::Pass
    }
}

/// Breaks a rule that holds for every agent.
pub(crate) struct Cheating {
    edit: fn(&mut Vec<u8>, &Segment),
}

impl Cheating {
    /// Acknowledges what the mobile host has not received.
    pub(crate) fn acknowledging() -> Self {
        let edit = |bytes: &mut Vec<u8>, segment: &Segment| {
            if segment.flags.intersects(Flags::ACK) && !segment.flags.intersects(Flags::SYN) {
                let field = usize::from(segment.transport_offset) + 8;
                bytes[field..field + 4].copy_from_slice(&(segment.ack + 1).0.to_be_bytes());
            }
        };
        Self { edit }
    }

    /// Changes the last byte of each data packet.
    pub(crate) fn changing_payload() -> Self {
        let edit = |bytes: &mut Vec<u8>, segment: &Segment| {
            if segment.payload_len > 0
                && let Some(last) = bytes.last_mut()
            {
                *last ^= 1;
            }
        };
        Self { edit }
    }
}

impl Agent for Cheating {
    fn handle_packet(&mut self, _now: Instant, _from: Port, packet: &Packet) -> Verdict {
        let mut bytes = packet.bytes().to_vec();
        if let Ok(segment) = Segment::parse(packet) {
            (self.edit)(&mut bytes, &segment);
        }
        Verdict::Replace(Packet::new(packet.link_type(), bytes.into()))
    }
}
