//! Local retransmissions: their queue, and the packets that are sent.

use super::cache::Cached;
use super::decision::Left;
use super::flow::Flow;
use super::loss::{Fate, Judged};
use super::outstanding::Outstanding;
use super::queued_repair::Repair;
use super::{Snoop, seq};
use crate::agent::Port;
use crate::agents::flow_table::FlowRef;
use crate::event::{Cause, Decision, Event};
use crate::packet::Packet;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::checksum::has_right_checksum;
use crate::wire::edit::{cut, with_timestamp};
use crate::wire::flow::FlowKey;
use crate::wire::tcp::Segment;
use alloc::vec::Vec;

/// A retransmission that is sent.
struct Retransmission {
    /// The packet, and whether its timestamp was renewed; `None` if the mobile would refuse it.
    copy: Option<(Packet, bool)>,
    sent: Span,
    attempt: u32,
    /// The rest of the queued range, if the range was split since.
    rest: Option<Span>,
}

impl Snoop {
    /// [C-4] Queues retransmissions of all ranges that are lost.
    pub(super) fn repair_losses(&mut self, now: Instant, reference: FlowRef) {
        let mobile = self.flows.mobile(reference);
        let (shared, settings) = (&mut self.shared, &self.settings);
        let lost = self.flows.update(reference, |flow| {
            let mut lost = flow.find_lost(now, mobile, shared, settings);
            lost.append(&mut flow.find_forgotten(now, shared, settings));
            lost
        });
        for Judged { span, fate } in lost.unwrap_or_default() {
            match fate {
                Fate::Left(cause) => self.decided(reference, span, cause),
                Fate::Repaired(cause, sight) => {
                    self.decided(reference, span, sight);
                    self.retransmit(now, reference, span.start, cause);
                }
            }
        }
    }

    /// Says what was decided on a range.
    pub(super) fn decided(&mut self, flow: FlowRef, span: Span, decision: impl Into<Decision>) {
        let Some(flow) = self.flows.get(flow).map(|flow| flow.base.id) else { return };
        let range = (seq(span.start), seq(span.end));
        self.event(Event::Decided { flow, range, decision: decision.into() });
    }

    /// [C-6] Queues a retransmission of the range that begins at `start`, in the priority class; at
    /// most one copy of a range is queued.
    pub(super) fn retransmit(&mut self, now: Instant, flow: FlowRef, start: u64, cause: Cause) {
        let is_full = self.repairs.is_full();
        let Some(state) = self.flows.get_mut(flow) else { return };
        let Some(cached) = state.outstanding.cache.at_mut(start).filter(|c| !c.trouble.is_queued)
        else {
            return;
        };
        let span = cached.span();
        if is_full {
            // [C-3] What a full queue refuses is congestion.
            cached.trouble.is_congestion = true;
            self.event(Event::EgressDropped(Port::Air));
            return self.decided(flow, span, Left::Refused);
        }
        cached.trouble.is_queued = true;
        if cause.is_probe() {
            state.outstanding.probe.set_queued(true);
        }
        self.repairs.push(Repair { flow, span, cause, since: now });
    }

    /// The next retransmission that is still needed. Not inlined: seldom is there one.
    #[inline(never)]
    pub(super) fn poll_repair(&mut self, now: Instant) -> Option<Packet> {
        loop {
            let Repair { flow, span, cause, since } = self.repairs.pop()?;
            let Some(state) = self.flows.get_mut(flow) else { continue };
            let id = state.base.id;
            if cause.is_probe() && !state.begin_probe(now, span, since) {
                self.schedule(now, flow);
                continue;
            }
            let Some(retransmission) = state.take_repair(span) else { continue };
            let Retransmission { copy, sent, attempt, rest } = retransmission;
            if let Some(span) = rest {
                self.repairs.put_back(Repair { flow, span, cause, since });
            }
            let Some((packet, is_timestamp_renewed)) = copy else {
                self.decided(flow, sent, Left::Unrepairable);
                continue;
            };
            if is_timestamp_renewed {
                self.event(Event::TimestampRenewed(id, seq(sent.start)));
            }
            let seq = seq(sent.start);
            self.event(Event::LocalRetransmit { flow: id, seq, cause, attempt });
            self.hand_over(Repair { flow, span: sent, cause, since: now });
            return Some(packet);
        }
    }

    /// Notes that a retransmission waits in a queue of the runner from now on.
    fn hand_over(&mut self, repair: Repair) {
        if self.handed_over.len() >= self.repairs.limit {
            self.refuse_oldest();
        }
        self.handed_over.push_back(repair);
    }

    /// A retransmission departs. Those that were handed over before it and have not departed were
    /// refused by the queue.
    pub(super) fn confirm_repair(&mut self, now: Instant, packet: &Packet) {
        let Ok(segment) = Segment::parse(packet) else { return };
        if segment.seq_len() == 0 {
            return;
        }
        let Some(flow) = self.flows.find(&FlowKey::of(&segment, Port::Wired)) else { return };
        let Some(span) = self.flows.get(flow).and_then(|flow| flow.span(&segment)) else { return };
        let since = self.take_handed_over(flow, span);
        let Some(state) = self.flows.get_mut(flow) else { return };
        if let Some(part) = state.outstanding.there() {
            part.probe.restart(now);
            part.depart(now, span);
            part.repair_wait = now.since(since.unwrap_or(now));
        }
        self.repair_twice(now, flow, span);
        self.schedule(now, flow);
    }

    /// Takes a retransmission that has departed from those handed over; since when it has waited.
    fn take_handed_over(&mut self, flow: FlowRef, span: Span) -> Option<Instant> {
        let is_this = |it: &Repair| {
            it.flow == flow && it.span.start <= span.start && span.start < it.span.end
        };
        let refused = self.handed_over.iter().position(is_this)?;
        for _ in 0..refused {
            self.refuse_oldest();
        }
        self.handed_over.pop_front().map(|departed| departed.since)
    }

    /// [C-30] Queues a second copy of a repair that has departed, if it costs no other packet time
    /// on the air.
    fn repair_twice(&mut self, now: Instant, reference: FlowRef, span: Span) {
        let mobile = self.flows.mobile(reference);
        let Some(flow) = self.flows.get_mut(reference) else { return };
        if !flow.strategy().sends_copies(flow, self.shared.hops.get(now, mobile)) {
            return;
        }
        let is_first = |cached: &&mut Cached| cached.trouble.attempts % 2 == 1;
        let budget = &mut flow.repair_budget;
        let mut starts = Vec::new();
        for cached in flow.outstanding.cache.overlapping(span.start, span.end).filter(is_first) {
            if budget.spend(&mut self.shared.credit) {
                starts.push(cached.start);
            }
        }
        for start in starts {
            self.retransmit(now, reference, start, Cause::SecondCopy);
        }
    }

    /// [C-3] The queue refused the oldest retransmission of those handed over: its loss is
    /// congestion.
    fn refuse_oldest(&mut self) {
        let Some(Repair { flow: reference, span, .. }) = self.handed_over.pop_front() else {
            return;
        };
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let mut is_refused = false;
        for cached in
            flow.outstanding.cache.overlapping(span.start, span.end).filter(|c| c.trouble.is_queued)
        {
            cached.trouble.is_queued = false;
            cached.trouble.is_congestion = true;
            is_refused = true;
        }
        if is_refused {
            self.decided(reference, span, Left::Refused);
        }
    }
}

impl Flow {
    /// Begins a queued probe; false if it is not sent. A probe that waited for a probe timeout is
    /// not needed: the port took no packet for that time, and the queued packets will be
    /// acknowledged too [C-5].
    fn begin_probe(&mut self, now: Instant, span: Span, since: Instant) -> bool {
        let Some(part) = self.outstanding.there() else { return false };
        part.probe.set_queued(false);
        let delivered = part.delivered.sent.order;
        let is_overtaken = |cached: &mut Cached| cached.sent.order < delivered;
        let is_lost = part.cache.overlapping(span.start, span.end).any(is_overtaken);
        if is_lost || now.since(since) < self.air.probe_timeout(self.outstanding.has_lone_segment())
        {
            self.outstanding.probe.timed_out();
            return true;
        }
        self.outstanding.probe.restart(now);
        self.outstanding.cache.overlapping(span.start, span.end).for_each(Cached::unqueue);
        false
    }

    /// The first part of `span` that is queued and has not arrived since, by a late original or by
    /// the sender's own retransmission.
    fn take_repair(&mut self, span: Span) -> Option<Retransmission> {
        let start = span.start.max(self.acked);
        let Outstanding { cache, sacked, .. } = &mut *self.outstanding;
        for cached in cache.overlapping(start, span.end) {
            let is_arrived = sacked.span_at(cached.start).is_some();
            let is_needed = cached.trouble.is_queued && !is_arrived && !cached.trouble.is_disputed;
            if !is_needed {
                cached.unqueue();
                continue;
            }
            let start = cached.start;
            let renewed = |value| self.ts_recent.renewed(value, start, self.own.resent);
            let copy = copy_of(cached, renewed);
            let trouble = &mut *cached.trouble;
            trouble.attempts += u32::from(copy.is_some());
            trouble.is_queued = copy.is_some();
            trouble.resent |= copy.is_none();
            let rest = Span { start: cached.end, end: span.end };
            return Some(Retransmission {
                copy,
                sent: cached.span(),
                attempt: cached.trouble.attempts,
                rest: (rest.start < rest.end).then_some(rest),
            });
        }
        None
    }
}

/// The packet to retransmit, and whether its timestamp was renewed; `None` if the mobile would
/// refuse it.
fn copy_of(cached: &Cached, renewed: impl Fn(u32) -> u32) -> Option<(Packet, bool)> {
    let segment = Segment::parse(&cached.packet).ok()?;
    let from = u32::try_from(cached.start - cached.origin).ok()?;
    let whole = from == 0 && u64::from(segment.seq_len()) == cached.end - cached.start;
    let packet = if whole || cached.packet.segment_size().is_none() {
        // [C-24] A packet that was damaged before the agent is refused by the mobile.
        has_right_checksum(&cached.packet).then(|| cached.packet.clone())?
    } else {
        let len = u32::try_from(cached.end - cached.start).ok()?;
        cut(&cached.packet, &segment, from, len)?
    };
    // [C-12] The old TSval permits the sender to undo a recovery, and makes the sender's round-trip
    // sample include the repair. But after the sender has filled an earlier hole, the mobile would
    // refuse the old TSval (RFC 7323 §5.3 R1).
    let value = segment.options.timestamps.map(|timestamps| timestamps.value);
    let Some(value) = value.map(renewed).filter(|renewed| value != Some(*renewed)) else {
        return Some((packet, false));
    };
    // [C-16] A signed packet is never edited.
    if segment.options.signed {
        return None;
    }
    let segment = Segment::parse(&packet).ok()?;
    with_timestamp(&packet, &segment, value).map(|packet| (packet, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::agents::limits::Limits;
    use crate::agents::snoop::Settings;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::seq::SeqNumber;
    use crate::wire::tcp::Options;
    use core::time::Duration;

    const FIXED: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
    const MOBILE: ([u8; 4], u16) = ([10, 0, 1, 2], 5000);

    fn data(number: u32) -> Packet {
        let segment = SegmentBuilder::new(FIXED, MOBILE).seq(SeqNumber(number * 1_000));
        segment.payload(&[0; 1_000]).build(LinkType::Ip)
    }

    /// Packet 0 has arrived, and 2 has before 1.
    fn loss_signal() -> Packet {
        let sack = [(SeqNumber(2_000), SeqNumber(3_000))].into_iter().collect();
        let segment = SegmentBuilder::new(MOBILE, FIXED).ack(SeqNumber(1_000)).window(u16::MAX);
        segment.options(Options { sack, ..Options::default() }).build(LinkType::Ip)
    }

    #[test]
    fn a_repair_that_departs_tells_what_it_waited_in_the_interface() {
        let mut agent = Snoop::new(Settings::default(), Limits::default(), 1);
        let handed_over = Instant::from_millis(20);
        for number in 0..3 {
            agent.handle_copy(Instant::from_millis(1), Port::Wired, &data(number));
        }
        agent.handle_copy(handed_over, Port::Air, &loss_signal());
        let repair = agent.poll_transmit(handed_over, Port::Air).unwrap();
        let wait = Duration::from_millis(7);
        agent.confirm_departure(handed_over + wait, Port::Air, &repair);
        let flow = FlowKey::of(&Segment::parse(&repair).unwrap(), Port::Wired);
        let flow = agent.flows.find(&flow).and_then(|flow| agent.flows.get(flow)).unwrap();
        assert_eq!(flow.outstanding.repair_wait, wait);
    }
}
