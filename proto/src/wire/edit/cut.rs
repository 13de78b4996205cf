//! One segment cut out of a super-packet.

use super::field::{TCP_CHECKSUM, set_u16};
use crate::packet::Packet;
use crate::wire::tcp::{Flags, Segment};
use crate::wire::{checksum, ip};
use alloc::vec::Vec;

/// The part of a packet that begins `from` bytes into its sequence space and takes `len` of it, as
/// the packet that segmentation would have made of it (RFC 9293 §3.8, Linux `tcp_gso_segment`).
///
/// FIN and PSH stay with the last part, CWR with the first; the IPv4 identification counts the
/// segments. `None` if the part was not captured, does not lie within the packet, or cannot be
/// written in the IP header.
pub fn cut(packet: &Packet, segment: &Segment, from: u32, len: u32) -> Option<Packet> {
    let end = from.checked_add(len)?;
    if len == 0 || end > segment.seq_len() {
        return None;
    }
    let is_last = end == segment.seq_len();
    let payload_end = end.min(segment.payload_len);
    let header_len = usize::from(segment.payload_offset);
    let first = header_len.checked_add(from.min(payload_end) as usize)?;
    let payload = packet.bytes().get(first..header_len + payload_end as usize)?;
    let mut bytes = packet.bytes().get(..header_len)?.to_vec();
    bytes.extend_from_slice(payload);

    let transport_offset = usize::from(segment.transport_offset);
    let (headers, transport) = bytes.split_at_mut_checked(transport_offset)?;
    let network = headers.get_mut(usize::from(segment.network_offset)..)?;
    set_length(network, transport.len(), segments_before(packet, from))?;

    let mut dropped = Flags::default();
    if !is_last {
        dropped = dropped.union(Flags::FIN).union(Flags::PSH);
    }
    if from > 0 {
        dropped = dropped.union(Flags::CWR);
    }
    transport.get_mut(4..8)?.copy_from_slice(&(segment.seq + from).0.to_be_bytes());
    let offset_and_flags = u16::from_be_bytes(*transport.get(12..)?.first_chunk()?);
    set_u16(transport, 12, offset_and_flags & !dropped.0)?;
    set_u16(transport, TCP_CHECKSUM, 0)?;
    let (source, destination) = (&segment.source.address, &segment.destination.address);
    let checksum = checksum::tcp(source, destination, transport, transport.len() as u32);
    set_u16(transport, TCP_CHECKSUM, checksum)?;
    Some(Packet::new(packet.link_type(), bytes.into()))
}

/// The packets of wire size that segmentation would make of a super-packet; of any other packet,
/// the packet itself. A super-packet that was not captured whole gives those that were.
pub fn segments(packet: &Packet) -> Vec<Packet> {
    let Some(size) = packet.segment_size().map(|size| u32::from(size.get())) else {
        return alloc::vec![packet.clone()];
    };
    let Ok(segment) = Segment::parse(packet) else { return Vec::new() };
    let total = segment.seq_len();
    let count = segment.payload_len.div_ceil(size).max(1);
    let part = |number: u32| {
        let from = number * size;
        // A FIN stays with the last part.
        let len = if number + 1 == count { total - from } else { size };
        cut(packet, &segment, from, len)
    };
    (0..count).filter_map(part).collect()
}

/// Whole segments that come before this byte of the packet.
fn segments_before(packet: &Packet, from: u32) -> u16 {
    packet.segment_size().map_or(0, |size| (from / u32::from(size.get())) as u16)
}

fn set_length(network: &mut [u8], transport_len: usize, segments_before: u16) -> Option<()> {
    let header_len = network.len();
    if network.first()? >> 4 == 4 {
        set_u16(network, 2, u16::try_from(header_len + transport_len).ok()?)?;
        let identification = u16::from_be_bytes(*network.get(4..)?.first_chunk()?);
        set_u16(network, 4, identification.wrapping_add(segments_before))?;
        set_u16(network, 10, 0)?;
        let checksum = checksum::internet(network);
        set_u16(network, 10, checksum)
    } else {
        let length = (header_len + transport_len).checked_sub(ip::IPV6_HEADER)?;
        set_u16(network, 4, u16::try_from(length).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::flow::Endpoint;
    use crate::wire::seq::SeqNumber;
    use core::num::NonZeroU16;

    const SIZE: u32 = 100;

    fn super_packet(ends: (Endpoint, Endpoint), payload: &[u8]) -> Packet {
        SegmentBuilder::new(ends.0, ends.1)
            .seq(SeqNumber(u32::MAX - 120))
            .ack(SeqNumber(5))
            .flags(Flags::PSH.union(Flags::FIN).union(Flags::CWR))
            .payload(payload)
            .build(LinkType::Ethernet)
            .with_segment_size(NonZeroU16::new(SIZE as u16))
    }

    #[test]
    fn the_parts_are_the_whole() {
        let payload: Vec<u8> = (0..250).map(|byte| byte as u8).collect();
        let v4 = (([10, 0, 0, 1], 80).into(), ([10, 0, 0, 2], 99).into());
        let v6 = (([1u16; 8], 80).into(), ([2u16; 8], 99).into());
        for ends in [v4, v6] {
            let packet = super_packet(ends, &payload);
            let whole = Segment::parse(&packet).unwrap();
            let mut collected = Vec::new();
            for (from, len) in [(0, 100), (100, 100), (200, 51)] {
                let part = cut(&packet, &whole, from, len).unwrap();
                let read = Segment::parse(&part).unwrap();
                assert_eq!((read.seq, read.seq_len()), (whole.seq + from, len));
                assert_eq!(read.flags.intersects(Flags::CWR), from == 0);
                assert_eq!(read.flags.intersects(Flags::FIN.union(Flags::PSH)), from == 200);
                assert_eq!(part.segment_size(), None);
                let tcp = &part.bytes()[usize::from(read.transport_offset)..];
                assert!(checksum::tcp_is_right(
                    &read.source.address,
                    &read.destination.address,
                    tcp
                ));
                let network = usize::from(read.network_offset)..usize::from(read.transport_offset);
                if part.bytes()[network.start] >> 4 == 4 {
                    assert_eq!(checksum::internet(&part.bytes()[network]), 0);
                }
                collected.extend_from_slice(&part.bytes()[usize::from(read.payload_offset)..]);
            }
            assert_eq!(collected, payload);
            let parts = [(0, 100), (100, 100), (200, 51)];
            let parts = parts.map(|(from, len)| cut(&packet, &whole, from, len).unwrap());
            assert_eq!(segments(&packet), parts);
            assert_eq!(segments(&parts[2]), parts[2..]);
        }
    }

    #[test]
    fn what_is_not_there_cannot_be_cut_out() {
        let ends = (([10, 0, 0, 1], 80).into(), ([10, 0, 0, 2], 99).into());
        let packet = super_packet(ends, &[0; 250]);
        let whole = Segment::parse(&packet).unwrap();
        for (from, len) in [(0, 0), (0, 252), (251, 1), (u32::MAX, 2)] {
            assert_eq!(cut(&packet, &whole, from, len), None, "{from} {len}");
        }
        let headers = packet.shared_bytes().slice(..usize::from(whole.payload_offset) + 100);
        let short = Packet::truncated(LinkType::Ethernet, headers, packet.wire_len());
        assert_eq!(cut(&short, &whole, 50, 100), None);
        assert!(cut(&short, &whole, 0, 100).is_some());
    }
}
