//! The soft state of all flows of one agent: bounded, counted, scheduled and swept.

use super::deadlines::Deadlines;
use super::flow_table::{FlowRef, FlowTable};
use super::limits::Limits;
use crate::agent::{Deadline, Load, UNANSWERED};
use crate::event::{Event, FlowEnd, FlowId};
use crate::packet::Packet;
use crate::port::Port;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use alloc::collections::VecDeque;
use core::time::Duration;

/// The number of candidates for eviction when a new flow finds the table full.
const EVICTION_CANDIDATES: usize = 8;

/// Bytes that are kept free for flows that hold little: two super-packets.
const RESERVE: usize = 128 << 10;

/// The state of a flow that all agents keep.
#[derive(Clone, Debug)]
pub(super) struct FlowBase {
    pub(super) id: FlowId,
    /// When the flow was picked up.
    pub(super) opened_at: Instant,
    /// When either host last sent a packet.
    pub(super) active_at: Instant,
    /// The deadline that is entered in [`Deadlines`] for the flow.
    scheduled: Option<Instant>,
}

impl FlowBase {
    pub(super) fn new(id: FlowId, now: Instant) -> Self {
        Self { id, opened_at: now, active_at: now, scheduled: None }
    }
}

/// The state of a flow that an agent keeps.
pub(super) trait FlowState {
    fn base(&self) -> &FlowBase;

    fn base_mut(&mut self) -> &mut FlowBase;

    /// Bytes of memory in the cache of the flow, if it has one.
    fn memory(&self) -> usize {
        0
    }

    /// Packets in the cache of the flow.
    fn packets(&self) -> usize {
        0
    }

    /// Whether the mobile host has sent an ACK.
    fn is_answered(&self) -> bool;

    /// Whether data has been passing for [`UNANSWERED`] and longer without any ACK.
    fn is_unanswered(&self) -> bool {
        let FlowBase { opened_at, active_at, .. } = *self.base();
        !self.is_answered() && active_at - opened_at >= UNANSWERED
    }

    /// Takes the withheld ACK and its number: an ACK outlives the state of its flow.
    fn take_withheld(&mut self) -> Option<(Packet, SeqNumber)> {
        None
    }
}

/// All flows, with their deadlines, their memory and the agent's events.
#[derive(Debug)]
pub(super) struct Flows<F> {
    table: FlowTable<F>,
    deadlines: Deadlines,
    pub(super) events: VecDeque<Event>,
    /// Withheld ACKs that are now forwarded to the sender.
    pub(super) released: VecDeque<Packet>,
    idle_timeout: Duration,
    cache_limit: usize,
    cache_bytes: usize,
    cache_packets: usize,
    /// The flow that held most when it was last changed.
    largest: Option<FlowRef>,
    next_id: u64,
}

impl<F: FlowState> Flows<F> {
    /// No flows; `hash_seed` should be secret where hosts are not trusted.
    pub(super) fn new(limits: Limits, idle_timeout: Duration, hash_seed: u64) -> Self {
        Self {
            table: FlowTable::new(limits.flows, hash_seed),
            deadlines: Deadlines::new(idle_timeout),
            events: VecDeque::new(),
            released: VecDeque::new(),
            idle_timeout,
            cache_limit: limits.cache_bytes,
            cache_bytes: 0,
            cache_packets: 0,
            largest: None,
            next_id: 0,
        }
    }

    pub(super) fn load(&self) -> Load {
        let Self { cache_bytes, cache_packets, .. } = *self;
        Load { flows: self.table.len(), cache_bytes, cache_packets }
    }

    /// Flows whose data has been passing for [`UNANSWERED`] and longer without any ACK.
    pub(super) fn unanswered(&self) -> usize {
        let slots = 0..self.table.slots() as u32;
        let flows = slots.filter_map(|slot| self.table.get(self.table.reference(slot)?));
        flows.filter(|flow| flow.is_unanswered()).count()
    }

    /// Bytes by which all caches may still grow.
    pub(super) fn room(&self) -> usize {
        self.cache_limit.saturating_sub(self.cache_bytes)
    }

    /// Under pressure, a flow that holds more than twice what `flow` holds: it must give its
    /// memory, so that a flow finds room whatever the others hold. The search sees the largest of
    /// the flows that changed of late, and a few others.
    pub(super) fn larger_holder(&mut self, flow: FlowRef) -> Option<FlowRef> {
        if self.room() >= RESERVE.min(self.cache_limit / 8) {
            return None;
        }
        let own = self.table.get(flow).map_or(0, FlowState::memory);
        let tracked = self.largest.take();
        let table = &mut self.table;
        let sampled = table.sweep(EVICTION_CANDIDATES);
        let sampled = sampled.filter_map(|slot| table.reference(slot));
        let candidates = sampled.chain(tracked);
        let memory = |flow: FlowRef| table.get(flow).map_or(0, FlowState::memory);
        let largest = candidates.max_by_key(|flow| memory(*flow))?;
        (memory(largest) > 2 * own).then_some(largest)
    }

    pub(super) fn find(&self, key: &FlowKey) -> Option<FlowRef> {
        self.table.find(key)
    }

    /// The address of the flow's mobile host; that of nobody once the flow has ended.
    pub(super) fn mobile(&self, flow: FlowRef) -> [u8; 16] {
        self.table.key(flow).map_or([0; 16], |key| key.air.address)
    }

    pub(super) fn get(&self, flow: FlowRef) -> Option<&F> {
        self.table.get(flow)
    }

    /// For changes that do not affect the size of the flow's cache; others use [`Flows::update`].
    pub(super) fn get_mut(&mut self, flow: FlowRef) -> Option<&mut F> {
        self.table.get_mut(flow)
    }

    /// Changes a flow, and updates the counts of cached bytes and packets.
    pub(super) fn update<R>(
        &mut self,
        flow: FlowRef,
        change: impl FnOnce(&mut F) -> R,
    ) -> Option<R> {
        let reference = flow;
        let flow = self.table.get_mut(flow)?;
        let (before, packets_before) = (flow.memory(), flow.packets());
        let result = change(flow);
        let after = flow.memory();
        self.cache_bytes = self.cache_bytes - before + after;
        self.cache_packets = self.cache_packets - packets_before + flow.packets();
        if after > before && self.largest != Some(reference) {
            let most = self.largest.and_then(|largest| self.table.get(largest));
            if most.is_none_or(|most| most.memory() < after) {
                self.largest = Some(reference);
            }
        }
        Some(result)
    }

    /// The flow with this key, or a new one; `None` if the table is full and no flow can be
    /// evicted.
    pub(super) fn find_or_open(
        &mut self,
        now: Instant,
        key: FlowKey,
        open: impl FnOnce(FlowBase) -> F,
    ) -> Option<FlowRef> {
        if let Some(flow) = self.table.find(&key) {
            return Some(flow);
        }
        if !self.table.has_room() {
            self.evict(now);
        }
        let id = FlowId(self.next_id);
        let Some(flow) = self.table.insert(key, open(FlowBase::new(id, now))) else {
            self.events.push_back(Event::FlowTableFull);
            return None;
        };
        self.next_id += 1;
        self.deadlines.start_sweep(now);
        self.events.push_back(Event::FlowOpened(id));
        Some(flow)
    }

    /// Frees the state of a flow.
    pub(super) fn end(&mut self, reference: FlowRef, end: FlowEnd) {
        self.release(reference);
        if let Some(flow) = self.table.remove(reference) {
            self.deadlines.cancel(reference, flow.base().scheduled);
            self.cache_bytes -= flow.memory();
            self.cache_packets -= flow.packets();
            self.events.push_back(Event::FlowEnded(flow.base().id, end));
        }
    }

    /// Forwards the withheld ACK of a flow as it is.
    pub(super) fn release(&mut self, reference: FlowRef) {
        let Some(flow) = self.table.get_mut(reference) else { return };
        let id = flow.base().id;
        if let Some((packet, ack)) = flow.take_withheld() {
            self.released.push_back(packet);
            self.events.push_back(Event::LossSignalForwarded(id, ack));
        }
    }

    /// Forwards the withheld ACKs of all flows.
    pub(super) fn release_all(&mut self) {
        for slot in 0..self.table.slots() as u32 {
            if let Some(flow) = self.table.reference(slot) {
                self.release(flow);
            }
        }
    }

    /// Frees the flows of a mobile host that has left. The ACKs that are withheld go with them: the
    /// next station repairs what they signal.
    pub(super) fn leave(&mut self, mobile: &[u8; 16]) {
        for slot in 0..self.table.slots() as u32 {
            let Some(reference) = self.table.reference(slot) else { continue };
            if self.table.key(reference).is_some_and(|key| key.air.address == *mobile) {
                self.update(reference, F::take_withheld);
                self.end(reference, FlowEnd::Closed);
            }
        }
    }

    /// Changes all flows.
    pub(super) fn update_all(&mut self, mut change: impl FnMut(&mut F)) {
        for slot in 0..self.table.slots() as u32 {
            if let Some(flow) = self.table.reference(slot) {
                self.update(flow, &mut change);
            }
        }
    }

    /// Frees the state of the flow if the segment is a SYN or RST; returns whether it is.
    pub(super) fn ends_connection(&mut self, from: Port, key: &FlowKey, segment: &Segment) -> bool {
        let is_rst = segment.flags.intersects(Flags::RST);
        if !is_rst && !segment.flags.intersects(Flags::SYN) {
            return false;
        }
        self.events.push_back(Event::ConnectionChange(from));
        if let Some(flow) = self.table.find(key) {
            self.end(flow, if is_rst { FlowEnd::Closed } else { FlowEnd::Reopened });
        }
        true
    }

    /// The next event that the agent itself has found. The others, that the state of a flow comes
    /// and goes, are dropped: an uplink beside an agent's own flows has none to tell.
    pub(super) fn pop_own_event(&mut self) -> Option<Event> {
        loop {
            let event = self.events.pop_front()?;
            if matches!(event, Event::Own(_)) {
                return Some(event);
            }
        }
    }

    /// Enters a deadline of a flow unless an earlier deadline is entered.
    pub(super) fn schedule(&mut self, reference: FlowRef, deadline: Deadline) {
        let Some(flow) = self.table.get_mut(reference) else { return };
        let scheduled = &mut flow.base_mut().scheduled;
        if scheduled.is_none_or(|at| deadline.at < at) {
            self.deadlines.enter(reference, scheduled, deadline);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.deadlines.next()
    }

    /// Removes the next expired deadline; returns its flow.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<FlowRef> {
        loop {
            let slot = self.deadlines.pop_due(now)?;
            if let Some(reference) = self.table.reference(slot)
                && let Some(flow) = self.table.get_mut(reference)
            {
                flow.base_mut().scheduled = None;
                return Some(reference);
            }
        }
    }

    /// Runs a step of the idle sweep, if one is due.
    pub(super) fn sweep(&mut self, now: Instant) {
        let Some(share) = self.deadlines.sweep_due(now, self.table.slots()) else { return };
        for slot in self.table.sweep(share) {
            self.expire(now, slot);
        }
        if self.table.is_empty() {
            self.deadlines.stop_sweep();
        }
    }

    /// Frees the flow in a slot if it is idle.
    fn expire(&mut self, now: Instant, slot: u32) -> bool {
        let Some(reference) = self.table.reference(slot) else { return false };
        let Some(flow) = self.table.get(reference) else { return false };
        let is_idle = now - flow.base().active_at >= self.idle_timeout;
        if is_idle {
            self.end(reference, FlowEnd::Idle);
        }
        is_idle
    }

    /// Makes room in a full table: evicts a flow that is idle or unanswered. A flood of data that
    /// nobody answers must not keep real flows out.
    fn evict(&mut self, now: Instant) {
        for slot in self.table.sweep(EVICTION_CANDIDATES) {
            if self.expire(now, slot) {
                return;
            }
            let Some(reference) = self.table.reference(slot) else { continue };
            let Some(flow) = self.table.get(reference) else { continue };
            if !flow.is_answered() && now - flow.base().active_at >= UNANSWERED {
                self.end(reference, FlowEnd::Evicted);
                return;
            }
        }
    }
}
