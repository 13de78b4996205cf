//! A split connection at the base station, after I-TCP (S0-67): the base station terminates the
//! fixed host's connection in place of the mobile, and opens one to the mobile in place of the
//! fixed host.
//!
//! It acknowledges data that the mobile does not have, which the 1995 paper criticises. It needs
//! the TCP model and hence runs in virtual time only. Both of its ends use a TCP profile of that
//! time.

use super::side::side_index;
use crate::agenda::Agenda;
use airmend_proto::tcp::{Endpoint, Profile};
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{Agent, Deadline, Instant, Packet, Port, Timer, Verdict};
use std::collections::{HashMap, VecDeque};

/// The base station's ends of all its connections.
pub(crate) struct Split {
    /// The number of each connection.
    index: HashMap<FlowKey, u32>,
    connections: Vec<Connection>,
    agenda: Agenda,
    /// Towards the fixed hosts and towards the mobiles.
    outgoing: [VecDeque<Packet>; 2],
}

struct Connection {
    /// Towards the fixed host and towards the mobile.
    ends: [Endpoint; 2],
    /// Bytes that arrived at each end and were written at the other.
    relayed: [u64; 2],
}

/// The buffer between the two ends, for each direction.
const BUFFER: u64 = 65_535;

impl Split {
    /// For so many connections.
    pub(crate) fn new(flows: usize) -> Self {
        Self {
            index: HashMap::new(),
            connections: Vec::new(),
            agenda: Agenda::new(flows),
            outgoing: Default::default(),
        }
    }

    /// The connection of a segment; a SYN makes one.
    fn find(&mut self, segment: &Segment, from: Port) -> Option<u32> {
        let key = FlowKey::of(segment, from);
        if let Some(&number) = self.index.get(&key) {
            return Some(number);
        }
        let is_syn = segment.flags.intersects(Flags::SYN) && !segment.flags.intersects(Flags::ACK);
        if !is_syn {
            return None;
        }
        let (here, there) = (segment.destination, segment.source);
        let listening = Endpoint::listen(Profile::bsd95(), here, SeqNumber(3));
        let connecting = Endpoint::connect(Profile::bsd95(), there, here, SeqNumber(4));
        let ends = match from {
            Port::Wired => [listening, connecting],
            Port::Air => [connecting, listening],
        };
        let number = self.connections.len() as u32;
        self.connections.push(Connection { ends, relayed: [0; 2] });
        self.index.insert(key, number);
        Some(number)
    }

    /// Sends a connection's packets; returns its next deadline.
    fn serve(&mut self, now: Instant, number: u32) {
        let connection = &mut self.connections[number as usize];
        connection.relay();
        for (endpoint, outgoing) in connection.ends.iter_mut().zip(&mut self.outgoing) {
            while let Some(packet) = endpoint.poll_transmit(now) {
                outgoing.push_back(packet);
            }
        }
        let deadlines = connection.ends.iter().filter_map(Endpoint::poll_timeout);
        self.agenda.set(number, deadlines.map(|deadline| deadline.at).min());
    }
}

impl Connection {
    /// Copies data that arrived at each end into the send buffer of the other end, as far as there
    /// is room.
    fn relay(&mut self) {
        for from in 0..2 {
            let arrived = self.ends[from].delivered();
            self.relayed[from] += self.ends[1 - from].write(arrived - self.relayed[from]);
            let waiting = arrived - self.ends[1 - from].acked();
            self.ends[from].set_room(BUFFER.saturating_sub(waiting) as u32);
            if self.ends[from].is_finished() && self.relayed[from] == arrived {
                self.ends[1 - from].close();
            }
        }
    }
}

impl Agent for Split {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Verdict {
        if let Ok(segment) = Segment::parse(packet)
            && let Some(number) = self.find(&segment, from)
        {
            let end = side_index(from);
            self.connections[number as usize].ends[end].handle_segment(now, &segment);
            self.serve(now, number);
        }
        Verdict::Withhold
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, number)) = self.agenda.next().filter(|(at, _)| *at <= now) {
            for endpoint in &mut self.connections[number as usize].ends {
                endpoint.handle_timeout(now);
            }
            self.serve(now, number);
        }
    }

    fn poll_enqueue(&mut self) -> Option<(Port, Packet)> {
        Port::BOTH.into_iter().find_map(|to| Some((to, self.outgoing[side_index(to)].pop_front()?)))
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.agenda.next().map(|(at, _)| Deadline { at, why: Timer::new("split-endpoint") })
    }
}
