//! A super-packet becomes packets of wire size, each with its own checksum.

use super::layout::{
    GSO_ECN, GSO_NONE, HEADER_LEN, Header, IPV6_HEADER, Layout, NEEDS_CHECKSUM, UDP, get_u16,
    get_u32, put_u16, transport_checksum,
};
use airmend_proto::wire::checksum;
use airmend_proto::wire::ip::Network;
use airmend_proto::{LinkType, Packet};
use bytes::BytesMut;

const FIN_AND_PSH: u8 = 0x09;
const CWR: u8 = 0x80;
/// Segments of one super-packet at most: 64 kB of the smallest segments that Linux makes.
const MAX_SEGMENTS: usize = 1500;

/// Splits what one `read` of the device gave and appends the packets to `batch`. False if it is
/// nothing that this code understands.
///
/// All packets of a super-packet share one buffer.
#[must_use]
pub(in super::super) fn split(read: &[u8], batch: &mut Vec<Packet>) -> bool {
    let Some((header, packet)) = read.split_first_chunk::<HEADER_LEN>() else { return false };
    let header = Header::parse(*header);
    let gso_type = header.gso_type & !GSO_ECN;
    if gso_type == GSO_NONE {
        let mut packet = BytesMut::from(packet);
        if header.flags & NEEDS_CHECKSUM != 0 && !complete_checksum(&mut packet, header) {
            return false;
        }
        batch.push(Packet::new(LinkType::Ip, packet.freeze()));
        return true;
    }
    let layout = Layout::parse(packet).filter(|layout| layout.gso_type() == gso_type);
    let Some(layout) = layout else { return false };
    segments(&[], packet, layout, usize::from(header.segment_size), batch)
}

/// Splits a super-packet that begins with an Ethernet header and appends the frames to `batch`;
/// what is none is appended as it is. False if it is nothing that this code understands.
#[must_use]
pub(in super::super) fn split_frame(frame: Packet, batch: &mut Vec<Packet>) -> bool {
    let Some(size) = frame.segment_size() else {
        batch.push(frame);
        return true;
    };
    let Ok(network) = Network::walk(&frame) else { return false };
    let offset = usize::from(network.offset).min(frame.bytes().len());
    let (link_header, packet) = frame.bytes().split_at(offset);
    let Some(layout) = Layout::parse(packet) else { return false };
    segments(link_header, packet, layout, usize::from(size.get()), batch)
}

/// The field holds the sum of the pseudo-header; what follows the start is added to it.
pub(super) fn complete_checksum(packet: &mut [u8], header: Header) -> bool {
    let start = usize::from(header.checksum_start);
    let Some(range) = packet.get(start..) else { return false };
    let value = never_zero(checksum::internet(range));
    let at = start + usize::from(header.checksum_offset);
    let is_inside = at + 2 <= packet.len();
    put_u16(packet, at, value);
    is_inside
}

/// A checksum of the same value: in UDP zero means that there is none (RFC 768).
fn never_zero(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// The segments of `packet`, each behind a copy of `link_header`.
fn segments(
    link_header: &[u8],
    packet: &[u8],
    layout: Layout,
    size: usize,
    batch: &mut Vec<Packet>,
) -> bool {
    let (headers, payload) = packet.split_at(layout.payload);
    let count = payload.len().div_ceil(size.max(1));
    if size == 0 || count == 0 || count > MAX_SEGMENTS {
        return false;
    }
    let each = link_header.len() + headers.len();
    let link_type = if link_header.is_empty() { LinkType::Ip } else { LinkType::Ethernet };
    let mut buffer = BytesMut::with_capacity(count * each + payload.len());
    let identification = get_u16(headers, 4);
    for (number, chunk) in payload.chunks(size).enumerate() {
        buffer.extend_from_slice(link_header);
        buffer.extend_from_slice(headers);
        buffer.extend_from_slice(chunk);
        let segment = &mut buffer[link_header.len()..];
        let length = segment.len();
        if layout.is_ipv4 {
            put_u16(segment, 2, length as u16);
            put_u16(segment, 4, identification.wrapping_add(number as u16));
            put_u16(segment, 10, 0);
            let sum = checksum::internet(&segment[..layout.transport]);
            put_u16(segment, 10, sum);
        } else {
            put_u16(segment, 4, (length - IPV6_HEADER) as u16);
        }
        let transport = layout.transport;
        let is_udp = layout.protocol == UDP;
        if is_udp {
            put_u16(segment, transport + 4, (length - transport) as u16);
        } else {
            edit_tcp(&mut segment[transport..], number * size, number + 1 == count);
        }
        put_u16(segment, layout.checksum(), 0);
        let (addresses, rest) = (layout.addresses(segment), &segment[transport..]);
        let sum = transport_checksum(layout.protocol, addresses, rest);
        put_u16(segment, layout.checksum(), if is_udp { never_zero(sum) } else { sum });
        batch.push(Packet::new(link_type, buffer.split().freeze()));
    }
    true
}

/// Makes a copy of the super-packet's TCP header that of the segment whose payload begins at
/// `offset`.
fn edit_tcp(header: &mut [u8], offset: usize, is_last: bool) {
    let seq = get_u32(header, 4).wrapping_add(offset as u32);
    header[4..8].copy_from_slice(&seq.to_be_bytes());
    if !is_last {
        header[13] &= !FIN_AND_PSH;
    }
    if offset > 0 {
        header[13] &= !CWR;
    }
}
