//! A flow's cache: references to packets that the mobile host has not acknowledged [snoop95 §4].

use crate::event::{Cause, Uncached};
use crate::packet::Packet;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;

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

impl CachedPacket {
    pub(super) fn end(&self) -> SeqNumber {
        self.seq + self.len
    }
}

/// Cached packets in the order of their sequence numbers: the paper's circular buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    packets: VecDeque<CachedPacket>,
    captured_bytes: usize,
}

/// The capacity that an empty buffer keeps: enough for a small exchange, little for 100,000 idle
/// flows.
const IDLE_CAPACITY: usize = 4;

impl Cache {
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Bytes of memory that the cache holds: the packets and the buffer itself.
    pub(super) fn memory(&self) -> usize {
        self.captured_bytes + self.packets.capacity() * size_of::<CachedPacket>()
    }

    /// An upper bound of [`Cache::memory`] with this packet: the buffer may have to grow.
    pub(super) fn memory_with(&self, seq: SeqNumber, packet: &Packet) -> usize {
        let full = self.packets.len() == self.packets.capacity();
        let grows = full && self.position(seq).is_err();
        // A full buffer doubles, from no less than four places.
        let places = if grows { self.packets.capacity().max(4) } else { 0 };
        self.memory() + packet.bytes().len() + places * size_of::<CachedPacket>()
    }

    /// Whether there is room: beyond the high-water mark only for packets older than the newest,
    /// whose loss would make the sender time out earlier [S0-36].
    pub(super) fn admits(
        &self,
        newest: bool,
        high_water: usize,
        limit: usize,
    ) -> Result<(), Uncached> {
        let room = if newest { high_water } else { limit };
        if self.packets.len() < room { Ok(()) } else { Err(Uncached::HighWaterMark) }
    }

    /// Adds a packet; it replaces a packet with the same first byte.
    pub(super) fn insert(&mut self, cached: CachedPacket) {
        match self.position(cached.seq) {
            Ok(position) => {
                self.captured_bytes -= self.packets[position].packet.bytes().len();
                self.captured_bytes += cached.packet.bytes().len();
                self.packets[position] = cached;
            }
            Err(position) => {
                self.captured_bytes += cached.packet.bytes().len();
                self.packets.insert(position, cached);
            }
        }
    }

    /// Adds a packet above all others: the common case, which needs no search.
    pub(super) fn append(&mut self, cached: CachedPacket) {
        self.captured_bytes += cached.packet.bytes().len();
        self.packets.push_back(cached);
    }

    /// The packet that begins with this byte.
    pub(super) fn starting_at(&mut self, seq: SeqNumber) -> Option<&mut CachedPacket> {
        // Packets depart soon after they arrive: the newest packet is the most likely one.
        let newest = self.packets.len().checked_sub(1)?;
        let position = match self.packets.get(newest) {
            Some(cached) if cached.seq == seq => newest,
            _ => self.position(seq).ok()?,
        };
        self.packets.get_mut(position)
    }

    /// The packet that holds this byte.
    pub(super) fn holding(&mut self, seq: SeqNumber) -> Option<&mut CachedPacket> {
        let position = self.packets.partition_point(|other| other.seq <= seq);
        let cached = self.packets.get_mut(position.checked_sub(1)?)?;
        (cached.end() > seq).then_some(cached)
    }

    /// The index of the packet with this first byte, or the index at which it would be inserted.
    fn position(&self, seq: SeqNumber) -> Result<usize, usize> {
        self.packets.binary_search_by(|other| other.seq.offset_from(seq).cmp(&0))
    }

    /// The oldest packet.
    pub(super) fn oldest(&mut self) -> Option<&mut CachedPacket> {
        self.packets.front_mut()
    }

    /// Removes the oldest packet if it lies wholly below `ack`.
    pub(super) fn pop_acknowledged(&mut self, ack: SeqNumber) -> Option<CachedPacket> {
        let freed = self.packets.pop_front_if(|cached| cached.end() <= ack)?;
        self.captured_bytes -= freed.packet.bytes().len();
        if self.packets.is_empty() && self.packets.capacity() > IDLE_CAPACITY {
            self.packets.shrink_to(IDLE_CAPACITY);
        }
        Some(freed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use bytes::Bytes;

    fn cached(seq: u32, len: u32) -> CachedPacket {
        CachedPacket {
            seq: SeqNumber(seq),
            len,
            fin: false,
            packet: Packet::new(LinkType::Ip, Bytes::from_static(b"packet")),
            retransmissions: 0,
            sender_retransmitted: false,
            queued: None,
            sent_index: 0,
        }
    }

    #[test]
    fn keeps_order_across_the_wrap_and_frees_from_the_front() {
        let mut cache = Cache::default();
        let base = u32::MAX - 9;
        for seq in [base, base.wrapping_add(20), base.wrapping_add(10)] {
            cache.insert(cached(seq, 10));
        }
        assert_eq!(cache.holding(SeqNumber(base) + 15).map(|c| c.seq), Some(SeqNumber(base) + 10));
        assert!(cache.starting_at(SeqNumber(base) + 15).is_none());
        assert!(cache.holding(SeqNumber(base) + 30).is_none());
        assert!(cache.holding(SeqNumber(base) - 1).is_none());
        let ack = SeqNumber(base) + 25;
        let mut freed = 0;
        while cache.pop_acknowledged(ack).is_some() {
            freed += 1;
        }
        assert_eq!((freed, cache.packets.len()), (2, 1), "a partly acknowledged packet stays");
    }

    #[test]
    fn beyond_the_high_water_mark_only_older_packets_enter() {
        let mut cache = Cache::default();
        for seq in 0..9 {
            cache.insert(cached(seq * 10, 10));
        }
        assert_eq!(cache.admits(true, 9, 10), Err(Uncached::HighWaterMark));
        assert_eq!(cache.admits(false, 9, 10), Ok(()));
        cache.insert(cached(85, 5));
        assert_eq!(cache.admits(false, 9, 10), Err(Uncached::HighWaterMark));
    }

    #[test]
    fn memory_is_what_is_held_and_an_empty_cache_holds_little() {
        let mut cache = Cache::default();
        assert_eq!(cache.memory(), 0);
        for seq in 0..100 {
            cache.insert(cached(seq * 10, 10));
            cache.insert(cached(seq * 10, 10));
        }
        assert!(cache.memory() >= 100 * (size_of::<CachedPacket>() + 6));
        while cache.pop_acknowledged(SeqNumber(1_000)).is_some() {}
        assert!(cache.memory() <= IDLE_CAPACITY * size_of::<CachedPacket>());
    }
}
