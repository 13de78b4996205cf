//! Timeout: the retransmission timer of each connection [snoop-opnet §3.5; S3-08].

use super::SnoopOpnet;
use crate::agent::{Deadline, Timer};
use crate::agents::flow_table::FlowRef;
use crate::event::Cause;
use crate::time::Instant;

impl SnoopOpnet {
    /// Schedules a flow's next deadline, unless an earlier one is scheduled.
    pub(super) fn schedule(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get(reference) else { return };
        let Some(due) = flow.due() else { return };
        let why = Timer::of_flow("snoop-persist", flow.base.id);
        self.flows.schedule(reference, Deadline { at: due.max(now), why });
    }

    pub(super) fn run_timers(&mut self, now: Instant) {
        while let Some(flow) = self.flows.pop_due(now) {
            self.run_flow_timer(now, flow);
        }
        self.flows.sweep(now);
    }

    /// If the timer of the flow has expired, retransmits all unacknowledged packets and extends the
    /// timer.
    fn run_flow_timer(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        if flow.due().is_some_and(|due| due <= now) {
            flow.expiries = flow.expiries.saturating_add(1);
            flow.restart_timer(now, &self.settings);
            self.go_back(reference, Cause::PersistTimer);
        }
        self.schedule(now, reference);
    }
}
