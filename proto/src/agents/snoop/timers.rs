//! The one timer of a flow, whatever it waits for, and the clean-up of idle flows.

use super::Snoop;
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

impl Snoop {
    /// Enters a flow's deadline if it is earlier than the one that stands.
    pub(super) fn schedule(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let due = [
            flow.probe_due().map(|at| (at, Timer::SnoopProbe(flow.id))),
            flow.reordering_due.map(|at| (at, Timer::SnoopReordering(flow.id))),
            flow.reveal_due(now, &self.settings).map(|at| (at, Timer::SnoopHold(flow.id))),
        ];
        let Some((at, why)) = due.into_iter().flatten().min_by_key(|(at, _)| *at) else { return };
        let at = at.max(now);
        if flow.scheduled.is_none_or(|scheduled| at < scheduled) {
            self.deadlines.enter(reference, &mut flow.scheduled, Deadline { at, why });
        }
    }

    pub(super) fn run_timers(&mut self, now: Instant) {
        self.repeat_handshakes(now);
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
        if flow.reordering_due.is_some_and(|at| at <= now) {
            self.repair_losses(now, reference);
        }
        let Some(flow) = self.flows.get_mut(reference) else { return };
        if flow.probe_due().is_some_and(|at| at <= now) {
            let cause = if flow.timeouts == 0 { Cause::TailProbe } else { Cause::LocalTimeout };
            let before = flow.cache.memory();
            let probe = flow.probe();
            self.cache_bytes = self.cache_bytes - before + flow.cache.memory();
            flow.quiet_since = now;
            if let Some(start) = probe {
                flow.timeouts += 1;
                self.retransmit(reference, start, cause);
            }
        }
        let Some(flow) = self.flows.get_mut(reference) else { return };
        if flow.reveal_due(now, &self.settings).is_some_and(|at| at <= now) {
            self.reveal(now, reference);
        }
        self.schedule(now, reference);
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
            if flow.told.is_none() && now - flow.active_at >= UNANSWERED {
                self.end_flow(reference, FlowEnd::Evicted);
                return;
            }
        }
    }
}
