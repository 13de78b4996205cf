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
    /// The first of `flows`, which every packet reads.
    first: Option<Deadline>,
    /// The time of the next step of the idle sweep; `None` while there is no flow.
    next_sweep: Option<Instant>,
    sweep_interval: Duration,
}

impl Deadlines {
    /// No deadlines. The sweep over the whole table takes `idle_timeout`.
    pub(super) fn new(idle_timeout: Duration) -> Self {
        let sweep_interval = (idle_timeout / SWEEP_STEPS).max(Duration::from_millis(1));
        Self { flows: BTreeMap::new(), first: None, next_sweep: None, sweep_interval }
    }

    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Deadline> {
        match (self.first, self.next_sweep) {
            (Some(first), None) => Some(first),
            (Some(first), Some(sweep)) if first.at <= sweep => Some(first),
            (_, sweep) => sweep.map(|at| Deadline { at, why: Timer::FLOW_IDLE }),
        }
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
        self.find_first();
    }

    /// Removes a flow's deadline.
    pub(super) fn cancel(&mut self, flow: FlowRef, scheduled: Option<Instant>) {
        if let Some(at) = scheduled {
            self.flows.remove(&(at, flow.slot()));
            self.find_first();
        }
    }

    /// Removes the first deadline if it has expired; returns the slot of its flow.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let slot =
            self.flows.first_entry().filter(|first| first.key().0 <= now)?.remove_entry().0.1;
        self.find_first();
        Some(slot)
    }

    fn find_first(&mut self) {
        let first = self.flows.first_key_value();
        self.first = first.map(|(&(at, _), &why)| Deadline { at, why });
    }

    /// Starts the idle sweep unless it is running: the table has a flow.
    pub(super) fn start_sweep(&mut self, now: Instant) {
        self.next_sweep.get_or_insert(now + self.sweep_interval);
    }

    /// How many of `slots` the sweep visits now, if a step is due.
    pub(super) fn sweep_due(&mut self, now: Instant, slots: usize) -> Option<usize> {
        self.next_sweep.filter(|at| *at <= now)?;
        self.next_sweep = Some(now + self.sweep_interval);
        Some(slots.div_ceil(SWEEP_STEPS as usize))
    }

    /// Stops the idle sweep: the table is empty.
    pub(super) fn stop_sweep(&mut self) {
        self.next_sweep = None;
    }
}
