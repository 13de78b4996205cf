//! Which ranges are lost, and their retransmission.

use super::cache::Cached;
use super::flow::Flow;
use super::rtt::is_before;
use super::{Departure, Snoop, seq};
use crate::agent::Port;
use crate::agents::egress::Class;
use crate::agents::flow_table::FlowRef;
use crate::event::{Cause, Event};
use crate::packet::Packet;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::edit::{cut, with_timestamp};
use crate::wire::tcp::Segment;
use alloc::vec;
use alloc::vec::Vec;

impl Snoop {
    /// [C-4] Retransmits what was lost by all that is known now.
    pub(super) fn repair_losses(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let before = flow.cache.memory();
        let lost = flow.find_lost(now);
        self.cache_bytes = self.cache_bytes - before + flow.cache.memory();
        for start in lost {
            self.retransmit(reference, start, Cause::Rack);
        }
    }

    /// [C-6] The range that begins here leaves again, before everything else; at most one copy of
    /// it waits.
    pub(super) fn retransmit(&mut self, reference: FlowRef, start: u64, cause: Cause) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let (id, ts_recent) = (flow.id, flow.ts_recent);
        let index = flow.cache.first_beyond(start);
        let Some(cached) = flow.cache.get_mut(index).filter(|c| c.start <= start) else { return };
        if cached.queued {
            return;
        }
        let Some((packet, rewritten)) = copy_of(cached, ts_recent) else {
            cached.resent = true;
            return;
        };
        let span = Span { start: cached.start, end: cached.end };
        let departure = Departure::Range { flow: reference, span, repair: Some(cause) };
        if !self.egress.push(Port::Air, Class::Urgent, packet, Some(departure)) {
            self.event(Event::EgressDropped(Port::Air));
            return;
        }
        cached.queued = true;
        cached.attempts += 1;
        if rewritten {
            self.event(Event::TimestampRenewed(id, seq(start)));
        }
    }
}

impl Flow {
    /// Ranges that were lost: something sent later arrived, and they did not within the reordering
    /// window. Notes since when each is missing, and when to look again.
    fn find_lost(&mut self, now: Instant) -> Vec<u64> {
        let mut lost = Vec::new();
        self.reordering_due = None;
        if self.delivered.sent.order == 0 {
            return lost;
        }
        if !self.uses_sack {
            // A cumulative ACK tells of the first segment only.
            self.cut_to_segments(Span { start: self.acked, end: self.acked + 1 });
            let is_first = self.cache.get(0).is_some_and(|first| first.start <= self.acked);
            return if is_first && self.judge_range(now, 0) { vec![self.acked] } else { lost };
        }
        let mut at = self.acked;
        // Holes below what is SACKed, and then everything up to what was sent later.
        while let Some(hole) = self.sacked.gap(at, self.highest) {
            let is_last = self.sacked.end().is_none_or(|end| end <= hole.start);
            self.cut_to_segments(hole);
            let mut index = self.cache.first_beyond(hole.start);
            while let Some(cached) = self.cache.get(index).filter(|c| c.start < hole.end) {
                let is_later = cached.sent.order >= self.delivered.sent.order;
                if is_last && (!cached.was_sent() || (is_later && cached.attempts == 0)) {
                    return lost;
                }
                let start = cached.start;
                if !is_last && let Some(cached) = self.cache.get_mut(index) {
                    cached.missing_since.get_or_insert(now);
                }
                if self.judge_range(now, index) {
                    lost.push(start);
                }
                index += 1;
            }
            at = hole.end;
        }
        lost
    }

    /// Whether the range at this index is lost.
    fn judge_range(&mut self, now: Instant, index: usize) -> bool {
        let window = self.air.reordering_window();
        let (delivered, due) = (self.delivered, &mut self.reordering_due);
        let Some(cached) = self.cache.get_mut(index) else { return false };
        if cached.queued || cached.sent.order >= delivered.sent.order {
            return false;
        }
        cached.missing_since.get_or_insert(now);
        let lost_at = cached.sent.at + delivered.round_trip + window;
        if window.is_zero() || lost_at <= now {
            return true;
        }
        *due = Some(due.map_or(lost_at, |due| due.min(lost_at)));
        false
    }

    /// A super-packet's missing part is repaired segment by segment.
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

    /// What to send when nothing arrives [C-5]: first the last range, whose SACK reveals all
    /// others that are missing, then the first one.
    pub(super) fn probe(&mut self) -> Option<u64> {
        let is_candidate = |cached: &&Cached| {
            !cached.queued && cached.was_sent() && self.sacked.span_at(cached.start).is_none()
        };
        let mut ranges = (0..self.cache.len()).filter_map(|index| self.cache.get(index));
        let is_first = self.timeouts == 0;
        let probe = if is_first { ranges.rfind(is_candidate) } else { ranges.find(is_candidate) };
        let Cached { start, end, origin, ref packet, .. } = *probe?;
        // Of a super-packet one segment.
        let size = packet.segment_size().map_or(end - origin, |size| size.get().into());
        let last = (end - 1 - (end - 1 - origin) % size).max(start);
        let (start, end) =
            if is_first { (last, end) } else { (start, start + size - (start - origin) % size) };
        self.cache.split(start);
        self.cache.split(end);
        Some(start)
    }
}

/// The packet to send again, and whether its timestamp had to be renewed; `None` if there is none
/// that the mobile would take.
fn copy_of(cached: &Cached, ts_recent: Option<u32>) -> Option<(Packet, bool)> {
    let segment = Segment::parse(&cached.packet).ok()?;
    let from = u32::try_from(cached.start - cached.origin).ok()?;
    let whole = from == 0 && u64::from(segment.seq_len()) == cached.end - cached.start;
    let packet = if whole || cached.packet.segment_size().is_none() {
        cached.packet.clone()
    } else {
        let len = u32::try_from(cached.end - cached.start).ok()?;
        cut(&cached.packet, &segment, from, len)?
    };
    // [C-12] The old TSval lets the sender undo, and makes its round trip include the repair. But
    // after the sender has filled an earlier hole, the mobile would refuse it (RFC 7323 §5.3 R1).
    let (Some(timestamps), Some(recent)) = (segment.options.timestamps, ts_recent) else {
        return Some((packet, false));
    };
    if !is_before(timestamps.value, recent) {
        return Some((packet, false));
    }
    // [C-16] What is signed is not edited.
    if segment.options.signed {
        return None;
    }
    let segment = Segment::parse(&packet).ok()?;
    with_timestamp(&packet, &segment, recent).map(|packet| (packet, true))
}
