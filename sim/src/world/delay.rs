//! End-to-end delays of a sender's packets: from the first departure of a packet until it, and all
//! packets before it, have arrived.

use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant, Packet};
use std::collections::VecDeque;

/// Delays of the data packets of one sending end.
#[derive(Debug, Default)]
pub(crate) struct PacketDelays {
    /// The end of the data sent, as a sequence number and as an offset.
    highest: Option<(SeqNumber, u64)>,
    /// The end offsets of packets in flight, and the first departure of each.
    under_way: VecDeque<(u64, Instant)>,
    millis: Vec<f64>,
}

impl PacketDelays {
    /// A packet leaves the sending host.
    pub(crate) fn leaves(&mut self, now: Instant, packet: &Packet) {
        let Ok(segment) = Segment::parse(packet) else { return };
        if segment.payload_len == 0 {
            return;
        }
        let (highest, offset) = *self.highest.get_or_insert((segment.seq, 0));
        let end = SeqNumber(segment.seq.0.wrapping_add(segment.payload_len));
        // A retransmission keeps the time of the first departure.
        if end > highest {
            let offset = offset + u64::from(end.0.wrapping_sub(highest.0));
            self.highest = Some((end, offset));
            self.under_way.push_back((offset, now));
        }
    }

    /// So many bytes have arrived in order.
    pub(crate) fn arrived(&mut self, now: Instant, delivered: u64) {
        while let Some((_, left)) = self.under_way.pop_front_if(|(end, _)| *end <= delivered) {
            self.millis.push(now.since(left).as_secs_f64() * 1e3);
        }
    }

    /// Delays measured so far.
    pub(crate) fn millis(&self) -> &[f64] {
        &self.millis
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::LinkType;
    use airmend_proto::wire::build::SegmentBuilder;

    #[test]
    fn a_packet_counts_from_its_first_leaving_to_its_arrival_in_order() {
        let mut delays = PacketDelays::default();
        let (a, b) = (([10, 0, 0, 1], 1), ([10, 0, 0, 2], 2));
        let mut leaves = |millis, seq, bytes| {
            let packet = SegmentBuilder::new(a, b).seq(SeqNumber(seq)).payload_len(bytes);
            delays.leaves(Instant::from_millis(millis), &packet.build(LinkType::Ip));
        };
        let first = u32::MAX - 99;
        leaves(1, first, 0);
        leaves(2, first, 100);
        leaves(3, 0, 100);
        leaves(4, first, 100);
        delays.arrived(Instant::from_millis(5), 99);
        delays.arrived(Instant::from_millis(10), 200);
        assert_eq!(delays.millis(), [8.0, 7.0]);
    }
}
