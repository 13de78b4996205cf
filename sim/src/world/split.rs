//! A split connection at the base station, after I-TCP (S0-67): the base station terminates the
//! fixed host's connection in place of the mobile, and opens one to the mobile in place of the
//! fixed host.
//!
//! It acknowledges data that the mobile does not have, which the 1995 paper criticises. It needs
//! the TCP model and hence runs in virtual time only.
//!
//! M-TCP [Brown, Singh 1997] is the same but for its ACKs: a host gets an ACK only of what the
//! other end of the connection has acknowledged, and the fixed host's lacks the last byte. When the
//! mobile has been silent while data waits for it, an ACK of that byte closes the window, so that
//! the fixed host probes it and takes nothing for lost. When the mobile is heard again, the window
//! opens, and the station sends again what was in flight.

use super::side::side_index;
use crate::agenda::Agenda;
use crate::plan::SplitSpec;
use airmend_proto::tcp::Endpoint;
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{Agent, Deadline, Instant, Packet, Port, Timer, Verdict};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// The base station's ends of all its connections.
pub(crate) struct Split {
    spec: SplitSpec,
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
    /// The buffer of each end for what arrives there.
    buffers: [u32; 2],
    /// Of M-TCP only.
    watch: Option<Watch>,
}

/// The state of M-TCP: whether the mobile is there.
#[derive(Clone, Copy, Debug)]
struct Watch {
    silence: Duration,
    /// When the mobile was last heard, or data began to wait for it.
    heard: Instant,
    is_disconnected: bool,
}

impl Split {
    /// For so many connections.
    pub(crate) fn new(spec: SplitSpec, flows: usize) -> Self {
        Self {
            spec,
            index: HashMap::new(),
            connections: Vec::new(),
            agenda: Agenda::new(flows),
            outgoing: Default::default(),
        }
    }

    /// The connection of a segment; a SYN makes one.
    fn find(&mut self, now: Instant, segment: &Segment, from: Port) -> Option<u32> {
        let key = FlowKey::of(segment, from);
        if let Some(&number) = self.index.get(&key) {
            return Some(number);
        }
        let is_syn = segment.flags.intersects(Flags::SYN) && !segment.flags.intersects(Flags::ACK);
        if !is_syn {
            return None;
        }
        let (here, there) = (segment.destination, segment.source);
        let profiles = self.spec.profiles;
        let mut ends = profiles.map(|profile| Endpoint::listen(profile, here, SeqNumber(3)));
        let other = 1 - side_index(from);
        ends[other] = Endpoint::connect(profiles[other], there, here, SeqNumber(4));
        let buffers = profiles.map(|profile| profile.receive_window);
        let watch = |silence| Watch { silence, heard: now, is_disconnected: false };
        let watch = self.spec.silence.map(watch);
        let number = self.connections.len() as u32;
        self.connections.push(Connection { ends, relayed: [0; 2], buffers, watch });
        self.index.insert(key, number);
        Some(number)
    }

    /// Sends a connection's packets; returns its next deadline.
    fn serve(&mut self, now: Instant, number: u32) {
        let connection = &mut self.connections[number as usize];
        connection.relay(now);
        for (endpoint, outgoing) in connection.ends.iter_mut().zip(&mut self.outgoing) {
            while let Some(packet) = endpoint.poll_transmit(now) {
                outgoing.push_back(packet);
            }
        }
        let deadlines = connection.ends.iter().filter_map(Endpoint::poll_timeout);
        let deadlines = deadlines.map(|deadline| deadline.at);
        self.agenda.set(number, deadlines.chain(connection.disconnects_at()).min());
    }
}

impl Connection {
    /// Copies data that arrived at each end into the send buffer of the other end, as far as there
    /// is room.
    fn relay(&mut self, now: Instant) {
        let is_waiting = self.data_waits();
        for from in 0..2 {
            let arrived = self.ends[from].delivered();
            self.relayed[from] += self.ends[1 - from].write(arrived - self.relayed[from]);
            self.acknowledge(from, arrived);
            if self.ends[from].is_finished() && self.relayed[from] == arrived {
                self.ends[1 - from].close();
            }
        }
        let begins = !is_waiting && self.data_waits();
        if let (Some(watch), true) = (&mut self.watch, begins) {
            watch.heard = now;
        }
    }

    /// What an end tells its host of the data that arrived there.
    fn acknowledge(&mut self, from: usize, arrived: u64) {
        let acked = self.ends[1 - from].acked();
        let end = &mut self.ends[from];
        let Some(watch) = self.watch else {
            let waiting = arrived - acked;
            return end.set_room(u64::from(self.buffers[from]).saturating_sub(waiting) as u32);
        };
        let is_towards_mobile = from == 0;
        let is_closed = is_towards_mobile && watch.is_disconnected;
        // The byte that is left for the ACK that closes the window. A host without further data
        // must not wait for it.
        let withheld = is_towards_mobile && !is_closed && acked < arrived;
        end.limit_acks(acked.saturating_sub(withheld.into()));
        end.set_room(if is_closed { 0 } else { self.buffers[from] });
    }

    /// Whether the mobile has not acknowledged all that it was sent.
    fn data_waits(&self) -> bool {
        self.ends[1].acked() < self.relayed[0]
    }

    /// When the mobile will be taken for disconnected.
    fn disconnects_at(&self) -> Option<Instant> {
        let watch = self.watch.filter(|watch| !watch.is_disconnected && self.data_waits())?;
        Some(watch.heard + watch.silence)
    }

    /// A segment of the mobile has arrived.
    fn mobile_is_heard(&mut self, now: Instant) {
        let Some(watch) = &mut self.watch else { return };
        watch.heard = now;
        if core::mem::take(&mut watch.is_disconnected) {
            self.ends[1].expire_timer(now);
        }
    }
}

impl Agent for Split {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Verdict {
        if let Ok(segment) = Segment::parse(packet)
            && let Some(number) = self.find(now, &segment, from)
        {
            let connection = &mut self.connections[number as usize];
            connection.ends[side_index(from)].handle_segment(now, &segment);
            if from == Port::Air {
                connection.mobile_is_heard(now);
            }
            self.serve(now, number);
        }
        Verdict::Withhold
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, number)) = self.agenda.next().filter(|(at, _)| *at <= now) {
            let connection = &mut self.connections[number as usize];
            for endpoint in &mut connection.ends {
                endpoint.handle_timeout(now);
            }
            let is_due = connection.disconnects_at().is_some_and(|at| at <= now);
            if let (true, Some(watch)) = (is_due, &mut connection.watch) {
                watch.is_disconnected = true;
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
