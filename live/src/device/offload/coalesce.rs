//! Packets of one TCP stream, one behind the other, become a super-packet again.

use super::layout::{
    GSO_NONE, HEADER_LEN, Header, IPV6_HEADER, Layout, NEEDS_CHECKSUM, TCP, get_u16, get_u32,
    pseudo_header, put_u16, transport_checksum,
};
use airmend_proto::Packet;
use airmend_proto::wire::checksum;
use std::io::IoSlice;

const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
/// The longest IP packet, in bytes.
const MAX_LEN: usize = 65_535;
/// Bytes of IPv4 and TCP header with all options: the longest headers that occur.
const MAX_HEADERS: usize = 120;

/// Packets that will be written as one.
///
/// Only neighbours are joined, and only what splitting would make of the whole again: same
/// headers, contiguous sequence numbers, equal lengths but for the last, right checksums.
#[derive(Debug, Default)]
pub(in super::super) struct Coalescer {
    run: Vec<Packet>,
    /// The layout of the first packet, if others may follow it.
    open: Option<Open>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    layout: Layout,
    segment_size: usize,
    next_seq: u32,
}

impl Coalescer {
    /// Adds the packet to the run; gives it back if it does not continue the run.
    pub(in super::super) fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        let Some(first) = self.run.first() else {
            self.open = open(packet.bytes());
            self.bytes = packet.bytes().len();
            self.run.push(packet);
            return Ok(());
        };
        let next = self.open.and_then(|open| open.continued(first.bytes(), packet.bytes()));
        let Some((next, payload)) = next.filter(|(_, payload)| self.bytes + payload <= MAX_LEN)
        else {
            return Err(packet);
        };
        let last = packet.bytes().get(next.layout.transport + 13).is_some_and(|f| f & PSH != 0);
        let is_last = payload < next.segment_size || last;
        self.open = if is_last { None } else { Some(next) };
        self.bytes += payload;
        self.run.push(packet);
        Ok(())
    }

    /// Hands the run to `write`, in pieces that belong one behind the other, and empties it.
    pub(in super::super) fn flush<T>(
        &mut self,
        write: impl FnOnce(&[IoSlice<'_>]) -> T,
    ) -> Option<T> {
        let (first, rest) = self.run.split_first()?;
        let layout = Layout::parse(first.bytes()).filter(|_| !rest.is_empty());
        let result = match layout {
            None => {
                let header = Header { gso_type: GSO_NONE, ..Header::default() }.to_bytes();
                write(&[IoSlice::new(&header), IoSlice::new(first.bytes())])
            }
            Some(layout) => self.write_joined(layout, write),
        };
        self.run.clear();
        self.open = None;
        Some(result)
    }

    fn write_joined<T>(&self, layout: Layout, write: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        let mut storage = [0; HEADER_LEN + MAX_HEADERS];
        let first = self.run.first().map_or(&[][..], Packet::bytes);
        let last = self.run.last().map_or(&[][..], Packet::bytes);
        let header = Header {
            flags: NEEDS_CHECKSUM,
            gso_type: layout.gso_type(),
            header_len: layout.payload as u16,
            segment_size: (first.len() - layout.payload) as u16,
            checksum_start: layout.transport as u16,
            checksum_offset: 16,
        };
        storage[..HEADER_LEN].copy_from_slice(&header.to_bytes());
        let headers = &mut storage[HEADER_LEN..HEADER_LEN + layout.payload];
        headers.copy_from_slice(&first[..layout.payload]);
        if layout.is_ipv4 {
            put_u16(headers, 2, self.bytes as u16);
            put_u16(headers, 10, 0);
            let sum = checksum::internet(&headers[..layout.transport]);
            put_u16(headers, 10, sum);
        } else {
            put_u16(headers, 4, (self.bytes - IPV6_HEADER) as u16);
        }
        headers[layout.transport + 13] |= last[layout.transport + 13] & PSH;
        // The kernel adds the rest to the sum of the pseudo-header.
        let length = self.bytes - layout.transport;
        let sum = !pseudo_header(TCP, layout.addresses(headers), length);
        put_u16(headers, layout.transport + 16, sum);
        let mut slices = Vec::with_capacity(self.run.len() + 1);
        slices.push(IoSlice::new(&storage[..HEADER_LEN + layout.payload]));
        let payloads = self.run.iter().map(|packet| &packet.bytes()[layout.payload..]);
        slices.extend(payloads.map(IoSlice::new));
        write(&slices)
    }
}

/// The layout of a packet that others may follow; `None` if none may.
fn open(packet: &[u8]) -> Option<Open> {
    let (layout, payload) = joinable(packet)?;
    let ends = packet[layout.transport + 13] & PSH != 0;
    let next_seq = get_u32(packet, layout.transport + 4).wrapping_add(payload as u32);
    (!ends).then_some(Open { layout, segment_size: payload, next_seq })
}

impl Open {
    /// The same after `packet`, and its payload's length, if that continues the run that `first`
    /// began.
    fn continued(self, first: &[u8], packet: &[u8]) -> Option<(Self, usize)> {
        let (layout, payload) = joinable(packet)?;
        let transport = layout.transport;
        let same = layout == self.layout
            && payload <= self.segment_size
            && get_u32(packet, transport + 4) == self.next_seq
            && same_headers(first, packet, layout);
        let next_seq = self.next_seq.wrapping_add(payload as u32);
        same.then_some((Self { next_seq, ..self }, payload))
    }
}

/// The layout and payload length of a TCP data packet whose checksum is right and that has no flag
/// but ACK and PSH.
fn joinable(packet: &[u8]) -> Option<(Layout, usize)> {
    let layout = Layout::parse(packet).filter(|layout| layout.protocol == TCP)?;
    let total = if layout.is_ipv4 {
        usize::from(get_u16(packet, 2))
    } else {
        usize::from(get_u16(packet, 4)) + IPV6_HEADER
    };
    let segment = packet.get(layout.transport..)?;
    let payload = packet.len() - layout.payload;
    let flags = segment.get(13)?;
    // Options of IPv4 are rare and not worth a look.
    let is_plain = !layout.is_ipv4 || layout.transport == 20;
    let joins = is_plain
        && flags & !PSH == ACK
        && payload > 0
        && total == packet.len()
        && transport_checksum(TCP, layout.addresses(packet), segment) == 0
        && (!layout.is_ipv4 || checksum::internet(&packet[..layout.transport]) == 0);
    joins.then_some((layout, payload))
}

/// Whether the headers differ in nothing but what differs between segments of one super-packet:
/// IPv4 total length, identification and checksum; IPv6 payload length; TCP sequence number,
/// checksum and PSH.
fn same_headers(a: &[u8], b: &[u8], layout: Layout) -> bool {
    let t = layout.transport;
    let is_same = |from: usize, to: usize| a.get(from..to) == b.get(from..to);
    let network = if layout.is_ipv4 {
        is_same(0, 2) && is_same(6, 10) && is_same(12, 20)
    } else {
        is_same(0, 4) && is_same(6, 40)
    };
    network && is_same(t, t + 4) && is_same(t + 8, t + 13) && is_same(t + 14, t + 16) && {
        // The urgent pointer and all options.
        is_same(t + 18, layout.payload)
    }
}
