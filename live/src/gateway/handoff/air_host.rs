//! The hosts that are heard on the air: a packet of a host shows that it is here, and how to reach
//! it.

use crate::gateway::arrival::headers;
use crate::sys::Copied;
use airmend_proto::agents::handoff::Mobile;
use airmend_proto::wire::ip::Network;
use airmend_proto::{LinkType, Packet};
use std::net::{Ipv4Addr, Ipv6Addr};

const ETHERTYPE_ARP: u16 = 0x0806;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const VLAN_TAGS: [u16; 2] = [0x8100, 0x88a8];
/// The offset of the first EtherType: behind both MAC addresses.
const TYPE_OFFSET: usize = 12;
/// An ARP packet for IPv4 over Ethernet begins with this (RFC 826), but for the operation.
const ARP_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
const ARP_SENDER: usize = 14;

/// The address of a network interface.
pub(super) type Mac = [u8; 6];

/// A host on the air interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AirHost {
    pub(super) address: Mobile,
    pub(super) link: LinkHeader,
}

/// What a packet begins with that is sent to a host; empty without Ethernet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkHeader {
    /// The MAC addresses and VLAN tags before the EtherType.
    bytes: Vec<u8>,
}

impl AirHost {
    /// The host that sent this packet; `None` if it is none that could move here.
    ///
    /// A frame to it bears the address that its own was sent to: that of this interface, or on a
    /// bridge that of the router behind it. A broadcast shows none, and `own` takes its place.
    pub(super) fn of(link_type: LinkType, copied: Copied, own: Mac) -> Option<Self> {
        let packet = headers(link_type, copied.vlan, copied.bytes, copied.wire_len)?;
        let bytes = packet.bytes();
        let (ethertype, link) = match link_type {
            LinkType::Ethernet => {
                let (end, ethertype) = ethertype(bytes)?;
                let [to, from] = [bytes.get(..6)?, bytes.get(6..TYPE_OFFSET)?];
                let to = if to[0] & 1 == 0 { to } else { &own };
                (ethertype, LinkHeader { bytes: [from, to, bytes.get(TYPE_OFFSET..end)?].concat() })
            }
            _ => (ETHERTYPE_IPV4, LinkHeader::default()),
        };
        let address = match ethertype {
            ETHERTYPE_ARP => arp_sender(bytes.get(TYPE_OFFSET + link.tags() + 2..)?)?,
            _ => Network::walk(&packet).ok()?.source,
        };
        can_move(Ipv6Addr::from(address)).then_some(Self { address, link })
    }
}

impl LinkHeader {
    /// The link-layer address of the host; `None` without Ethernet.
    pub(super) fn sender(&self) -> Option<Mac> {
        self.bytes.first_chunk().copied()
    }

    fn tags(&self) -> usize {
        self.bytes.len().saturating_sub(TYPE_OFFSET)
    }

    /// The packet as it is sent to the host, whatever link it comes from.
    pub(super) fn carry(&self, packet: &Packet) -> Option<Packet> {
        let network = packet.bytes().get(usize::from(Network::walk(packet).ok()?.offset)..)?;
        if self.bytes.is_empty() {
            return Some(Packet::new(LinkType::Ip, network.to_vec().into()));
        }
        let ethertype = if network.first()? >> 4 == 4 { ETHERTYPE_IPV4 } else { ETHERTYPE_IPV6 };
        let bytes = [&self.bytes[..], &ethertype.to_be_bytes(), network].concat();
        Some(Packet::new(LinkType::Ethernet, bytes.into()))
    }
}

/// The EtherType behind all VLAN tags, and its offset.
fn ethertype(bytes: &[u8]) -> Option<(usize, u16)> {
    let at = |offset: usize| Some(u16::from_be_bytes(*bytes.get(offset..)?.first_chunk()?));
    let mut offset = TYPE_OFFSET;
    while VLAN_TAGS.contains(&at(offset)?) {
        offset += 4;
    }
    Some((offset, at(offset)?))
}

/// The sender of an ARP packet; one that probes an address does not have it yet (RFC 5227).
fn arp_sender(arp: &[u8]) -> Option<Mobile> {
    let sender: [u8; 4] = *arp.get(ARP_SENDER..)?.first_chunk()?;
    arp.starts_with(&ARP_IPV4).then(|| Ipv4Addr::from(sender).to_ipv6_mapped().octets())
}

/// Whether flows of a host can have this address.
fn can_move(address: Ipv6Addr) -> bool {
    match address.to_ipv4_mapped() {
        Some(v4) => {
            let is_special = v4.is_unspecified() || v4.is_loopback() || v4.is_link_local();
            !(is_special || v4.is_multicast() || v4.is_broadcast())
        }
        None => {
            let is_special = address.is_unspecified() || address.is_loopback();
            !(is_special || address.is_multicast() || address.is_unicast_link_local())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::wire::build::SegmentBuilder;
    use bytes::BytesMut;
    use std::time::Duration;

    const OWN: Mac = [2, 0, 0, 0, 0, 9];
    const HOST: Mac = [2, 0, 0, 0, 0, 1];
    const ROUTER: Mac = [2, 0, 0, 0, 0, 7];

    fn copied(bytes: &[u8], vlan: Option<(u16, u16)>) -> Copied {
        Copied {
            at: Duration::ZERO,
            vnet_header: [0; 10],
            vlan,
            bytes: BytesMut::from(bytes),
            wire_len: bytes.len() as u32,
            is_for_this_machine: true,
        }
    }

    fn address(last: u8) -> Mobile {
        Ipv4Addr::new(10, 0, 1, last).to_ipv6_mapped().octets()
    }

    fn data() -> Packet {
        SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 1, 2], 99))
            .payload(b"data")
            .build(LinkType::Ethernet)
    }

    #[test]
    fn a_packet_shows_its_host_and_how_to_reach_it() {
        let ack = SegmentBuilder::new(([10, 0, 1, 2], 99), ([10, 0, 0, 1], 80));
        let mut frame = ack.build(LinkType::Ethernet).bytes().to_vec();
        frame[..12].copy_from_slice(&[ROUTER, HOST].concat());
        for vlan in [None, Some((0x8100, 7))] {
            let host = AirHost::of(LinkType::Ethernet, copied(&frame, vlan), OWN).unwrap();
            assert_eq!(host.address, address(2));
            let carried = host.link.carry(&data()).unwrap();
            let tag: &[u8] = if vlan.is_some() { &[0x81, 0, 0, 7] } else { &[] };
            assert_eq!(carried.bytes()[..12], [HOST, ROUTER].concat());
            assert_eq!(carried.bytes()[12..], [tag, &data().bytes()[12..]].concat());
            let bare = LinkHeader::default().carry(&data()).unwrap();
            assert_eq!(bare.bytes(), &data().bytes()[14..]);
            assert_eq!(host.link.carry(&bare), Some(carried));
        }
    }

    #[test]
    fn an_arp_request_shows_its_sender() {
        let arp = |sender: [u8; 4]| {
            let body = [&HOST[..], &sender, &[0; 6], &[10, 0, 1, 1]].concat();
            [&[0xff; 6], &HOST[..], &[8, 6], &ARP_IPV4, &[0, 1], &body].concat()
        };
        let frame = arp([10, 0, 1, 3]);
        let host = AirHost::of(LinkType::Ethernet, copied(&frame, None), OWN).unwrap();
        assert_eq!(host.address, address(3));
        assert_eq!(host.link.bytes, [HOST, OWN].concat());
        let probe = arp([0; 4]);
        assert_eq!(AirHost::of(LinkType::Ethernet, copied(&probe, None), OWN), None);
        for len in 0..frame.len() - 10 {
            assert_eq!(AirHost::of(LinkType::Ethernet, copied(&frame[..len], None), OWN), None);
        }
    }

    #[test]
    fn who_has_no_address_of_a_host_does_not_move() {
        for special in ["::", "::1", "fe80::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:224.0.0.1"] {
            assert!(!can_move(special.parse().unwrap()), "{special}");
        }
        assert!(can_move("::ffff:10.0.0.1".parse().unwrap()));
        assert!(can_move("fd00::1".parse().unwrap()));
    }
}
