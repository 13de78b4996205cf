//! TCP packets as tests think of them, written and read by etherparse: independent of the code
//! under test. Every payload byte follows from its flow, sender and sequence number, so that any
//! change of the stream, however it was cut into segments, is seen.

use airmend_proto::wire::edit::with_codepoint;
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{LinkType, Packet, Port};
use etherparse::{
    IpEcn, IpNumber, IpPayloadSlice, IpSlice, Ipv4Header, Ipv6FlowLabel, Ipv6Header, TcpHeader,
    TcpSlice,
};
use std::num::NonZeroU16;

const FIXED_PORT: u16 = 80;
const FIRST_MOBILE_PORT: u16 = 10_000;
/// The low bit of the header's thirteenth byte is AE (RFC 9768), the next one holds the others.
const ALL_FLAGS: u16 = 0x1ff;

/// A TCP packet between the fixed host and the mobile host of flow `flow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tcp {
    /// Flows differ in the mobile's port.
    pub(crate) flow: u16,
    /// IPv6 instead of IPv4.
    pub(crate) ipv6: bool,
    /// The side on which the sender sits: wired for the fixed host, air for the mobile.
    pub(crate) sender: Port,
    /// Sequence number of the first byte.
    pub(crate) seq: u32,
    /// Payload bytes.
    pub(crate) len: u16,
    /// Acknowledgment number; none clears the ACK flag.
    pub(crate) ack: Option<u32>,
    /// All flags but ACK.
    pub(crate) flags: Flags,
    /// The unscaled window.
    pub(crate) window: u16,
    /// Options, padded to a multiple of four bytes.
    pub(crate) options: Vec<u8>,
    /// The ECN codepoint of the IP header.
    pub(crate) ecn: u8,
    /// The differentiated services codepoint.
    pub(crate) dscp: u8,
    /// Payload bytes per segment of a super-packet.
    pub(crate) segment_size: Option<NonZeroU16>,
    /// Whether the payload is not what belongs at this place of the stream.
    pub(crate) is_other: bool,
}

/// The codepoints "congestion experienced", and "ECN-capable transport" 0 and 1 (RFC 3168 §5).
pub(crate) const CE: u8 = 0b11;
pub(crate) const ECT0: u8 = 0b10;
pub(crate) const ECT1: u8 = 0b01;

/// The differentiated services codepoint of a base station's negative acknowledgments [S0-40].
pub(crate) const NEGATIVE_ACK: u8 = 0b10_1011;

impl Tcp {
    /// A data segment or pure ACK without options.
    pub(crate) fn new(flow: u16, sender: Port, seq: u32, len: u16, ack: u32) -> Self {
        Self {
            flow,
            ipv6: false,
            sender,
            seq,
            len,
            ack: Some(ack),
            flags: Flags::default(),
            window: 500,
            options: Vec::new(),
            ecn: 0,
            dscp: 0,
            segment_size: None,
            is_other: false,
        }
    }

    /// The sequence number that follows the segment.
    pub(crate) fn end(&self) -> u32 {
        let control = [Flags::SYN, Flags::FIN];
        let control = control.iter().filter(|flag| self.flags.intersects(**flag)).count() as u32;
        self.seq.wrapping_add(u32::from(self.len)).wrapping_add(control)
    }

    /// The bytes on the wire. `id` becomes the IPv4 identification or the IPv6 flow label: two
    /// packets with equal fields still differ, and a copy is told from a rebuilt packet.
    pub(crate) fn packet(&self, id: u16) -> Packet {
        let mut header = self.header();
        let payload = self.payload();
        let tcp_len = header.header_len_u16() + self.len;
        let (fixed, mobile) = ([10, 0, 0, 1], [10, 9, 0, 1]);
        let (source, destination) = match self.sender {
            Port::Wired => (fixed, mobile),
            Port::Air => (mobile, fixed),
        };
        let ecn = IpEcn::try_new(self.ecn).expect("two bits");
        let mut bytes = if self.ipv6 {
            let ip = Ipv6Header {
                traffic_class: ecn.value(),
                flow_label: Ipv6FlowLabel::try_new(u32::from(id)).unwrap(),
                payload_length: tcp_len,
                next_header: IpNumber::TCP,
                hop_limit: 64,
                source: long_address(source),
                destination: long_address(destination),
            };
            header.checksum = header.calc_checksum_ipv6(&ip, &payload).unwrap();
            ip.to_bytes().to_vec()
        } else {
            let mut ip = Ipv4Header::new(tcp_len, 64, IpNumber::TCP, source, destination).unwrap();
            ip.identification = id;
            ip.ecn = ecn;
            ip.header_checksum = ip.calc_header_checksum();
            header.checksum = header.calc_checksum_ipv4(&ip, &payload).unwrap();
            ip.to_bytes().to_vec()
        };
        bytes.extend_from_slice(&header.to_bytes());
        bytes.extend_from_slice(&payload);
        let packet = Packet::new(LinkType::Ip, bytes.into()).with_segment_size(self.segment_size);
        with_codepoint(&packet, self.dscp).expect("an IP packet with TCP")
    }

    /// Whether `packet` is, byte for byte, what its own fields make: every checksum and length
    /// right, and the payload that belongs at its place.
    pub(crate) fn is_intact(packet: &Packet) -> bool {
        let Some(tcp) = Self::read(packet) else { return false };
        let id = if tcp.ipv6 { &packet.bytes()[2..4] } else { &packet.bytes()[4..6] };
        tcp.packet(u16::from_be_bytes([id[0], id[1]])) == *packet
    }

    /// Reads a packet that [`Tcp::packet`] made; none if it is anything else.
    pub(crate) fn read(packet: &Packet) -> Option<Self> {
        let ip = IpSlice::from_slice(packet.bytes()).ok()?;
        let IpPayloadSlice { payload, fragmented: false, ip_number: IpNumber::TCP, .. } =
            ip.payload()
        else {
            return None;
        };
        let tcp = TcpSlice::from_slice(payload).ok()?;
        let (sender, mobile_port) = match tcp.source_port() {
            FIXED_PORT => (Port::Wired, tcp.destination_port()),
            port => (Port::Air, port),
        };
        let ecn = match &ip {
            IpSlice::Ipv4(ip) => ip.header().ecn().value(),
            IpSlice::Ipv6(ip) => ip.header().to_header().traffic_class & CE,
        };
        let dscp = match &ip {
            IpSlice::Ipv4(ip) => ip.header().dcp().value(),
            IpSlice::Ipv6(ip) => ip.header().to_header().traffic_class >> 2,
        };
        let flags = u16::from_be_bytes([tcp.slice()[12], tcp.slice()[13]]) & ALL_FLAGS;
        Some(Self {
            flow: mobile_port.checked_sub(FIRST_MOBILE_PORT)?,
            ipv6: matches!(ip, IpSlice::Ipv6(_)),
            sender,
            seq: tcp.sequence_number(),
            len: u16::try_from(tcp.payload().len()).ok()?,
            ack: tcp.ack().then(|| tcp.acknowledgment_number()),
            flags: Flags(flags & !Flags::ACK.0),
            window: tcp.window_size(),
            options: tcp.options().to_vec(),
            ecn,
            dscp,
            segment_size: packet.segment_size(),
            is_other: false,
        })
    }

    /// The payload that belongs at this place of the stream, or another one.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let first = self.seq.wrapping_add(u32::from(self.flags.intersects(Flags::SYN)));
        (0..u32::from(self.len)).map(|i| self.byte(first.wrapping_add(i))).collect()
    }

    fn byte(&self, seq: u32) -> u8 {
        let stream = u32::from(self.flow) << 1 | u32::from(self.sender == Port::Air);
        let byte = ((seq ^ stream << 7).wrapping_mul(2_654_435_761) >> 24) as u8;
        if self.is_other { !byte } else { byte }
    }

    fn header(&self) -> TcpHeader {
        let mobile_port = FIRST_MOBILE_PORT + self.flow;
        let (source, destination) = match self.sender {
            Port::Wired => (FIXED_PORT, mobile_port),
            Port::Air => (mobile_port, FIXED_PORT),
        };
        let mut header = TcpHeader::new(source, destination, self.seq, self.window);
        header.ack = self.ack.is_some();
        header.acknowledgment_number = self.ack.unwrap_or(0);
        header.fin = self.flags.intersects(Flags::FIN);
        header.syn = self.flags.intersects(Flags::SYN);
        header.rst = self.flags.intersects(Flags::RST);
        header.psh = self.flags.intersects(Flags::PSH);
        header.urg = self.flags.intersects(Flags::URG);
        header.ece = self.flags.intersects(Flags::ECE);
        header.cwr = self.flags.intersects(Flags::CWR);
        header.ns = self.flags.intersects(Flags::AE);
        header.set_options_raw(&self.options).expect("at most 40 bytes of options");
        header
    }
}

/// Packets that no agent can mend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// A UDP datagram.
    Udp,
    /// The second fragment of a TCP packet.
    Fragment,
    /// A TCP header whose data offset points beyond the packet; it has less than 60 bytes.
    Malformed,
    /// Neither IPv4 nor IPv6.
    NotIp,
}

impl Foreign {
    /// The bytes on the wire, with `len` bytes behind the IP header.
    pub(crate) fn packet(self, id: u16, len: u16) -> Packet {
        let len = if self == Self::Malformed { len.min(59) } else { len };
        let protocol = if self == Self::Udp { IpNumber::UDP } else { IpNumber::TCP };
        let mut ip = Ipv4Header::new(len, 64, protocol, [10, 0, 0, 1], [10, 9, 0, 1]).unwrap();
        ip.identification = id;
        if self == Self::Fragment {
            ip.fragment_offset = 185.try_into().unwrap();
        }
        ip.header_checksum = ip.calc_header_checksum();
        let mut bytes = ip.to_bytes().to_vec();
        // 0xff makes a data offset of 60 bytes.
        bytes.resize(bytes.len() + usize::from(len), 0xff);
        if self == Self::NotIp {
            bytes[0] = 0xf0;
        }
        Packet::new(LinkType::Ip, bytes.into())
    }
}

fn long_address(short: [u8; 4]) -> [u8; 16] {
    let mut long = [0; 16];
    long[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
    long[12..].copy_from_slice(&short);
    long
}
