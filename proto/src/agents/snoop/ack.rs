//! ACKs from the mobile host: their verdict, and the loss signals in them that are masked.

use super::Snoop;
use super::decision::Sight;
use super::flow::{AckFields, Flow, SuppressedAck};
use super::strategy::{Progress, Visible};
use crate::agent::{UNANSWERED, Verdict};
use crate::agents::flow_table::FlowRef;
use crate::event::{Event, FlowEnd};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::edit::keep_sack_blocks;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use alloc::boxed::Box;
use core::time::Duration;

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
        // Without another packet for so long an ACK above all data, or far from it, shows that the
        // agent has lost sight of the flow.
        let is_lost = now.since(flow.base.active_at) >= UNANSWERED;
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
        let is_answer = report.resent
            || self.flows.get(reference).is_some_and(|flow| flow.answers_retransmission(segment));
        let progress = Progress { advances, is_answer };
        let verdict = self.filter_ack(now, reference, segment, progress, packet);
        self.report_duplicates(reference, packet, &verdict);
        if report.fin {
            // The mobile has the sender's FIN: no further data will need repair.
            self.flows.end(reference, FlowEnd::Closed);
        } else {
            self.schedule(now, reference);
            self.free_done(reference);
        }
        verdict
    }

    /// Takes the memory of a flow that has nothing in flight any more.
    fn free_done(&mut self, reference: FlowRef) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        if flow.outstanding.there().is_some_and(|part| part.is_done()) {
            let part = self.flows.update(reference, |flow| flow.outstanding.take()).flatten();
            part.into_iter().for_each(|part| self.shared.spare.keep(part));
        }
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
        let Some(flow) = self.flows.get(reference) else { return Verdict::Pass };
        let strategy = flow.strategy();
        if !strategy.is_replaced(flow, segment) {
            self.flows.release(reference);
        }
        let Some(flow) = self.flows.get_mut(reference) else { return Verdict::Pass };
        let id = flow.base.id;
        let budget = strategy.hold_budget(flow, &self.settings);
        let visible = match self.settings.suppress {
            true => strategy.visible(flow, now, budget, segment, progress),
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
        let excess = flow.take_excess_duplicate(segment);
        let is_kept = |left| {
            Some(left) != excess && flow.position(left).is_none_or(|position| position < limit)
        };
        let verdict = match segment.options.sack.as_slice().iter().all(|(left, _)| is_kept(*left)) {
            true => Verdict::Pass,
            false => Verdict::Replace(keep_sack_blocks(packet, segment, is_kept)),
        };
        flow.suppressed = None;
        flow.note_shown(now, limit);
        flow.forwarded = Some(AckFields::of(segment));
        if let Some(timestamps) = segment.options.timestamps {
            flow.sender.wired.ack_left(now, timestamps.value);
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
        let (id, is_due) = (flow.base.id, suppressed.deadline <= now);
        let is_answer = flow.answers_retransmission(&segment);
        let (strategy, progress) = (flow.strategy(), Progress { advances: false, is_answer });
        let budget = strategy.hold_budget(flow, &self.settings);
        if let Visible::Nothing(hole) = strategy.visible(flow, now, budget, &segment, progress) {
            // The ACK is only a loss signal for a hole that is still masked.
            if is_due {
                self.flows.release(reference);
            } else if let Some(suppressed) = &mut flow.suppressed {
                suppressed.hole = hole;
            }
            return;
        }
        let Some(SuppressedAck { packet, .. }) = flow.suppressed.take().map(|ack| *ack) else {
            return;
        };
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
        let suppressed = SuppressedAck { packet, ack: segment.ack, deadline, hole };
        self.suppressed = Some(Box::new(suppressed));
    }

    /// [C-31] An ACK departs with its SACK blocks below `limit`. Whether the sender waits shows at
    /// the lowest hole, if the sender sees three segments above it (RFC 6675 §2).
    fn note_shown(&mut self, now: Instant, limit: u64) {
        if limit < u64::MAX || self.outstanding.sacked.is_empty() {
            return;
        }
        let Some(first) = self.outstanding.cache.get(0) else { return };
        let segment = first.segment_end(first.start) - first.start;
        let is_open = !first.trouble.is_congestion && !first.trouble.resent;
        if is_open && first.start == self.acked && self.outstanding.sacked.total() >= 3 * segment {
            self.sender.shown(now, self.air.srtt(), self.acked);
        }
    }

    /// [C-9] Whether the ACK has a DSACK block for data that the sender has sent twice. Such a
    /// block lies within the second one (RFC 2883 §4); the agent's own retransmissions cause it as
    /// well.
    fn answers_retransmission(&self, segment: &Segment) -> bool {
        let blocks = segment.options.sack.as_slice();
        let Some(&(left, right)) = blocks.first() else { return false };
        let (Some(start), Some(end)) = (self.position(left), self.position(right)) else {
            return false;
        };
        is_within_the_next(blocks)
            && self
                .outstanding
                .cache
                .iter_overlapping(start, end)
                .any(|cached| cached.trouble.resent)
    }

    /// [C-9] The DSACK block of this segment (RFC 2883 §4), if the sender has got as many as it has
    /// retransmitted; or else the block counts. The agent's own copies cause such blocks as well,
    /// and a sender learns from them to wait for repairs (RFC 8985 §6.2 step 4). But Linux ignores
    /// all later ones once it has got more than it has retransmitted (`tcp_dsack_seen`).
    fn take_excess_duplicate(&mut self, segment: &Segment) -> Option<SeqNumber> {
        if segment.options.signed {
            return None;
        }
        let blocks = segment.options.sack.as_slice();
        let (&(left, right), rest) = blocks.split_first()?;
        if self.position(right)? > self.acked && !is_within_the_next(blocks) {
            return None;
        }
        if self.own.unreported > 0 {
            self.own.unreported -= 1;
            return None;
        }
        Some(left).filter(|left| rest.iter().all(|other| other.0 != *left))
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
    pub(super) fn says_nothing_else(&self, segment: &Segment) -> bool {
        let says_more = segment.flags.intersects(Flags::URG) || segment.options.multipath;
        segment.is_pure_ack()
            && !says_more
            && self.forwarded.is_some_and(|fields| fields == AckFields::of(segment))
    }
}

/// Whether the first block lies within the second one, as a DSACK block above the ACK number does
/// (RFC 2883 §4).
fn is_within_the_next(blocks: &[(SeqNumber, SeqNumber)]) -> bool {
    let &[(left, right), (outer_left, outer_right), ..] = blocks else { return false };
    left.offset_from(outer_left) >= 0 && outer_right.offset_from(right) >= 0
}
