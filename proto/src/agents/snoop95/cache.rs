//! A flow's cache: references to packets that the mobile host has not acknowledged [snoop95 §4].

use crate::agents::packet_cache::{Cacheable, PacketCache};
use crate::event::{Cause, Uncached};
use crate::packet::Packet;
use crate::wire::seq::SeqNumber;

/// The counter of what the sender resent while it was cached [S0-65].
pub(super) const RESENT_CACHED: &str = "resent_cached";

/// A cached packet, identified by its first byte and size [snoop95 §3.1.1, S0-06].
#[derive(Clone, Debug)]
pub(super) struct CachedPacket {
    /// The sequence number of the first byte.
    pub(super) seq: SeqNumber,
    /// The length in sequence space.
    pub(super) len: u32,
    /// Whether the packet carries the sender's FIN.
    pub(super) fin: bool,
    /// The packet as the sender sent it, by reference [S0-35].
    pub(super) packet: Packet,
    /// Local retransmissions since the packet last arrived from the sender [S0-14].
    pub(super) retransmissions: u32,
    /// Whether the sender retransmitted the packet: the sender then counts duplicate ACKs itself
    /// [S0-13].
    pub(super) sender_retransmitted: bool,
    /// The cause of a queued retransmission, if one is queued.
    pub(super) queued: Option<Cause>,
    /// The number of packets of the flow that had departed when this one last did.
    pub(super) sent_index: u32,
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

/// The paper's circular buffer.
pub(super) type Cache = PacketCache<CachedPacket>;

/// Whether a cache of `len` packets has room: beyond the high-water mark only for packets older
/// than the newest, whose loss would make the sender time out earlier [S0-36].
pub(super) fn admits(
    len: usize,
    newest: bool,
    high_water: usize,
    limit: usize,
) -> Result<(), Uncached> {
    let room = if newest { high_water } else { limit };
    if len < room { Ok(()) } else { Err(Uncached::HighWaterMark) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_high_water_mark_only_older_packets_enter() {
        assert_eq!(admits(8, true, 9, 10), Ok(()));
        assert_eq!(admits(9, true, 9, 10), Err(Uncached::HighWaterMark));
        assert_eq!(admits(9, false, 9, 10), Ok(()));
        assert_eq!(admits(10, false, 9, 10), Err(Uncached::HighWaterMark));
    }
}
