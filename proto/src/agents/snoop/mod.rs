//! The modern snoop: repairs the air hop for today's TCP, and keeps from the sender only what is
//! being repaired.
//!
//! The rules are C-1 to C-18 of `docs/modern-snoop.md`. `data.rs` takes what the fixed host sends,
//! `delivery.rs` reads the mobile's ACKs, `repair.rs` finds and retransmits what was lost, `ack.rs`
//! decides what the sender sees, `timers.rs` probes the tail and ends what was held too long.
//!
//! Nothing is configured: round trips, reordering and delayed ACKs are estimated in `rtt.rs`.

mod ack;
mod cache;
mod data;
mod delivery;
mod flow;
mod handshake;
mod repair;
mod rtt;
mod settings;
mod timers;

pub use rtt::WiredPath;
pub use settings::Settings;

use super::Limits;
use super::deadlines::Deadlines;
use super::egress::{Class, Egress};
use super::flow_table::{FlowRef, FlowTable};
use crate::agent::{Agent, Deadline, LinkSignal, Load, Port, Timer};
use crate::event::{Cause, Event, FlowEnd, FlowId};
use crate::packet::Packet;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use alloc::collections::VecDeque;
use cache::Sent;
use core::time::Duration;
use flow::Flow;
use handshake::Handshakes;

/// The agent. Data from the wired side is cached and mended; data from the air side passes.
#[derive(Debug)]
pub struct Snoop {
    settings: Settings,
    limits: Limits,
    flows: FlowTable<Flow>,
    handshakes: Handshakes,
    /// The air's round trip as some flow last measured it.
    air_round_trip: Option<Duration>,
    deadlines: Deadlines,
    egress: Egress<Option<Departure>>,
    events: VecDeque<Event>,
    /// Memory that all caches hold, in bytes.
    cache_bytes: usize,
    next_id: u64,
}

/// What the agent wants to know of a packet when it goes on the air.
#[derive(Clone, Copy, Debug)]
enum Departure {
    /// It carries a part of a flow; `repair` is set for a local retransmission.
    Range { flow: FlowRef, span: Span, repair: Option<Cause> },
    /// It is a SYN or SYN-ACK, perhaps repeated by the agent.
    Handshake { id: u64, repeated: bool },
}

/// The sequence number of a position.
fn seq(position: u64) -> SeqNumber {
    SeqNumber(position as u32)
}

impl Snoop {
    /// An agent without flows; `hash_seed` should be secret where hosts are not trusted.
    pub fn new(settings: Settings, limits: Limits, hash_seed: u64) -> Self {
        Self {
            flows: FlowTable::new(limits.flows, hash_seed),
            handshakes: Handshakes::default(),
            air_round_trip: None,
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
    fn handle_connection_change(
        &mut self,
        from: Port,
        key: &FlowKey,
        flags: Flags,
        packet: Packet,
    ) {
        self.event(Event::ConnectionChange(from));
        let rst = flags.intersects(Flags::RST);
        if let Some(flow) = self.flows.find(key) {
            self.end_flow(flow, if rst { FlowEnd::Closed } else { FlowEnd::Reopened });
        }
        let id = match from {
            Port::Wired if !rst => self.begin_handshake(*key, &packet),
            _ => {
                self.handshakes.end(key);
                None
            }
        };
        let departure = id.map(|id| Departure::Handshake { id, repeated: false });
        if !self.forward(from.opposite(), packet, departure) {
            self.handshakes.end(key);
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
        let flow = Flow::new(id, now, first, &self.settings);
        let Some(flow) = self.flows.insert(key, flow) else {
            self.event(Event::FlowTableFull);
            return None;
        };
        self.next_id += 1;
        self.deadlines.start_tour(now);
        self.event(Event::FlowOpened(id));
        Some(flow)
    }

    /// A part of a flow goes on the air: stamps what depends on when it really went. False for a
    /// repair that is needed no more.
    fn depart(
        &mut self,
        now: Instant,
        reference: FlowRef,
        span: Span,
        repair: Option<Cause>,
    ) -> bool {
        let is_first = repair.is_none();
        let Some(flow) = self.flows.get_mut(reference) else { return is_first };
        let Span { start, end } = span;
        // What arrived meanwhile, by a late original or the sender's own copy, is not sent again.
        let arrived = end <= flow.acked || flow.sacked.span_at(start.max(flow.acked)).is_some();
        if !is_first && arrived {
            for cached in flow.cache.overlapping(start, end) {
                cached.queued = false;
            }
            return false;
        }
        flow.quiet_since = now;
        let mut attempt = 0;
        for cached in flow.cache.overlapping(start, end) {
            let sent = Sent { at: now, order: flow.transmissions + 1 };
            if !cached.was_sent() {
                cached.first = sent;
            }
            cached.sent = sent;
            flow.transmissions += cached.segments();
            cached.queued = false;
            attempt = cached.attempts;
        }
        let id = flow.id;
        if let Some(cause) = repair {
            self.event(Event::LocalRetransmit { flow: id, seq: seq(start), cause, attempt });
        }
        self.schedule(now, reference);
        true
    }
}

impl Agent for Snoop {
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
            self.handle_connection_change(from, &key, segment.flags, packet);
            return;
        }
        if from == Port::Air && !self.handshakes.is_empty() {
            self.handshakes.end(&key);
        }
        match from {
            Port::Wired if segment.seq_len() > 0 => self.handle_data(now, key, &segment, packet),
            Port::Air if segment.flags.intersects(Flags::ACK) => {
                self.handle_ack(now, &key, &segment, packet);
            }
            _ => {
                self.forward(from.opposite(), packet, None);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.run_timers(now);
    }

    fn handle_link(&mut self, _now: Instant, signal: LinkSignal) {
        if signal != LinkSignal::Missed {
            return;
        }
        for slot in 0..self.flows.slots() as u32 {
            let flow = self.flows.reference(slot).and_then(|flow| self.flows.get_mut(flow));
            if let Some(flow) = flow {
                self.cache_bytes -= flow.cache.memory();
                flow.forget_sent();
                self.cache_bytes += flow.cache.memory();
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, to: Port) -> Option<Packet> {
        loop {
            let (packet, departure) = self.egress.pop(to)?;
            let leaves = match departure {
                None => true,
                Some(Departure::Range { flow, span, repair }) => {
                    self.depart(now, flow, span, repair)
                }
                Some(Departure::Handshake { id, repeated }) => {
                    self.depart_handshake(now, id, repeated)
                }
            };
            if leaves {
                return Some(packet);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let handshake = self.handshakes.next_due();
        let handshake = handshake.map(|at| Deadline { at, why: Timer::SnoopHandshake });
        [self.deadlines.next(), handshake].into_iter().flatten().min_by_key(|next| next.at)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn load(&self) -> Load {
        Load { flows: self.flows(), cache_bytes: self.cache_bytes() }
    }
}
