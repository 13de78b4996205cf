//! Passthrough: the baseline of every comparison, and what a failing agent is replaced by.

use super::egress::{Class, Egress, EgressLimits};
use crate::agent::{Agent, Deadline, Port};
use crate::event::Event;
use crate::packet::Packet;
use crate::time::Instant;
use alloc::collections::VecDeque;

/// Forwards every packet in the order of arrival, through the queue that all agents share.
#[derive(Clone, Debug)]
pub struct Plain {
    egress: Egress<()>,
    events: VecDeque<Event>,
}

impl Plain {
    /// Passthrough with these queue limits.
    pub fn new(limits: EgressLimits) -> Self {
        Self { egress: Egress::new(limits), events: VecDeque::new() }
    }
}

impl Agent for Plain {
    fn handle_packet(&mut self, _now: Instant, from: Port, packet: Packet) {
        let to = from.opposite();
        if !self.egress.push(to, Class::Normal, packet, ()) {
            self.events.push_back(Event::EgressDropped(to));
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant, to: Port) -> Option<Packet> {
        self.egress.pop(to).map(|(packet, ())| packet)
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
