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

impl Queued {
    pub(crate) fn new(packet: Packet, class: Class, flow: usize) -> Self {
        let (since, after_priority) = (Instant::ZERO, 0);
        Self { packet, class, flow, expires: None, identity: 0, since, after_priority }
    }
}
