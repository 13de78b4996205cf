//! Frames with offload kept whole: what the gateway copies and sends itself.

use super::layout::{
    GSO_ECN, GSO_NONE, GSO_TCPV4, GSO_TCPV6, GSO_UDP, HEADER_LEN, Header, NEEDS_CHECKSUM, put_u16,
};
use super::split::complete_checksum;
use crate::sys::Copied;
use airmend_proto::wire::checksum;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{LinkType, Packet};
use bytes::BytesMut;
use std::num::NonZeroU16;

/// The offset of a VLAN tag in an Ethernet frame, behind both addresses.
const TAG_OFFSET: usize = 12;

/// The packet that a packet socket gave; `None` if it is cut, or its header contradicts it.
pub(crate) fn parse_copy(link_type: LinkType, copied: Copied) -> Option<Packet> {
    let Copied { vnet_header, vlan, bytes, wire_len, .. } = copied;
    let is_whole = bytes.len() == wire_len as usize;
    is_whole.then(|| parse_frame(link_type, vnet_header, vlan, bytes)).flatten()
}

/// The packet that a frame is, with its VLAN tag inside. What checksum offload left to do is done;
/// a super-packet stays one and bears its segments' size. `None` if the header contradicts the
/// frame.
pub(crate) fn parse_frame(
    link_type: LinkType,
    header: [u8; HEADER_LEN],
    vlan: Option<(u16, u16)>,
    mut bytes: BytesMut,
) -> Option<Packet> {
    let header = Header::parse(header);
    let mut segment_size = None;
    match header.gso_type & !GSO_ECN {
        GSO_TCPV4 | GSO_TCPV6 | GSO_UDP => segment_size = NonZeroU16::new(header.segment_size),
        GSO_NONE if header.flags & NEEDS_CHECKSUM == 0 => {}
        GSO_NONE if complete_checksum(&mut bytes, header) => {}
        _ => return None,
    }
    if let Some((protocol, control)) = vlan {
        let end = bytes.len();
        if end < TAG_OFFSET {
            return None;
        }
        bytes.resize(end + 4, 0);
        bytes.copy_within(TAG_OFFSET..end, TAG_OFFSET + 4);
        put_u16(&mut bytes, TAG_OFFSET, protocol);
        put_u16(&mut bytes, TAG_OFFSET + 2, control);
    }
    Some(Packet::new(link_type, bytes.freeze()).with_segment_size(segment_size))
}

/// The `virtio_net_hdr` to send this packet, and the packet in the form of the kernel: of a
/// super-packet, the checksum field holds the pseudo-header's sum. `None` if that is no TCP.
pub(crate) fn build_frame(packet: &Packet) -> Option<([u8; HEADER_LEN], Option<Vec<u8>>)> {
    let Some(size) = packet.segment_size() else {
        return Some((Header::default().to_bytes(), None));
    };
    let segment = Segment::parse(packet).ok()?;
    let mut bytes = packet.bytes().to_vec();
    let transport = usize::from(segment.transport_offset);
    let length = u32::from(segment.payload_offset - segment.transport_offset);
    let pseudo_header = checksum::of_pseudo_header(
        &segment.source.address,
        &segment.destination.address,
        length + segment.payload_len,
    );
    put_u16(&mut bytes, transport + checksum::TCP_FIELD, pseudo_header);
    let is_ipv4 = packet.bytes().get(usize::from(segment.network_offset))? >> 4 == 4;
    let header = Header {
        flags: NEEDS_CHECKSUM,
        gso_type: if is_ipv4 { GSO_TCPV4 } else { GSO_TCPV6 },
        header_len: segment.payload_offset,
        segment_size: size.get(),
        checksum_start: segment.transport_offset,
        checksum_offset: checksum::TCP_FIELD as u16,
    };
    Some((header.to_bytes(), Some(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::wire::build::SegmentBuilder;

    fn frame(payload: &[u8]) -> Packet {
        SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 0, 2], 5000))
            .payload(payload)
            .build(LinkType::Ethernet)
    }

    fn is_right(packet: &Packet) -> bool {
        let segment = Segment::parse(packet).unwrap();
        let tcp = &packet.bytes()[usize::from(segment.transport_offset)..];
        checksum::tcp_is_right(&segment.source.address, &segment.destination.address, tcp)
    }

    #[test]
    fn a_tag_outside_the_frame_is_put_inside() {
        let plain = frame(b"hello");
        let header = Header::default().to_bytes();
        let tagged =
            parse_frame(LinkType::Ethernet, header, Some((0x8100, 0x2007)), plain.bytes().into())
                .unwrap();
        assert_eq!(tagged.bytes()[..12], plain.bytes()[..12]);
        assert_eq!(tagged.bytes()[12..16], [0x81, 0x00, 0x20, 0x07]);
        assert_eq!(tagged.bytes()[16..], plain.bytes()[12..]);
        assert!(is_right(&tagged));
    }

    #[test]
    fn what_the_card_would_have_done_is_done() {
        let right = frame(b"hello");
        let mut bytes = right.bytes().to_vec();
        let sum = !checksum::tcp(
            &Segment::parse(&right).unwrap().source.address,
            &Segment::parse(&right).unwrap().destination.address,
            &[],
            25,
        );
        put_u16(&mut bytes, 14 + 20 + checksum::TCP_FIELD, sum);
        let header = Header {
            flags: NEEDS_CHECKSUM,
            checksum_start: 34,
            checksum_offset: 16,
            ..Header::default()
        };
        let made =
            parse_frame(LinkType::Ethernet, header.to_bytes(), None, bytes[..].into()).unwrap();
        assert_eq!(made, right);
        let outside = Header { checksum_start: 400, ..header };
        assert_eq!(
            parse_frame(LinkType::Ethernet, outside.to_bytes(), None, bytes[..].into()),
            None
        );
    }

    #[test]
    fn a_super_packet_is_sent_as_it_came() {
        let packet = frame(&[7; 4000]).with_segment_size(NonZeroU16::new(1448));
        let (header, bytes) = build_frame(&packet).unwrap();
        let bytes = bytes.unwrap();
        let again = parse_frame(LinkType::Ethernet, header, None, bytes[..].into()).unwrap();
        assert_eq!(again.segment_size(), packet.segment_size());
        let (second, same) = build_frame(&again).unwrap();
        assert_eq!((second, same.unwrap()), (header, bytes));
        assert_eq!(build_frame(&frame(b"x")).unwrap(), ([0; HEADER_LEN], None));
    }
}
