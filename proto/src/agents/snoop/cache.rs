//! What the mobile host has not acknowledged: byte ranges that refer to the packets they came in.

use crate::packet::Packet;
use crate::time::Instant;
use alloc::collections::VecDeque;

/// When and as which of its flow's transmissions something went on the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// When.
    pub(super) at: Instant,
    /// Counts the flow's transmissions; on a link that keeps order, what has a lower number and
    /// did not arrive when a higher one did is lost.
    pub(super) order: u64,
}

/// A range of the stream and the packet that holds it.
///
/// Positions are sequence numbers continued to 64 bits, so that nothing here wraps.
#[derive(Clone, Debug)]
pub(super) struct Cached {
    /// Its first position.
    pub(super) start: u64,
    /// The position behind its last one.
    pub(super) end: u64,
    /// The position of its packet's first byte.
    pub(super) origin: u64,
    /// The very bytes that the sender sent: a reference, not a copy. A super-packet holds more than
    /// this range once the range was split.
    pub(super) packet: Packet,
    /// Its last transmission.
    pub(super) sent: Sent,
    /// Its first transmission.
    pub(super) first: Sent,
    /// A retransmission of it waits for the air.
    pub(super) is_queued: bool,
    /// How often it was retransmitted locally.
    pub(super) attempts: u32,
    /// The sender sent it again, or has to: it is told everything about it [C-10].
    pub(super) resent: bool,
    /// Since when something sent later is known to have arrived without it.
    pub(super) missing_since: Option<Instant>,
}

impl Cached {
    /// Whether its acknowledgment leaves open which transmission arrived.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.attempts > 0 || self.resent
    }

    /// The transmission that an acknowledgment proves to have arrived. One that was sent again
    /// although nothing told of its loss, by a probe or by the sender, may have been late only:
    /// then what was sent after its first transmission may be on its way still.
    pub(super) fn proven(&self) -> Sent {
        if self.is_ambiguous() && self.missing_since.is_none() { self.first } else { self.sent }
    }

    /// How many of its flow's transmissions it takes: a super-packet's segments leave one by one.
    pub(super) fn segments(&self) -> u64 {
        let size = segment_size(&self.packet);
        (self.end - self.origin).div_ceil(size) - (self.start - self.origin) / size
    }

    /// It goes on the air again, as the next of its flow's `transmissions`.
    pub(super) fn depart(&mut self, now: Instant, transmissions: &mut u64) {
        self.is_queued = false;
        self.sent = Sent { at: now, order: *transmissions + 1 };
        *transmissions += self.segments();
    }
}

/// The ranges of one flow in the order of the stream, without overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    ranges: VecDeque<Cached>,
    /// Into how many ranges they may yet be split: the buffer has room for all of them.
    segments: usize,
    captured_bytes: usize,
}

/// Places that an empty buffer keeps: enough for a small exchange, little for 100,000 idle flows.
const IDLE_CAPACITY: usize = 4;

impl Cache {
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes of memory that the cache holds: the packets and the buffer itself.
    pub(super) fn memory(&self) -> usize {
        self.captured_bytes + self.ranges.capacity() * size_of::<Cached>()
    }

    /// What [`Cache::memory`] grows by at most with this packet: the buffer may have to double.
    pub(super) fn growth(&self, cached: &Cached) -> usize {
        let capacity = self.ranges.capacity();
        let missing = (self.segments + cached.segments() as usize).saturating_sub(capacity);
        let places = if missing == 0 { 0 } else { missing.max(capacity).max(IDLE_CAPACITY) };
        cached.packet.bytes().len() + places * size_of::<Cached>()
    }

    /// Adds a range in its place. It must not overlap with another.
    pub(super) fn insert(&mut self, cached: Cached) {
        self.captured_bytes += cached.packet.bytes().len();
        self.segments += cached.segments() as usize;
        self.ranges.reserve(self.segments - self.ranges.len());
        match self.ranges.back() {
            Some(last) if last.end > cached.start => {
                self.ranges.insert(self.first_beyond(cached.start), cached);
            }
            _ => self.ranges.push_back(cached),
        }
    }

    /// The index of the first range that reaches beyond `position`.
    pub(super) fn first_beyond(&self, position: u64) -> usize {
        // Packets leave soon after they came: the newest is the likeliest to be asked for.
        let newest = self.ranges.len().saturating_sub(1);
        match self.ranges.get(newest) {
            Some(last) if last.start <= position && position < last.end => newest,
            _ => self.ranges.partition_point(|cached| cached.end <= position),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&Cached> {
        self.ranges.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Cached> {
        self.ranges.get_mut(index)
    }

    /// The ranges that overlap with `start..end`.
    pub(super) fn overlapping(
        &mut self,
        start: u64,
        end: u64,
    ) -> impl Iterator<Item = &mut Cached> {
        let first = self.first_beyond(start);
        self.ranges.range_mut(first..).take_while(move |cached| cached.start < end)
    }

    /// Takes out the first range if it lies wholly below `ack`.
    pub(super) fn pop_acknowledged(&mut self, ack: u64) -> Option<Cached> {
        let freed = self.ranges.pop_front_if(|cached| cached.end <= ack)?;
        self.segments -= freed.segments() as usize;
        // The ranges of one super-packet lie side by side, and share its bytes.
        let shares = |next: &Cached| {
            freed.packet.segment_size().is_some()
                && next.packet.bytes().as_ptr() == freed.packet.bytes().as_ptr()
        };
        if !self.ranges.front().is_some_and(shares) {
            self.captured_bytes -= freed.packet.bytes().len();
        }
        if self.ranges.is_empty() && self.ranges.capacity() > IDLE_CAPACITY {
            self.ranges.shrink_to(IDLE_CAPACITY);
        }
        Some(freed)
    }

    /// Cuts the range around `position` in two, if one is there. Super-packets only are cut, and
    /// between segments only: more than a segment's part the mobile cannot miss, and a hostile one
    /// cannot make crumbs of the cache.
    pub(super) fn split(&mut self, position: u64) {
        let index = self.first_beyond(position);
        let Some(cached) = self.ranges.get_mut(index) else { return };
        let size = segment_size(&cached.packet);
        if position <= cached.start || !(position - cached.origin).is_multiple_of(size) {
            return;
        }
        let mut tail = cached.clone();
        let segments_before =
            (position - cached.origin) / size - (cached.start - cached.origin) / size;
        cached.end = position;
        tail.start = position;
        tail.sent.order += segments_before;
        tail.first.order += segments_before;
        self.ranges.insert(index + 1, tail);
    }
}

/// Bytes of each of its segments; without end for a packet that is one.
fn segment_size(packet: &Packet) -> u64 {
    packet.segment_size().map_or(u64::MAX, |size| size.get().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use bytes::Bytes;
    use core::num::NonZeroU16;

    fn cached(start: u64, end: u64) -> Cached {
        Cached {
            start,
            end,
            origin: start,
            packet: Packet::new(LinkType::Ip, Bytes::from_static(b"packet")),
            sent: Sent::default(),
            first: Sent::default(),
            is_queued: false,
            attempts: 0,
            resent: false,
            missing_since: None,
        }
    }

    fn bounds(cache: &Cache) -> Vec<(u64, u64)> {
        cache.ranges.iter().map(|cached| (cached.start, cached.end)).collect()
    }

    use alloc::{vec, vec::Vec};

    #[test]
    fn late_ranges_find_their_place_and_the_acknowledged_are_freed() {
        let mut cache = Cache::default();
        for start in [100, 300, 200, 400] {
            cache.insert(cached(start, start + 100));
        }
        assert_eq!(bounds(&cache), [(100, 200), (200, 300), (300, 400), (400, 500)]);
        assert_eq!(cache.overlapping(250, 301).map(|c| c.start).collect::<Vec<_>>(), [200, 300]);
        assert_eq!((cache.first_beyond(499), cache.first_beyond(500)), (3, 4));
        let mut freed = 0;
        while cache.pop_acknowledged(350).is_some() {
            freed += 1;
        }
        assert_eq!((freed, cache.len()), (2, 2), "a partly acknowledged packet stays");
    }

    #[test]
    fn only_super_packets_are_split() {
        let mut cache = Cache::default();
        cache.insert(cached(0, 100));
        let large = cached(100, 500);
        let packet = large.packet.clone().with_segment_size(NonZeroU16::new(100));
        cache.insert(Cached { packet, ..large });
        for position in [50, 200, 200, 250, 400, 500, 700] {
            cache.split(position);
        }
        assert_eq!(bounds(&cache), [(0, 100), (100, 200), (200, 400), (400, 500)]);
    }

    #[test]
    fn the_parts_of_a_super_packet_share_its_bytes_and_leave_one_by_one() {
        let mut cache = Cache::default();
        let large = cached(0, 350);
        let packet = Packet::new(LinkType::Ip, Bytes::from(vec![0; 390]));
        let packet = packet.with_segment_size(NonZeroU16::new(100));
        let sent = Sent { order: 7, ..Sent::default() };
        cache.insert(Cached { packet, sent, ..large });
        cache.split(200);
        cache.split(300);
        let orders: Vec<_> = cache.ranges.iter().map(|c| (c.sent.order, c.segments())).collect();
        assert_eq!(orders, [(7, 2), (9, 1), (10, 1)]);
        assert_eq!(cache.captured_bytes, 390);
        assert!(cache.pop_acknowledged(300).is_some() && cache.pop_acknowledged(300).is_some());
        assert_eq!(cache.captured_bytes, 390, "a part holds the whole");
        assert!(cache.pop_acknowledged(350).is_some());
        assert_eq!(cache.captured_bytes, 0);
    }

    #[test]
    fn memory_is_what_is_held_and_an_empty_cache_holds_little() {
        let mut cache = Cache::default();
        assert_eq!(cache.memory(), 0);
        for start in 0..100 {
            let range = cached(start * 10, start * 10 + 10);
            let allowed = cache.memory() + cache.growth(&range);
            cache.insert(range);
            assert!(cache.memory() <= allowed);
        }
        assert!(cache.memory() >= 100 * (size_of::<Cached>() + 6));
        while cache.pop_acknowledged(1_000).is_some() {}
        let large = cached(1_000, 9_000);
        let packet = large.packet.clone().with_segment_size(NonZeroU16::new(100));
        let large = Cached { packet, ..large };
        let allowed = cache.memory() + cache.growth(&large);
        cache.insert(large);
        (1_000..9_000).for_each(|position| cache.split(position));
        assert_eq!(cache.len(), 80);
        assert!(cache.memory() <= allowed, "the parts have their places from the beginning");
        while cache.pop_acknowledged(9_000).is_some() {}
        assert!(cache.memory() <= IDLE_CAPACITY * size_of::<Cached>());
    }
}
