//! The TCP view of a packet.

use crate::packet::Packet;
use crate::wire::seq::SeqNumber;
use core::fmt;

/// Why a packet is nothing that an agent could mend. It passes untouched and is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bypass {
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// An IP packet that carries something else, or TCP hidden by encryption.
    NotTcp,
    /// An IP fragment: its TCP header may be elsewhere.
    Fragment,
    /// Captured too short to hold the headers it announces.
    Truncated,
    /// Lengths or offsets that contradict each other.
    Malformed,
}

impl Bypass {
    /// The name under which runs count it; stable.
    pub fn counter(self) -> &'static str {
        match self {
            Self::NotIp => "bypassed_not_ip",
            Self::NotTcp => "bypassed_not_tcp",
            Self::Fragment => "bypassed_fragments",
            Self::Truncated => "bypassed_truncated",
            Self::Malformed => "bypassed_malformed",
        }
    }
}

impl fmt::Display for Bypass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotIp => "not IP",
            Self::NotTcp => "not TCP",
            Self::Fragment => "an IP fragment",
            Self::Truncated => "captured too short",
            Self::Malformed => "malformed",
        })
    }
}

/// One end of a connection. IPv4 addresses are held IPv4-mapped (RFC 4291 §2.5.5.2), so that a
/// flow key is plain bytes that hash and compare fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The address, IPv6 or IPv4-mapped.
    pub address: [u8; 16],
    /// The port.
    pub port: u16,
}

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

    /// Whether any of `flags` is set.
    pub const fn intersects(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }

    /// Both sets together.
    pub const fn union(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }
}

/// RFC 7323 timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamps {
    /// TSval, the sender's clock.
    pub value: u32,
    /// TSecr, the peer's clock echoed.
    pub echo: u32,
}

/// Up to four SACK blocks (RFC 2018 §3): as many as fit into a header's 40 bytes of options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(SeqNumber, SeqNumber); 4],
    count: u8,
}

impl SackBlocks {
    /// The blocks in the order of the option, each from its left edge to beyond its right edge.
    pub fn as_slice(&self) -> &[(SeqNumber, SeqNumber)] {
        self.blocks.get(..usize::from(self.count)).unwrap_or(&[])
    }

    /// Adds a block; a fifth one does not fit and is ignored.
    pub fn push(&mut self, left: SeqNumber, right: SeqNumber) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = (left, right);
            self.count += 1;
        }
    }
}

/// The options that matter to an agent; all others are skipped by their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale shift, at most 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (on SYN segments).
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgments.
    pub sack: SackBlocks,
    /// TCP-AO or MD5 signs the header: it may be dropped or passed, never edited.
    pub signed: bool,
}

/// A TCP segment: every field by value, and where the layers begin in the captured bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Who sent it.
    pub source: Endpoint,
    /// Whom it is for.
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
        self.payload_len
            + u32::from(self.flags.intersects(Flags::SYN))
            + u32::from(self.flags.intersects(Flags::FIN))
    }

    /// The sequence number that follows the segment.
    pub fn end(&self) -> SeqNumber {
        self.seq + self.seq_len()
    }

    /// Reads the headers of a packet.
    pub fn parse(_packet: &Packet) -> Result<Self, Bypass> {
        Err(Bypass::Malformed)
    }
}
