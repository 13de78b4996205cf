//! From the first captured byte to the header of TCP or another transport: Ethernet, VLAN tags,
//! IPv4, IPv6.

use crate::packet::{LinkType, Packet};
use crate::wire::bypass::Bypass;
use crate::wire::chunk;

/// The IP protocol number of TCP.
pub(crate) const TCP: u8 = 6;
/// EtherType of IPv4.
pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;
/// EtherType of a customer VLAN tag (IEEE 802.1Q).
pub(super) const ETHERTYPE_VLAN: u16 = 0x8100;
/// EtherType of a service VLAN tag (IEEE 802.1ad).
pub(super) const ETHERTYPE_SERVICE_VLAN: u16 = 0x88a8;
/// Length of the fixed IPv6 header.
pub(super) const IPV6_HEADER: usize = 40;
/// IPv6 hop-by-hop options, which may hold a jumbo payload length (RFC 2675).
pub(super) const HOP_BY_HOP: u8 = 0;

const DESTINATION_OPTIONS: u8 = 60;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;

/// Bits of an IPv4 fragment field that only fragments set: more-fragments and the offset.
const IPV4_FRAGMENT_BITS: u16 = 0x3fff;
/// The same in the IPv6 fragment header, which has two reserved bits between them.
const IPV6_FRAGMENT_BITS: u16 = 0xfff9;

const MAX_VLAN_TAGS: usize = 2;
/// A longer chain of extension headers costs more to walk than its packet is worth.
const MAX_EXTENSION_HEADERS: usize = 8;

/// Where the transport begins in a packet, how long it is, and between which addresses it goes.
///
/// In this order, so that an error in its place overlaps with no address: it is copied whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Network {
    /// The protocol number of the transport, behind all extension headers.
    pub protocol: u8,
    /// A fragment of a datagram; another one may hold the transport's header.
    pub is_fragment: bool,
    /// Offset of the IP header, in bytes from the first captured byte.
    pub offset: u16,
    /// Offset of the transport's header.
    pub transport_offset: u16,
    /// Transport header and payload on the wire, in bytes, whatever was captured of them.
    pub transport_len: u32,
    /// Source address, IPv6 or IPv4-mapped.
    pub source: [u8; 16],
    /// Destination address, IPv6 or IPv4-mapped.
    pub destination: [u8; 16],
}

impl Network {
    /// Walks to the header of TCP; anything else is an error.
    #[inline]
    pub fn parse(packet: &Packet) -> Result<Self, Bypass> {
        match Self::walk(packet)? {
            Self { protocol: TCP, is_fragment: true, .. } => Err(Bypass::Fragment),
            network @ Self { protocol: TCP, .. } => Ok(network),
            _ => Err(Bypass::NotTcp),
        }
    }

    /// Walks to the transport's header.
    ///
    /// Lengths are those of the IP header, so that Ethernet padding never counts as payload.
    /// IPv6 hop-by-hop, routing and destination options and atomic fragments (RFC 6946) are walked
    /// through. Not walked, so that their protocol is their own: ESP, whose TCP is encrypted; AH,
    /// whose TCP may neither be edited nor repeated late (RFC 4302 §3.4.3); a routing header with
    /// segments left, since neither flow nor checksum belong to the address that the IP header
    /// shows.
    // Always inlined: the compiler then keeps the result in registers.
    #[inline(always)]
    pub fn walk(packet: &Packet) -> Result<Self, Bypass> {
        let bytes = packet.bytes();
        let (version, offset) = match packet.link_type() {
            LinkType::Ip => (ip_version(bytes, 0)?, 0),
            LinkType::Ethernet => {
                let (ethertype, offset) = ethernet_payload(bytes)?;
                match (ethertype, ip_version(bytes, offset)?) {
                    (ETHERTYPE_IPV4, 4) => (4, offset),
                    (ETHERTYPE_IPV6, 6) => (6, offset),
                    _ => return Err(Bypass::Malformed),
                }
            }
            // What is in the frame is for the other end of its link to read.
            LinkType::Frame => return Err(Bypass::NotIp),
        };
        match version {
            4 => walk_ipv4(packet, offset),
            6 => walk_ipv6(packet, offset),
            _ => Err(Bypass::NotIp),
        }
    }
}

/// The traffic class of a packet with this IP header: the DSCP in the first six bits, then ECN (RFC
/// 2474 §3). `None` if it is none of this packet.
pub(crate) fn traffic_class(packet: &Packet, network: &Network) -> Option<u8> {
    let [first, second] = *chunk::<2>(packet.bytes(), usize::from(network.offset)).ok()?;
    match first >> 4 {
        4 => Some(second),
        _ => Some(first << 4 | second >> 4),
    }
}

/// The EtherType behind all VLAN tags, and where its payload begins.
fn ethernet_payload(bytes: &[u8]) -> Result<(u16, usize), Bypass> {
    let mut at = 12;
    for _ in 0..=MAX_VLAN_TAGS {
        let ethertype = u16::from_be_bytes(*chunk(bytes, at)?);
        match ethertype {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return Ok((ethertype, at + 2)),
            ETHERTYPE_VLAN | ETHERTYPE_SERVICE_VLAN => at += 4,
            _ => return Err(Bypass::NotIp),
        }
    }
    Err(Bypass::NotIp)
}

fn ip_version(bytes: &[u8], at: usize) -> Result<u8, Bypass> {
    chunk::<1>(bytes, at).map(|[first]| first >> 4)
}

#[inline(always)]
fn walk_ipv4(packet: &Packet, offset: usize) -> Result<Network, Bypass> {
    let header: &[u8; 20] = chunk(packet.bytes(), offset)?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header_len < header.len() {
        return Err(Bypass::Malformed);
    }
    let total_len = match u16::from_be_bytes([header[2], header[3]]) {
        0 => super_packet_len(packet, offset)?,
        total_len => u32::from(total_len),
    };
    let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
    let transport = offset + header_len;
    Ok(Network {
        source: ipv4_mapped([s0, s1, s2, s3]),
        destination: ipv4_mapped([d0, d1, d2, d3]),
        protocol: header[9],
        is_fragment: u16::from_be_bytes([header[6], header[7]]) & IPV4_FRAGMENT_BITS != 0,
        offset: offset as u16,
        transport_offset: transport as u16,
        transport_len: transport_len(packet, offset, transport, total_len)?,
    })
}

#[inline(always)]
fn walk_ipv6(packet: &Packet, offset: usize) -> Result<Network, Bypass> {
    let bytes = packet.bytes();
    let header: &[u8; IPV6_HEADER] = chunk(bytes, offset)?;
    let (protocol, is_fragment, transport) =
        skip_extension_headers(bytes, header[6], offset + IPV6_HEADER)?;
    let total_len = match u16::from_be_bytes([header[4], header[5]]) {
        0 => super_packet_len(packet, offset)?,
        payload_len => IPV6_HEADER as u32 + u32::from(payload_len),
    };
    Ok(Network {
        source: *chunk(bytes, offset + 8)?,
        destination: *chunk(bytes, offset + 24)?,
        protocol,
        is_fragment,
        offset: offset as u16,
        // Both offsets fit: eight extension headers are at most 16 KiB.
        transport_offset: transport as u16,
        transport_len: transport_len(packet, offset, transport, total_len)?,
    })
}

/// What follows the extension headers (RFC 8200 §4), whether this is a fragment of it, and where it
/// begins.
fn skip_extension_headers(
    bytes: &[u8],
    mut protocol: u8,
    mut at: usize,
) -> Result<(u8, bool, usize), Bypass> {
    for _ in 0..MAX_EXTENSION_HEADERS {
        if !matches!(protocol, HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | FRAGMENT) {
            break;
        }
        let &[next, len, b2, b3] = chunk(bytes, at)?;
        match protocol {
            FRAGMENT if u16::from_be_bytes([b2, b3]) & IPV6_FRAGMENT_BITS != 0 => {
                return Ok((next, true, at + 8));
            }
            ROUTING if b3 != 0 => break,
            FRAGMENT => at += 8,
            _ => at += (usize::from(len) + 1) * 8,
        }
        protocol = next;
    }
    Ok((protocol, false, at))
}

/// The length of an IP packet whose own length field is 0: segmentation offload makes packets whose
/// length exceeds 16 bits (BIG TCP), and then the captured length counts.
fn super_packet_len(packet: &Packet, offset: usize) -> Result<u32, Bypass> {
    let on_wire = packet.wire_len().saturating_sub(offset as u32);
    if packet.segment_size().is_some() || on_wire > u32::from(u16::MAX) {
        Ok(on_wire)
    } else {
        Err(Bypass::Malformed)
    }
}

/// Bytes from the transport's header to the end of an IP packet of `total_len` bytes at `offset`.
fn transport_len(
    packet: &Packet,
    offset: usize,
    transport: usize,
    total_len: u32,
) -> Result<u32, Bypass> {
    if offset as u32 + total_len > packet.wire_len() {
        return Err(Bypass::Malformed);
    }
    total_len.checked_sub((transport - offset) as u32).ok_or(Bypass::Malformed)
}

/// The IPv4-mapped form of an address.
pub(super) fn ipv4_mapped(address: [u8; 4]) -> [u8; 16] {
    (0xffff_0000_0000 | u128::from(u32::from_be_bytes(address))).to_be_bytes()
}

#[cfg(test)]
mod tests;
