//! A packet in the egress queue of a link.

use super::classes::Class;
use crate::packet::Packet;
use crate::time::Instant;

/// A queued packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Queued {
    pub(crate) packet: Packet,
    pub(crate) class: Class,
    pub(crate) flow: usize,
    /// In FIFOs: whether it does not wait behind a bulk transfer.
    pub(super) is_urgent: bool,
    /// Whether packets of its flow behind it wait for it.
    pub(crate) is_waited_for: bool,
    /// When a packet with bounded persistence is given up, if it was sent before.
    pub(crate) expires: Option<Instant>,
    /// The identity by which a retransmission of the host is recognized; 0 for none.
    pub(crate) identity: u64,
    /// When it joined the queue.
    pub(crate) since: Instant,
    /// The number of priority packets that must be sent before this packet: those of its flow, and
    /// perhaps others.
    pub(super) after_priority: u64,
}

/// The longest short packet, in bytes: a DNS message without extensions (RFC 1035 §4.2.1), and
/// voice.
const SHORT: u32 = 560;

impl Queued {
    pub(crate) fn new(packet: Packet, class: Class, flow: usize) -> Self {
        let (since, after_priority) = (Instant::ZERO, 0);
        let is_urgent = class == Class::Unreliable;
        Self {
            packet,
            class,
            flow,
            is_urgent,
            is_waited_for: true,
            expires: None,
            identity: 0,
            since,
            after_priority,
        }
    }

    /// The same, urgent also if it is short and its persistence is bounded.
    pub(crate) fn urgent_if_short(self) -> Self {
        let is_short = self.packet.wire_len() <= SHORT;
        let is_bounded = matches!(self.class, Class::Bounded(_));
        Self { is_urgent: self.is_urgent || is_short && is_bounded, ..self }
    }

    /// Whether it does not wait behind a bulk transfer.
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// Whether it takes a place in the window.
    pub(super) fn needs_room(&self) -> bool {
        self.class != Class::Unreliable
    }
}
