//! The round-trip timer and the persist timer [snoop95 §4], and the clean-up of idle flows.

use super::Snoop95;
use crate::agent::{Deadline, Timer};
use crate::agents::flow_table::FlowRef;
use crate::event::{Cause, FlowEnd};
use crate::time::Instant;
use core::time::Duration;

/// How many flows a new one may displace by looking at them when the table is full.
const EVICTION_GLANCES: usize = 8;

/// A flow without any ACK from the mobile may be displaced after this silence: a flood of data
/// that nobody answers must not keep real flows out.
const UNANSWERED: Duration = Duration::from_secs(1);

impl Snoop95 {
    /// Enters a flow's deadline if it is earlier than the one that stands.
    pub(super) fn schedule(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let Some(due) = flow.due() else { return };
        let due = due.max(now);
        if flow.scheduled.is_some_and(|at| at <= due) {
            return;
        }
        let round_trip = flow.round_trip_due.is_some_and(|round_trip| round_trip <= due);
        let timer = if round_trip { Timer::SnoopRoundTrip } else { Timer::SnoopPersist };
        let deadline = Deadline { at: due, why: timer(flow.id) };
        self.deadlines.enter(reference, &mut flow.scheduled, deadline);
    }

    pub(super) fn run_timers(&mut self, now: Instant) {
        while let Some(slot) = self.deadlines.pop_due(now) {
            if let Some(flow) = self.flows.reference(slot) {
                self.run_flow_timers(now, flow);
            }
        }
        if let Some(share) = self.deadlines.tour_due(now, self.flows.slots()) {
            for slot in self.flows.tour(share) {
                self.expire(now, slot);
            }
            if self.flows.is_empty() {
                self.deadlines.stop_tour();
            }
        }
    }

    fn run_flow_timers(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        flow.scheduled = None;
        if flow.cache.is_empty() {
            flow.round_trip_due = None;
            return;
        }
        if flow.persist_due <= now {
            // [S0-34] Silence of both hosts: the oldest packet again, and DUPACKs count anew.
            flow.expected_dupacks = 0;
            flow.unexpected_dupacks = 0;
            flow.persist_due = now + self.settings.persist_timeout;
            self.retransmit_oldest(now, reference, Cause::PersistTimer);
        } else if flow.round_trip_due.is_some_and(|due| due <= now) {
            self.retransmit_oldest(now, reference, Cause::RoundTripTimer);
        }
        self.schedule(now, reference);
    }

    fn retransmit_oldest(&mut self, now: Instant, reference: FlowRef, cause: Cause) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let sent_packets = flow.sent_packets;
        let timeout = flow.round_trip_timeout(&self.settings);
        // Whatever becomes of the retransmission, the timer is not due again before its time.
        flow.round_trip_due = flow.round_trip_due.map(|_| now + timeout);
        let Some(oldest) = flow.cache.oldest() else { return };
        let seq = oldest.seq;
        if cause == Cause::RoundTripTimer {
            flow.expected_dupacks = sent_packets.wrapping_sub(oldest.sent_index);
            flow.unexpected_dupacks = 0;
        }
        self.retransmit(now, reference, seq, cause);
    }

    /// Frees a flow whose hosts have been silent for the idle time.
    fn expire(&mut self, now: Instant, slot: u32) -> bool {
        let Some(reference) = self.flows.reference(slot) else { return false };
        let Some(flow) = self.flows.get(reference) else { return false };
        let idle = now - flow.active_at >= self.settings.idle_timeout;
        if idle {
            self.end_flow(reference, FlowEnd::Idle);
        }
        idle
    }

    /// Makes room in a full table by displacing a flow that is idle or was never answered.
    pub(super) fn evict(&mut self, now: Instant) {
        for slot in self.flows.tour(EVICTION_GLANCES) {
            if self.expire(now, slot) {
                return;
            }
            let Some(reference) = self.flows.reference(slot) else { continue };
            let Some(flow) = self.flows.get(reference) else { continue };
            if flow.last_ack.is_none() && now - flow.active_at >= UNANSWERED {
                self.end_flow(reference, FlowEnd::Evicted);
                return;
            }
        }
    }
}
