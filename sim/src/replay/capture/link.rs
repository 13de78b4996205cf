//! The header with which the packets of a link type begin.

use super::super::left_out::Reason;
use super::record::Crossing;
use airmend_proto::{LinkType, Packet};

/// Ethernet's addresses and type.
const ETHERNET_HEADER: usize = 14;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const PPP: u16 = 0x880b;
const PPPOE: u16 = 0x8864;

/// The packet behind a link header that agents do not parse, and the direction in that header
/// (<https://www.tcpdump.org/linktypes.html>). Of a type that an EtherType names and that is not IP,
/// an Ethernet frame is made, without addresses.
pub(super) fn unwrap_link(
    link: u16,
    data: &[u8],
    wire_len: u32,
) -> Result<(Packet, Option<Crossing>), Reason> {
    let packet = Captured { data, wire_len };
    // BSD/OS and OpenBSD have numbers of their own for raw IP, which programs write all the same.
    Ok(match link {
        0 | 108 => (packet.ip(4), None),
        1 => (Packet::truncated(LinkType::Ethernet, data.to_vec().into(), wire_len), None),
        12 | 14 | 101 | 228 | 229 => (packet.ip(0), None),
        // PPP, and PPPoE without Ethernet.
        9 | 50 => (packet.frame(PPP, 0), None),
        51 => (packet.frame(PPPOE, 0), None),
        // Cisco's HDLC.
        104 => (packet.typed(2, 4), None),
        // Linux cooked packets.
        113 => (packet.typed(14, 16), crossing(data.get(1))),
        276 => (packet.typed(0, 20), crossing(data.get(10))),
        _ => return Err(Reason::LinkType(link)),
    })
}

/// Linux's packet type.
fn crossing(kind: Option<&u8>) -> Option<Crossing> {
    match kind {
        Some(0) => Some(Crossing::Inbound),
        Some(4) => Some(Crossing::Outbound),
        _ => None,
    }
}

struct Captured<'a> {
    data: &'a [u8],
    wire_len: u32,
}

impl Captured<'_> {
    /// An IP packet behind a header of this length.
    fn ip(&self, header: usize) -> Packet {
        let bytes = self.data.get(header..).unwrap_or_default().to_vec();
        Packet::truncated(LinkType::Ip, bytes.into(), self.wire_len.saturating_sub(header as u32))
    }

    /// A packet of the EtherType at this offset, behind a header of this length.
    fn typed(&self, at: usize, header: usize) -> Packet {
        let ethertype = self.data.get(at..).and_then(|rest| rest.first_chunk());
        match ethertype.map(|bytes| u16::from_be_bytes(*bytes)) {
            None | Some(IPV4 | IPV6) => self.ip(header),
            Some(ethertype) => self.frame(ethertype, header),
        }
    }

    /// A frame of an EtherType, behind a header of this length.
    fn frame(&self, ethertype: u16, header: usize) -> Packet {
        let mut bytes = vec![0; ETHERNET_HEADER - 2];
        bytes.extend(ethertype.to_be_bytes());
        bytes.extend(self.data.get(header..).unwrap_or_default());
        let wire_len = self.wire_len.saturating_sub(header as u32) + ETHERNET_HEADER as u32;
        Packet::truncated(LinkType::Ethernet, bytes.into(), wire_len)
    }
}
