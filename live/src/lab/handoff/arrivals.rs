//! How long the mobile host gets nothing new when it moves.

use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{Instant, Packet, Port};
use std::collections::HashMap;
use std::time::Duration;

/// The most ranges beyond a hole that are remembered of a flow.
const MAX_RANGES: usize = 4_096;

/// The data that has come over the air, as the mobile host's TCP sees it.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    flows: HashMap<FlowKey, Reassembly>,
    /// When the mobile host left its last station, until new data in order has come.
    left: Option<Instant>,
    /// The times from there to new data in order.
    pub(super) gaps: Vec<Duration>,
}

/// What a receiver has of a stream.
#[derive(Debug)]
struct Reassembly {
    /// The first byte that it lacks (RCV.NXT of RFC 9293).
    next: SeqNumber,
    /// What it has beyond.
    beyond: Vec<(SeqNumber, SeqNumber)>,
}

impl Arrivals {
    /// The mobile host leaves its station.
    pub(super) fn leave(&mut self, now: Instant) {
        self.left = Some(now);
    }

    /// A packet has come over the air.
    pub(super) fn deliver(&mut self, now: Instant, packet: &Packet) {
        let Ok(segment) = Segment::parse(packet) else { return };
        if segment.seq_len() == 0 {
            return;
        }
        let key = FlowKey::of(&segment, Port::Wired);
        let is_new = segment.flags.intersects(Flags::SYN) || !self.flows.contains_key(&key);
        let advances = if is_new {
            self.flows.insert(key, Reassembly { next: segment.end(), beyond: Vec::new() });
            true
        } else {
            let flow = self.flows.get_mut(&key);
            flow.is_some_and(|flow| flow.advances(segment.seq, segment.end()))
        };
        if advances && let Some(left) = self.left.take() {
            self.gaps.push(now.since(left));
        }
    }
}

impl Reassembly {
    /// Takes a segment; returns whether it begins at or before the first missing byte and has it.
    fn advances(&mut self, seq: SeqNumber, end: SeqNumber) -> bool {
        if end <= self.next {
            return false;
        }
        if seq > self.next {
            if self.beyond.len() < MAX_RANGES && !self.beyond.contains(&(seq, end)) {
                self.beyond.push((seq, end));
            }
            return false;
        }
        self.next = end;
        while let Some(index) = self.beyond.iter().position(|(seq, _)| *seq <= self.next) {
            self.next = self.next.max(self.beyond.swap_remove(index).1);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::LinkType;
    use airmend_proto::wire::build::SegmentBuilder;

    fn data(number: u32) -> Packet {
        SegmentBuilder::new(([10, 77, 0, 1], 80), ([10, 77, 0, 2], 5_001))
            .seq(SeqNumber(u32::MAX - 250) + number * 100)
            .flags(Flags::ACK)
            .payload(&[7; 100])
            .build(LinkType::Ip)
    }

    #[test]
    fn the_gap_ends_with_the_first_new_segment_in_order() {
        let mut arrivals = Arrivals::default();
        let deliver = |arrivals: &mut Arrivals, at, number| {
            arrivals.deliver(Instant::from_millis(at), &data(number));
        };
        for number in [0, 1, 4] {
            deliver(&mut arrivals, 1, number);
        }
        arrivals.leave(Instant::from_millis(10));
        deliver(&mut arrivals, 11, 1); // Not new.
        deliver(&mut arrivals, 12, 3); // Not in order.
        assert!(arrivals.gaps.is_empty());
        deliver(&mut arrivals, 15, 2);
        deliver(&mut arrivals, 16, 5);
        assert_eq!(arrivals.gaps, [Duration::from_millis(5)]);
        // Segments 3 and 4 had arrived before.
        arrivals.leave(Instant::from_millis(20));
        deliver(&mut arrivals, 21, 5);
        deliver(&mut arrivals, 29, 6);
        assert_eq!(arrivals.gaps[1], Duration::from_millis(9));
    }
}
