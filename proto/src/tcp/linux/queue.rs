//! The segments in flight, what is known of each, and the order in which they left.

use crate::ranges::{Ranges, Span};
use crate::time::Instant;
use alloc::collections::{BTreeMap, VecDeque};

/// A segment that was sent and not yet acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) span: Span,
    /// The time of the last transmission.
    pub(super) at: Instant,
    pub(super) sent: Sent,
    /// Its place in the order of time; none while it is lost and was not sent again.
    order: Option<u64>,
    pub(super) sacked: bool,
    pub(super) lost: bool,
    /// Whether a retransmission is in flight.
    pub(super) resent: bool,
    /// Whether the segment was sent more than once: its ACK is ambiguous.
    pub(super) again: bool,
}

/// What is remembered of the delivery of other segments as this one leaves (`tcp_rate_skb_sent`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    /// When the first segment of its flight left.
    pub(super) first_sent: Instant,
    /// When a segment last arrived, and how many had.
    pub(super) delivered_at: Instant,
    pub(super) delivered: u64,
    /// Whether the application limited the rate.
    pub(super) is_app_limited: bool,
}

/// All of them in order of the stream. Counts are segments.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    segments: VecDeque<Segment>,
    /// From place in the order of time to the segment's beginning.
    by_time: BTreeMap<u64, u64>,
    next_order: u64,
    sacked: Ranges,
    pub(super) sacked_out: u32,
    pub(super) lost_out: u32,
    pub(super) resent_out: u32,
}

impl Queue {
    /// Segments that are not acknowledged.
    pub(super) fn packets_out(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Segments that are in the network, as far as is known.
    pub(super) fn in_flight(&self) -> u32 {
        self.packets_out() + self.resent_out - self.sacked_out - self.lost_out
    }

    /// Segments that have left the network.
    pub(super) fn left_out(&self) -> u32 {
        self.sacked_out + self.lost_out
    }

    /// The oldest segment.
    pub(super) fn head(&self) -> Option<Segment> {
        self.segments.front().copied()
    }

    /// All segments.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter()
    }

    /// The newest segment.
    pub(super) fn last(&self) -> Option<Segment> {
        self.segments.back().copied()
    }

    /// The end of the highest segment that is SACKed, if any is.
    pub(super) fn highest_sacked(&self) -> Option<u64> {
        self.sacked.end()
    }

    /// Whether a retransmission is on its way, or the oldest segment was ever sent again.
    pub(super) fn any_resent(&self) -> bool {
        self.resent_out > 0 || self.head().is_some_and(|head| head.again)
    }

    /// A segment leaves for the first time.
    pub(super) fn push(&mut self, now: Instant, span: Span, sent: Sent) {
        let order = Some(self.enqueue(span.start));
        let (sacked, lost, resent, again) = (false, false, false, false);
        self.segments.push_back(Segment {
            span,
            at: now,
            sent,
            order,
            sacked,
            lost,
            resent,
            again,
        });
    }

    /// The segment that begins at `start` leaves again, as a retransmission or only as a probe.
    pub(super) fn resend(&mut self, now: Instant, start: u64, is_probe: bool, sent: Sent) {
        let order = self.enqueue(start);
        let Some(segment) = self.get(start) else { return };
        let before = segment.order.replace(order);
        segment.at = now;
        segment.sent = sent;
        segment.again = true;
        segment.resent |= !is_probe;
        self.resent_out += u32::from(!is_probe);
        if let Some(before) = before {
            self.by_time.remove(&before);
        }
    }

    /// The first segment that is lost and not sent again.
    pub(super) fn first_to_resend(&self) -> Option<Segment> {
        if self.resent_out >= self.lost_out {
            return None;
        }
        let waits = |segment: &&Segment| segment.lost && !segment.resent && !segment.sacked;
        self.segments.iter().find(waits).copied()
    }

    /// The segments that are not SACKed and that RACK has not found lost since they left, as they
    /// left.
    pub(super) fn in_order_of_time(&self) -> impl Iterator<Item = Segment> {
        self.by_time.values().filter_map(|start| self.segments.get(self.index(*start)?).copied())
    }

    /// The segment that begins at `start` is lost; says whether that was a retransmission.
    pub(super) fn lose(&mut self, start: u64) -> bool {
        let Some(segment) = self.get(start).filter(|segment| !segment.sacked) else { return false };
        let again = segment.lost && segment.resent;
        let is_new = !segment.lost;
        segment.lost = true;
        if again {
            segment.resent = false;
        }
        self.resent_out -= u32::from(again);
        self.lost_out += u32::from(is_new);
        again
    }

    /// The segments above which at least so many are SACKed are lost (`tcp_mark_head_lost`);
    /// returns how many are newly so.
    pub(super) fn lose_below(&mut self, sacked: u32) -> u32 {
        let before = self.lost_out;
        let mut above = self.sacked_out;
        for segment in &mut self.segments {
            above -= u32::from(segment.sacked);
            if above < sacked {
                break;
            }
            self.lost_out += u32::from(!segment.sacked && !segment.lost);
            segment.lost |= !segment.sacked;
        }
        self.lost_out - before
    }

    /// RACK has found the segment that begins at `start` lost: it leaves the order of time until it
    /// is sent again (`tcp_rack_detect_loss`). A segment that a timeout found lost stays there.
    pub(super) fn forget_time(&mut self, start: u64) {
        if let Some(order) = self.get(start).and_then(|segment| segment.order.take()) {
            self.by_time.remove(&order);
        }
    }

    /// Nothing counts as lost any more. What RACK found lost has no place in the order of time, so
    /// that, as in Linux, only a timeout finds it if it was.
    pub(super) fn unlose(&mut self) {
        self.segments.iter_mut().for_each(|segment| segment.lost = false);
        self.lost_out = 0;
    }

    /// The receiver reneged: nothing is SACKed (RFC 2018 §8).
    pub(super) fn renege(&mut self) {
        self.segments.iter_mut().for_each(|segment| segment.sacked = false);
        self.sacked = Ranges::default();
        self.sacked_out = 0;
    }

    /// Marks what this block reports; `found` sees each segment as it was before.
    pub(super) fn sack(&mut self, block: Span, mut found: impl FnMut(&Segment)) {
        let mut at = block.start;
        while let Some(gap) = self.sacked.gap(at, block.end) {
            at = gap.end;
            let first = self.segments.partition_point(|segment| segment.span.start < gap.start);
            for index in first..self.segments.len() {
                let Some(segment) = self.segments.get_mut(index) else { break };
                if segment.span.end > gap.end {
                    break;
                }
                found(segment);
                // A retransmission that was not known to be needed may still be on its way.
                if segment.lost {
                    self.lost_out -= 1;
                    self.resent_out -= u32::from(segment.resent);
                    segment.resent = false;
                    segment.lost = false;
                }
                segment.sacked = true;
                self.sacked_out += 1;
                if let Some(order) = segment.order.take() {
                    self.by_time.remove(&order);
                }
                let span = segment.span;
                self.sacked.insert(span);
            }
        }
    }

    /// A block says that what it covers arrived twice: retransmissions of it are no longer on
    /// their way. `found` sees each segment.
    pub(super) fn sacked_twice(&mut self, block: Span, mut found: impl FnMut(&Segment)) {
        let first = self.segments.partition_point(|segment| segment.span.start < block.start);
        for segment in self.segments.range_mut(first..) {
            if segment.span.end > block.end {
                break;
            }
            found(segment);
            if segment.resent && !segment.lost {
                segment.resent = false;
                self.resent_out -= 1;
            }
        }
    }

    /// Takes away the oldest segment if all of it is before `una`.
    pub(super) fn pop(&mut self, una: u64) -> Option<Segment> {
        let segment = self.segments.pop_front_if(|segment| segment.span.end <= una)?;
        self.resent_out -= u32::from(segment.resent);
        self.sacked_out -= u32::from(segment.sacked);
        self.lost_out -= u32::from(segment.lost);
        self.sacked.remove_below(segment.span.end);
        if let Some(order) = segment.order {
            self.by_time.remove(&order);
        }
        Some(segment)
    }

    fn enqueue(&mut self, start: u64) -> u64 {
        self.next_order += 1;
        self.by_time.insert(self.next_order, start);
        self.next_order
    }

    fn index(&self, start: u64) -> Option<usize> {
        let index = self.segments.partition_point(|segment| segment.span.start < start);
        self.segments.get(index).filter(|segment| segment.span.start == start).map(|_| index)
    }

    fn get(&mut self, start: u64) -> Option<&mut Segment> {
        let index = self.index(start)?;
        self.segments.get_mut(index)
    }
}
