//! What the gateway has itself forwarded to mobile hosts: the copies of these packets come back
//! like those of every packet, and are no retransmissions of the senders.

use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant, Packet, Port};
use std::collections::HashSet;
use std::time::Duration;

/// Packets that are remembered; a handoff releases a quarter of them at most.
const MAX_PACKETS: usize = 4_096;
/// No queue of an interface keeps a packet for so long.
const LIFETIME: Duration = Duration::from_secs(5);

/// The packets whose copies are still to come.
#[derive(Debug, Default)]
pub(super) struct OwnPackets {
    packets: HashSet<(FlowKey, SeqNumber)>,
    last: Instant,
}

impl OwnPackets {
    /// A packet is about to leave.
    pub(super) fn sent(&mut self, now: Instant, packet: &Packet) {
        if now.since(self.last) > LIFETIME || self.packets.len() >= MAX_PACKETS {
            self.packets.clear();
        }
        self.last = now;
        if let Some(name) = name(packet) {
            self.packets.insert(name);
        }
    }

    /// Whether a copy is that of such a packet, the first time that it is asked for.
    pub(super) fn is_own(&mut self, copy: &Packet) -> bool {
        !self.packets.is_empty() && name(copy).is_some_and(|name| self.packets.remove(&name))
    }
}

fn name(packet: &Packet) -> Option<(FlowKey, SeqNumber)> {
    let segment = Segment::parse(packet).ok()?;
    Some((FlowKey::of(&segment, Port::Wired), segment.seq))
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::LinkType;
    use airmend_proto::wire::build::SegmentBuilder;

    fn data(seq: u32) -> Packet {
        SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 1, 2], 99))
            .seq(SeqNumber(seq))
            .payload(b"data")
            .build(LinkType::Ethernet)
    }

    #[test]
    fn each_copy_comes_back_once() {
        let mut own = OwnPackets::default();
        own.sent(Instant::ZERO, &data(7));
        assert!(!own.is_own(&data(8)));
        assert!(own.is_own(&data(7)));
        assert!(!own.is_own(&data(7)), "the sender's retransmission");
    }

    #[test]
    fn what_never_left_is_forgotten() {
        let mut own = OwnPackets::default();
        for seq in 0..2 * MAX_PACKETS as u32 {
            own.sent(Instant::ZERO, &data(seq));
            assert!(own.packets.len() <= MAX_PACKETS);
        }
        own.sent(Instant::from_millis(6_000), &data(u32::MAX));
        assert_eq!(own.packets.len(), 1);
    }
}
