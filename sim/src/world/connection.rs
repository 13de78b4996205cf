//! A TCP connection with its applications.

use super::address;
use super::application::Application;
use super::delay::PacketDelays;
use crate::plan::{self, Handoff, Plan, StationAgent};
use airmend_proto::tcp::{Endpoint, State};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant, Packet};

/// Both ends of a connection, the sending one first, and their applications.
pub(super) struct Connection {
    pub(super) ends: [Endpoint; 2],
    pub(super) application: Application,
    /// Handoffs of the receiving host, and when the next one will be over.
    handoff: Option<(Handoff, Instant)>,
    /// Delays of the sender's packets, if they are to be measured.
    packet_delays: Option<PacketDelays>,
    /// A split connection acknowledges what the receiver does not have; that is measured.
    pub(super) is_split: bool,
    /// Whether it is done only when both ends have closed it.
    until_closed: bool,
}

impl Connection {
    /// The connection of flow number `number`, which begins at `start`.
    pub(super) fn new(plan: &Plan, number: u32, start: Instant, seed: u64) -> Self {
        let flow = &plan.flows[number as usize];
        let splits = |station: &plan::Station| station.agent.name() == StationAgent::SPLIT;
        let mut on_route = flow.stations.iter().map(|station| &plan.stations[*station as usize]);
        let last = flow.route.last().map(|last| plan.directions[*last as usize]);
        let handoff = last.and_then(|last| last.handoff).filter(|handoff| handoff.acks > 0);
        let is_split = match plan.moves.is_empty() {
            true => on_route.any(splits),
            false => plan.stations.iter().any(splits),
        };
        let [sender, receiver] = address::of_flow(number, flow.hosts);
        let [isn, peer_isn] = [1, 2].map(|end| SeqNumber(number.wrapping_mul(0x9e37_79b9) + end));
        Self {
            ends: [
                Endpoint::connect(flow.profiles[0], sender, receiver, isn),
                Endpoint::listen(flow.profiles[1], receiver, peer_isn),
            ],
            application: Application::new(flow.traffic, start, seed, number),
            handoff: handoff.map(|handoff| (handoff, handoff.next_end(start))),
            packet_delays: plan.packet_delays.then(PacketDelays::default),
            is_split,
            until_closed: flow.until_closed,
        }
    }

    /// Whether all data has arrived, and the connection is closed if it must be.
    pub(super) fn is_done(&self) -> bool {
        let is_closed = |end: &Endpoint| matches!(end.state(), State::TimeWait | State::Closed);
        self.application.is_done(&self.ends)
            && (!self.until_closed || self.ends.iter().all(is_closed))
    }

    /// When a timer expires or an application acts.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let ends = self.ends.iter().filter_map(Endpoint::poll_timeout);
        let handoff = self.handoff.map(|(_, end)| end);
        ends.map(|deadline| deadline.at).chain(self.application.deadline()).chain(handoff).min()
    }

    /// Acts on expired timers. The fast retransmission after a handoff of [CI94]: the moved host
    /// sends as many duplicate ACKs as make its sender retransmit lost data.
    pub(super) fn handle_timeout(&mut self, now: Instant, is_done: bool) {
        for endpoint in &mut self.ends {
            endpoint.handle_timeout(now);
        }
        if let Some((handoff, end)) = self.handoff
            && end <= now
        {
            self.ends[1].repeat_acks(handoff.acks);
            self.handoff = (!is_done).then_some((handoff, handoff.next_end(now)));
        }
    }

    /// A segment has arrived at an end.
    pub(super) fn arrived(&mut self, now: Instant, end: usize, segment: &Segment) {
        self.ends[end].handle_segment(now, segment);
        if let Some(delays) = &mut self.packet_delays {
            delays.arrived(now, self.ends[1].delivered());
        }
    }

    /// Lets the applications act. Returns whether the sending end has written.
    pub(super) fn serve(&mut self, now: Instant, may_write: bool) -> bool {
        self.application.serve(now, &mut self.ends, may_write)
    }

    /// The next packet that leaves an end.
    pub(super) fn poll_transmit(&mut self, now: Instant, end: usize) -> Option<Packet> {
        let packet = self.ends[end].poll_transmit(now)?;
        if let (0, Some(delays)) = (end, &mut self.packet_delays) {
            delays.leaves(now, &packet);
        }
        Some(packet)
    }

    /// Bytes that arrived in order, both ways.
    pub(super) fn received(&self) -> u64 {
        self.ends.iter().map(Endpoint::delivered).sum()
    }

    /// Bytes that were acknowledged to an end and did not arrive at the other one.
    pub(super) fn acked_undelivered(&self) -> u64 {
        let [a, b] = &self.ends;
        a.acked().saturating_sub(b.delivered()) + b.acked().saturating_sub(a.delivered())
    }

    /// The delays of packets or of what applications exchange.
    pub(super) fn delays_ms(&self) -> &[f64] {
        match &self.packet_delays {
            Some(delays) => delays.millis(),
            None => self.application.delays_ms(),
        }
    }
}
