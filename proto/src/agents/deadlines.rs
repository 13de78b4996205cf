//! The deadlines of an agent's flows, and of the idle sweep.

use super::flow_table::FlowRef;
use crate::agent::{Deadline, Timer};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use core::time::Duration;

/// The number of steps in which the idle sweep visits the whole table, so that each step is short.
const SWEEP_STEPS: u32 = 64;

/// Deadlines of flows, and of the idle sweep over the table.
///
/// Nearly every packet moves its flow's deadline, so entries are lazy: a flow has one entry, never
/// later than its true deadline, which is replaced when it expires early.
#[derive(Debug)]
pub(super) struct Deadlines {
    flows: BTreeMap<(Instant, u32), Timer>,
    /// The first of `flows` or the next step of the sweep, which every packet reads twice.
    next: Option<Deadline>,
    /// The time of the next step of the idle sweep; `None` while there is no flow.
    next_sweep: Option<Instant>,
    sweep_interval: Duration,
}

impl Deadlines {
    /// No deadlines. The sweep over the whole table takes `idle_timeout`.
    pub(super) fn new(idle_timeout: Duration) -> Self {
        let sweep_interval = (idle_timeout / SWEEP_STEPS).max(Duration::from_millis(1));
        Self { flows: BTreeMap::new(), next: None, next_sweep: None, sweep_interval }
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Deadline> {
        self.next
    }

    /// Enters a flow's deadline in place of its present one.
    pub(super) fn enter(
        &mut self,
        flow: FlowRef,
        scheduled: &mut Option<Instant>,
        deadline: Deadline,
    ) {
        if let Some(at) = scheduled.replace(deadline.at) {
            self.flows.remove(&(at, flow.slot()));
        }
        self.flows.insert((deadline.at, flow.slot()), deadline.why);
        self.find_next();
    }

    /// Removes a flow's deadline.
    pub(super) fn cancel(&mut self, flow: FlowRef, scheduled: Option<Instant>) {
        if let Some(at) = scheduled {
            self.flows.remove(&(at, flow.slot()));
            self.find_next();
        }
    }

    /// Removes the first deadline if it has expired; returns the slot of its flow.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let slot =
            self.flows.first_entry().filter(|first| first.key().0 <= now)?.remove_entry().0.1;
        self.find_next();
        Some(slot)
    }

    fn find_next(&mut self) {
        let first = self.flows.first_key_value();
        let first = first.map(|(&(at, _), &why)| Deadline { at, why });
        let sweep = self.next_sweep.map(|at| Deadline { at, why: Timer::FLOW_IDLE });
        self.next = first.into_iter().chain(sweep).min_by_key(|deadline| deadline.at);
    }

    /// Starts the idle sweep unless it is running: the table has a flow.
    pub(super) fn start_sweep(&mut self, now: Instant) {
        if self.next_sweep.is_none() {
            self.next_sweep = Some(now + self.sweep_interval);
            self.find_next();
        }
    }

    /// How many of `slots` the sweep visits now, if a step is due.
    pub(super) fn sweep_due(&mut self, now: Instant, slots: usize) -> Option<usize> {
        self.next_sweep.filter(|at| *at <= now)?;
        self.next_sweep = Some(now + self.sweep_interval);
        self.find_next();
        Some(slots.div_ceil(SWEEP_STEPS as usize))
    }

    /// Stops the idle sweep: the table is empty.
    pub(super) fn stop_sweep(&mut self) {
        self.next_sweep = None;
        self.find_next();
    }
}
