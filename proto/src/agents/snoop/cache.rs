//! The cache of unacknowledged data: byte ranges that refer to the packets in which they arrived.

use super::flight::{Flight, IDLE_CAPACITY, Transmission};
use crate::packet::Packet;
use crate::ranges::Span;
use crate::rare::{Empty, Rare};
use crate::time::Instant;
use alloc::collections::VecDeque;

/// A transmission on the air: its time, and its number within the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// The time of the transmission.
    pub(super) at: Instant,
    /// The number of the transmission within the flow. On a link that keeps order, a transmission
    /// is lost if one with a higher number has arrived and it has not.
    pub(super) order: u64,
}

impl Sent {
    /// Before all transmissions.
    pub(super) const NONE: Self = Self { at: Instant::ZERO, order: 0 };
}

/// A range of the stream and the packet that holds it.
///
/// Positions are sequence numbers continued to 64 bits, so that nothing here wraps.
#[derive(Clone, Debug)]
pub(super) struct Cached {
    /// The first position.
    pub(super) start: u64,
    /// The position behind the last one.
    pub(super) end: u64,
    /// The position of the packet's first byte.
    pub(super) origin: u64,
    /// The packet as the sender sent it, by reference. A super-packet holds more than this range
    /// once the range has been split.
    pub(super) packet: Packet,
    /// The last transmission.
    pub(super) sent: Sent,
    pub(super) trouble: Rare<Trouble>,
}

/// What happens to a range beside its first transmission. Few ranges have any of it.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    /// Whether the last transmission is not the first one of its data, in the order of the stream.
    pub(super) is_sent_again: bool,
    /// The earliest transmission that may still arrive, if that is not the last one: it was not
    /// known to be overtaken when that departed.
    pub(super) earliest: Option<Sent>,
    /// Whether a retransmission waits in a queue.
    pub(super) is_queued: bool,
    /// The number of local retransmissions.
    pub(super) attempts: u32,
    /// Whether the sender has retransmitted the range, or must: its loss is not masked [C-10].
    pub(super) resent: bool,
    /// Whether the loss of the last transmission counts as congestion: the loss is neither repaired
    /// nor masked [C-22].
    pub(super) is_congestion: bool,
    /// Whether the sender sent other bytes for the same positions: the range is neither repaired
    /// nor masked [C-24].
    pub(super) is_disputed: bool,
    /// When the range was first found missing: a later transmission had arrived and it had not.
    pub(super) missing_since: Option<Instant>,
}

impl Empty for Trouble {
    const EMPTY: &'static Self = &Self {
        is_sent_again: false,
        earliest: None,
        is_queued: false,
        attempts: 0,
        resent: false,
        is_congestion: false,
        is_disputed: false,
        missing_since: None,
    };
}

impl Cached {
    /// The range.
    pub(super) fn span(&self) -> Span {
        Span { start: self.start, end: self.end }
    }

    /// Whether the acknowledgment is ambiguous: there was more than one transmission.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.trouble.attempts > 0 || self.trouble.resent
    }

    /// The transmission that an acknowledgment proves to have arrived: the earliest one that is not
    /// known to be overtaken. `delivered` is the newest transmission known to have arrived. A later
    /// copy, the sender's or a probe, may still be in flight, and all that was sent between too.
    pub(super) fn proven(&self, delivered: u64) -> Sent {
        self.trouble.earliest.filter(|earliest| earliest.order >= delivered).unwrap_or(self.sent)
    }

    /// The number of transmissions that the range counts as: one for each segment of a
    /// super-packet.
    pub(super) fn segments(&self) -> u64 {
        self.segments_from(self.start)
    }

    /// The number of segments from that of `position` to the last one.
    pub(super) fn segments_from(&self, position: u64) -> u64 {
        if self.packet.segment_size().is_none() {
            return 1;
        }
        let size = segment_size(&self.packet);
        (self.end - self.origin).div_ceil(size) - position.saturating_sub(self.origin) / size
    }

    /// The position behind the segment that holds `position`.
    pub(super) fn segment_end(&self, position: u64) -> u64 {
        let size = segment_size(&self.packet);
        let rest = size - (position - self.origin) % size;
        position.saturating_add(rest).min(self.end)
    }

    /// The position at which the last segment begins.
    pub(super) fn last_segment(&self) -> u64 {
        let size = segment_size(&self.packet);
        (self.end - 1 - (self.end - 1 - self.origin) % size).max(self.start)
    }

    /// The number of the transmission of the segment that holds `position`.
    pub(super) fn order_at(&self, position: u64) -> u64 {
        let size = segment_size(&self.packet);
        self.sent.order + (position - self.origin) / size - (self.start - self.origin) / size
    }

    /// Whether a loss of the last transmission is still to be judged: no retransmission waits, and
    /// the range is not left to the sender.
    pub(super) fn is_open(&self) -> bool {
        let Trouble { is_queued, is_congestion, is_disputed, .. } = *self.trouble;
        !is_queued && !is_congestion && !is_disputed
    }

    /// Notes the first transmission, as the next one in `flight`.
    pub(super) fn depart_first(&mut self, now: Instant, flight: &mut Flight) {
        let order = match self.trouble.is_sent_again {
            true => flight.depart(self.span(), self.segments()),
            false => flight.number(self.segments()),
        };
        self.sent = Sent { at: now, order };
    }

    /// Notes a retransmission, as the next one in `flight`.
    pub(super) fn depart(&mut self, now: Instant, delivered: u64, flight: &mut Flight) {
        let earliest = Some(self.proven(delivered)).filter(|sent| sent.order >= delivered);
        self.sent = Sent { at: now, order: flight.depart(self.span(), self.segments()) };
        let trouble = &mut *self.trouble;
        trouble.is_sent_again = true;
        trouble.earliest = earliest;
        trouble.is_queued = false;
        trouble.is_congestion = false;
    }

    /// No retransmission waits any more.
    pub(super) fn unqueue(&mut self) {
        if let Some(trouble) = self.trouble.there() {
            trouble.is_queued = false;
        }
    }
}

/// The ranges of one flow in the order of the stream, without overlap.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    ranges: VecDeque<Cached>,
    /// The number of segments in all ranges: the buffer has room for a range for each.
    segments: usize,
    captured_bytes: usize,
}

/// The most segments of a flow in the cache: 24 MB of full segments [C-26].
const MAX_SEGMENTS: usize = 16_384;
/// The most ranges that one packet examines [C-26].
pub(super) const MAX_EXAMINED: usize = 256;
/// The most ranges from the nearer end at which a range is added: farther ones are refused, since
/// the buffer moves those between [C-26].
const MAX_MOVED: usize = 1_024;
/// Bytes of memory for a segment: its range, and its share of the scoreboard and of the list of
/// transmissions, which have at most twice as many entries in buffers that double.
const PLACE: usize = size_of::<Cached>()
    + size_of::<Trouble>()
    + 4 * (size_of::<Span>() + size_of::<Transmission>());

impl Cache {
    pub(super) const EMPTY: Self = Self { ranges: VecDeque::new(), segments: 0, captured_bytes: 0 };

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes of memory that the cache holds: the packets and the buffer itself.
    pub(super) fn memory(&self) -> usize {
        self.captured_bytes + self.ranges.capacity() * PLACE
    }

    /// The most bytes by which this packet increases [`Cache::memory`]: the buffer may have to
    /// double.
    pub(super) fn growth(&self, cached: &Cached) -> usize {
        let capacity = self.ranges.capacity();
        let missing = (self.segments + cached.segments() as usize).saturating_sub(capacity);
        let places = if missing == 0 { 0 } else { missing.max(capacity).max(IDLE_CAPACITY) };
        cached.packet.bytes().len() + places * PLACE
    }

    /// Whether the bounds of the cache permit to add this range.
    pub(super) fn has_place(&self, cached: &Cached) -> bool {
        let segments = usize::try_from(cached.segments()).unwrap_or(usize::MAX);
        let index = self.first_beyond(cached.start);
        let moved = index.min(self.ranges.len() - index);
        self.segments.saturating_add(segments) <= MAX_SEGMENTS && moved <= MAX_MOVED
    }

    /// The number of segments in all ranges.
    pub(super) fn segments(&self) -> usize {
        self.segments
    }

    /// Adds a range, which must not overlap with another one.
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

    /// The index of the first range that ends above `position`.
    pub(super) fn first_beyond(&self, position: u64) -> usize {
        #[cfg(test)]
        count_step();
        // Most data is new: it lies behind the newest range, or is that range.
        let newest = self.ranges.len().saturating_sub(1);
        match self.ranges.get(newest) {
            Some(last) if last.end <= position => self.ranges.len(),
            Some(last) if last.start <= position => newest,
            _ => self.ranges.partition_point(|cached| cached.end <= position),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&Cached> {
        #[cfg(test)]
        count_step();
        self.ranges.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Cached> {
        self.ranges.get_mut(index)
    }

    /// The range that holds `position`, to be read.
    pub(super) fn at(&self, position: u64) -> Option<&Cached> {
        self.get(self.first_beyond(position)).filter(|cached| cached.start <= position)
    }

    /// The range that holds `position`.
    pub(super) fn at_mut(&mut self, position: u64) -> Option<&mut Cached> {
        let index = self.first_beyond(position);
        self.get_mut(index).filter(|cached| cached.start <= position)
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

    /// The ranges that overlap with `start..end`, to be read.
    pub(super) fn iter_overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = &Cached> {
        let first = self.first_beyond(start);
        self.ranges.range(first..).take_while(move |cached| cached.start < end)
    }

    /// Removes the first range if it lies wholly below `ack`.
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

    /// Splits the range around `position`, if there is one. Only super-packets are split, and only
    /// between segments: the mobile receives whole segments, and a hostile mobile cannot fragment
    /// the cache.
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
        if let Some(earliest) = tail.trouble.there().and_then(|part| part.earliest.as_mut()) {
            earliest.order += segments_before;
        }
        self.ranges.insert(index + 1, tail);
    }
}

/// Bytes of each segment of a super-packet; `u64::MAX` for a packet that is a single segment.
fn segment_size(packet: &Packet) -> u64 {
    packet.segment_size().map_or(u64::MAX, |size| size.get().into())
}

#[cfg(test)]
mod steps {
    extern crate std;
    use core::cell::Cell;

    std::thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    pub(in super::super) fn count_step() {
        STEPS.with(|steps| steps.set(steps.get() + 1));
    }

    /// The ranges that this thread has looked up so far: the work of an agent, whatever its time.
    pub(in super::super) fn steps() -> u64 {
        STEPS.with(Cell::get)
    }
}

#[cfg(test)]
use steps::count_step;
#[cfg(test)]
pub(super) use steps::steps;

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
            sent: Sent::NONE,
            trouble: Rare::default(),
        }
    }

    fn bounds(cache: &Cache) -> Vec<(u64, u64)> {
        cache.ranges.iter().map(|cached| (cached.start, cached.end)).collect()
    }

    use alloc::{vec, vec::Vec};

    #[test]
    fn late_ranges_find_their_place_and_the_acknowledged_are_freed() {
        let mut cache = Cache::EMPTY;
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
        let mut cache = Cache::EMPTY;
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
        let mut cache = Cache::EMPTY;
        let large = cached(0, 350);
        let packet = Packet::new(LinkType::Ip, Bytes::from(vec![0; 390]));
        let packet = packet.with_segment_size(NonZeroU16::new(100));
        let sent = Sent { order: 7, ..Sent::NONE };
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
        let mut cache = Cache::EMPTY;
        assert_eq!(cache.memory(), 0);
        for start in 0..100 {
            let range = cached(start * 10, start * 10 + 10);
            let allowed = cache.memory() + cache.growth(&range);
            cache.insert(range);
            assert!(cache.memory() <= allowed);
        }
        assert!(cache.memory() >= 100 * (PLACE + 6));
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
        assert!(cache.memory() <= IDLE_CAPACITY * PLACE);
    }
}
