//! The bound of an agent's retransmissions, counted outside of the agent [C-23].

use super::bounded_map::BoundedMap;
use super::violation::Violation;
use crate::packet::Packet;
use crate::port::Port;
use crate::wire::tcp::{Endpoint, Flags, Segment};

/// The number of flows in memory.
const FLOWS: usize = 1 << 12;

/// Counts what an agent retransmits towards the air, and what can have arrived there.
///
/// Each segment that arrived earns a flow one retransmission, and refills the credit that all flows
/// share by one.
#[derive(Debug)]
pub(super) struct Repairs {
    /// The retransmissions that are allowed before any segment has arrived.
    credit: u64,
    /// By source and destination.
    flows: BoundedMap<(Endpoint, Endpoint), Sent>,
    arrived: u64,
    repaired: u64,
}

/// The segments of one flow from the wired side.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    segments: u64,
    /// Those of them that can have arrived.
    arrived: u64,
}

impl Repairs {
    pub(super) fn new(credit: u64) -> Self {
        Self { credit, flows: BoundedMap::new(FLOWS), arrived: 0, repaired: 0 }
    }

    /// Notes a packet that is about to enter the agent.
    pub(super) fn enters(&mut self, from: Port, packet: &Packet) {
        let Ok(segment) = Segment::parse(packet) else { return };
        match from {
            Port::Wired if segment.payload_len > 0 => {
                let flow = (segment.source, segment.destination);
                let mut sent = self.flows.get(&flow).copied().unwrap_or_default();
                sent.segments += segments(packet, &segment);
                self.flows.insert(flow, sent);
            }
            Port::Air if segment.flags.intersects(Flags::ACK) => {
                let flow = (segment.destination, segment.source);
                let Some(mut sent) = self.flows.get(&flow).copied() else { return };
                self.arrived += sent.segments - sent.arrived;
                sent.arrived = sent.segments;
                self.flows.insert(flow, sent);
            }
            _ => {}
        }
    }

    /// Checks a packet that the agent has originated.
    pub(super) fn originates(&mut self, to: Port, packet: &Packet) -> Result<(), Violation> {
        let Ok(segment) = Segment::parse(packet) else { return Ok(()) };
        // A SYN has a bound of its own [C-16].
        if to != Port::Air || segment.flags.intersects(Flags::SYN) {
            return Ok(());
        }
        self.repaired += segments(packet, &segment);
        let (repaired, arrived) = (self.repaired, self.arrived);
        let is_bounded = repaired <= self.credit + 2 * arrived || self.flows.has_forgotten;
        is_bounded.then_some(()).ok_or(Violation::RepairsUnbounded { repaired, arrived })
    }
}

/// The segments of a packet, which may be a super-packet.
fn segments(packet: &Packet, segment: &Segment) -> u64 {
    let size = packet.segment_size().map_or(segment.payload_len, |size| u32::from(size.get()));
    segment.payload_len.div_ceil(size.max(1)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::seq::SeqNumber;
    use core::num::NonZeroU16;

    const FIXED: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
    const MOBILE: ([u8; 4], u16) = ([10, 0, 0, 2], 5001);

    fn data() -> Packet {
        SegmentBuilder::new(FIXED, MOBILE).seq(SeqNumber(1)).payload(&[7; 300]).build(LinkType::Ip)
    }

    #[test]
    fn what_arrived_allows_twice_as_much() {
        let mut repairs = Repairs::new(2);
        let repair = data();
        let three = data().with_segment_size(NonZeroU16::new(100));
        repairs.enters(Port::Wired, &three);
        assert_eq!(repairs.originates(Port::Air, &repair), Ok(()));
        assert_eq!(repairs.originates(Port::Air, &repair), Ok(()));
        let violation = Violation::RepairsUnbounded { repaired: 3, arrived: 0 };
        assert_eq!(repairs.originates(Port::Air, &repair), Err(violation), "no host has answered");
        let answer = SegmentBuilder::new(MOBILE, FIXED).ack(SeqNumber(301)).build(LinkType::Ip);
        repairs.enters(Port::Air, &answer);
        repairs.enters(Port::Air, &answer);
        assert_eq!(repairs.originates(Port::Wired, &answer), Ok(()));
        for _ in 4..=8 {
            assert_eq!(repairs.originates(Port::Air, &repair), Ok(()));
        }
        let violation = Violation::RepairsUnbounded { repaired: 9, arrived: 3 };
        assert_eq!(repairs.originates(Port::Air, &repair), Err(violation));
    }
}
