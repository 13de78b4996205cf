//! The TCP view of a packet.

use crate::packet::Packet;
pub use crate::wire::bypass::Bypass;
use crate::wire::chunk;
pub use crate::wire::endpoint::Endpoint;
use crate::wire::ip::Network;
pub use crate::wire::options::{Options, SackBlocks, Timestamps};
use crate::wire::seq::SeqNumber;

/// Length of a TCP header without options.
pub(crate) const HEADER_LEN: usize = 20;

/// The control bits of a TCP header (RFC 9293 §3.1, RFC 3168, RFC 9768).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x001);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x002);
    /// Reset the connection.
    pub const RST: Self = Self(0x004);
    /// Push function.
    pub const PSH: Self = Self(0x008);
    /// The acknowledgment number is valid.
    pub const ACK: Self = Self(0x010);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x020);
    /// ECN echo.
    pub const ECE: Self = Self(0x040);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x080);
    /// Accurate ECN.
    pub const AE: Self = Self(0x100);
    /// The bits above; three more are reserved.
    pub(super) const ALL: u16 = 0x1ff;

    /// Sequence space that the flags take: one each for SYN and FIN (RFC 9293 §3.4).
    pub(crate) fn seq_len(self) -> u32 {
        u32::from(self.intersects(Self::SYN)) + u32::from(self.intersects(Self::FIN))
    }

    /// Whether any of `flags` is set.
    pub const fn intersects(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }

    /// Both sets together.
    pub const fn union(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }
}

/// A TCP segment: every field by value, and where the layers begin in the captured bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The source.
    pub source: Endpoint,
    /// The destination.
    pub destination: Endpoint,
    /// Sequence number of the first byte.
    pub seq: SeqNumber,
    /// Acknowledgment number; meaningful only with [`Flags::ACK`].
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// The window as it stands in the header, unscaled.
    pub window: u16,
    /// Payload bytes on the wire, whatever was captured of them.
    pub payload_len: u32,
    /// Options.
    pub options: Options,
    /// Offset of the IP header, in bytes from the first captured byte.
    pub network_offset: u16,
    /// Offset of the TCP header.
    pub transport_offset: u16,
    /// Offset of the payload.
    pub payload_offset: u16,
}

impl Segment {
    /// Sequence space that the segment takes: payload, SYN and FIN (RFC 9293 §3.4).
    pub fn seq_len(&self) -> u32 {
        self.payload_len + self.flags.seq_len()
    }

    /// The sequence number that follows the segment.
    pub fn end(&self) -> SeqNumber {
        self.seq + self.seq_len()
    }

    /// Whether it is an acknowledgment and nothing else: ACK without payload, SYN, FIN or RST.
    pub fn is_pure_ack(&self) -> bool {
        self.payload_len == 0
            && self.flags.intersects(Flags::ACK)
            && !self.flags.intersects(Flags::SYN.union(Flags::FIN).union(Flags::RST))
    }

    /// Reads the headers of a packet. All of them must have been captured; the payload need not.
    ///
    /// The checksum is not looked at: that is the receiver's right, and offload may leave it open.
    pub fn parse(packet: &Packet) -> Result<Self, Bypass> {
        let network = Network::parse(packet)?;
        if network.transport_len < HEADER_LEN as u32 {
            return Err(Bypass::Malformed);
        }
        let transport = usize::from(network.transport_offset);
        let header: &[u8; HEADER_LEN] = chunk(packet.bytes(), transport)?;
        let &[s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, f0, f1, w0, w1, ..] = header;
        let header_len = usize::from(f0 >> 4) * 4;
        if header_len < HEADER_LEN || header_len as u32 > network.transport_len {
            return Err(Bypass::Malformed);
        }
        let payload = transport + header_len;
        let options =
            packet.bytes().get(transport + HEADER_LEN..payload).ok_or(Bypass::Truncated)?;
        let source_port = u16::from_be_bytes([s0, s1]);
        let destination_port = u16::from_be_bytes([d0, d1]);
        Ok(Self {
            source: Endpoint { address: network.source, port: source_port },
            destination: Endpoint { address: network.destination, port: destination_port },
            seq: SeqNumber(u32::from_be_bytes([q0, q1, q2, q3])),
            ack: SeqNumber(u32::from_be_bytes([a0, a1, a2, a3])),
            flags: Flags(u16::from_be_bytes([f0, f1]) & Flags::ALL),
            window: u16::from_be_bytes([w0, w1]),
            payload_len: network.transport_len - header_len as u32,
            options: Options::parse(options),
            network_offset: network.offset,
            transport_offset: network.transport_offset,
            payload_offset: payload as u16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;

    fn builder() -> SegmentBuilder<'static> {
        SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 1, 2], 5000))
    }

    fn parse(builder: SegmentBuilder<'_>) -> Segment {
        Segment::parse(&builder.build(LinkType::Ip)).unwrap()
    }

    /// What a packet parses to after one byte of its TCP header was replaced.
    fn with_byte(at: usize, value: u8) -> Result<Segment, Bypass> {
        let packet = builder().payload(&[0; 8]).build(LinkType::Ip);
        let mut bytes = packet.bytes().to_vec();
        bytes[20 + at] = value;
        Segment::parse(&Packet::new(LinkType::Ip, bytes.into()))
    }

    #[test]
    fn the_data_offset_stays_within_the_packet() {
        assert_eq!(with_byte(12, 4 << 4), Err(Bypass::Malformed));
        assert_eq!(with_byte(12, 7 << 4).unwrap().payload_len, 0);
        assert_eq!(with_byte(12, 8 << 4), Err(Bypass::Malformed));
    }

    #[test]
    fn nine_flags_are_kept_and_the_reserved_bits_are_not() {
        assert_eq!(with_byte(12, 0x5f).unwrap().flags, Flags::AE);
        assert_eq!(with_byte(13, 0xff).unwrap().flags, Flags(0xff));
    }

    #[test]
    fn syn_and_fin_take_sequence_space() {
        let seq = SeqNumber(u32::MAX);
        assert_eq!(parse(builder().seq(seq).flags(Flags::SYN)).end(), SeqNumber(0));
        assert_eq!(parse(builder().seq(seq).payload(b"ab").flags(Flags::FIN)).end(), SeqNumber(2));
        assert_eq!(parse(builder().seq(seq).flags(Flags::RST)).end(), seq);
    }

    #[test]
    fn a_pure_ack_says_nothing_else() {
        let ack = builder().ack(SeqNumber(7));
        assert!(parse(ack).is_pure_ack());
        assert!(parse(ack.flags(Flags::ECE)).is_pure_ack());
        assert!(!parse(builder()).is_pure_ack());
        assert!(!parse(ack.payload_len(1)).is_pure_ack());
        for flag in [Flags::SYN, Flags::FIN, Flags::RST] {
            assert!(!parse(ack.flags(flag)).is_pure_ack());
        }
    }

    #[test]
    fn every_cut_through_the_headers_is_truncated() {
        let options = Options { mss: Some(1460), sack_permitted: true, ..Options::default() };
        let whole = builder().options(options).payload_len(1000).vlan(5).build(LinkType::Ethernet);
        let headers = whole.bytes().len();
        for cut in 0..headers {
            let bytes = whole.shared_bytes().slice(..cut);
            let packet = Packet::truncated(LinkType::Ethernet, bytes, whole.wire_len());
            assert_eq!(Segment::parse(&packet), Err(Bypass::Truncated), "{cut} of {headers}");
        }
        assert_eq!(Segment::parse(&whole).unwrap().payload_len, 1000);
    }
}
