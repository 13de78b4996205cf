//! ACKs from the mobile host: their verdict, and the loss signals in them that are masked.

use super::Snoop;
use super::cache::Cached;
use super::decision::Sight;
use super::flow::{AckFields, Flow, SuppressedAck};
use crate::agent::Verdict;
use crate::agents::flow_table::FlowRef;
use crate::event::{Event, FlowEnd};
use crate::packet::Packet;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::edit::keep_sack_blocks;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use core::time::Duration;

/// The time without another packet after which an ACK above all data, or far from it, shows that
/// the agent has lost sight of the flow.
const LOST_SIGHT: Duration = Duration::from_secs(1);

/// The part of an ACK that is forwarded to the sender.
#[derive(Clone, Copy)]
enum Visible {
    /// The whole ACK.
    All,
    /// The whole ACK, although it is a loss signal for this masked hole: it answers a
    /// retransmission of the sender [C-9].
    Answer(Span),
    /// All but the SACK blocks that begin at this position or above.
    Below(u64),
    /// Nothing: the ACK is only a loss signal for masked holes; the position of the lowest one.
    Nothing(u64),
}

/// The progress that an ACK reports, beside its SACK blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The ACK number differs from that of the last ACK.
    advances: bool,
    /// Data arrived that the sender had retransmitted.
    resent: bool,
}

impl Snoop {
    pub(super) fn handle_ack(
        &mut self,
        now: Instant,
        key: &FlowKey,
        segment: &Segment,
        packet: &Packet,
    ) -> Verdict {
        let found = self.flows.find(key);
        let Some((reference, flow)) =
            found.and_then(|reference| Some((reference, self.flows.get_mut(reference)?)))
        else {
            return Verdict::Pass;
        };
        let is_lost = now.since(flow.base.active_at) >= LOST_SIGHT;
        let Some(ack) = flow.position(segment.ack) else {
            // The state is that of another connection, or of a stranger's data [C-24].
            if is_lost {
                self.flows.end(reference, FlowEnd::Reopened);
            }
            return Verdict::Pass;
        };
        flow.is_answered = true;
        if ack > flow.highest {
            // The ACK is beyond all data that passed here: there is no state to judge it by.
            if !flow.has_acked || is_lost {
                self.flows.release(reference);
                self.flows.update(reference, |flow| flow.pick_up(now, ack, segment.window));
            }
            return Verdict::Pass;
        }
        flow.base.active_at = now;
        flow.window.advertise(ack, segment.window, flow.highest - ack);
        // An older ACK, overtaken or from before the flow was picked up, may be new to the sender
        // too.
        let advances = ack != flow.acked || !flow.has_acked;
        let id = flow.base.id;
        let hop = self.shared.hops.get(now, key.air.address);
        let report = self.flows.update(reference, |flow| flow.process_ack(now, ack, segment, hop));
        let report = report.unwrap_or_default();
        self.shared.credit.earn(report.segments);
        if report.reneged {
            self.event(Event::Reneged(id, segment.ack));
        }
        if let Some((sample, srtt)) = report.round_trip {
            self.air_round_trip = Some(srtt);
            self.event(Event::AirRtt { flow: id, sample, srtt });
        }
        if let Some(flow) = self.flows.get_mut(reference)
            && flow.is_duplicate(segment, ack, advances)
        {
            flow.process_duplicate(now);
        }
        self.repair_losses(now, reference);
        let progress = Progress { advances, resent: report.resent };
        let verdict = self.filter_ack(now, reference, segment, progress, packet);
        self.report_duplicates(reference, segment, packet, &verdict);
        if report.fin {
            // The mobile has the sender's FIN: no further data will need repair.
            self.flows.end(reference, FlowEnd::Closed);
        } else {
            self.schedule(now, reference);
        }
        verdict
    }

    /// Returns the verdict on an ACK: it passes, is withheld, or is forwarded without masked loss
    /// signals.
    fn filter_ack(
        &mut self,
        now: Instant,
        reference: FlowRef,
        segment: &Segment,
        progress: Progress,
        packet: &Packet,
    ) -> Verdict {
        if self.flows.get(reference).is_some_and(|flow| flow.withholds_more_than(segment)) {
            self.flows.release(reference);
        }
        let Some(flow) = self.flows.get_mut(reference) else { return Verdict::Pass };
        let id = flow.base.id;
        let budget = flow.hold_budget(&self.settings);
        let visible = match self.settings.suppress {
            true => flow.visible(now, budget, segment, progress),
            false => Visible::All,
        };
        let limit = match visible {
            Visible::All | Visible::Answer(_) => u64::MAX,
            Visible::Below(limit) => limit,
            Visible::Nothing(hole) => {
                flow.suppress(now, budget, segment, packet, hole);
                self.event(Event::DupAckSuppressed(id, segment.ack));
                return Verdict::Withhold;
            }
        };
        let own = flow.take_own_duplicate(segment);
        let is_kept =
            |left| Some(left) != own && flow.position(left).is_none_or(|position| position < limit);
        let verdict = match segment.options.sack.as_slice().iter().all(|(left, _)| is_kept(*left)) {
            true => Verdict::Pass,
            false => Verdict::Replace(keep_sack_blocks(packet, segment, is_kept)),
        };
        flow.suppressed = None;
        flow.forwarded = Some(AckFields::of(segment));
        if let Some(timestamps) = segment.options.timestamps {
            flow.wired.ack_left(now, timestamps.value);
            flow.place.ack_left(now, timestamps.value);
        }
        if matches!(verdict, Verdict::Replace(_)) {
            self.event(Event::SackStripped(id, segment.ack));
        }
        if let Visible::Answer(hole) = visible {
            self.decided(reference, hole, Sight::ShownAnswer);
        }
        verdict
    }

    /// [C-13] The hold budget is spent: forwards the last suppressed ACK, without the SACK blocks
    /// above the next hole that is still masked. [C-25] After its own deadline the ACK is forwarded
    /// as it is.
    pub(super) fn release(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let Some(suppressed) = &flow.suppressed else { return };
        let Ok(segment) = Segment::parse(&suppressed.packet) else { return };
        let (id, progress) = (flow.base.id, Progress::default());
        let budget = flow.hold_budget(&self.settings);
        let is_due = suppressed.deadline <= now;
        if let Visible::Nothing(hole) = flow.visible(now, budget, &segment, progress) {
            // The ACK is only a loss signal for a hole that is still masked.
            if is_due {
                self.flows.release(reference);
            } else if let Some(suppressed) = &mut flow.suppressed {
                suppressed.hole = hole;
            }
            return;
        }
        let Some(SuppressedAck { packet, .. }) = flow.suppressed.take() else { return };
        self.event(Event::LossSignalForwarded(id, segment.ack));
        match self.filter_ack(now, reference, &segment, progress, &packet) {
            Verdict::Pass => self.flows.released.push_back(packet),
            Verdict::Replace(packet) => self.flows.released.push_back(packet),
            Verdict::Withhold => {}
        }
    }
}

impl Flow {
    /// Keeps the packet in place of the last suppressed ACK, whose deadline remains.
    fn suppress(
        &mut self,
        now: Instant,
        budget: Duration,
        segment: &Segment,
        packet: &Packet,
        hole: u64,
    ) {
        let last = self.suppressed.as_ref().map(|suppressed| suppressed.deadline);
        let deadline = last.unwrap_or(now + budget);
        let packet = packet.clone();
        self.suppressed = Some(SuppressedAck { packet, ack: segment.ack, deadline, hole });
    }

    /// [C-9] Whether the ACK has a DSACK block for data that the sender has sent twice. Such a
    /// block lies within the second one (RFC 2883 §4); the agent's own retransmissions cause it as
    /// well.
    fn answers_retransmission(&self, segment: &Segment) -> bool {
        let &[(left, right), (outer_left, outer_right), ..] = segment.options.sack.as_slice()
        else {
            return false;
        };
        let is_within = left.offset_from(outer_left) >= 0 && outer_right.offset_from(right) >= 0;
        let (Some(start), Some(end)) = (self.position(left), self.position(right)) else {
            return false;
        };
        is_within && self.cache.iter_overlapping(start, end).any(|cached| cached.resent)
    }

    /// A duplicate ACK in the sense of RFC 5681 §2, from a mobile without SACK.
    fn is_duplicate(&self, segment: &Segment, ack: u64, advances: bool) -> bool {
        !self.uses_sack
            && !advances
            && ack < self.highest
            && segment.is_pure_ack()
            && self.forwarded.is_none_or(|fields| fields == AckFields::of(segment))
    }

    /// Whether the segment is a pure ACK with the fields of the last one.
    fn says_nothing_else(&self, segment: &Segment) -> bool {
        let says_more = segment.flags.intersects(Flags::URG) || segment.options.multipath;
        segment.is_pure_ack()
            && !says_more
            && self.forwarded.is_some_and(|fields| fields == AckFields::of(segment))
    }

    /// Whether the ACK says nothing but which data above its number has arrived.
    fn is_loss_signal(&self, segment: &Segment) -> bool {
        let blocks = segment.options.sack.as_slice();
        let is_above = |left: SeqNumber| self.position(left).is_some_and(|left| left > self.acked);
        !blocks.is_empty()
            && blocks.iter().all(|(left, _)| is_above(*left))
            && self.says_nothing_else(segment)
    }

    /// [C-28] Whether a withheld ACK of a sender in this host has a block that the newer `segment`
    /// does not report.
    fn withholds_more_than(&self, segment: &Segment) -> bool {
        let Some(suppressed) = self.suppressed.as_ref().filter(|_| self.is_at_sender()) else {
            return false;
        };
        let Ok(withheld) = Segment::parse(&suppressed.packet) else { return false };
        let is_reported = |&(left, right): &(SeqNumber, SeqNumber)| {
            let newer = segment.options.sack.as_slice().iter();
            right <= segment.ack || newer.clone().any(|block| block.0 <= left && right <= block.1)
        };
        !withheld.options.sack.as_slice().iter().all(is_reported)
    }

    /// [C-7, C-8, C-9] The part of the ACK that is forwarded.
    fn visible(
        &self,
        now: Instant,
        budget: Duration,
        segment: &Segment,
        progress: Progress,
    ) -> Visible {
        // If data that the sender sent after the holes has arrived, the sender takes all
        // unacknowledged data for lost, masked packets included.
        let is_answer = progress.resent || self.answers_retransmission(segment);
        if self.is_at_sender() {
            let is_held = !is_answer
                && !budget.is_zero()
                && !progress.advances
                && self.is_loss_signal(segment)
                && !self.reports_duplicates(segment);
            return if is_held { Visible::Nothing(self.acked) } else { Visible::All };
        }
        let Some(hole) = self.lowest_masked(now, budget).map(Cached::span) else {
            return Visible::All;
        };
        let limit = hole.start;
        let blocks = segment.options.sack.as_slice();
        let shows_loss = |left: SeqNumber| self.position(left).is_some_and(|left| left >= limit);
        let loss_signals = blocks.iter().filter(|(left, _)| shows_loss(*left)).count();
        if loss_signals == 0 && self.uses_sack {
            return Visible::All;
        }
        if is_answer {
            return if loss_signals > 0 { Visible::Answer(hole) } else { Visible::All };
        }
        let is_only_loss_signal = !progress.advances && loss_signals == blocks.len();
        if is_only_loss_signal && self.says_nothing_else(segment) {
            return Visible::Nothing(limit);
        }
        // [C-16] A signed ACK may be dropped or passed, never edited.
        if loss_signals == 0 || segment.options.signed {
            return Visible::All;
        }
        Visible::Below(limit)
    }
}
