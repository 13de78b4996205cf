//! TCP/IP packets from fields: for tests, packet scripts, benches and the TCP endpoint model.

use crate::packet::{LinkType, Packet};
use crate::wire::endpoint::Endpoint;
use crate::wire::options::MAX_OPTIONS_LEN;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, HEADER_LEN, Options};
use crate::wire::{checksum, ip};
use alloc::vec::Vec;
use core::net::IpAddr;

/// Builds one packet with right lengths and checksums. IPv4 if both ends are IPv4, else IPv6.
///
/// ```
/// use airmend_proto::wire::build::SegmentBuilder;
/// use airmend_proto::wire::{seq::SeqNumber, tcp::Segment};
///
/// let packet = SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 1, 2], 5000))
///     .seq(SeqNumber(1))
///     .ack(SeqNumber(1))
///     .payload_len(1460)
///     .build(airmend_proto::LinkType::Ip);
/// assert_eq!(packet.bytes().len(), 40);
/// assert_eq!(packet.wire_len(), 1500);
/// assert_eq!(Segment::parse(&packet).unwrap().end(), SeqNumber(1461));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SegmentBuilder<'a> {
    source: Endpoint,
    destination: Endpoint,
    seq: SeqNumber,
    ack: SeqNumber,
    flags: Flags,
    window: u16,
    options: Options,
    raw_options: &'a [u8],
    payload: &'a [u8],
    payload_len: u32,
    vlan: [Option<u16>; 2],
}

impl<'a> SegmentBuilder<'a> {
    /// An empty segment: no flags, all numbers zero but a window of 65,535.
    pub fn new(source: impl Into<Endpoint>, destination: impl Into<Endpoint>) -> Self {
        Self {
            source: source.into(),
            destination: destination.into(),
            seq: SeqNumber(0),
            ack: SeqNumber(0),
            flags: Flags::default(),
            window: u16::MAX,
            options: Options::default(),
            raw_options: &[],
            payload: &[],
            payload_len: 0,
            vlan: [None; 2],
        }
    }

    /// Sets the sequence number.
    #[must_use]
    pub fn seq(self, seq: SeqNumber) -> Self {
        Self { seq, ..self }
    }

    /// Sets the acknowledgment number, and the ACK flag with it.
    #[must_use]
    pub fn ack(self, ack: SeqNumber) -> Self {
        Self { ack, ..self }.flags(Flags::ACK)
    }

    /// Adds flags to those already set.
    #[must_use]
    pub fn flags(self, flags: Flags) -> Self {
        Self { flags: self.flags.union(flags), ..self }
    }

    /// Sets the window as it stands in the header, unscaled.
    #[must_use]
    pub fn window(self, window: u16) -> Self {
        Self { window, ..self }
    }

    /// Sets the options; what does not fit into 40 bytes is left out, SACK blocks last. A signed
    /// header gets an MD5 option of zeros.
    #[must_use]
    pub fn options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// Puts these bytes before all other options, as they are: unknown kinds, broken lists. The
    /// header ends after 40 bytes of options.
    #[must_use]
    pub fn raw_options(self, raw_options: &'a [u8]) -> Self {
        Self { raw_options, ..self }
    }

    /// Sets the payload.
    #[must_use]
    pub fn payload(self, payload: &'a [u8]) -> Self {
        Self { payload, payload_len: payload.len() as u32, ..self }
    }

    /// Sets the length of the payload on the wire. What `payload` did not give stays uncaptured,
    /// and is zeros to the checksum.
    #[must_use]
    pub fn payload_len(self, payload_len: u32) -> Self {
        Self { payload_len, ..self }
    }

    /// Adds a VLAN tag inside those already there; an Ethernet packet has at most two.
    #[must_use]
    pub fn vlan(self, id: u16) -> Self {
        let vlan = if self.vlan[0].is_none() { [Some(id), None] } else { [self.vlan[0], Some(id)] };
        Self { vlan, ..self }
    }

    /// The packet. A length that exceeds the field of the IP header is written as zero, as the
    /// kernel does with super-packets.
    pub fn build(self, link_type: LinkType) -> Packet {
        let payload = self.payload.get(..self.payload_len as usize).unwrap_or(self.payload);
        let segment = self.segment(payload);
        let uncaptured = self.payload_len - payload.len() as u32;
        let addresses = (self.source.ip(), self.destination.ip());
        let is_ipv4 = matches!(addresses, (IpAddr::V4(_), IpAddr::V4(_)));
        let link_len = match link_type {
            LinkType::Ip | LinkType::Frame => 0,
            LinkType::Ethernet => 14 + 4 * self.vlan.iter().flatten().count(),
        };
        let network_len = if is_ipv4 { IPV4_HEADER } else { ip::IPV6_HEADER };
        // Exact capacity: the conversion to shared bytes then needs no further allocation.
        let mut bytes = Vec::with_capacity(link_len + network_len + segment.len());
        if link_type == LinkType::Ethernet {
            let ethertype = if is_ipv4 { ip::ETHERTYPE_IPV4 } else { ip::ETHERTYPE_IPV6 };
            self.push_ethernet(&mut bytes, ethertype);
        }
        let transport_len = segment.len() as u32 + uncaptured;
        match addresses {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                push_ipv4(&mut bytes, source.octets(), destination.octets(), transport_len);
            }
            _ => self.push_ipv6(&mut bytes, transport_len),
        }
        bytes.extend_from_slice(&segment);
        let wire_len = bytes.len() as u32 + uncaptured;
        Packet::truncated(link_type, bytes.into(), wire_len)
    }

    /// TCP header and the payload at hand.
    fn segment(&self, payload: &[u8]) -> Vec<u8> {
        let mut segment = Vec::with_capacity(HEADER_LEN + MAX_OPTIONS_LEN + payload.len());
        segment.extend_from_slice(&self.source.port.to_be_bytes());
        segment.extend_from_slice(&self.destination.port.to_be_bytes());
        segment.extend_from_slice(&self.seq.0.to_be_bytes());
        segment.extend_from_slice(&self.ack.0.to_be_bytes());
        segment.extend_from_slice(&(self.flags.0 & Flags::ALL).to_be_bytes());
        segment.extend_from_slice(&self.window.to_be_bytes());
        // Checksum and urgent pointer.
        segment.extend_from_slice(&[0; 4]);
        let raw = self.raw_options.get(..MAX_OPTIONS_LEN).unwrap_or(self.raw_options);
        segment.extend_from_slice(raw);
        self.options.emit(&mut segment, MAX_OPTIONS_LEN - raw.len());
        segment.resize(segment.len().next_multiple_of(4), 0);
        segment[12] |= (segment.len() as u8 / 4) << 4;
        segment.extend_from_slice(payload);
        let (source, destination) = (&self.source.address, &self.destination.address);
        let wire_len = segment.len() as u32 + (self.payload_len - payload.len() as u32);
        let checksum = checksum::tcp(source, destination, &segment, wire_len);
        segment[16..18].copy_from_slice(&checksum.to_be_bytes());
        segment
    }

    fn push_ethernet(&self, bytes: &mut Vec<u8>, ethertype: u16) {
        // Locally administered addresses: 02:…:01 sends to 02:…:02.
        bytes.extend_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        for (at, id) in self.vlan.iter().enumerate() {
            let Some(id) = id else { break };
            let is_outer_of_two = at == 0 && self.vlan[1].is_some();
            let tag = if is_outer_of_two { ip::ETHERTYPE_SERVICE_VLAN } else { ip::ETHERTYPE_VLAN };
            bytes.extend_from_slice(&tag.to_be_bytes());
            bytes.extend_from_slice(&id.to_be_bytes());
        }
        bytes.extend_from_slice(&ethertype.to_be_bytes());
    }

    fn push_ipv6(&self, bytes: &mut Vec<u8>, payload_len: u32) {
        let payload_len = u16::try_from(payload_len).unwrap_or(0);
        bytes.extend_from_slice(&[0x60, 0, 0, 0]);
        bytes.extend_from_slice(&payload_len.to_be_bytes());
        bytes.extend_from_slice(&[ip::TCP, HOP_LIMIT]);
        bytes.extend_from_slice(&self.source.address);
        bytes.extend_from_slice(&self.destination.address);
    }
}

const HOP_LIMIT: u8 = 64;
const IPV4_HEADER: usize = 20;

fn push_ipv4(bytes: &mut Vec<u8>, source: [u8; 4], destination: [u8; 4], payload_len: u32) {
    let total_len = u16::try_from(payload_len.saturating_add(20)).unwrap_or(0);
    let start = bytes.len();
    bytes.extend_from_slice(&[0x45, 0]);
    bytes.extend_from_slice(&total_len.to_be_bytes());
    // Identification 0, don't fragment, checksum to come.
    bytes.extend_from_slice(&[0, 0, 0x40, 0, HOP_LIMIT, ip::TCP, 0, 0]);
    bytes.extend_from_slice(&source);
    bytes.extend_from_slice(&destination);
    let checksum = checksum::internet(&bytes[start..]);
    bytes[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
}
