//! Hosts that move, and the messages between the stations that hand them over.

use super::World;
use super::address::{self, station_id};
use super::flow::Transport;
use crate::graph::opposite;
use crate::plan::{Move, MoveEvent, Plan, StationAgent};
use airmend_proto::Packet;
use airmend_proto::agents::handoff::To;

/// The stations that hand over, by number.
fn handing_over(plan: &Plan) -> Vec<u32> {
    let stations = (0..).zip(&plan.stations);
    stations.filter(|(_, station)| station.handoff).map(|(number, _)| number).collect()
}

impl World<'_> {
    /// The stations that hand over learn the ways to each other, and routers those to them; each
    /// serves the hosts that begin there.
    pub(super) fn start_handoffs(&mut self) {
        let numbers = handing_over(self.plan);
        for &to in &numbers {
            let root = self.plan.hosts + to;
            let tree = self.graph.routes_to(root);
            for &from in numbers.iter().filter(|from| **from != to) {
                let route = tree.route(self.plan.hosts + from, root).unwrap_or_default();
                let Some(first) = route.first() else { continue };
                self.stations[from as usize].backbone.push((to, *first));
                for pair in route.windows(2) {
                    let node = self.plan.directions[pair[0] as usize].to;
                    if let Some(router) = self.plan.station(node) {
                        self.stations[router as usize].learn(root, pair[1]);
                    }
                }
            }
        }
        for &Move { host, .. } in &self.plan.moves {
            let first = self.graph.leaving(host).iter().find(|(way, _)| self.graph.is_up(*way));
            if let Some(station) = first.and_then(|(_, node)| self.plan.station(*node)) {
                let mobile = address::mapped(host);
                self.stations[station as usize].mobile_attached(self.now, mobile);
            }
        }
        for station in numbers {
            self.serve_station(station);
        }
    }

    /// The next host moves.
    pub(super) fn move_host(&mut self) {
        let Move { host, event, .. } = self.plan.moves[self.moved];
        self.moved += 1;
        match event {
            MoveEvent::Approaches(station) => {
                let mobile = address::mapped(host);
                self.stations[station as usize].mobile_approaches(self.now, mobile);
                self.serve_station(station);
            }
            MoveEvent::Detaches => self.graph.attach(host, None),
            MoveEvent::Attaches { outbound, acks } => self.attach(host, outbound, acks),
        }
    }

    /// A host has this link from now on, and its flows take other routes.
    fn attach(&mut self, host: u32, outbound: u32, acks: u32) {
        if self.graph.is_up(outbound) {
            return;
        }
        let before = self.flows.iter().zip(&self.plan.flows);
        let before = before.filter(|(_, plan)| plan.hosts[1] == host).map(|(flow, _)| flow);
        let old = before.map(|flow| self.plan.directions[flow.outbound[1] as usize].to).next();
        self.graph.attach(host, Some(outbound));
        for station in &mut self.stations {
            station.forget(host);
        }
        let tree = self.graph.routes_to(host);
        for (number, flow) in self.plan.flows.iter().enumerate() {
            let [from, to] = flow.hosts;
            if flow.hosts.contains(&host)
                && let Some(route) = tree.route(from, to)
            {
                self.route(number, &route);
            }
        }
        let station = |node: Option<u32>| node.and_then(|node| self.plan.station(node));
        let new = station(Some(self.plan.directions[outbound as usize].to));
        self.move_connections(station(old), new);
        if let Some(new) = new {
            self.stations[new as usize].mobile_attached(self.now, address::mapped(host));
            self.serve_station(new);
        }
        for number in 0..self.plan.flows.len() {
            if self.plan.flows[number].hosts[1] == host {
                let flow = &mut self.flows[number];
                flow.delivery.attached(self.now);
                if let Transport::Tcp(connection) = &mut flow.transport {
                    connection.ends[1].repeat_acks(acks);
                }
                self.serve_flow(number as u32);
            }
        }
    }

    /// The state of split connections goes with the host, as I-TCP's does (S0-46): here all that a
    /// station has, so that a station has one mobile host.
    fn move_connections(&mut self, old: Option<u32>, new: Option<u32>) {
        let is_split = |number: u32| {
            matches!(self.plan.stations[number as usize].agent, StationAgent::Split(_))
        };
        if let (Some(old), Some(new)) = (old.filter(|n| is_split(*n)), new.filter(|n| is_split(*n)))
            && let Ok([old, new]) = self.stations.get_disjoint_mut([old as usize, new as usize])
        {
            old.exchange_agents(new);
        }
    }

    /// Delivers a message to a station, if the packet is one.
    pub(super) fn arrive_message(&mut self, station: u32, packet: &Packet) -> bool {
        let node = self.plan.hosts + station;
        let Some(message) = address::datagram_to(node, packet) else { return false };
        self.stations[station as usize].handle_message(self.now, message);
        self.serve_station(station);
        true
    }

    /// Sends what a station has to say to others: one packet for each of them, since the network
    /// has no multicast.
    pub(super) fn send_messages(&mut self, number: u32) {
        let station = &mut self.stations[number as usize];
        for (to, message) in std::mem::take(&mut station.messages) {
            let is_meant = |other: u32| to == To::Group || to == To::Station(station_id(other));
            for &(other, direction) in station.backbone.iter().filter(|(other, _)| is_meant(*other))
            {
                let nodes = [number, other].map(|station| self.plan.hosts + station);
                let packet = address::datagram(nodes, &message);
                self.medium.send(self.now, direction, packet);
            }
        }
    }

    /// The opposite of the last direction of a flow's route leads back from its receiver.
    pub(super) fn note_route(&mut self, number: usize, route: &[u32]) {
        if let [first, .., last] | [first @ last] = *route {
            self.flows[number].outbound = [first, opposite(last)];
        }
    }
}
