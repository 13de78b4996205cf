//! Explicit congestion notification in the IP header.

use super::field::{set_u16, update_checksum};
use crate::packet::Packet;
use crate::wire::ip::Network;

/// The codepoint "congestion experienced" (RFC 3168 §5); both bits clear mean no ECN.
const CE: u8 = 0b11;

/// The packet marked "congestion experienced". `None` if its transport does not understand ECN or
/// it is marked already.
pub fn mark_congestion(packet: &Packet) -> Option<Packet> {
    let network = Network::parse(packet).ok()?;
    let header = usize::from(network.offset)..usize::from(network.transport_offset);
    let old = packet.bytes().get(header.clone())?;
    let is_ipv4 = old.first()? >> 4 == 4;
    // IPv4: the low bits of the second byte. IPv6: bits 4 and 5 of it.
    let shift = if is_ipv4 { 0 } else { 4 };
    let codepoint = old.get(1)? >> shift & CE;
    if codepoint == 0 || codepoint == CE {
        return None;
    }
    let mut bytes = packet.bytes().to_vec();
    let new = bytes.get_mut(header)?;
    let first = u16::from_be_bytes(*new.first_chunk()?);
    set_u16(new, 0, first | u16::from(CE) << shift)?;
    if is_ipv4 {
        update_checksum(new, old, 10)?;
    }
    let marked = Packet::truncated(packet.link_type(), bytes.into(), packet.wire_len());
    Some(marked.with_segment_size(packet.segment_size()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::checksum;

    fn packet(ends: (crate::wire::flow::Endpoint, crate::wire::flow::Endpoint)) -> Packet {
        SegmentBuilder::new(ends.0, ends.1).payload(b"data").build(LinkType::Ip)
    }

    #[test]
    fn only_what_understands_ecn_is_marked() {
        let v4 = packet((([10, 0, 0, 1], 80).into(), ([10, 0, 0, 2], 99).into()));
        let v6 = packet((([1u16; 8], 80).into(), ([2u16; 8], 99).into()));
        for (packet, shift) in [(v4, 0), (v6, 4)] {
            assert_eq!(mark_congestion(&packet), None);
            for ect in [0b01, 0b10] {
                let mut bytes = packet.bytes().to_vec();
                bytes[1] |= ect << shift;
                if shift == 0 {
                    bytes[10..12].fill(0);
                    let sum = checksum::internet(&bytes[..20]);
                    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
                }
                let capable = Packet::new(LinkType::Ip, bytes.into());
                let marked = mark_congestion(&capable).unwrap();
                assert_eq!(marked.bytes()[1] >> shift & CE, CE);
                assert_eq!(marked.bytes()[20..], capable.bytes()[20..]);
                assert!(shift == 4 || checksum::internet(&marked.bytes()[..20]) == 0);
                assert_eq!(mark_congestion(&marked), None);
            }
        }
    }
}
