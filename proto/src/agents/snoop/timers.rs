//! The timer of a flow, shared by probe, reordering window and hold budget.

use super::Snoop;
use super::decision::Left;
use super::flow::Flow;
use crate::agent::{Deadline, Timer};
use crate::agents::flow_table::FlowRef;
use crate::event::Cause;
use crate::ranges::Span;
use crate::time::Instant;

impl Snoop {
    /// Schedules a flow's next deadline, unless an earlier one is scheduled.
    pub(super) fn schedule(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get(reference) else { return };
        let due = [
            (flow.probe_due(), "snoop-probe"),
            (flow.outstanding.reordering_due, "snoop-reordering"),
            (flow.unanswered_due(), "snoop-unanswered"),
            (flow.release_due(now, &self.settings), "snoop-hold"),
        ];
        let due = due.into_iter().filter_map(|(at, name)| Some((at?, name)));
        if let Some((at, name)) = due.min_by_key(|(at, _)| *at) {
            let why = Timer::of_flow(name, flow.base.id);
            self.flows.schedule(reference, Deadline { at: at.max(now), why });
        }
    }

    pub(super) fn run_timers(&mut self, now: Instant) {
        self.handshakes.expire(now);
        while let Some(flow) = self.flows.pop_due(now) {
            self.run_flow_timers(now, flow);
        }
        self.flows.sweep(now);
        self.uplinks.handle_timeout(now);
    }

    fn run_flow_timers(&mut self, now: Instant, reference: FlowRef) {
        let is_due = |due: Option<Instant>| due.is_some_and(|at| at <= now);
        if self.flows.get(reference).is_some_and(|flow| is_due(flow.outstanding.reordering_due)) {
            self.repair_losses(now, reference);
        }
        if self.flows.get(reference).is_some_and(|flow| is_due(flow.unanswered_due())) {
            self.flows.update(reference, Flow::forget_sent);
        }
        if self.flows.get(reference).is_some_and(|flow| is_due(flow.probe_due())) {
            self.probe(now, reference);
        }
        let Some(flow) = self.flows.get(reference) else { return };
        if is_due(flow.release_due(now, &self.settings)) {
            self.release(now, reference);
        }
        self.schedule(now, reference);
    }

    /// [C-5] The probe timeout has expired: queues a probe, if there is something to probe.
    fn probe(&mut self, now: Instant, reference: FlowRef) {
        let start = self.flows.update(reference, |flow| flow.outstanding.next_probe()).flatten();
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let probe = &mut flow.outstanding.probe;
        let Some(start) = start else { return probe.rest() };
        let cause = if probe.is_first() { Cause::TailProbe } else { Cause::LocalTimeout };
        probe.restart(now);
        if !flow.repair_budget.spend(&mut self.shared.credit) {
            flow.outstanding.probe.timed_out();
            let span = Span { start: flow.acked, end: flow.highest };
            return self.decided(reference, span, Left::Budget);
        }
        self.retransmit(now, reference, start, cause);
    }
}
