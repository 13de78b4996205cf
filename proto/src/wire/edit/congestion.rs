//! Explicit congestion notification in the IP header.

use super::field::{set_u16, update_checksum};
use crate::ecn::Ecn;
use crate::packet::{LinkType, Packet};
use crate::wire::ip::{Network, traffic_class};

/// The packet marked "congestion experienced". `None` if its transport does not understand ECN or
/// it is marked already. Of a frame, the field of the IP packet that carries it is meant.
pub fn mark_congestion(packet: &Packet) -> Option<Packet> {
    match (packet.link_type(), ecn(packet)) {
        (_, Ecn::NotEct | Ecn::Ce) => None,
        (LinkType::Frame, _) => Some(packet.clone().with_outer_ecn(Ecn::Ce)),
        _ => with_ecn(packet, Ecn::Ce),
    }
}

/// The ECN field of a packet; of a frame, of the IP packet that carries it. What is no IP has none.
pub fn ecn(packet: &Packet) -> Ecn {
    if packet.link_type() == LinkType::Frame {
        return packet.outer_ecn();
    }
    let network = Network::walk(packet).ok();
    let traffic_class = network.and_then(|network| traffic_class(packet, &network));
    traffic_class.map_or(Ecn::NotEct, Ecn::of_traffic_class)
}

/// The IP packet with this ECN field; `None` if it is no IP packet.
pub fn with_ecn(packet: &Packet, ecn: Ecn) -> Option<Packet> {
    let network = Network::walk(packet).ok()?;
    let header = usize::from(network.offset)..usize::from(network.transport_offset);
    let old = packet.bytes().get(header.clone())?;
    let is_ipv4 = old.first()? >> 4 == 4;
    // IPv4: the low bits of the second byte. IPv6: bits 4 and 5 of it.
    let shift = if is_ipv4 { 0 } else { 4 };
    let mut bytes = packet.bytes().to_vec();
    let new = bytes.get_mut(header)?;
    let first = u16::from_be_bytes(*new.first_chunk()?);
    set_u16(new, 0, first & !(0b11 << shift) | (ecn as u16) << shift)?;
    if is_ipv4 {
        update_checksum(new, old, 10)?;
    }
    let edited = Packet::truncated(packet.link_type(), bytes.into(), packet.wire_len());
    Some(edited.with_segment_size(packet.segment_size()))
}

#[cfg(test)]
mod tests {
    use super::*;
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
                assert_eq!(marked.bytes()[1] >> shift & 0b11, 0b11);
                assert_eq!(marked.bytes()[20..], capable.bytes()[20..]);
                assert!(shift == 4 || checksum::internet(&marked.bytes()[..20]) == 0);
                assert_eq!(mark_congestion(&marked), None);
            }
        }
    }

    #[test]
    fn every_field_is_written_and_read_and_nothing_else_changes() {
        let v4 = packet((([10, 0, 0, 1], 80).into(), ([10, 0, 0, 2], 99).into()));
        let v6 = packet((([1u16; 8], 80).into(), ([2u16; 8], 99).into()));
        for original in [v4, v6] {
            for field in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
                let edited = with_ecn(&original, field).unwrap();
                assert_eq!(ecn(&edited), field);
                assert!(
                    edited.bytes()[0] >> 4 == 6 || checksum::internet(&edited.bytes()[..20]) == 0
                );
                assert_eq!(with_ecn(&edited, Ecn::NotEct).unwrap(), original);
            }
        }
    }

    #[test]
    fn a_frame_is_marked_outside() {
        let frame = Packet::new(LinkType::Frame, (&b"frame"[..]).into());
        assert_eq!(mark_congestion(&frame), None);
        let capable = frame.clone().with_outer_ecn(Ecn::Ect0);
        let marked = mark_congestion(&capable).unwrap();
        assert_eq!(marked, frame.with_outer_ecn(Ecn::Ce));
        assert_eq!(mark_congestion(&marked), None);
    }
}
