//! A base station: its agent with egress queues, and its links.

use super::address::station_id;
use super::side::side_index;
use super::split::Split;
use super::trace::Trace;
use super::tunnel::Tunnel;
use super::{Medium, address};
use crate::plan::{self, StationAgent};
use airmend_proto::agent::LinkSignal;
use airmend_proto::agents::Limits;
use airmend_proto::agents::handoff::{Handoff, Key, Mobile, To, Way};
use airmend_proto::event::FlowId;
use airmend_proto::invariants::Violation;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{
    EgressLimits, Event, Forwarder, Instant, Packet, Port, Ports, PriorityClass, drain,
};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Counts data that both an agent and the sender retransmitted.
pub(super) const RESENT_BY_BOTH: &str = "resent_by_both";

/// A base station in a run.
pub(crate) struct Station {
    forwarder: Forwarder,
    dies: Instant,
    /// The directions that lead away: over wired links and over the air.
    outbound: [Vec<u32>; 2],
    /// The directions to the hosts behind this station, where it has several links of one kind.
    routes: HashMap<u32, u32>,
    pub(crate) counters: BTreeMap<&'static str, u64>,
    /// The data that the agent retransmitted, for comparison with retransmissions of the sender
    /// (S0-65).
    resent: HashSet<(FlowId, SeqNumber)>,
    pub(crate) trace: Option<Trace>,
    /// The most packets that the agent's cache has held.
    pub(crate) max_cached: usize,
    /// The first rule that the agent broke.
    pub(crate) violation: Option<Violation>,
    handoff: Option<Handoff>,
    /// The other stations that hand over, by number, and the directions that lead to them.
    pub(crate) backbone: Vec<(u32, u32)>,
    /// The other end of its link protocol, if that is not its neighbour.
    pub(super) tunnel: Option<Tunnel>,
    /// Messages to them.
    pub(crate) messages: Vec<(To, Vec<u8>)>,
}

impl Station {
    pub(crate) fn new(number: u32, plan: &plan::Station, directions: &[plan::Direction]) -> Self {
        let queue = |direction: &u32| directions[*direction as usize].queue_frames;
        let longest = |outbound: &Vec<u32>| outbound.iter().map(queue).max().unwrap_or(1);
        let [wired, air] = [longest(&plan.outbound[0]), longest(&plan.outbound[1])];
        let limits = Limits::default();
        // A tunnel has the queues of `airmend link`.
        let egress = match plan.peer {
            Some(_) => limits.egress,
            None => EgressLimits { air, wired },
        };
        let limits = Limits { flows: plan.flows.clamp(1, limits.flows), egress, ..limits };
        let forwarder: Forwarder = match &plan.agent {
            StationAgent::Everywhere(config) if cfg!(debug_assertions) => {
                Forwarder::checked(config.build(limits, 0), egress, config.link())
            }
            StationAgent::Everywhere(config) => Forwarder::new(config.build(limits, 0), egress),
            // A split connection acknowledges data that the mobile does not have.
            StationAgent::Split(spec) => {
                Forwarder::new(Box::new(Split::new(**spec, plan.flows)), egress)
            }
        };
        let priority = if plan.fast_band { PriorityClass::First } else { PriorityClass::Absent };
        Self {
            forwarder: forwarder.with_priority_class(priority),
            violation: None,
            dies: plan.dies.map_or(Instant::from_nanos(u64::MAX), |after| Instant::ZERO + after),
            outbound: plan.outbound.clone(),
            routes: HashMap::new(),
            counters: BTreeMap::new(),
            resent: HashSet::new(),
            trace: None,
            max_cached: 0,
            handoff: plan.handoff.then(|| Handoff::new(station_id(number), 1, Key([1; 32]))),
            backbone: Vec::new(),
            tunnel: None,
            messages: Vec::new(),
        }
    }

    /// A mobile host is here.
    pub(crate) fn mobile_attached(&mut self, now: Instant, mobile: Mobile) {
        if let Some(handoff) = &mut self.handoff {
            handoff.mobile_attached(now, mobile);
        }
    }

    /// A mobile host is expected.
    pub(crate) fn mobile_approaches(&mut self, now: Instant, mobile: Mobile) {
        if let Some(handoff) = &mut self.handoff {
            handoff.mobile_approaches(now, mobile);
        }
    }

    /// Takes a message of another station.
    pub(crate) fn handle_message(&mut self, now: Instant, message: &[u8]) {
        let Self { forwarder, handoff, .. } = self;
        if let Some(handoff) = handoff.as_mut().filter(|_| now < self.dies) {
            handoff.handle_message(now, message, &|flow| forwarder.air_round_trip(flow));
        }
    }

    /// Both stations go on with the agent of the other one.
    pub(crate) fn exchange_agents(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.forwarder, &mut other.forwarder);
    }

    /// Does what the handoff wants done; returns when it must be called again.
    fn serve_handoff(&mut self, now: Instant) -> Option<Instant> {
        let handoff = self.handoff.as_mut()?;
        if handoff.poll_timeout() <= now {
            handoff.handle_timeout(now);
        }
        while let Some(output) = handoff.poll_output() {
            self.messages.extend(output.apply(now, &mut self.forwarder));
        }
        while let Some(event) = handoff.poll_event() {
            *self.counters.entry(event.counter()).or_default() += 1;
        }
        Some(handoff.poll_timeout())
    }

    /// Packets for a host leave in this direction from now on.
    pub(crate) fn learn(&mut self, host: u32, direction: u32) {
        if self.outbound.iter().any(|directions| directions.len() > 1) {
            self.routes.insert(host, direction);
        }
    }

    /// Packets for a host have no route here from now on.
    pub(crate) fn forget(&mut self, host: u32) {
        self.routes.remove(&host);
    }

    /// The direction of a packet that leaves over links of the kind over which it came: the agent,
    /// which is between the two kinds, does not see it.
    pub(crate) fn past_the_agent(&self, now: Instant, from: Port, packet: &Packet) -> Option<u32> {
        let same = &self.outbound[side_index(from)];
        if same.len() < 2 || now >= self.dies || self.tunnel.is_some() {
            return None;
        }
        let onward = self.routes.get(&address::destination(packet)?)?;
        same.contains(onward).then_some(*onward)
    }

    /// Takes a packet.
    pub(crate) fn receive(&mut self, now: Instant, from: Port, packet: Packet) {
        if let Some(trace) = &mut self.trace {
            trace.enters(&packet);
        }
        if now >= self.dies {
            return;
        }
        if let Some(frame) = self.tunnel.as_ref().and_then(|tunnel| tunnel.unwrap(&packet)) {
            return self.forwarder.handle_packet(now, Port::Air, frame);
        }
        let handoff = self.handoff.as_mut();
        let way = handoff.map_or(Way::Onward, |handoff| handoff.handle_packet(now, from, &packet));
        if way == Way::Onward {
            self.forwarder.handle_packet(now, from, packet);
        }
    }

    /// Passes a signal of the air link to the agent.
    pub(crate) fn signal(&mut self, now: Instant, signal: LinkSignal) {
        if now < self.dies {
            self.forwarder.handle_link(now, signal);
        }
    }

    /// Shows the agent a frame that arrived damaged.
    pub(crate) fn damaged(&mut self, now: Instant, frame: &Packet) {
        if now < self.dies {
            self.forwarder.handle_damaged(now, frame);
        }
    }

    /// Lets the agent act; returns the time of the next call: the agent's deadline, or the time at
    /// which a busy link can take a frame.
    pub(crate) fn serve(&mut self, now: Instant, medium: &mut Medium) -> Option<Instant> {
        if now >= self.dies {
            return None;
        }
        let handoff_due = self.serve_handoff(now);
        let Self {
            forwarder,
            outbound,
            routes,
            counters,
            resent,
            trace,
            max_cached,
            violation,
            tunnel,
            ..
        } = self;
        let is_local = Cell::new(false);
        let mut on_event = |event: Event| {
            *counters.entry(event.counter()).or_default() += 1;
            match event {
                Event::LocalRetransmit { flow, seq, .. } => {
                    is_local.set(true);
                    resent.insert((flow, seq));
                }
                Event::RuleBroken(broken) => {
                    violation.get_or_insert(broken);
                }
                Event::SenderRetransmit(flow, seq) if resent.contains(&(flow, seq)) => {
                    *counters.entry(RESENT_BY_BOTH).or_default() += 1;
                }
                _ => {}
            }
        };
        let trace = trace.as_mut();
        let mut ports = StationPorts {
            medium,
            outbound,
            routes,
            busy: [false; 2].map(Cell::new),
            is_local: &is_local,
            trace,
            tunnel: tunnel.as_ref(),
        };
        let deadline = drain(forwarder, now, &mut ports, &mut on_event);
        let cached = forwarder.load().cache_packets;
        *max_cached = cached.max(*max_cached);
        if let Some(trace) = &mut ports.trace {
            trace.cached(now, cached);
        }
        let mut next = deadline.map(|deadline| deadline.at).into_iter().chain(handoff_due).min();
        for (directions, busy) in ports.outbound.iter().zip(&ports.busy) {
            for direction in directions.iter().filter(|_| busy.get()) {
                let free = ports.medium.free_at(*direction);
                next = next.into_iter().chain(free).min();
            }
        }
        next
    }
}

struct StationPorts<'a> {
    medium: &'a mut Medium,
    outbound: &'a [Vec<u32>; 2],
    routes: &'a HashMap<u32, u32>,
    /// Whether each side was busy at the last call.
    busy: [Cell<bool>; 2],
    /// Whether the packet about to leave is a local retransmission.
    is_local: &'a Cell<bool>,
    trace: Option<&'a mut Trace>,
    tunnel: Option<&'a Tunnel>,
}

impl StationPorts<'_> {
    /// The direction of a packet that leaves on this side: the only one, or that to its host. A
    /// frame of a link protocol is for the only neighbour.
    fn direction(&self, side: Port, packet: &Packet) -> Option<u32> {
        match self.outbound[side_index(side)][..] {
            [only] => Some(only),
            ref several => {
                let onward = self.routes.get(&address::destination(packet)?)?;
                several.contains(onward).then_some(*onward)
            }
        }
    }
}

impl Ports for StationPorts<'_> {
    /// A side with several links can send as soon as one of them can: what is for another one
    /// waits in that link's queue.
    fn can_send(&self, now: Instant, side: Port) -> bool {
        if self.tunnel.is_some() && side == Port::Air {
            // As with a socket: what the link cannot take yet waits in its queue.
            return true;
        }
        let can_send = |direction: &u32| self.medium.can_send(now, *direction);
        let can = self.outbound[side_index(side)].iter().any(can_send);
        self.busy[side_index(side)].set(!can);
        can
    }

    fn send(&mut self, now: Instant, side: Port, packet: Packet) {
        let is_local = self.is_local.replace(false);
        if let Some(trace) = &mut self.trace {
            trace.leaves(now, &packet, is_local);
        }
        if let (Port::Air, Some(tunnel)) = (side, self.tunnel) {
            let packet = tunnel.wrap(&packet);
            self.medium.send(now, tunnel.outbound, packet);
        } else if let Some(direction) = self.direction(side, &packet) {
            self.medium.send(now, direction, packet);
        }
    }
}
