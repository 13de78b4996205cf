//! The 1995 Snoop agent [snoop95]: caches data for mobile hosts, retransmits it locally, and keeps
//! the duplicate ACKs that a lossy air hop causes from the sender.
//!
//! Before working on this file, read sections 3.1 and 4 of the paper. `data.rs` is its
//! `snoop_data()`, `ack.rs` its `snoop_ack()`, `timers.rs` its two timers, `cache.rs` its circular
//! buffer. Every reading of an ambiguous passage stands in `docs/conformance.md`.

mod ack;
mod cache;
mod data;
mod flow;
mod settings;
mod timers;

pub use settings::Settings;

use super::Limits;
use super::deadlines::Deadlines;
use super::egress::{Class, Egress};
use super::flow_table::{FlowRef, FlowTable};
use crate::agent::{Agent, Deadline, Load, Port};
use crate::event::{Cause, Event, FlowEnd, FlowId};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use alloc::collections::VecDeque;
use cache::CachedPacket;
use flow::Flow;

/// The agent. Data from the wired side is cached and mended; data from the air side passes.
#[derive(Debug)]
pub struct Snoop95 {
    settings: Settings,
    limits: Limits,
    flows: FlowTable<Flow>,
    deadlines: Deadlines,
    egress: Egress<Option<Departure>>,
    events: VecDeque<Event>,
    /// Memory that all caches hold, in bytes.
    cache_bytes: usize,
    next_id: u64,
}

/// What the agent wants to know of a packet when it goes on the air.
#[derive(Clone, Copy, Debug)]
struct Departure {
    flow: FlowRef,
    seq: SeqNumber,
    /// Set for a local retransmission.
    retransmission: Option<Cause>,
}

impl Snoop95 {
    /// An agent without flows; `hash_seed` should be secret where hosts are not trusted.
    pub fn new(settings: Settings, limits: Limits, hash_seed: u64) -> Self {
        Self {
            flows: FlowTable::new(limits.flows, hash_seed),
            deadlines: Deadlines::new(settings.idle_timeout),
            egress: Egress::new(limits.egress),
            events: VecDeque::new(),
            cache_bytes: 0,
            next_id: 0,
            settings,
            limits,
        }
    }

    /// Flows that the agent keeps state for.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Memory that all caches hold, in bytes.
    pub fn cache_bytes(&self) -> usize {
        self.cache_bytes
    }

    fn event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Passes a packet on, in order; false if the queue was full and the packet is gone.
    fn forward(&mut self, to: Port, packet: Packet, departure: Option<Departure>) -> bool {
        let accepted = self.egress.push(to, Class::Normal, packet, departure);
        if !accepted {
            self.event(Event::EgressDropped(to));
        }
        accepted
    }

    /// A SYN or RST ends whatever the state was about.
    fn handle_connection_change(&mut self, key: &FlowKey, flags: Flags) {
        if let Some(flow) = self.flows.find(key) {
            let rst = flags.intersects(Flags::RST);
            self.end_flow(flow, if rst { FlowEnd::Closed } else { FlowEnd::Reopened });
        }
    }

    fn end_flow(&mut self, reference: FlowRef, end: FlowEnd) {
        if let Some(flow) = self.flows.remove(reference) {
            self.deadlines.cancel(reference, flow.scheduled);
            self.cache_bytes -= flow.cache.memory();
            self.event(Event::FlowEnded(flow.id, end));
        }
    }

    /// The flow with this key, or a new one if there is or can be made room for it.
    fn find_or_open(&mut self, now: Instant, key: FlowKey, first: SeqNumber) -> Option<FlowRef> {
        if let Some(flow) = self.flows.find(&key) {
            return Some(flow);
        }
        if !self.flows.has_room() {
            self.evict(now);
        }
        let id = FlowId(self.next_id);
        let Some(flow) = self.flows.insert(key, Flow::new(id, now, first)) else {
            self.event(Event::FlowTableFull);
            return None;
        };
        self.next_id += 1;
        self.deadlines.start_tour(now);
        self.event(Event::FlowOpened(id));
        Some(flow)
    }

    /// A copy of a cached packet leaves again, before everything else.
    fn retransmit(&mut self, now: Instant, reference: FlowRef, seq: SeqNumber, cause: Cause) {
        let class = if self.settings.fast_queue { Class::Urgent } else { Class::Normal };
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let Some(cached) = flow.cache.starting_at(seq) else { return };
        let departure = Departure { flow: reference, seq, retransmission: Some(cause) };
        if cached.queued {
            return;
        }
        if !self.egress.push(Port::Air, class, cached.packet.clone(), Some(departure)) {
            self.event(Event::EgressDropped(Port::Air));
            return;
        }
        cached.queued = true;
        cached.retransmissions += 1;
        flow.spoil_measurement();
        // [S0-33] The round-trip timer begins with the first retransmission that a DUPACK caused.
        if cause == Cause::DupAck || flow.round_trip_due.is_some() {
            flow.round_trip_due = Some(now + flow.round_trip_timeout(&self.settings));
        }
        if cause == Cause::DupAck {
            flow.recover = flow.last_seq;
        }
    }

    /// A packet goes on the air: stamps what depends on when it really went. False for a
    /// retransmission that waited until the packet was acknowledged or its flow had ended.
    fn depart(&mut self, now: Instant, departure: Departure) -> bool {
        let first = departure.retransmission.is_none();
        let Some(flow) = self.flows.get_mut(departure.flow) else { return first };
        if departure.retransmission.is_none() {
            flow.sent_packets = flow.sent_packets.wrapping_add(1);
        }
        let sent_packets = flow.sent_packets;
        if let Some(timed) = &mut flow.timed
            && timed.seq == departure.seq
        {
            timed.sent_at.get_or_insert(now);
        }
        let Some(cached) = flow.cache.starting_at(departure.seq) else { return first };
        cached.queued = false;
        cached.sent_index = sent_packets;
        let CachedPacket { seq, retransmissions: attempt, .. } = *cached;
        if let Some(cause) = departure.retransmission {
            let flow = flow.id;
            self.event(Event::LocalRetransmit { flow, seq, cause, attempt });
        }
        true
    }
}

impl Agent for Snoop95 {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        let segment = match Segment::parse(&packet) {
            Ok(segment) => segment,
            Err(reason) => {
                self.event(Event::Bypassed(reason));
                self.forward(from.opposite(), packet, None);
                return;
            }
        };
        let key = FlowKey::of(&segment, from);
        if segment.flags.intersects(Flags::SYN.union(Flags::RST)) {
            self.event(Event::ConnectionChange(from));
            self.handle_connection_change(&key, segment.flags);
            self.forward(from.opposite(), packet, None);
            return;
        }
        match from {
            Port::Wired if segment.seq_len() > 0 => self.snoop_data(now, key, &segment, packet),
            Port::Air if segment.flags.intersects(Flags::ACK) => {
                self.snoop_ack(now, &key, &segment, packet);
            }
            _ => {
                self.forward(from.opposite(), packet, None);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.run_timers(now);
    }

    fn poll_transmit(&mut self, now: Instant, to: Port) -> Option<Packet> {
        loop {
            let (packet, departure) = self.egress.pop(to)?;
            if departure.is_none_or(|departure| self.depart(now, departure)) {
                return Some(packet);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.deadlines.next()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn load(&self) -> Load {
        Load { flows: self.flows(), cache_bytes: self.cache_bytes() }
    }
}
