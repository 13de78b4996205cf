//! A packet: reference-counted bytes, so that an agent's cache holds references and copies nothing.

use crate::ecn::Ecn;
use bytes::Bytes;
use core::num::NonZeroU16;

/// The header with which a packet begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// An Ethernet header, perhaps with VLAN tags.
    Ethernet,
    /// An IPv4 or IPv6 header (TUN devices, the simulator).
    Ip,
    /// A frame of a link protocol, in the format of the agents at both ends of the link.
    Frame,
}

/// A packet as it crosses a gateway.
///
/// As in pcap, a packet may be captured shorter than it is on the wire: the simulator carries
/// headers only, and a capture may be cut by its snap length. Cloning shares the bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    captured: Bytes,
    wire_len: u32,
    link_type: LinkType,
    segment_size: Option<NonZeroU16>,
    outer_ecn: Ecn,
}

impl Packet {
    /// A packet that was captured whole.
    pub fn new(link_type: LinkType, captured: Bytes) -> Self {
        let wire_len = u32::try_from(captured.len()).unwrap_or(u32::MAX);
        Self { captured, wire_len, link_type, segment_size: None, outer_ecn: Ecn::NotEct }
    }

    /// A packet of `wire_len` bytes of which only `captured` was captured.
    ///
    /// The wire length is never less than what was captured.
    pub fn truncated(link_type: LinkType, captured: Bytes, wire_len: u32) -> Self {
        let whole = Self::new(link_type, captured);
        Self { wire_len: whole.wire_len.max(wire_len), ..whole }
    }

    /// The same packet, marked as a super-packet of segments with `segment_size` payload bytes.
    pub fn with_segment_size(self, segment_size: Option<NonZeroU16>) -> Self {
        Self { segment_size, ..self }
    }

    /// The same frame in an IP packet with this ECN field.
    pub fn with_outer_ecn(self, outer_ecn: Ecn) -> Self {
        Self { outer_ecn, ..self }
    }

    /// The same packet with a buffer of its own: a packet that waits then keeps no larger buffer in
    /// memory, which it shared with others.
    pub fn with_own_buffer(&self) -> Self {
        Self { captured: Bytes::copy_from_slice(&self.captured), ..*self }
    }

    /// The captured bytes, from the link layer's first byte on.
    pub fn bytes(&self) -> &[u8] {
        &self.captured
    }

    /// The captured bytes as a shared buffer.
    pub fn shared_bytes(&self) -> Bytes {
        self.captured.clone()
    }

    /// Length on the wire, in bytes.
    pub fn wire_len(&self) -> u32 {
        self.wire_len
    }

    /// Length on the wire, in bits.
    pub fn wire_bits(&self) -> u64 {
        u64::from(self.wire_len) * 8
    }

    /// The header with which the packet begins.
    pub fn link_type(&self) -> LinkType {
        self.link_type
    }

    /// Payload bytes per segment, if segmentation offload made this a super-packet.
    pub fn segment_size(&self) -> Option<NonZeroU16> {
        self.segment_size
    }

    /// The ECN field of the IP packet that carries a frame of a link protocol from one end to the
    /// other; not-ECT where none does.
    pub fn outer_ecn(&self) -> Ecn {
        self.outer_ecn
    }
}
