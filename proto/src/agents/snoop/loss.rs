//! Loss detection and tail probes.

use super::Shared;
use super::cache::{Cached, MAX_EXAMINED};
use super::decision::{Left, Sight};
use super::flight::Transmission;
use super::flow::Flow;
use super::hop::Loss;
use super::hops::Mobile;
use super::outstanding::Outstanding;
use super::settings::Settings;
use crate::event::Cause;
use crate::ranges::Span;
use crate::time::Instant;
use alloc::vec::Vec;

/// A range that is lost, and what is decided on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    pub(super) span: Span,
    pub(super) fate: Fate,
}

/// What becomes of a loss.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    /// It is left to the sender.
    Left(Left),
    /// It is repaired, and meanwhile the sender sees this of it.
    Repaired(Cause, Sight),
}

impl Flow {
    /// Decides on lost segments: a later transmission arrived, and the segment did not within the
    /// reordering window. Notes the end of the reordering window.
    ///
    /// Each transmission is judged once, whatever the number of ACKs and of holes [C-26].
    pub(super) fn find_lost(
        &mut self,
        now: Instant,
        mobile: Mobile,
        shared: &mut Shared,
        settings: &Settings,
    ) -> Vec<Judged> {
        let mut lost = Vec::new();
        let Some(part) = self.outstanding.there() else { return lost };
        part.reordering_due = None;
        if !self.uses_sack {
            // Without SACK, duplicate ACKs show the loss of the first segment only.
            if let Some(lists) = part.flight.lists.there() {
                lists.overtaken.clear();
            }
            if part.cache.get(0).is_some_and(|first| first.start <= self.acked) {
                part.reconsider(now, 1);
            }
        }
        while let Some(&Transmission { order, span }) =
            self.outstanding.flight.lists.overtaken.front()
        {
            let is_sacked = self.outstanding.sacked.span_at(span.start).is_some();
            let is_open = |cached: &&mut Cached| {
                !is_sacked && cached.order_at(span.start) == order && cached.is_open()
            };
            if let Some(cached) = self.outstanding.cache.at_mut(span.start).filter(is_open) {
                let window = self.air.reordering_window();
                let lost_at = cached.sent.at + self.outstanding.delivered.round_trip + window;
                if !window.is_zero() && lost_at > now {
                    self.outstanding.reordering_due = Some(lost_at);
                    break;
                }
                lost.extend(self.judge(now, mobile, span.start, shared, settings));
            }
            self.outstanding.flight.lists.overtaken.pop_front();
        }
        lost
    }

    /// [C-33] Ranges that were left to the sender and that the sender has forgotten: it has sent
    /// new data two round trips later. A sender sends what it takes for lost first, and waits for a
    /// round trip at most (RFC 8985 §6.2). But Linux forgets what it has found lost when it undoes
    /// a reduction (`tcp_undo_cwnd_reduction`), until its next timeout.
    pub(super) fn find_forgotten(
        &mut self,
        now: Instant,
        shared: &mut Shared,
        settings: &Settings,
    ) -> Vec<Judged> {
        let mut forgotten = Vec::new();
        let Some(round_trip) = self.round_trip() else { return forgotten };
        let wait = self.air.srtt() + round_trip * 2;
        for index in 0..MAX_EXAMINED {
            let Some(cached) = self.outstanding.cache.get(index) else { break };
            let is_forgotten = cached.trouble.is_congestion
                && !cached.trouble.is_disputed
                && self.outstanding.new_data_at > cached.sent.at + wait;
            if index == 0 && !is_forgotten {
                break;
            }
            if is_forgotten && self.repair_budget.spend(&mut shared.credit) {
                let span = cached.span();
                let sight = self.sight(cached, now, settings);
                forgotten.push(Judged { span, fate: Fate::Repaired(Cause::Forgotten, sight) });
            }
        }
        forgotten
    }

    /// Decides on the loss of the range at `position`, and notes what follows from that for the
    /// flow and for the queue.
    fn judge(
        &mut self,
        now: Instant,
        mobile: Mobile,
        position: u64,
        shared: &mut Shared,
        settings: &Settings,
    ) -> Option<Judged> {
        let cached = self.outstanding.cache.at(position)?;
        let span = cached.span();
        let loss = Loss {
            sent_at: cached.sent.at,
            wired: self.sender.wired_round_trip(),
            window: self.sender.window(self.highest),
            answer_at: self.sender.told.answer_at,
        };
        let hop = shared.hops.get(now, mobile);
        let congestion = hop.judge(now, &loss);
        if congestion.is_some_and(Left::is_new_congestion) {
            self.sender.signal(now, hop.least(), self.highest);
        }
        let ignores = || self.sender.ignores_losses().then_some(Left::IgnoringSender);
        let mut cause = congestion.or_else(ignores);
        // [C-23] What the budget cannot repair is left to the sender as well.
        if cause.is_none() && !self.repair_budget.spend(&mut shared.credit) {
            cause = Some(Left::Budget);
        }
        let fate = match cause {
            Some(cause) => {
                self.outstanding.cache.at_mut(position)?.trouble.is_congestion = true;
                Fate::Left(cause)
            }
            None => {
                let sight = self.sight(self.outstanding.cache.at(position)?, now, settings);
                Fate::Repaired(Cause::Rack, sight)
            }
        };
        Some(Judged { span, fate })
    }
}

impl Outstanding {
    /// Finds the segments that the newest arrival has overtaken.
    pub(super) fn find_overtaken(&mut self, now: Instant) {
        while let Some(transmission) = self.next_overtaken() {
            if let Some(cached) = self.cache.at_mut(transmission.span.start) {
                cached.trouble.missing_since.get_or_insert(now);
            }
            self.flight.lists.overtaken.push_back(transmission);
        }
    }

    /// The next segment whose last transmission was overtaken; it is cut out of its super-packet.
    fn next_overtaken(&mut self) -> Option<Transmission> {
        loop {
            let (once, again) = (self.first_once(), self.first_again());
            let is_once = match (once, again) {
                (Some(once), Some(again)) => once.order < again.order,
                (once, _) => once.is_some(),
            };
            let Transmission { order, span: Span { start, .. } } =
                once.filter(|_| is_once).or(again)?;
            let Self { cache, flight, sacked, delivered, .. } = self;
            if order >= delivered.sent.order {
                return None;
            }
            let cached = cache.at(start)?;
            let is_sacked = sacked.span_at(start).is_some();
            let is_last = cached.order_at(start) == order && cached.is_open() && !is_sacked;
            let end = if is_last { cached.segment_end(start) } else { cached.end };
            let behind = if end < cached.end { cached.segments_from(end) } else { 0 };
            let passed = cached.segments_from(start) - behind;
            if is_once {
                flight.once = end;
            } else if let Some(first) = flight.lists.again.front_mut() {
                first.order += passed;
                first.span.start = end;
            }
            if is_last {
                cache.split(start);
                cache.split(end);
                return Some(Transmission { order, span: Span { start, end } });
            }
        }
    }

    /// The first transmission of data that was sent once.
    fn first_once(&mut self) -> Option<Transmission> {
        let Self { cache, flight, .. } = self;
        let mut index = cache.first_beyond(flight.once);
        loop {
            let cached = cache.get(index)?;
            let start = cached.start.max(flight.once);
            if !cached.trouble.is_sent_again {
                let span = Span { start, end: cached.end };
                return Some(Transmission { order: cached.order_at(start), span });
            }
            flight.once = cached.end;
            index += 1;
        }
    }

    /// The first transmission of data that was sent again.
    fn first_again(&mut self) -> Option<Transmission> {
        let Self { cache, flight, .. } = self;
        let again = &mut flight.lists.there()?.again;
        loop {
            let first = again.front_mut()?;
            let span = first.span;
            let index = cache.first_beyond(span.start);
            if let Some(cached) = cache.get(index).filter(|c| c.start < span.end) {
                let start = cached.start.max(span.start);
                first.order += cached.segments_from(span.start) - cached.segments_from(start);
                first.span.start = start;
                return Some(*first);
            }
            again.pop_front();
        }
    }

    /// Judges the first ranges again, so many: after the mobile has discarded data that it had
    /// acknowledged selectively [C-2].
    pub(super) fn reconsider(&mut self, now: Instant, ranges: usize) {
        for index in 0..ranges {
            let Some(cached) = self.cache.get(index) else { return };
            if cached.sent.order >= self.delivered.sent.order || !cached.is_open() {
                continue;
            }
            let (start, end) = (cached.start, cached.segment_end(cached.start));
            let order = cached.sent.order;
            self.cache.split(end);
            if let Some(cached) = self.cache.get_mut(index) {
                cached.trouble.missing_since.get_or_insert(now);
            }
            let span = Span { start, end };
            self.flight.lists.overtaken.push_back(Transmission { order, span });
        }
    }

    /// The position of the segment to send as a probe [C-5]: first the last segment, whose SACK
    /// reports all missing ones, then the first segment.
    pub(super) fn next_probe(&mut self) -> Option<u64> {
        let is_candidate = |cached: &&Cached| {
            !cached.trouble.is_queued
                && !cached.trouble.is_disputed
                && self.sacked.span_at(cached.start).is_none()
        };
        let ranges = (0..self.cache.len()).filter_map(|index| self.cache.get(index));
        let is_first = self.probe.is_first();
        let probe = match is_first {
            true => ranges.rev().take(MAX_EXAMINED).find(is_candidate),
            false => ranges.take(MAX_EXAMINED).find(is_candidate),
        }?;
        // One segment of a super-packet.
        let start = if is_first { probe.last_segment() } else { probe.start };
        let end = probe.segment_end(start);
        self.cache.split(start);
        self.cache.split(end);
        Some(start)
    }
}
