//! The delivery information of an ACK: which ranges arrived, by which transmission, and the round
//! trip.

use super::cache::{Cached, MAX_EXAMINED, Trouble};
use super::flow::Flow;
use super::hop::{Hop, PROMPT};
use super::outstanding::{Delivered, Outstanding};
use super::rtt::AirPath;
use crate::ranges::Span;
use crate::rare::Rare;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use core::time::Duration;

/// The ranges that the scoreboard may have beyond one for each cached segment [C-26].
const MORE_RANGES: usize = 4;

/// The new information of an ACK.
#[derive(Debug, Default)]
pub(super) struct AckReport {
    /// A round-trip sample of the air hop, and the smoothed round trip after it.
    pub(super) round_trip: Option<(Duration, Duration)>,
    /// Whether the sender's FIN arrived.
    pub(super) fin: bool,
    /// Whether data arrived that the sender had retransmitted.
    pub(super) resent: bool,
    /// Whether the mobile has discarded data that it had acknowledged selectively.
    pub(super) reneged: bool,
    /// The segments that arrived.
    pub(super) segments: u64,
}

/// The transmissions that an ACK shows to have arrived.
#[derive(Debug, Default)]
struct Arrivals {
    any: bool,
    resent: bool,
    /// [C-23] Where data had arrived already that the mobile has discarded since: it counts once.
    counted: u64,
    /// The segments, and whether a SACK block reported some.
    segments: u64,
    by_sack: bool,
    newest: Option<Delivered>,
    /// The newest transmission with an unambiguous round trip.
    timed: Option<Delivered>,
}

impl Arrivals {
    /// Takes a range that has arrived; `delivered` is the newest transmission known to have done so
    /// before.
    fn take(&mut self, now: Instant, cached: &Cached, delivered: u64, air: &mut AirPath) {
        self.any = true;
        self.resent |= cached.trouble.resent;
        self.segments += if cached.end > self.counted { cached.segments() } else { 0 };
        let sent = cached.proven(delivered);
        if cached.is_ambiguous() && now - sent.at < air.min() {
            // The retransmission cannot have been acknowledged yet: the original was only late.
            let Trouble { attempts, resent, missing_since, .. } = *cached.trouble;
            if attempts == 1 && missing_since.is_some() && !resent {
                air.saw_reordering();
            }
            return;
        }
        if cached.trouble.attempts > 0 {
            air.saw_loss();
        }
        let delivered = Delivered { sent, round_trip: now - sent.at };
        let is_newer =
            |than: &Option<Delivered>| than.is_none_or(|than| than.sent.order <= sent.order);
        if is_newer(&self.newest) {
            self.newest = Some(delivered);
        }
        if !cached.is_ambiguous() && is_newer(&self.timed) {
            self.timed = Some(delivered);
        }
    }
}

impl Flow {
    /// Updates the scoreboard by an ACK; `hop` is that to the mobile host.
    pub(super) fn process_ack(
        &mut self,
        now: Instant,
        ack: u64,
        segment: &Segment,
        hop: &mut Hop,
    ) -> AckReport {
        let mut report = AckReport::default();
        if ack < self.acked {
            // The ACK was overtaken by a later one with newer blocks.
            return report;
        }
        self.ts_recent.acked(segment.options.timestamps.map(|timestamps| timestamps.echo));
        // [C-2, RFC 2018 §8] Reneging: SACKed data directly above the ACK number would be
        // acknowledged cumulatively.
        report.reneged = self.outstanding.sacked.span_at(ack).is_some();
        if report.reneged {
            let end = self.outstanding.sacked.end().unwrap_or(ack);
            self.outstanding.counted = self.outstanding.counted.max(end);
            self.outstanding.sacked = Rare::NONE;
        }
        let lone = self.outstanding.has_lone_segment();
        let mut arrivals = Arrivals { counted: self.outstanding.counted, ..Arrivals::default() };
        let waited = self.take_acknowledged(now, ack, &mut arrivals, &mut report);
        if waited {
            // Data above a repaired hole that was not SACKed waited at the mobile: its round trip
            // is too long.
            arrivals.timed = None;
        }
        self.acked = ack;
        self.has_acked = true;
        self.process_blocks(now, segment, &mut arrivals);
        if report.reneged {
            self.outstanding.reconsider(now, MAX_EXAMINED);
        }
        report.resent = arrivals.resent;
        report.segments = arrivals.segments;
        self.repair_budget.earn(arrivals.segments);
        report.round_trip = self.conclude(now, &arrivals, lone, hop);
        self.has_queue_beyond = hop.has_queued();
        report
    }

    /// Takes what lies below the ACK number out of what is in flight; returns whether some of it
    /// was sent more than once.
    fn take_acknowledged(
        &mut self,
        now: Instant,
        ack: u64,
        arrivals: &mut Arrivals,
        report: &mut AckReport,
    ) -> bool {
        let Some(part) = self.outstanding.there() else { return false };
        part.cache.split(ack);
        let mut waited = false;
        while let Some(cached) = self.outstanding.cache.pop_acknowledged(ack) {
            waited |= cached.is_ambiguous();
            report.fin |= self.carries_fin(&cached);
            let was_sacked = self.outstanding.sacked.span_at(cached.start).is_some();
            if !was_sacked {
                let delivered = self.outstanding.delivered.sent.order;
                arrivals.take(now, &cached, delivered, &mut self.air);
            }
        }
        let Outstanding { sacked, flight, .. } = &mut *self.outstanding;
        if let Some(sacked) = sacked.there() {
            sacked.remove_below(ack);
        }
        flight.remove_below(ack);
        waited
    }

    /// Processes the SACK blocks above the ACK number. A DSACK block lies below it or within
    /// another block.
    fn process_blocks(&mut self, now: Instant, segment: &Segment, arrivals: &mut Arrivals) {
        for &(left, right) in segment.options.sack.as_slice() {
            self.uses_sack = true;
            let (Some(start), Some(end)) = (self.position(left), self.position(right)) else {
                continue;
            };
            if start <= self.acked || end > self.highest {
                continue;
            }
            let Some(block) = self.outstanding.whole_segments(Span { start, end }) else {
                continue;
            };
            let mut from = block.start;
            while let Some(new) = self.outstanding.sacked.gap(from, block.end) {
                let mut index = self.outstanding.cache.first_beyond(new.start);
                arrivals.by_sack = true;
                let Outstanding { cache, delivered, .. } = &*self.outstanding;
                while let Some(cached) = cache.get(index).filter(|c| c.start < new.end) {
                    arrivals.take(now, cached, delivered.sent.order, &mut self.air);
                    index += 1;
                }
                from = new.end;
            }
            self.outstanding.sacked.insert(block);
        }
    }

    /// Updates delivery state and round trip by all that arrived with one ACK.
    fn conclude(
        &mut self,
        now: Instant,
        arrivals: &Arrivals,
        lone: bool,
        hop: &mut Hop,
    ) -> Option<(Duration, Duration)> {
        if arrivals.any {
            hop.arrived(now, arrivals.segments);
            self.outstanding.probe.restart(now);
            self.outstanding.probe.answered();
            self.overtake(now, arrivals);
        }
        let sample = arrivals.timed?.round_trip;
        if lone {
            hop.drained();
            // The sample includes the mobile's delayed-ACK time.
            self.air.sample_lone_segment(sample);
            if self.air.min() > Duration::ZERO {
                return None;
            }
        }
        // A receiver may delay the ACK of a single segment, until the next one arrives (RFC 9293
        // §3.8.6.3).
        let follows_soon = |sent_at| {
            self.outstanding.cache.get(0).is_some_and(|next| next.sent.at.since(sent_at) <= PROMPT)
        };
        let is_prompt = arrivals.by_sack
            || arrivals.segments > 1
            || arrivals.timed.is_some_and(|timed| follows_soon(timed.sent.at));
        hop.sample(now, sample, is_prompt, self.sender.wired_round_trip());
        Some((sample, self.air.sample(now, sample)))
    }

    /// Updates the newest transmission that has arrived, and finds what it has overtaken.
    fn overtake(&mut self, now: Instant, arrivals: &Arrivals) {
        let is_newer =
            |newest: &Delivered| newest.sent.order > self.outstanding.delivered.sent.order;
        if let Some(newest) = arrivals.newest.filter(is_newer) {
            self.outstanding.delivered = newest;
            // Without SACK, duplicate ACKs show the loss of the first segment only.
            if self.uses_sack {
                self.outstanding.find_overtaken(now);
            }
        }
    }

    /// Processes a duplicate ACK of a mobile without SACK: a segment arrived out of order. On a
    /// link that keeps order that segment was sent one round trip ago; if the first range was sent
    /// before, the range is lost.
    pub(super) fn process_duplicate(&mut self, now: Instant) {
        let (acked, air) = (self.acked, &self.air);
        let margin = air.srtt() / 4 + air.reordering_window();
        let Some(Outstanding { cache, delivered, .. }) = self.outstanding.there() else { return };
        let Some(first) = cache.get_mut(0).filter(|first| first.start == acked) else { return };
        if first.trouble.is_queued {
            return;
        }
        let is_lost = first.trouble.attempts == 0 && !first.trouble.resent
            || now - first.sent.at > air.srtt() + margin;
        if is_lost {
            first.trouble.missing_since.get_or_insert(now);
            let order = first.sent.order + 1;
            if order > delivered.sent.order {
                let sent = super::cache::Sent { order, ..first.sent };
                *delivered = Delivered { sent, round_trip: Duration::ZERO };
            }
        }
    }

    fn carries_fin(&self, cached: &Cached) -> bool {
        // Only the last range can carry the FIN.
        cached.end == self.highest
            && Segment::parse(&cached.packet).is_ok_and(|segment| {
                segment.flags.intersects(Flags::FIN)
                    && segment.end() == SeqNumber(cached.end as u32)
            })
    }
}

impl Outstanding {
    /// [C-26] The part of a SACK block that consists of whole cached segments, or of data that is
    /// not cached: a mobile receives segments, and a hostile one cannot fragment the scoreboard.
    /// `None` if nothing is left, or if the scoreboard has more ranges than the cache.
    fn whole_segments(&mut self, block: Span) -> Option<Span> {
        let Span { mut start, mut end } = block;
        self.cache.split(start);
        self.cache.split(end);
        if let Some(first) = self.cache.at_mut(start).filter(|first| first.start < start) {
            start = first.end;
        }
        if let Some(last) = self.cache.at_mut(end).filter(|last| last.start < end) {
            end = last.start;
        }
        let is_full = self.sacked.len() > self.cache.segments() + MORE_RANGES;
        (start < end && !is_full).then_some(Span { start, end })
    }
}
