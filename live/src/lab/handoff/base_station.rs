//! One of several base stations: its agent, its handoff, and its links.

use super::backbone::Member;
use crate::lab::hop::{End, HopMedium};
use crate::lab::inline_agent::InlineAgent;
use airmend_proto::agents::handoff::{Handoff, Mobile, Way};
use airmend_proto::{Instant, Packet, Port, Ports};
use std::io;

/// Messages that a station sends before the others may read theirs: what a socket's receive buffer
/// holds.
const MESSAGES_AT_ONCE: usize = 64;

/// A base station.
pub(super) struct BaseStation {
    pub(super) agent: InlineAgent,
    /// `None` where stations know nothing of each other.
    pub(super) handoff: Option<Cooperation>,
    pub(super) links: CellLinks,
}

/// The handoff of a station, and its place on the backbone.
pub(super) struct Cooperation {
    pub(super) handoff: Handoff,
    pub(super) member: Member,
}

/// The hops of a base station.
pub(super) struct CellLinks {
    pub(super) wired: HopMedium,
    pub(super) air: HopMedium,
}

impl Ports for CellLinks {
    fn can_send(&self, now: Instant, side: Port) -> bool {
        match side {
            Port::Wired => self.wired.can_send(now, End::Station),
            Port::Air => self.air.can_send(now, End::Station),
        }
    }

    fn send(&mut self, now: Instant, side: Port, packet: Packet) {
        match side {
            Port::Wired => self.wired.send(now, End::Station, packet),
            Port::Air => self.air.send(now, End::Station, packet),
        }
    }
}

impl BaseStation {
    /// Handles a packet that has arrived over a hop.
    pub(super) fn handle_arrival(&mut self, now: Instant, side: Port, packet: Packet) {
        let handoff = self.handoff.as_mut();
        let way = handoff.map(|handoff| handoff.handoff.handle_packet(now, side, &packet));
        if way != Some(Way::Kept) {
            self.agent.handle(now, side, packet, &mut self.links);
        }
    }

    /// The mobile host has associated with this station.
    pub(super) fn attach(&mut self, now: Instant, mobile: Mobile) {
        if let Some(Cooperation { handoff, .. }) = &mut self.handoff {
            handoff.mobile_attached(now, mobile);
        }
    }

    /// The mobile host will associate with this station soon.
    pub(super) fn approach(&mut self, now: Instant, mobile: Mobile) {
        if let Some(Cooperation { handoff, .. }) = &mut self.handoff {
            handoff.mobile_approaches(now, mobile);
        }
    }

    /// Lets the agent and the handoff act on what is due and on the messages of other stations;
    /// returns when they must be asked again.
    pub(super) fn serve(&mut self, now: Instant) -> io::Result<Option<Instant>> {
        let again = match &mut self.handoff {
            Some(cooperation) => Some(cooperation.serve(now, &mut self.agent, &mut self.links)?),
            None => None,
        };
        let agent = self.agent.serve(now, &mut self.links).map(|deadline| deadline.at);
        // The queue towards the fixed host is the agent's.
        let wired = self.links.wired.next_deadline(now, &[End::Station]);
        let air = self.links.air.next_deadline(now, &[End::Station]);
        Ok([again, agent, wired, air].into_iter().flatten().min())
    }
}

impl Cooperation {
    fn serve(
        &mut self,
        now: Instant,
        agent: &mut InlineAgent,
        links: &mut CellLinks,
    ) -> io::Result<Instant> {
        while let Some(message) = self.member.receive()? {
            self.handoff.handle_message(now, message, &|flow| agent.air_round_trip(flow));
        }
        if self.handoff.poll_timeout() <= now {
            self.handoff.handle_timeout(now);
        }
        let mut sent = 0;
        while sent < MESSAGES_AT_ONCE
            && let Some(output) = self.handoff.poll_output()
        {
            if let Some(message) = agent.apply(now, output, links) {
                self.member.send(&message);
                sent += 1;
            }
        }
        while let Some(event) = self.handoff.poll_event() {
            agent.recorder.event(event);
        }
        let is_done = sent < MESSAGES_AT_ONCE;
        Ok(if is_done { self.handoff.poll_timeout() } else { now })
    }
}
