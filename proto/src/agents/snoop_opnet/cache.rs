//! The cached packets of a flow: copies of the packets that the receiver has not acknowledged
//! [snoop-opnet §3.5; S3-04].

use crate::agents::packet_cache::{Cacheable, PacketCache};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;

/// A cached packet.
#[derive(Clone, Debug)]
pub(super) struct CachedPacket {
    /// The sequence number of the first byte.
    pub(super) seq: SeqNumber,
    /// The length in sequence space.
    pub(super) len: u32,
    /// Local retransmissions since the packet last came from the sender.
    pub(super) attempts: u32,
    /// When the packet departed first; `None` if the sender has sent it more than once.
    pub(super) sent_at: Option<Instant>,
    /// The packet as the sender sent it, by reference.
    pub(super) packet: Packet,
}

impl Cacheable for CachedPacket {
    fn seq(&self) -> SeqNumber {
        self.seq
    }

    fn end(&self) -> SeqNumber {
        self.seq + self.len
    }

    fn packet(&self) -> &Packet {
        &self.packet
    }
}

impl CachedPacket {
    /// When the packet departed, if that was once: the ACK of it is not ambiguous [Karn].
    pub(super) fn departed_once(&self) -> Option<Instant> {
        self.sent_at.filter(|_| self.attempts == 0)
    }
}

/// The cached packets of a flow.
pub(super) type Cache = PacketCache<CachedPacket>;
