//! ACK numbers and payload: an agent acknowledges nothing by itself, and changes no byte. The
//! memory of packets is bounded; packets that it has dropped are not checked. A segment may be cut
//! out of a super-packet. What a hostile host sends twice, with different bytes, is not checked.

use super::bounded_map::BoundedMap;
use super::violation::Violation;
use crate::packet::Packet;
use crate::port::Port;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Endpoint, Flags, Segment};
use alloc::collections::VecDeque;
use core::hash::BuildHasher;
use foldhash::fast::FixedState;

/// The number of payloads in memory: several times those in an agent's cache and queues for one
/// flow.
const PAYLOADS: usize = 1 << 16;
/// The number of super-packets in memory, with their bytes: an agent cuts missing segments out of
/// them.
const SUPER_PACKETS: usize = 1 << 9;
/// The number of directed flows whose highest ACK is in memory.
const FLOWS: usize = 1 << 12;

type Flow = (Endpoint, Endpoint);
type PayloadKey = (Flow, SeqNumber, u32);

/// The highest ACK of a directed flow.
#[derive(Clone, Copy, Debug)]
enum Highest {
    /// No ACK has entered since the connection began.
    None,
    Known(SeqNumber),
    /// ACKs have entered that are too far apart for one window, which only a hostile host sends.
    Unordered,
    /// A SYN was sent in mid-connection: a new connection if it is answered with this ACK number,
    /// or a forgery.
    Offered(SeqNumber),
}

/// Whether both can belong to one connection at a time (RFC 7323 §2.2: a window of 2^30).
fn is_near(a: SeqNumber, b: SeqNumber) -> bool {
    a.offset_from(b).unsigned_abs() <= 1 << 30
}

/// Checks the invariants of one agent.
#[derive(Debug)]
pub struct Invariants {
    highest_ack: BoundedMap<Flow, Highest>,
    /// `None` where different bytes have come with the same numbers.
    payload_hash: BoundedMap<PayloadKey, Option<u64>>,
    /// Super-packets by flow, latest last.
    super_packets: VecDeque<(Flow, Segment, Packet)>,
    has_forgotten_super_packets: bool,
    hasher: FixedState,
}

impl Default for Invariants {
    fn default() -> Self {
        Self {
            highest_ack: BoundedMap::new(FLOWS),
            payload_hash: BoundedMap::new(PAYLOADS),
            super_packets: VecDeque::new(),
            has_forgotten_super_packets: false,
            hasher: FixedState::default(),
        }
    }
}

impl Invariants {
    /// Notes a SYN, which may open a new connection, repeat itself, or be a forgery that no host
    /// believes. Numbers of an older connection with the same ports are void once it is answered.
    fn connects(&mut self, flow: Flow, segment: &Segment) {
        let reverse = (flow.1, flow.0);
        let (next, is_answer) = (segment.seq + 1, segment.flags.intersects(Flags::ACK));
        match self.highest_ack.get(&flow).copied() {
            Some(Highest::Offered(offered)) if is_answer && offered == segment.ack => {
                self.highest_ack.insert(flow, Highest::None);
                self.highest_ack.insert(reverse, Highest::None);
                return;
            }
            None => self.highest_ack.insert(flow, Highest::None),
            _ => {}
        }
        let is_first = matches!(self.highest_ack.get(&flow), Some(Highest::None));
        match self.highest_ack.get(&reverse) {
            Some(Highest::Known(known)) if *known == next => {}
            None | Some(Highest::None) if is_first => {
                self.highest_ack.insert(reverse, Highest::None);
            }
            _ => self.highest_ack.insert(reverse, Highest::Offered(next)),
        }
    }

    /// Notes a packet that is about to enter the agent.
    pub fn enters(&mut self, packet: &Packet) {
        let Ok(segment) = Segment::parse(packet) else { return };
        let flow = (segment.source, segment.destination);
        if segment.flags.intersects(Flags::SYN) {
            self.connects(flow, &segment);
        }
        if segment.flags.intersects(Flags::ACK) {
            let known = self.highest_ack.get(&flow).copied();
            // Numbers further apart than a window have no order: this connection is no longer
            // checked.
            let highest = match known {
                Some(Highest::Known(known)) if is_near(known, segment.ack) => {
                    Highest::Known(known.max(segment.ack))
                }
                Some(Highest::Offered(next)) => Highest::Offered(next),
                Some(Highest::Known(_) | Highest::Unordered) => Highest::Unordered,
                Some(Highest::None) | None => Highest::Known(segment.ack),
            };
            self.highest_ack.insert(flow, highest);
        }
        if segment.payload_len > 0 {
            let hash = Some(self.hash(packet, &segment));
            let key = (flow, segment.seq, segment.payload_len);
            let is_other = self.payload_hash.get(&key).is_some_and(|known| *known != hash);
            self.payload_hash.insert(key, hash.filter(|_| !is_other));
        }
        if packet.segment_size().is_some() {
            self.super_packets.push_back((flow, segment, packet.clone()));
            if self.super_packets.len() > SUPER_PACKETS {
                self.super_packets.pop_front();
                self.has_forgotten_super_packets = true;
            }
        }
    }

    /// Checks a packet that leaves the agent towards `to`.
    pub fn leaves(&self, to: Port, packet: &Packet) -> Result<(), Violation> {
        let Ok(segment) = Segment::parse(packet) else { return Ok(()) };
        let flow = (segment.source, segment.destination);
        if segment.flags.intersects(Flags::ACK)
            && let Some(&Highest::Known(highest)) = self.highest_ack.get(&flow)
            && segment.ack > highest
            && is_near(highest, segment.ack)
        {
            return Err(Violation::AckInvented { to, sent: segment.ack, highest });
        }
        let (seq, payload_len) = (segment.seq, segment.payload_len);
        if payload_len == 0 {
            return Ok(());
        }
        match self.payload_hash.get(&(flow, seq, payload_len)) {
            Some(None) => Ok(()),
            Some(&Some(hash)) if hash == self.hash(packet, &segment) => Ok(()),
            known => self.check_part(to, flow, packet, &segment, known.is_some()),
        }
    }

    /// Checks payload that did not enter with this number and length, or with other bytes
    /// (`is_other`): it may be a part of a super-packet.
    fn check_part(
        &self,
        to: Port,
        flow: Flow,
        packet: &Packet,
        segment: &Segment,
        is_other: bool,
    ) -> Result<(), Violation> {
        let (seq, payload_len) = (segment.seq, segment.payload_len);
        let mut within = is_other;
        for (whole_flow, whole, whole_packet) in self.super_packets.iter().rev() {
            let from = seq.0.wrapping_sub(whole.seq.0);
            let fits = u64::from(from) + u64::from(payload_len) <= u64::from(whole.payload_len);
            if *whole_flow != flow || !fits {
                continue;
            }
            within = true;
            let expected = payload(whole_packet, whole).get(from as usize..).unwrap_or(&[]);
            let len = expected.len().min(payload_len as usize);
            if payload(packet, segment).get(..len) == expected.get(..len) {
                return Ok(());
            }
        }
        let has_forgotten = self.payload_hash.has_forgotten || self.has_forgotten_super_packets;
        if has_forgotten && !is_other {
            return Ok(());
        }
        Err(match within {
            true => Violation::PayloadChanged { to, seq },
            false => Violation::PayloadInvented { to, seq, payload_len },
        })
    }

    /// Zeros at the end do not count: a packet of which a part was captured has them behind that
    /// part once it was recovered from repair frames, which do not say how much that was.
    fn hash(&self, packet: &Packet, segment: &Segment) -> u64 {
        let payload = payload(packet, segment);
        let end = payload.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.hasher.hash_one(&payload[..end])
    }
}

/// The captured payload, without padding of the frame.
fn payload<'a>(packet: &'a Packet, segment: &Segment) -> &'a [u8] {
    let captured = packet.bytes().get(usize::from(segment.payload_offset)..).unwrap_or(&[]);
    captured.get(..segment.payload_len as usize).unwrap_or(captured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use bytes::Bytes;
    use core::num::NonZeroU16;

    const FIXED: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
    const MOBILE: ([u8; 4], u16) = ([10, 0, 0, 2], 5001);

    fn data(seq: u32, payload: &[u8]) -> Packet {
        let segment = SegmentBuilder::new(FIXED, MOBILE).seq(SeqNumber(seq)).payload(payload);
        segment.build(LinkType::Ip)
    }

    fn ack(number: u32) -> Packet {
        SegmentBuilder::new(MOBILE, FIXED).ack(SeqNumber(number)).build(LinkType::Ip)
    }

    #[test]
    fn an_ack_may_be_repeated_or_dropped_but_not_invented() {
        let mut invariants = Invariants::default();
        assert_eq!(invariants.leaves(Port::Wired, &ack(5)), Ok(()), "nothing is known yet");
        // Across the wrap, and with an older one behind it.
        for number in [u32::MAX - 10, 100, 50] {
            invariants.enters(&ack(number));
        }
        for number in [u32::MAX - 10, 100, 100, 7] {
            assert_eq!(invariants.leaves(Port::Wired, &ack(number)), Ok(()));
        }
        let violation = invariants.leaves(Port::Wired, &ack(101)).unwrap_err();
        let (sent, highest) = (SeqNumber(101), SeqNumber(100));
        assert_eq!(violation, Violation::AckInvented { to: Port::Wired, sent, highest });
    }

    #[test]
    fn acks_without_an_order_accuse_nobody() {
        let mut invariants = Invariants::default();
        for number in [0, 1 << 31, 5] {
            invariants.enters(&ack(number));
        }
        for number in [0, 1 << 31, 5] {
            assert_eq!(invariants.leaves(Port::Wired, &ack(number)), Ok(()));
        }
        // Each is in the window of the one before, and the first waits until all have come.
        let mut invariants = Invariants::default();
        let steps = [0, 1 << 30, 1 << 31, (1 << 31) + 1];
        steps.into_iter().for_each(|number| invariants.enters(&ack(number)));
        assert_eq!(invariants.leaves(Port::Wired, &ack(0)), Ok(()));
    }

    #[test]
    fn a_new_connection_on_the_same_ports_starts_anew() {
        let mut invariants = Invariants::default();
        invariants.enters(&ack(1_000_000));
        let seq = SeqNumber(7);
        let syn = SegmentBuilder::new(MOBILE, FIXED).seq(seq).flags(Flags::SYN);
        invariants.enters(&syn.build(LinkType::Ip));
        assert_eq!(invariants.leaves(Port::Wired, &ack(600)), Ok(()), "it may be a forgery");
        let answer = SegmentBuilder::new(FIXED, MOBILE).ack(seq + 1).flags(Flags::SYN);
        invariants.enters(&answer.build(LinkType::Ip));
        invariants.enters(&ack(500));
        assert!(invariants.leaves(Port::Wired, &ack(600)).is_err());
        assert_eq!(invariants.leaves(Port::Wired, &ack(500)), Ok(()));
    }

    #[test]
    fn payload_leaves_as_it_entered() {
        let mut invariants = Invariants::default();
        invariants.enters(&data(1, b"snoop"));
        assert_eq!(invariants.leaves(Port::Air, &data(1, b"snoop")), Ok(()));
        assert_eq!(
            invariants.leaves(Port::Air, &data(1, b"snooP")),
            Err(Violation::PayloadChanged { to: Port::Air, seq: SeqNumber(1) })
        );
        assert_eq!(
            invariants.leaves(Port::Air, &data(2, b"noop")),
            Err(Violation::PayloadInvented { to: Port::Air, seq: SeqNumber(2), payload_len: 4 })
        );
    }

    #[test]
    fn zeros_behind_what_was_captured_are_no_change() {
        let mut invariants = Invariants::default();
        let whole = data(1, &[0; 5]);
        let captured = Bytes::copy_from_slice(&whole.bytes()[..40]);
        invariants.enters(&Packet::truncated(LinkType::Ip, captured, whole.wire_len()));
        assert_eq!(invariants.leaves(Port::Wired, &whole), Ok(()));
        assert!(invariants.leaves(Port::Wired, &data(1, b"snoop")).is_err());
    }

    #[test]
    fn a_host_that_contradicts_itself_is_not_checked() {
        let mut invariants = Invariants::default();
        for payload in [b"snoop", b"SNOOP", b"SNOOP"] {
            invariants.enters(&data(1, payload));
        }
        assert_eq!(invariants.leaves(Port::Air, &data(1, b"snoop")), Ok(()));
        assert!(invariants.leaves(Port::Air, &data(1, b"snoo")).is_err());
    }

    #[test]
    fn a_segment_may_be_cut_out_of_a_super_packet() {
        let mut invariants = Invariants::default();
        let whole = data(u32::MAX - 2, b"snoop's cache").with_segment_size(NonZeroU16::new(4));
        invariants.enters(&whole);
        assert_eq!(invariants.leaves(Port::Air, &data(1, b"p's ")), Ok(()));
        let seq = SeqNumber(1);
        let changed = Err(Violation::PayloadChanged { to: Port::Air, seq });
        assert_eq!(invariants.leaves(Port::Air, &data(1, b"p's!")), changed);
        let seq = SeqNumber(9);
        let beyond = Err(Violation::PayloadInvented { to: Port::Air, seq, payload_len: 4 });
        assert_eq!(invariants.leaves(Port::Air, &data(9, b"e..!")), beyond);
        // Of many super-packets the first is forgotten, and what it held is not accused.
        for part in 1..=SUPER_PACKETS as u32 {
            let packet = data(part * 100, b"another one").with_segment_size(NonZeroU16::new(4));
            invariants.enters(&packet);
        }
        assert_eq!(invariants.super_packets.len(), SUPER_PACKETS);
        assert_eq!(invariants.leaves(Port::Air, &data(1, b"p's ")), Ok(()));
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_is_not_accused() {
        let mut invariants = Invariants::default();
        for seq in 0..2 * PAYLOADS as u32 {
            invariants.enters(&data(seq, b"x"));
        }
        assert_eq!(invariants.payload_hash.len(), PAYLOADS);
        assert_eq!(invariants.leaves(Port::Air, &data(0, b"y")), Ok(()));
        assert!(invariants.leaves(Port::Air, &data(2 * PAYLOADS as u32 - 1, b"y")).is_err());
    }
}
