//! The acknowledgment that a packet carries.

use super::field::set_u16;
use crate::packet::Packet;
use crate::wire::tcp::{Flags, Segment};
use crate::wire::{checksum, ip};

/// The acknowledgment that a packet carries, as a packet of its own: what its sender would send
/// next if it had nothing but the ACK to say.
///
/// The copy has neither payload nor PSH, FIN and URG, its sequence number is [`Segment::end`], and
/// its lengths and checksums are right; link header, options, window and ECN bits stay. The payload
/// need not have been captured.
///
/// A pure ACK comes back as it is. So does a packet of which none can be made: without ACK, a SYN
/// or RST, or signed. Repeating it as a whole says nothing that its sender has not said.
pub fn bare_ack(packet: &Packet, segment: &Segment) -> Packet {
    let has_more = segment.payload_len > 0 || segment.flags.intersects(Flags::FIN);
    let is_plain_ack = segment.flags.intersects(Flags::ACK)
        && !segment.flags.intersects(Flags::SYN.union(Flags::RST));
    if !has_more || !is_plain_ack || segment.options.signed {
        return packet.clone();
    }
    without_payload(packet, segment).unwrap_or_else(|| packet.clone())
}

/// `None` if `segment` was not read from `packet`, or for an IPv6 jumbogram, whose length stands in
/// an option (RFC 2675).
fn without_payload(packet: &Packet, segment: &Segment) -> Option<Packet> {
    let mut bytes = packet.bytes().get(..usize::from(segment.payload_offset))?.to_vec();
    let transport = bytes.get_mut(usize::from(segment.transport_offset)..)?;
    // AccECN counts in AE, CWR and ECE together, and a CWR repeated does no harm to older ECN.
    let kept = Flags::ACK.union(Flags::ECE).union(Flags::CWR).union(Flags::AE);
    let offset_and_flags = u16::from_be_bytes(*transport.get(12..)?.first_chunk()?);
    let dropped = Flags::ALL & !kept.0;
    transport.get_mut(4..8)?.copy_from_slice(&segment.end().0.to_be_bytes());
    set_u16(transport, 12, offset_and_flags & !dropped)?;
    // The urgent pointer.
    set_u16(transport, 18, 0)?;
    set_lengths(&mut bytes, segment)?;
    Some(Packet::new(packet.link_type(), bytes.into()))
}

/// Sets the lengths and the checksums of headers without payload, of which IP and link header stand
/// where they do in `segment`. `None` for an IPv6 jumbogram.
pub(super) fn set_lengths(bytes: &mut [u8], segment: &Segment) -> Option<()> {
    let (_, network) = bytes.split_at_mut_checked(usize::from(segment.network_offset))?;
    let network_len = network.len();
    let network_header_len =
        usize::from(segment.transport_offset).checked_sub(usize::from(segment.network_offset))?;
    let (network, transport) = network.split_at_mut_checked(network_header_len)?;
    if network.first()? >> 4 == 4 {
        set_u16(network, 2, network_len as u16)?;
        set_u16(network, 10, 0)?;
        let header_checksum = checksum::internet(network);
        set_u16(network, 10, header_checksum)?;
    } else {
        let had_no_length = network.get(4..6)? == [0, 0];
        if had_no_length && *network.get(6)? == ip::HOP_BY_HOP {
            return None;
        }
        set_u16(network, 4, network_len.checked_sub(ip::IPV6_HEADER)? as u16)?;
    }
    set_u16(transport, 16, 0)?;
    let (source, destination) = (&segment.source.address, &segment.destination.address);
    let checksum = checksum::tcp(source, destination, transport, transport.len() as u32);
    set_u16(transport, 16, checksum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::seq::SeqNumber;
    use crate::wire::tcp::{Options, Timestamps};

    fn data_seq() -> SeqNumber {
        SeqNumber(u32::MAX - 9)
    }

    fn data() -> SegmentBuilder<'static> {
        let timestamps = Some(Timestamps { value: 1, echo: 2 });
        SegmentBuilder::new(([10, 0, 1, 2], 5000), ([10, 0, 0, 1], 80))
            .seq(data_seq())
            .ack(SeqNumber(77))
            .window(1234)
            .options(Options { timestamps, ..Options::default() })
            .payload_len(100)
            .vlan(5)
    }

    fn reduce(builder: SegmentBuilder<'_>) -> (Packet, Packet) {
        let packet = builder.build(LinkType::Ethernet);
        let bare = bare_ack(&packet, &Segment::parse(&packet).unwrap());
        (packet, bare)
    }

    #[test]
    fn data_becomes_what_the_builder_would_have_built() {
        let more = Flags::PSH.union(Flags::FIN).union(Flags::URG);
        let (_, bare) = reduce(data().flags(more));
        let expected = data().seq(SeqNumber(91)).payload_len(0).build(LinkType::Ethernet);
        assert_eq!(bare, expected);
    }

    #[test]
    fn the_urgent_pointer_goes_with_its_flag() {
        let packet = data().flags(Flags::URG).build(LinkType::Ethernet);
        let segment = Segment::parse(&packet).unwrap();
        let mut bytes = packet.bytes().to_vec();
        let urgent = usize::from(segment.transport_offset) + 18;
        bytes[urgent] = 9;
        let packet = Packet::truncated(LinkType::Ethernet, bytes.into(), packet.wire_len());
        let expected = data().seq(SeqNumber(90)).payload_len(0).build(LinkType::Ethernet);
        assert_eq!(bare_ack(&packet, &segment), expected);
    }

    #[test]
    fn a_fin_without_payload_is_reduced_too() {
        let (_, bare) = reduce(data().payload_len(0).flags(Flags::FIN));
        let segment = Segment::parse(&bare).unwrap();
        assert!(segment.is_pure_ack());
        assert_eq!(segment.seq, data_seq() + 1);
    }

    #[test]
    fn ecn_bits_stay() {
        let ace = Flags::AE.union(Flags::CWR).union(Flags::ECE);
        let (_, bare) = reduce(data().flags(ace));
        assert_eq!(Segment::parse(&bare).unwrap().flags, ace.union(Flags::ACK));
    }

    #[test]
    fn what_cannot_be_reduced_comes_back_as_it_is() {
        let signed = Options { signed: true, ..Options::default() };
        let no_ack = SegmentBuilder::new(([10, 0, 1, 2], 5000), ([10, 0, 0, 1], 80)).payload_len(9);
        let cases = [
            data().payload_len(0),
            data().flags(Flags::SYN),
            data().flags(Flags::RST),
            data().options(signed),
            no_ack,
        ];
        for builder in cases {
            let (packet, bare) = reduce(builder);
            assert_eq!(packet, bare, "{builder:?}");
        }
    }
}
