//! Where the headers of a packet are that can be compressed.

use crate::packet::{LinkType, Packet};
use crate::wire::checksum;

/// The longest headers: Ethernet with two VLAN tags, IPv6, and TCP with all options.
pub(super) const LONGEST: usize = 14 + 8 + 40 + 60;

const ETHERNET: usize = 14;
const TAG: usize = 4;
const MAX_TAGS: usize = 2;
const IPV6: usize = 40;
const IPV4: usize = 20;
const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// The place of each header, in bytes from the beginning of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) ip: usize,
    pub(super) is_ipv6: bool,
    pub(super) transport: usize,
    pub(super) is_tcp: bool,
    /// The length of all headers.
    pub(super) len: usize,
}

impl Layout {
    /// The headers of a packet of TCP or UDP in IPv4 without options or IPv6 without extension
    /// headers, whose lengths are what they should be. `None` of all others, fragments among them.
    pub(super) fn of(packet: &Packet) -> Option<Self> {
        let bytes = packet.bytes();
        let ip = match packet.link_type() {
            LinkType::Ip => 0,
            LinkType::Ethernet => ethernet(bytes)?,
            LinkType::Frame => return None,
        };
        let layout = Self::at(bytes, ip)?;
        layout.is_regular(bytes, packet.wire_len() as usize).then_some(layout)
    }

    /// The headers from the IP header at `ip` on.
    fn at(bytes: &[u8], ip: usize) -> Option<Self> {
        let (is_ipv6, protocol, transport) = match *bytes.get(ip)? {
            0x45 => (false, *bytes.get(ip + 9)?, ip + IPV4),
            first if first >> 4 == 6 => (true, *bytes.get(ip + 6)?, ip + IPV6),
            _ => return None,
        };
        let len = match protocol {
            TCP => transport + usize::from(*bytes.get(transport + 12)? >> 4) * 4,
            UDP => transport + UDP_HEADER,
            _ => return None,
        };
        let least = transport + if protocol == TCP { TCP_HEADER } else { UDP_HEADER };
        let is_whole = (least..=bytes.len().min(LONGEST)).contains(&len);
        is_whole.then_some(Self { ip, is_ipv6, transport, is_tcp: protocol == TCP, len })
    }

    /// Whether the lengths follow from the rest.
    fn is_regular(self, bytes: &[u8], wire_len: usize) -> bool {
        let half = |at: usize| usize::from(bytes[at]) << 8 | usize::from(bytes[at + 1]);
        let is_ip = if self.is_ipv6 {
            half(self.ip + 4) == wire_len - self.transport
        } else {
            let is_fragment = half(self.ip + 6) & 0x3fff != 0;
            half(self.ip + 2) == wire_len - self.ip && !is_fragment
        };
        is_ip && (self.is_tcp || half(self.transport + 4) == wire_len - self.transport)
    }

    /// Writes what follows from the rest into the headers: lengths and the checksum of IPv4.
    /// `None` if the packet is shorter than its headers, or longer than its length field can say.
    pub(super) fn complete(self, headers: &mut [u8], wire_len: usize) -> Option<()> {
        let from_transport = wire_len.checked_sub(self.transport)?;
        let from_transport = u16::try_from(from_transport).ok()?.to_be_bytes();
        if self.is_ipv6 {
            headers[self.ip + 4..self.ip + 6].copy_from_slice(&from_transport);
        } else {
            let from_ip = u16::try_from(wire_len - self.ip).ok()?.to_be_bytes();
            headers[self.ip + 2..self.ip + 4].copy_from_slice(&from_ip);
            headers[self.ip + 10..self.ip + 12].fill(0);
            let sum = checksum::internet(&headers[self.ip..self.transport]).to_be_bytes();
            headers[self.ip + 10..self.ip + 12].copy_from_slice(&sum);
        }
        if !self.is_tcp {
            headers[self.transport + 4..self.transport + 6].copy_from_slice(&from_transport);
        }
        Some(())
    }

    /// The bytes that say to which flow a packet belongs: addresses, then ports.
    pub(super) fn flow(self, bytes: &[u8]) -> [&[u8]; 2] {
        let addresses = if self.is_ipv6 { 8..IPV6 } else { 12..IPV4 };
        let (begin, end) = (self.ip + addresses.start, self.ip + addresses.end);
        [&bytes[begin..end], &bytes[self.transport..self.transport + 4]]
    }
}

/// The place of the IP header behind an Ethernet header.
fn ethernet(bytes: &[u8]) -> Option<usize> {
    let mut at = ETHERNET - 2;
    for _ in 0..=MAX_TAGS {
        let version = bytes.get(at + 2)? >> 4;
        match (bytes.get(at..at + 2)?, version) {
            ([0x08, 0x00], 4) | ([0x86, 0xdd], 6) => return Some(at + 2),
            ([0x81, 0x00] | [0x88, 0xa8], _) => at += TAG,
            _ => return None,
        }
    }
    None
}
