//! The round-trip timer and the persist timer [snoop95 §4], and the clean-up of idle flows.

use super::{Settings, Snoop95};
use crate::agent::{Deadline, Timer};
use crate::agents::flow_table::FlowRef;
use crate::event::{Cause, FlowEnd};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use core::time::Duration;

/// The idle flows of the whole table are found in this many steps, so that none takes long.
const TOUR_STEPS: u32 = 64;

/// How many flows a new one may displace by looking at them when the table is full.
const EVICTION_GLANCES: usize = 8;

/// A flow without any ACK from the mobile may be displaced after this silence: a flood of data
/// that nobody answers must not keep real flows out.
const UNANSWERED: Duration = Duration::from_secs(1);

/// When each flow wants attention.
///
/// Every packet moves its flow's persist timer, so entries are lazy: a flow has one entry, never
/// later than its true deadline, and is entered anew when that turns out to be early.
#[derive(Debug)]
pub(super) struct Deadlines {
    flows: BTreeMap<(Instant, u32), Timer>,
    /// The first of them, since every packet asks for it.
    first: Option<Deadline>,
    /// When the next few flows are looked at for idleness; `None` while there are none.
    next_tour: Option<Instant>,
}

impl Deadlines {
    pub(super) fn new() -> Self {
        Self { flows: BTreeMap::new(), first: None, next_tour: None }
    }

    pub(super) fn cancel(&mut self, flow: FlowRef, scheduled: Option<Instant>) {
        if let Some(at) = scheduled {
            self.flows.remove(&(at, flow.slot()));
            self.find_first();
        }
    }

    fn enter(&mut self, at: Instant, flow: FlowRef, why: Timer) {
        self.flows.insert((at, flow.slot()), why);
        self.find_first();
    }

    /// Takes out the first deadline if it is due; returns the slot of its flow.
    fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let slot =
            self.flows.first_entry().filter(|first| first.key().0 <= now)?.remove_entry().0.1;
        self.find_first();
        Some(slot)
    }

    fn find_first(&mut self) {
        let first = self.flows.first_key_value();
        self.first = first.map(|(&(at, _), &why)| Deadline { at, why });
    }

    pub(super) fn start_tour(&mut self, now: Instant, settings: &Settings) {
        self.next_tour.get_or_insert(now + tour_interval(settings));
    }
}

fn tour_interval(settings: &Settings) -> Duration {
    (settings.idle_timeout / TOUR_STEPS).max(Duration::from_millis(1))
}

impl Snoop95 {
    /// Enters a flow's deadline if it is earlier than the one that stands.
    pub(super) fn schedule(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let Some(due) = flow.due() else { return };
        let due = due.max(now);
        if flow.scheduled.is_some_and(|at| at <= due) {
            return;
        }
        self.deadlines.cancel(reference, flow.scheduled);
        let round_trip = flow.round_trip_due.is_some_and(|round_trip| round_trip <= due);
        let timer = if round_trip { Timer::SnoopRoundTrip } else { Timer::SnoopPersist };
        flow.scheduled = Some(due);
        self.deadlines.enter(due, reference, timer(flow.id));
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        let tour = self.deadlines.next_tour.map(|at| Deadline { at, why: Timer::FlowIdle });
        [self.deadlines.first, tour].into_iter().flatten().min_by_key(|deadline| deadline.at)
    }

    pub(super) fn run_timers(&mut self, now: Instant) {
        while let Some(slot) = self.deadlines.pop_due(now) {
            if let Some(flow) = self.flows.reference(slot) {
                self.run_flow_timers(now, flow);
            }
        }
        if self.deadlines.next_tour.is_some_and(|at| at <= now) {
            let share = self.flows.slots().div_ceil(TOUR_STEPS as usize);
            for slot in self.flows.tour(share) {
                self.expire(now, slot);
            }
            let next = now + tour_interval(&self.settings);
            self.deadlines.next_tour = (!self.flows.is_empty()).then_some(next);
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
