//! Any bytes as a packet of either link type: parsing never panics, offsets stay within what was
//! captured, and the bare ACK of what parses says the same as the packet.

use airmend_proto::wire::checksum;
use airmend_proto::wire::edit::bare_ack;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{LinkType, Packet};
use bytes::Bytes;
use core::num::NonZeroU16;

pub(crate) fn fuzz(data: &[u8]) {
    let bytes = Bytes::copy_from_slice(data);
    let captured = data.len() as u32;
    for link_type in [LinkType::Ethernet, LinkType::Ip] {
        let whole = Packet::new(link_type, bytes.clone());
        check(&whole.clone().with_segment_size(NonZeroU16::new(1460)));
        check(&whole);
        for uncaptured in [1_500, 100_000] {
            check(&Packet::truncated(link_type, bytes.clone(), captured + uncaptured));
        }
    }
}

fn check(packet: &Packet) {
    let Ok(segment) = Segment::parse(packet) else { return };
    assert!(segment.network_offset < segment.transport_offset);
    assert!(segment.transport_offset + 20 <= segment.payload_offset);
    assert!(usize::from(segment.payload_offset) <= packet.bytes().len());
    assert!(u32::from(segment.payload_offset) + segment.payload_len <= packet.wire_len());

    let bare = bare_ack(packet, &segment);
    let again = Segment::parse(&bare).expect("a bare ACK parses");
    assert_eq!(
        (again.source, again.destination, again.ack, again.window, again.options),
        (segment.source, segment.destination, segment.ack, segment.window, segment.options),
    );
    if bare != *packet {
        assert!(again.is_pure_ack());
        assert_eq!(again.seq, segment.end());
        let transport = &bare.bytes()[usize::from(again.transport_offset)..];
        let (source, destination) = (&again.source.address, &again.destination.address);
        assert!(checksum::tcp_is_right(source, destination, transport));
    }
}
