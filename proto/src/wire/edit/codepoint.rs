//! The differentiated services codepoint of a packet.

use super::field::update_checksum;
use crate::packet::Packet;
use crate::wire::tcp::Segment;

/// The six bits of the codepoint in the traffic class (RFC 2474 §3).
const MASK: u16 = 0x0fc0;

/// The IP packet with this codepoint; its ECN bits stay.
pub fn with_codepoint(packet: &Packet, codepoint: u8) -> Option<Packet> {
    let segment = Segment::parse(packet).ok()?;
    let at = usize::from(segment.network_offset);
    let header = packet.bytes().get(at..usize::from(segment.transport_offset))?;
    let first = u16::from_be_bytes(*header.first_chunk()?);
    // The traffic class is the second byte of an IPv4 header, and begins with the second half of
    // the first byte of an IPv6 one.
    let is_v4 = first >> 12 == 4;
    let shift = if is_v4 { 4 } else { 0 };
    let field = u16::from(codepoint & 0x3f) << 6;
    let changed = first & !(MASK >> shift) | field >> shift;
    let mut bytes = packet.bytes().to_vec();
    let new = bytes.get_mut(at..usize::from(segment.transport_offset))?;
    new.first_chunk_mut::<2>()?.copy_from_slice(&changed.to_be_bytes());
    if is_v4 {
        update_checksum(new, header, 10)?;
    }
    let edited = Packet::truncated(packet.link_type(), bytes.into(), packet.wire_len());
    Some(edited.with_segment_size(packet.segment_size()))
}

/// The codepoint of an IP packet with TCP.
pub fn codepoint(packet: &Packet, segment: &Segment) -> Option<u8> {
    let header = packet.bytes().get(usize::from(segment.network_offset)..)?;
    let first = u16::from_be_bytes(*header.first_chunk()?);
    let shift = if first >> 12 == 4 { 4 } else { 0 };
    Some((((first << shift) & MASK) >> 6) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::checksum;
    use crate::wire::seq::SeqNumber;

    #[test]
    fn the_codepoint_is_read_back_and_nothing_else_changes() {
        let v4 = SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 0, 2], 5000));
        let v6 = SegmentBuilder::new(([1u8; 16], 80), ([2u8; 16], 5000));
        for builder in [v4, v6] {
            let packet = builder.ack(SeqNumber(9)).build(LinkType::Ip);
            let marked = with_codepoint(&packet, 0b10_1011).unwrap();
            let (before, after) =
                (Segment::parse(&packet).unwrap(), Segment::parse(&marked).unwrap());
            assert_eq!(before, after);
            assert_eq!(codepoint(&marked, &after), Some(0b10_1011));
            assert_eq!(codepoint(&packet, &before), Some(0));
            if marked.bytes()[0] >> 4 == 4 {
                assert_eq!(checksum::internet(&marked.bytes()[..20]), 0);
            }
            assert_eq!(with_codepoint(&marked, 0).unwrap(), packet);
        }
    }
}
