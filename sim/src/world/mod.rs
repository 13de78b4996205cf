//! The event loop of virtual time: takes the machine with the earliest deadline, lets it act, and
//! asks it for its next deadline.
//!
//! Machines are channels, stations, flows (both endpoints and their applications) and the moves of
//! hosts, in this order of numbers. No other part has a clock, so that a run depends on plan and
//! seed alone.

mod address;
mod airmail;
mod application;
mod arq;
mod connection;
mod datagrams;
mod delay;
mod delivery;
mod ends;
mod flow;
mod handoff;
mod medium;
mod moves;
mod report;
mod side;
mod split;
mod station;
mod trace;
mod tunnel;
mod turns;

pub(crate) use address::{DATAGRAM_SIZES, MAX_FLOWS};
pub(crate) use airmail::most_of_rate;
pub(crate) use medium::Medium;

use crate::graph::{Graph, opposite};
use crate::outcome::Outcome;
use crate::plan::{Direction, Plan};
use airmend_proto::agent::LinkSignal;
use airmend_proto::invariants::Violation;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant, Packet, Port};
use datagrams::Saturating;
use flow::{Flow, Transport};
use medium::Happening;
use station::Station;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use trace::{Progress, Trace};
use turns::Turns;

/// The reason why a run has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The run was stopped.
    #[error("the run was stopped")]
    Stopped,
    /// An agent broke a rule of every agent; only debug builds check every packet.
    #[error("broken rule: {0}")]
    RuleBroken(Violation),
    /// Data was acknowledged to a sender that its receiver does not have.
    #[error(
        "broken rule: {acked} bytes were acknowledged to the sender of flow {flow}, but its \
         receiver had only {delivered}"
    )]
    AckInvented {
        /// The flow.
        flow: u32,
        /// Bytes acknowledged to the sender.
        acked: u64,
        /// Bytes that its receiver had got in order.
        delivered: u64,
    },
}

/// Runs a plan to its end. The same plan and seed give the same outcome, always.
pub fn run(plan: &Plan, seed: u64, stop: &AtomicBool) -> Result<Outcome, RunError> {
    let mut world = World::new(plan, seed);
    world.run(stop)?;
    Ok(world.report())
}

struct World<'a> {
    plan: &'a Plan,
    now: Instant,
    medium: Medium,
    graph: Graph,
    stations: Vec<Station>,
    flows: Vec<Flow>,
    turns: Turns,
    /// The hosts' flows that always have a datagram to send.
    saturating: Saturating,
    /// Moves of the plan so far.
    moved: usize,
    /// Packets that came over a link that was down, since its host had moved.
    left_behind: u64,
    /// The directions over the air in which flows have been routed to their receivers.
    air_routes: BTreeSet<u32>,
    /// The window of the first flow's sender and what has arrived, if the plan asks for a trace.
    progress: Option<Progress>,
    /// The number of unfinished flows.
    open: usize,
    steps: u64,
}

/// How many steps pass between two looks at the stop flag.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 14;

impl<'a> World<'a> {
    fn new(plan: &'a Plan, seed: u64) -> Self {
        let machines = plan.channels.len() + plan.stations.len() + plan.flows.len() + 1;
        let mut medium = Medium::new(plan, machines, seed);
        let build = |(number, station)| Station::new(number, station, &plan.directions);
        let mut stations: Vec<Station> = (0..).zip(&plan.stations).map(build).collect();
        let traced = plan.flows.first().and_then(|flow| flow.stations.first());
        if let (true, Some(&first)) = (plan.trace, traced) {
            stations[first as usize].trace = Some(Trace::new());
        }
        let flows: Vec<Flow> =
            (0..plan.flows.len() as u32).map(|number| Flow::new(plan, number, seed)).collect();
        let first_flow = (plan.channels.len() + plan.stations.len()) as u32;
        for (machine, flow) in (first_flow..).zip(&flows) {
            medium.agenda.set(machine, Some(flow.start));
        }
        let first_move = plan.moves.first().map(|first| Instant::ZERO + first.at);
        medium.agenda.set(machines as u32 - 1, first_move);
        let open = flows.iter().filter(|flow| flow.is_finite()).count();
        let mut world = Self {
            plan,
            now: Instant::ZERO,
            medium,
            graph: plan.graph.clone(),
            stations,
            flows,
            turns: Turns::new(&plan.flows),
            saturating: Saturating::default(),
            moved: 0,
            left_behind: 0,
            air_routes: BTreeSet::new(),
            progress: plan.trace.then(Progress::default),
            open,
            steps: 0,
        };
        for (number, flow) in plan.flows.iter().enumerate() {
            world.route(number, &flow.route);
        }
        world.start_handoffs();
        world.start_tunnels();
        world
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<(), RunError> {
        let limit = Instant::ZERO + self.plan.time_limit;
        let all_endless = self.open == 0;
        while let Some((at, machine)) = self.medium.agenda.next() {
            if at > limit {
                break;
            }
            if self.steps.is_multiple_of(STEPS_BETWEEN_LOOKS) && stop.load(Ordering::Relaxed) {
                return Err(RunError::Stopped);
            }
            self.now = at;
            self.act(machine)?;
            self.steps += 1;
            if cfg!(debug_assertions)
                && let Some(violation) = self.stations.iter().find_map(|station| station.violation)
            {
                return Err(RunError::RuleBroken(violation));
            }
            if self.open == 0 && !all_endless {
                return Ok(());
            }
        }
        self.now = limit;
        Ok(())
    }

    fn act(&mut self, machine: u32) -> Result<(), RunError> {
        let channels = self.plan.channels.len() as u32;
        let (stations, flows) = (self.plan.stations.len() as u32, self.plan.flows.len() as u32);
        if machine < channels {
            match self.medium.poll(self.now, machine) {
                Some(Happening::Arrival(direction, packet)) => self.arrive(direction, packet)?,
                Some(Happening::Signal(node, signal)) => self.signal(node, signal),
                Some(Happening::Damaged(node, frame)) => self.damaged(node, &frame),
                None => {}
            }
        } else if machine < channels + stations {
            let station = &mut self.stations[(machine - channels) as usize];
            let next = station.serve(self.now, &mut self.medium);
            self.medium.agenda.set(machine, next);
            self.send_messages(machine - channels);
        } else if machine < channels + stations + flows {
            let number = machine - channels - stations;
            let flow = &mut self.flows[number as usize];
            if let Transport::Tcp(connection) = &mut flow.transport {
                connection.handle_timeout(self.now, flow.done.is_some());
            }
            self.serve_flow(number);
            let next = self.flows[number as usize].deadline(self.now, &self.medium);
            self.medium.agenda.set(machine, next);
        } else {
            self.move_host();
            let next = self.plan.moves.get(self.moved).map(|next| Instant::ZERO + next.at);
            self.medium.agenda.set(machine, next);
        }
        Ok(())
    }

    /// A packet comes out of a direction.
    fn arrive(&mut self, direction: u32, packet: Packet) -> Result<(), RunError> {
        if !self.graph.is_up(direction) {
            self.left_behind += 1;
            return Ok(());
        }
        let Direction { to, air, .. } = self.plan.directions[direction as usize];
        let Some(number) = self.plan.station(to) else { return self.arrive_at_host(&packet) };
        if self.plan.stations[number as usize].handoff && self.arrive_message(number, &packet) {
            return Ok(());
        }
        let station = &mut self.stations[number as usize];
        let from = if air { Port::Air } else { Port::Wired };
        match station.past_the_agent(self.now, from, &packet) {
            Some(onward) => self.medium.send(self.now, onward, packet),
            None => {
                station.receive(self.now, from, packet);
                self.serve_station(number);
            }
        }
        Ok(())
    }

    /// A signal of a channel to a node, or its readiness to take a packet. Only saturating flows
    /// of hosts heed it: all other packets wait in the channel's queue.
    fn signal(&mut self, node: u32, signal: Option<LinkSignal>) {
        if let Some(station) = self.plan.station(node) {
            if let Some(signal) = signal {
                self.stations[station as usize].signal(self.now, signal);
            }
            self.serve_station(station);
        } else {
            self.saturate(node);
        }
    }

    /// A frame has arrived damaged: a host drops it.
    fn damaged(&mut self, node: u32, frame: &Packet) {
        if let Some(station) = self.plan.station(node) {
            self.stations[station as usize].damaged(self.now, frame);
            self.serve_station(station);
        }
    }

    /// Both ways of a flow take this route and back.
    fn route(&mut self, number: usize, route: &[u32]) {
        let hosts = self.plan.flows[number].hosts;
        let directions = &self.plan.directions;
        for &direction in route {
            let back = opposite(direction);
            for (outbound, from, host) in [(direction, back, hosts[1]), (back, direction, hosts[0])]
            {
                if let Some(station) = self.plan.station(directions[from as usize].to) {
                    self.stations[station as usize].learn(host, outbound);
                }
            }
            if directions[direction as usize].air {
                self.air_routes.insert(direction);
            }
        }
        self.note_route(number, route);
    }

    /// A flow acts no later than then.
    fn schedule_flow(&mut self, number: u32, at: Instant) {
        let first_flow = self.plan.channels.len() + self.plan.stations.len();
        self.medium.agenda.schedule_no_later(first_flow as u32 + number, at);
    }

    fn serve_station(&mut self, station: u32) {
        if let Some(at) = self.stations[station as usize].serve(self.now, &mut self.medium) {
            self.medium.agenda.schedule_no_later(self.plan.channels.len() as u32 + station, at);
        }
        self.send_messages(station);
    }

    fn arrive_at_host(&mut self, packet: &Packet) -> Result<(), RunError> {
        if let Some((number, sent_at)) = address::datagram_of_flow(packet) {
            let flow = &mut self.flows[number as usize];
            if let Transport::Datagrams(datagrams) = &mut flow.transport {
                datagrams.arrived(self.now, sent_at);
                flow.delivery.arrived(self.now, datagrams.delivered());
            }
            return Ok(());
        }
        let Ok(segment) = Segment::parse(packet) else { return Ok(()) };
        let (number, end) = address::flow_and_end(&segment);
        let flow = &mut self.flows[number as usize];
        let Transport::Tcp(connection) = &mut flow.transport else { return Ok(()) };
        connection.arrived(self.now, end, &segment);
        flow.delivery.arrived(self.now, connection.ends[1].delivered());
        let (acked, delivered) =
            (connection.ends[end].acked(), connection.ends[1 - end].delivered());
        if acked > delivered && !connection.is_split {
            return Err(RunError::AckInvented { flow: number, acked, delivered });
        }
        self.serve_flow(number);
        if let Some(at) = self.flows[number as usize].deadline(self.now, &self.medium) {
            self.schedule_flow(number, at);
        }
        Ok(())
    }

    /// Lets the applications of a flow act, and its packets leave.
    fn serve_flow(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        if self.now < flow.start {
            return;
        }
        match &mut flow.transport {
            Transport::Tcp(_) => self.serve_connection(number),
            Transport::Datagrams(datagrams) if datagrams.is_saturating() => {
                let host = self.plan.flows[number as usize].hosts[0];
                self.saturating.begin(host, number);
                self.saturate(host);
            }
            Transport::Datagrams(datagrams) => {
                while let Some(packet) = datagrams.poll_transmit(self.now) {
                    self.medium.send(self.now, flow.outbound[0], packet);
                }
            }
        }
    }

    /// The saturating flows of a host send in turns, each as soon as its link can take a datagram.
    fn saturate(&mut self, host: u32) {
        let Self { saturating, flows, medium, now, .. } = self;
        for _ in 0..datagrams::MOST_AT_ONCE {
            let can_send = |number| medium.can_send(*now, flows[number as usize].outbound[0]);
            let Some(number) = saturating.next(host, can_send) else { break };
            let flow = &mut flows[number as usize];
            if let Transport::Datagrams(datagrams) = &mut flow.transport {
                medium.send(*now, flow.outbound[0], datagrams.write(*now));
            }
        }
    }

    fn serve_connection(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        let Transport::Tcp(connection) = &mut flow.transport else { return };
        let mut next_turn = None;
        if connection.application.all_acknowledged(&connection.ends) {
            next_turn = self.turns.acknowledged(number).filter(|next| *next != number);
        }
        if connection.serve(self.now, self.turns.may_write(number)) {
            self.turns.wrote(number, connection.application.has_more());
        }
        if let (0, Some(progress)) = (number, &mut self.progress) {
            progress.note(self.now, &connection.ends);
        }
        for (end, outbound) in flow.outbound.into_iter().enumerate() {
            while let Some(packet) = connection.poll_transmit(self.now, end) {
                self.medium.send(self.now, outbound, packet);
            }
        }
        if flow.done.is_none() && connection.is_done() {
            flow.done = Some(self.now);
            self.open -= 1;
        }
        if let Some(next) = next_turn {
            self.schedule_flow(next, self.now);
        }
    }
}
