//! When each flow of an agent wants attention, and when the next few are looked at for idleness.

use super::flow_table::FlowRef;
use crate::agent::{Deadline, Timer};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use core::time::Duration;

/// The idle flows of the whole table are found in this many steps, so that none takes long.
const SWEEP_STEPS: u32 = 64;

/// Deadlines of flows, and of the idle sweep over the table.
///
/// Nearly every packet moves its flow's deadline, so entries are lazy: a flow has one entry, never
/// later than its true deadline, and is entered anew when that turns out to be early.
#[derive(Debug)]
pub(super) struct Deadlines {
    flows: BTreeMap<(Instant, u32), Timer>,
    /// The first of them, since every packet asks for it.
    first: Option<Deadline>,
    /// When the next few flows are looked at for idleness; `None` while there are none.
    next_sweep: Option<Instant>,
    sweep_interval: Duration,
}

impl Deadlines {
    /// No deadlines; flows idle for `idle_timeout` are found within an eighth of it more.
    pub(super) fn new(idle_timeout: Duration) -> Self {
        let sweep_interval = (idle_timeout / SWEEP_STEPS).max(Duration::from_millis(1));
        Self { flows: BTreeMap::new(), first: None, next_sweep: None, sweep_interval }
    }

    /// The earliest of all.
    pub(super) fn next(&self) -> Option<Deadline> {
        let sweep = self.next_sweep.map(|at| Deadline { at, why: Timer::FLOW_IDLE });
        [self.first, sweep].into_iter().flatten().min_by_key(|deadline| deadline.at)
    }

    /// Enters a flow's deadline, which takes the place of the one that stands.
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

    /// Takes a flow's deadline out.
    pub(super) fn cancel(&mut self, flow: FlowRef, scheduled: Option<Instant>) {
        if let Some(at) = scheduled {
            self.flows.remove(&(at, flow.slot()));
            self.find_first();
        }
    }

    /// Takes out the first deadline if it is due; returns the slot of its flow.
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

    /// There is a flow: the idle sweep begins, if it has not.
    pub(super) fn start_sweep(&mut self, now: Instant) {
        self.next_sweep.get_or_insert(now + self.sweep_interval);
    }

    /// How many of `slots` to look at now, if that is due.
    pub(super) fn sweep_due(&mut self, now: Instant, slots: usize) -> Option<usize> {
        self.next_sweep.filter(|at| *at <= now)?;
        self.next_sweep = Some(now + self.sweep_interval);
        Some(slots.div_ceil(SWEEP_STEPS as usize))
    }

    /// There is no flow any more.
    pub(super) fn stop_sweep(&mut self) {
        self.next_sweep = None;
    }
}
