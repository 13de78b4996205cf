//! A flow's cache of whole packets: those that the mobile host has not acknowledged, in the order
//! of their sequence numbers.

use crate::packet::Packet;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;

/// The capacity that an empty buffer keeps: enough for a small exchange, little for 100,000 idle
/// flows.
const IDLE_CAPACITY: usize = 4;

/// A cached packet with what its agent notes about it.
pub(super) trait Cacheable {
    /// The sequence number of the first byte.
    fn seq(&self) -> SeqNumber;

    /// The sequence number that follows the packet.
    fn end(&self) -> SeqNumber;

    /// The packet as the sender sent it.
    fn packet(&self) -> &Packet;
}

/// Cached packets in the order of their sequence numbers; no two have the same first byte.
#[derive(Clone, Debug)]
pub(super) struct PacketCache<P> {
    packets: VecDeque<P>,
    captured_bytes: usize,
}

impl<P> Default for PacketCache<P> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), captured_bytes: 0 }
    }
}

impl<P: Cacheable> PacketCache<P> {
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The number of packets.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Bytes of memory that the cache holds: the packets and the buffer itself.
    pub(super) fn memory(&self) -> usize {
        self.captured_bytes + self.packets.capacity() * size_of::<P>()
    }

    /// An upper bound of [`PacketCache::memory`] with this packet: the buffer may have to grow.
    pub(super) fn memory_with(&self, seq: SeqNumber, packet: &Packet) -> usize {
        let full = self.packets.len() == self.packets.capacity();
        let grows = full && self.position(seq).is_err();
        // A full buffer doubles, from no less than four places.
        let places = if grows { self.packets.capacity().max(4) } else { 0 };
        self.memory() + packet.bytes().len() + places * size_of::<P>()
    }

    /// Adds a packet; it replaces a packet with the same first byte.
    pub(super) fn insert(&mut self, cached: P) {
        match self.position(cached.seq()) {
            Ok(position) => {
                self.captured_bytes -= self.packets[position].packet().bytes().len();
                self.captured_bytes += cached.packet().bytes().len();
                self.packets[position] = cached;
            }
            Err(position) => {
                self.captured_bytes += cached.packet().bytes().len();
                self.packets.insert(position, cached);
            }
        }
    }

    /// Adds a packet above all others: the common case, which needs no search.
    pub(super) fn append(&mut self, cached: P) {
        self.captured_bytes += cached.packet().bytes().len();
        self.packets.push_back(cached);
    }

    /// The packet that begins with this byte.
    pub(super) fn starting_at(&mut self, seq: SeqNumber) -> Option<&mut P> {
        // Packets depart soon after they arrive: the newest packet is the most likely one.
        let newest = self.packets.len().checked_sub(1)?;
        let position = match self.packets.get(newest) {
            Some(cached) if cached.seq() == seq => newest,
            _ => self.position(seq).ok()?,
        };
        self.packets.get_mut(position)
    }

    /// The first packet that begins at this byte or above.
    pub(super) fn from(&mut self, seq: SeqNumber) -> Option<&mut P> {
        let position = self.packets.partition_point(|other| other.seq() < seq);
        self.packets.get_mut(position)
    }

    /// The packet that holds this byte.
    pub(super) fn holding(&mut self, seq: SeqNumber) -> Option<&mut P> {
        let position = self.packets.partition_point(|other| other.seq() <= seq);
        let cached = self.packets.get_mut(position.checked_sub(1)?)?;
        (cached.end() > seq).then_some(cached)
    }

    /// The index of the packet with this first byte, or the index at which it would be inserted.
    fn position(&self, seq: SeqNumber) -> Result<usize, usize> {
        self.packets.binary_search_by(|other| other.seq().offset_from(seq).cmp(&0))
    }

    /// The oldest packet.
    pub(super) fn oldest(&mut self) -> Option<&mut P> {
        self.packets.front_mut()
    }

    /// Removes the oldest packet if it lies wholly below `ack`.
    pub(super) fn pop_acknowledged(&mut self, ack: SeqNumber) -> Option<P> {
        let freed = self.packets.pop_front_if(|cached| cached.end() <= ack)?;
        self.captured_bytes -= freed.packet().bytes().len();
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

    struct Cached {
        seq: SeqNumber,
        len: u32,
        packet: Packet,
    }

    impl Cacheable for Cached {
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

    fn cached(seq: u32, len: u32) -> Cached {
        let packet = Packet::new(LinkType::Ip, Bytes::from_static(b"packet"));
        Cached { seq: SeqNumber(seq), len, packet }
    }

    #[test]
    fn keeps_order_across_the_wrap_and_frees_from_the_front() {
        let mut cache = PacketCache::default();
        let base = u32::MAX - 9;
        for seq in [base, base.wrapping_add(20), base.wrapping_add(10)] {
            cache.insert(cached(seq, 10));
        }
        assert_eq!(cache.holding(SeqNumber(base) + 15).map(|c| c.seq), Some(SeqNumber(base) + 10));
        assert!(cache.starting_at(SeqNumber(base) + 15).is_none());
        assert!(cache.holding(SeqNumber(base) + 30).is_none());
        assert!(cache.holding(SeqNumber(base) - 1).is_none());
        assert_eq!(cache.from(SeqNumber(base) + 1).map(|c| c.seq), Some(SeqNumber(base) + 10));
        assert!(cache.from(SeqNumber(base) + 21).is_none());
        let ack = SeqNumber(base) + 25;
        let mut freed = 0;
        while cache.pop_acknowledged(ack).is_some() {
            freed += 1;
        }
        assert_eq!((freed, cache.len()), (2, 1), "a partly acknowledged packet stays");
    }

    #[test]
    fn memory_is_what_is_held_and_an_empty_cache_holds_little() {
        let mut cache = PacketCache::default();
        assert_eq!(cache.memory(), 0);
        for seq in 0..100 {
            cache.insert(cached(seq * 10, 10));
            cache.insert(cached(seq * 10, 10));
        }
        assert!(cache.memory() >= 100 * (size_of::<Cached>() + 6));
        while cache.pop_acknowledged(SeqNumber(1_000)).is_some() {}
        assert!(cache.memory() <= IDLE_CAPACITY * size_of::<Cached>());
    }
}
