//! Loss detection and tail probes.

use super::cache::Cached;
use super::flow::Flow;
use crate::ranges::Span;
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;

impl Flow {
    /// The positions of lost ranges: a later transmission arrived, and the range did not within the
    /// reordering window. Notes since when each is missing, and the end of the reordering window.
    pub(super) fn find_lost(&mut self, now: Instant) -> Vec<u64> {
        let mut lost = Vec::new();
        self.reordering_due = None;
        if self.delivered.sent.order == 0 {
            return lost;
        }
        if !self.uses_sack {
            // Without SACK, duplicate ACKs show the loss of the first segment only.
            self.cut_to_segments(Span { start: self.acked, end: self.acked + 1 });
            let is_first = self.cache.get(0).is_some_and(|first| first.start <= self.acked);
            return if is_first && self.is_lost(now, 0) { vec![self.acked] } else { lost };
        }
        let mut at = self.acked;
        // The holes below SACKed data, then the data above it, up to transmissions later than the
        // newest known to have arrived.
        while let Some(hole) = self.sacked.gap(at, self.highest) {
            let is_last = self.sacked.end().is_none_or(|end| end <= hole.start);
            self.cut_to_segments(hole);
            let mut index = self.cache.first_beyond(hole.start);
            while let Some(cached) = self.cache.get(index).filter(|c| c.start < hole.end) {
                let is_later = cached.sent.order >= self.delivered.sent.order;
                if is_last && is_later && cached.attempts == 0 {
                    return lost;
                }
                let start = cached.start;
                if !is_last && let Some(cached) = self.cache.get_mut(index) {
                    cached.missing_since.get_or_insert(now);
                }
                if self.is_lost(now, index) {
                    lost.push(start);
                }
                index += 1;
            }
            at = hole.end;
        }
        lost
    }

    /// Whether the range at this index is lost and to be repaired. In doubt the loss counts as
    /// congestion [C-22], and so does each that the budget cannot repair [C-23].
    fn is_lost(&mut self, now: Instant, index: usize) -> bool {
        let window = self.air.reordering_window();
        let (delivered, due) = (self.delivered, &mut self.reordering_due);
        let Some(cached) = self.cache.get_mut(index) else { return false };
        if cached.is_queued || cached.is_congestion || cached.sent.order >= delivered.sent.order {
            return false;
        }
        cached.missing_since.get_or_insert(now);
        let lost_at = cached.sent.at + delivered.round_trip + window;
        if window.is_zero() || lost_at <= now {
            let wired = self.wired.round_trip();
            cached.is_congestion =
                self.local_queue.lost(now, cached.sent.at, wired) || !self.repair_budget.spend();
            return !cached.is_congestion;
        }
        *due = Some(due.map_or(lost_at, |due| due.min(lost_at)));
        false
    }

    /// Splits the super-packets in `hole`, whose missing segments are repaired one by one.
    fn cut_to_segments(&mut self, hole: Span) {
        let mut index = self.cache.first_beyond(hole.start);
        while let Some(cached) = self.cache.get(index).filter(|c| c.start < hole.end) {
            if let Some(size) = cached.packet.segment_size() {
                let size = u64::from(size.get());
                let next = cached.start + size - (cached.start - cached.origin) % size;
                if next < cached.end && cached.sent.order < self.delivered.sent.order {
                    self.cache.split(next);
                }
            }
            index += 1;
        }
    }

    /// The position of the segment to send as a probe [C-5]: first the last segment, whose SACK
    /// reports all missing ones, then the first segment.
    pub(super) fn probe(&mut self) -> Option<u64> {
        let is_candidate =
            |cached: &&Cached| !cached.is_queued && self.sacked.span_at(cached.start).is_none();
        let mut ranges = (0..self.cache.len()).filter_map(|index| self.cache.get(index));
        let is_first = self.timeouts == 0;
        let probe = if is_first { ranges.rfind(is_candidate) } else { ranges.find(is_candidate) };
        let Cached { start, end, origin, ref packet, .. } = *probe?;
        // One segment of a super-packet.
        let size = packet.segment_size().map_or(end - origin, |size| size.get().into());
        let last = (end - 1 - (end - 1 - origin) % size).max(start);
        let (start, end) =
            if is_first { (last, end) } else { (start, start + size - (start - origin) % size) };
        self.cache.split(start);
        self.cache.split(end);
        Some(start)
    }
}
