//! Segments that were captured before the network card filled their checksum in.

use airmend_proto::Packet;
use airmend_proto::wire::checksum::{TCP_FIELD, has_right_checksum, of_pseudo_header};
use airmend_proto::wire::tcp::Segment;

/// The packet as the next hop gets it, and whether its checksum is open: it is zero, or the sum of
/// the pseudo-header, with the segment's length or, for segmentation offload, without. Such a
/// packet counts as captured without its payload, since agents repair nothing whose checksum is
/// wrong.
pub(super) fn closed(packet: Packet) -> (Packet, bool) {
    match open(&packet) {
        Some(headers) => {
            let captured = packet.shared_bytes().slice(..headers);
            (Packet::truncated(packet.link_type(), captured, packet.wire_len()), true)
        }
        None => (packet, false),
    }
}

/// The length of the headers of a segment with an open checksum.
fn open(packet: &Packet) -> Option<usize> {
    let segment = Segment::parse(packet).ok().filter(|segment| segment.payload_len > 0)?;
    if has_right_checksum(packet) {
        return None;
    }
    let at = usize::from(segment.transport_offset) + TCP_FIELD;
    let checksum = packet.bytes().get(at..)?.first_chunk().copied().map(u16::from_be_bytes)?;
    let headers = usize::from(segment.payload_offset);
    let length = (headers - usize::from(segment.transport_offset)) as u32 + segment.payload_len;
    let (source, destination) = (&segment.source.address, &segment.destination.address);
    let pseudo_header = |length| of_pseudo_header(source, destination, length);
    let is_open = [0, pseudo_header(0), pseudo_header(length)].contains(&checksum);
    is_open.then_some(headers)
}
