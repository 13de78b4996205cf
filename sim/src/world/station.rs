//! A base station: its agent, and the links that take what the agent gives.

use super::Medium;
use super::split::Split;
use super::trace::Trace;
use crate::plan::{self, StationAgent};
use airmend_proto::agent::LinkSignal;
use airmend_proto::agents::Limits;
use airmend_proto::event::FlowId;
use airmend_proto::invariants::Violation;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{EgressLimits, Event, Forwarder, Instant, Packet, Port, Ports, drain};
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};

/// A base station in a run.
pub(crate) struct Station {
    forwarder: Forwarder,
    dies: Instant,
    /// The directions that lead away: to the wired and to the air side.
    outbound: [u32; 2],
    pub(crate) counters: BTreeMap<&'static str, u64>,
    /// What the agent resent, to be compared with what the sender resends (S0-65).
    resent: HashSet<(FlowId, SeqNumber)>,
    pub(crate) trace: Option<Trace>,
    /// The first rule that the agent broke.
    pub(crate) violation: Option<Violation>,
}

impl Station {
    pub(crate) fn new(plan: &plan::Station, directions: &[plan::Direction]) -> Self {
        let outbound = plan.inbound.map(plan::opposite);
        let [wired, air] = outbound.map(|direction| directions[direction as usize].queue_frames);
        let egress = EgressLimits { air, wired };
        let limits = Limits::default();
        let limits = Limits { flows: plan.flows.clamp(1, limits.flows), egress, ..limits };
        Self {
            forwarder: match &plan.agent {
                StationAgent::Everywhere(config) if cfg!(debug_assertions) => {
                    Forwarder::checked(config.build(limits, 0), egress, config.link())
                }
                StationAgent::Everywhere(config) => Forwarder::new(config.build(limits, 0), egress),
                // It acknowledges what the mobile does not have.
                StationAgent::Split => Forwarder::new(Box::new(Split::new(plan.flows)), egress),
            },
            violation: None,
            dies: plan.dies.map_or(Instant::from_nanos(u64::MAX), |after| Instant::ZERO + after),
            outbound,
            counters: BTreeMap::new(),
            resent: HashSet::new(),
            trace: None,
        }
    }

    /// Takes a packet.
    pub(crate) fn receive(&mut self, now: Instant, from: Port, packet: Packet) {
        if let Some(trace) = &mut self.trace {
            trace.enters(&packet);
        }
        if now < self.dies {
            self.forwarder.handle_packet(now, from, packet);
        }
    }

    /// The link on the air side tells something.
    pub(crate) fn signal(&mut self, now: Instant, signal: LinkSignal) {
        if now < self.dies {
            self.forwarder.handle_link(now, signal);
        }
    }

    /// Lets the agent act, and says when it must be asked again: at its deadline, or when a link
    /// that was busy can take another frame.
    pub(crate) fn serve(&mut self, now: Instant, medium: &mut Medium) -> Option<Instant> {
        if now >= self.dies {
            return None;
        }
        let Self { forwarder, outbound, counters, resent, trace, violation, .. } = self;
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
                    *counters.entry("resent_by_both").or_default() += 1;
                }
                _ => {}
            }
        };
        let trace = trace.as_mut();
        let mut ports = StationPorts {
            medium,
            outbound: *outbound,
            busy: [false; 2].map(Cell::new),
            is_local: &is_local,
            trace,
        };
        let deadline = drain(forwarder, now, &mut ports, &mut on_event);
        let busy = outbound.iter().zip(&ports.busy).filter(|(_, busy)| busy.get());
        let free = busy.filter_map(|(direction, _)| ports.medium.free_at(*direction));
        deadline.map(|deadline| deadline.at).into_iter().chain(free).min()
    }
}

struct StationPorts<'a> {
    medium: &'a mut Medium,
    outbound: [u32; 2],
    /// Whether each side said last that it can take nothing.
    busy: [Cell<bool>; 2],
    /// Whether the packet about to leave is a local retransmission.
    is_local: &'a Cell<bool>,
    trace: Option<&'a mut Trace>,
}

impl Ports for StationPorts<'_> {
    fn can_send(&self, now: Instant, side: Port) -> bool {
        let can = self.medium.can_send(now, self.outbound[side_index(side)]);
        self.busy[side_index(side)].set(!can);
        can
    }

    fn send(&mut self, now: Instant, side: Port, packet: Packet) {
        let is_local = self.is_local.replace(false);
        if let Some(trace) = &mut self.trace {
            trace.leaves(now, &packet, is_local);
        }
        self.medium.send(now, self.outbound[side_index(side)], packet);
    }
}

/// Where a side stands in a pair.
pub(crate) fn side_index(side: Port) -> usize {
    match side {
        Port::Wired => 0,
        Port::Air => 1,
    }
}
