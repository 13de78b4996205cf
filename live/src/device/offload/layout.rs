//! The `virtio_net_hdr`, the headers of a TCP or UDP packet, and their checksums.

use airmend_proto::wire::checksum;

/// Length of a `virtio_net_hdr`.
pub(crate) const HEADER_LEN: usize = 10;

pub(super) const NEEDS_CHECKSUM: u8 = 1;
pub(super) const GSO_NONE: u8 = 0;
pub(super) const GSO_TCPV4: u8 = 1;
pub(super) const GSO_TCPV6: u8 = 4;
/// Datagrams, each with a UDP header of its own: `VIRTIO_NET_HDR_GSO_UDP_L4`.
pub(super) const GSO_UDP: u8 = 5;
/// The first segment of the super-packet has the CWR flag, the others have not.
pub(super) const GSO_ECN: u8 = 0x80;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// `struct virtio_net_hdr`, in the byte order of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) flags: u8,
    pub(super) gso_type: u8,
    pub(super) header_len: u16,
    pub(super) segment_size: u16,
    pub(super) checksum_start: u16,
    pub(super) checksum_offset: u16,
}

impl Header {
    pub(super) fn parse(bytes: [u8; HEADER_LEN]) -> Self {
        let [flags, gso_type, h0, h1, s0, s1, c0, c1, o0, o1] = bytes;
        Self {
            flags,
            gso_type,
            header_len: u16::from_ne_bytes([h0, h1]),
            segment_size: u16::from_ne_bytes([s0, s1]),
            checksum_start: u16::from_ne_bytes([c0, c1]),
            checksum_offset: u16::from_ne_bytes([o0, o1]),
        }
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER_LEN] {
        let [h0, h1] = self.header_len.to_ne_bytes();
        let [s0, s1] = self.segment_size.to_ne_bytes();
        let [c0, c1] = self.checksum_start.to_ne_bytes();
        let [o0, o1] = self.checksum_offset.to_ne_bytes();
        [self.flags, self.gso_type, h0, h1, s0, s1, c0, c1, o0, o1]
    }
}

/// The offsets of the headers of a TCP or UDP packet that is suitable for offload: no IPv6
/// extension headers, no fragment, nothing behind what its IP header counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) is_ipv4: bool,
    /// `TCP` or `UDP`.
    pub(super) protocol: u8,
    pub(super) transport: usize,
    pub(super) payload: usize,
}

impl Layout {
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let (is_ipv4, transport, protocol) = match packet.first()? >> 4 {
            4 => {
                let header = packet.first_chunk::<20>()?;
                let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
                let transport = usize::from(header[0] & 0x0f) * 4;
                if is_fragment || transport < header.len() {
                    return None;
                }
                (true, transport, header[9])
            }
            6 => (false, IPV6_HEADER, *packet.get(6)?),
            _ => return None,
        };
        let header_len = match protocol {
            TCP => usize::from(packet.get(transport + 12)? >> 4) * 4,
            UDP => UDP_HEADER,
            _ => return None,
        };
        let payload = transport + header_len;
        let is_whole = (protocol == UDP || header_len >= TCP_HEADER) && payload <= packet.len();
        is_whole.then_some(Self { is_ipv4, protocol, transport, payload })
    }

    /// The type of a super-packet with these headers.
    pub(super) fn gso_type(&self) -> u8 {
        match (self.protocol, self.is_ipv4) {
            (UDP, _) => GSO_UDP,
            (_, true) => GSO_TCPV4,
            (_, false) => GSO_TCPV6,
        }
    }

    /// The offset of the transport's checksum in the packet.
    pub(super) fn checksum(&self) -> usize {
        self.transport + if self.protocol == UDP { 6 } else { 16 }
    }

    /// Both addresses, as they stand one behind the other in the IP header.
    pub(super) fn addresses<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        let range = if self.is_ipv4 { 12..20 } else { 8..40 };
        packet.get(range).unwrap_or(&[])
    }
}

/// The checksum of `segment`, whose own field stands as zero, with its pseudo-header; zero if the
/// field holds the right one (RFC 9293 §3.1, RFC 768, RFC 8200 §8.1).
pub(super) fn transport_checksum(protocol: u8, addresses: &[u8], segment: &[u8]) -> u16 {
    !add(!pseudo_header(protocol, addresses, segment.len()), !checksum::internet(segment))
}

/// The checksum of the pseudo-header alone.
pub(super) fn pseudo_header(protocol: u8, addresses: &[u8], segment_len: usize) -> u16 {
    let length = u32::try_from(segment_len).unwrap_or(u32::MAX);
    let [l0, l1, l2, l3] = length.to_be_bytes();
    !add(!checksum::internet(addresses), !checksum::internet(&[0, protocol, l0, l1, l2, l3]))
}

/// One's complement addition.
pub(super) fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

/// Writes a big-endian 16-bit field; nothing if it lies outside.
pub(super) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

pub(super) fn get_u16(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |field| u16::from_be_bytes(*field))
}

pub(super) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |field| u32::from_be_bytes(*field))
}
