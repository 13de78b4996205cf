//! One packet that crossed the air interface, as the kernel told it.

use crate::device::offload::parse_frame;
use airmend_proto::{Instant, LinkType, Packet, Port};
use bytes::BytesMut;
use std::collections::VecDeque;

/// How a packet crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Data that the kernel forwards left towards a mobile.
    Data,
    /// A repair left the interface's queue.
    Repair,
    /// A mobile's packet came, and the kernel has passed it on.
    Passed,
    /// A mobile's packet came and waits for a verdict: somebody must pass it on.
    Diverted,
}

impl Kind {
    /// The side that the packet came from.
    pub(super) fn from(self) -> Port {
        match self {
            Self::Data | Self::Repair => Port::Wired,
            Self::Passed | Self::Diverted => Port::Air,
        }
    }
}

/// One packet that crossed the air interface.
#[derive(Debug)]
pub(super) struct Arrival {
    /// The time of the crossing.
    pub(super) at: Instant,
    pub(super) kind: Kind,
    pub(super) packet: Packet,
    /// Its checksum is wrong: nobody may believe it.
    pub(super) damaged: bool,
    /// Packets of its flow have crossed unseen before it.
    pub(super) has_gap: bool,
}

/// Appends what crossed after everything in the queue, whatever its timestamp says: clocks are set,
/// and processors differ. Else the front could wait for ever for a watermark that the back sets.
pub(super) fn queue_up(queue: &mut VecDeque<Arrival>, mut arrival: Arrival) {
    let last = queue.back().map_or(Instant::ZERO, |last| last.at);
    arrival.at = arrival.at.max(last);
    queue.push_back(arrival);
}

/// The packet of `wire_len` bytes that begins with `bytes`, a VLAN tag outside them put into it.
pub(super) fn headers(
    link_type: LinkType,
    vlan: Option<(u16, u16)>,
    bytes: BytesMut,
    wire_len: u32,
) -> Option<Packet> {
    let extra = wire_len.saturating_sub(bytes.len() as u32);
    let captured = parse_frame(link_type, [0; 10], vlan, bytes)?;
    let wire_len = captured.wire_len().saturating_add(extra);
    Some(Packet::truncated(link_type, captured.shared_bytes(), wire_len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_never_waits_for_what_is_behind_it() {
        let packet = Packet::new(LinkType::Ip, vec![0x45; 40].into());
        let arrival = |millis| Arrival {
            at: Instant::from_millis(millis),
            kind: Kind::Diverted,
            packet: packet.clone(),
            damaged: false,
            has_gap: false,
        };
        let mut queue = VecDeque::new();
        for millis in [7, 3, 9, 8] {
            queue_up(&mut queue, arrival(millis));
        }
        let times: Vec<_> = queue.iter().map(|arrival| arrival.at).collect();
        assert_eq!(times, [7, 7, 9, 9].map(Instant::from_millis));
    }

    #[test]
    fn headers_have_the_lengths_of_their_packet() {
        use airmend_proto::wire::build::SegmentBuilder;
        use airmend_proto::wire::tcp::Segment;
        let whole = SegmentBuilder::new(([10, 0, 0, 2], 80), ([10, 0, 0, 1], 5000))
            .payload(&[1; 1000])
            .build(LinkType::Ethernet);
        for vlan in [None, Some((0x8100, 7))] {
            let bytes = BytesMut::from(&whole.bytes()[..256]);
            let packet = headers(LinkType::Ethernet, vlan, bytes, whole.wire_len()).unwrap();
            let tag = if vlan.is_some() { 4 } else { 0 };
            assert_eq!(packet.wire_len(), whole.wire_len() + tag);
            assert_eq!(Segment::parse(&packet).unwrap().payload_len, 1000);
        }
    }
}
