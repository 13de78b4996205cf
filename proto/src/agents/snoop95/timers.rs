//! The round-trip timer and the persist timer [snoop95 §4].

use super::Snoop95;
use crate::agent::{Deadline, Timer};
use crate::agents::flow_table::FlowRef;
use crate::event::Cause;
use crate::time::Instant;

impl Snoop95 {
    /// Schedules a flow's next deadline, unless an earlier one is scheduled.
    pub(super) fn schedule(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get(reference) else { return };
        let Some(due) = flow.due(&self.settings) else { return };
        let at = due.max(now);
        let is_round_trip = flow.round_trip_due.is_some_and(|round_trip| round_trip <= at);
        let name = if is_round_trip { "snoop-rto" } else { "snoop-persist" };
        let why = Timer::of_flow(name, flow.base.id);
        self.flows.schedule(reference, Deadline { at, why });
    }

    pub(super) fn run_timers(&mut self, now: Instant) {
        while let Some(flow) = self.flows.pop_due(now) {
            self.run_flow_timers(now, flow);
        }
        self.flows.sweep(now);
    }

    fn run_flow_timers(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        if flow.cache.is_empty() || flow.is_closed(&self.settings) {
            flow.round_trip_due = None;
            return;
        }
        if flow.persist_due <= now {
            // [S0-34] Neither host sent a packet: retransmit the oldest packet and restart the
            // DUPACK count.
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
        // The timer restarts whether or not the packet is retransmitted.
        flow.round_trip_due = flow.round_trip_due.map(|_| now + timeout);
        let Some(oldest) = flow.cache.oldest() else { return };
        let seq = oldest.seq;
        if cause == Cause::RoundTripTimer {
            flow.expected_dupacks = sent_packets.wrapping_sub(oldest.sent_index);
            flow.unexpected_dupacks = 0;
        }
        self.retransmit(now, reference, seq, cause);
    }
}
