//! [C-16] Connections that are being opened: a SYN or SYN-ACK lost on the air costs its sender a
//! second or more (RFC 6298 §2: no round trip is known yet), whatever the loss rate.

use super::{Departure, Snoop};
use crate::agent::Port;
use crate::agents::egress::Class;
use crate::event::Event;
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use alloc::collections::VecDeque;
use core::time::Duration;

/// So many are remembered at once. A flood of SYNs fills the places and changes nothing else: what
/// finds none passes, and is not repeated.
const PLACES: usize = 64;
/// How often a SYN is repeated at most, at intervals that double. If it was the SYN-ACK that was
/// lost, twice, Linux answers no further copy for 500 ms (`tcp_invalid_ratelimit`); the fourth
/// comes later than that.
const ATTEMPTS: u32 = 4;
/// The first interval: twice the air's round trip, and so short that three attempts are over before
/// the second is after which the host repeats it itself.
const LEAST_INTERVAL: Duration = Duration::from_millis(40);
const LONGEST_INTERVAL: Duration = Duration::from_millis(100);

/// SYNs and SYN-ACKs towards the mobile that it has not answered.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    open: VecDeque<Handshake>,
    next_id: u64,
}

#[derive(Debug)]
struct Handshake {
    id: u64,
    key: FlowKey,
    packet: Packet,
    attempts: u32,
    interval: Duration,
    /// `None` while it waits in the queue.
    due: Option<Instant>,
}

impl Snoop {
    /// A SYN or SYN-ACK is about to be queued.
    pub(super) fn begin_handshake(&mut self, key: FlowKey, packet: &Packet) -> Option<u64> {
        let interval = self.air_round_trip.map_or(LONGEST_INTERVAL, |air| air * 2);
        let interval = interval.clamp(LEAST_INTERVAL, LONGEST_INTERVAL);
        self.handshakes.begin(key, packet.clone(), interval)
    }

    /// It goes on the air. False for a repetition that is needed no more.
    pub(super) fn depart_handshake(&mut self, now: Instant, id: u64, repeated: bool) -> bool {
        let attempt = self.handshakes.departed(now, id);
        if let (Some(attempt), true) = (attempt, repeated) {
            self.event(Event::HandshakeRepeated { attempt });
        }
        attempt.is_some() || !repeated
    }

    pub(super) fn repeat_handshakes(&mut self, now: Instant) {
        while let Some((id, packet)) = self.handshakes.pop_due(now) {
            let departure = Departure::Handshake { id, repeated: true };
            if !self.egress.push(Port::Air, Class::Urgent, packet, Some(departure)) {
                self.handshakes.open.retain(|handshake| handshake.id != id);
                self.event(Event::EgressDropped(Port::Air));
            }
        }
    }
}

impl Handshakes {
    /// Remembers a SYN or SYN-ACK that is about to be queued, in place of an earlier one of its
    /// connection; `None` if there is no place.
    fn begin(&mut self, key: FlowKey, packet: Packet, interval: Duration) -> Option<u64> {
        self.end(&key);
        if self.open.len() >= PLACES {
            return None;
        }
        let id = self.next_id;
        self.next_id += 1;
        self.open.push_back(Handshake { id, key, packet, attempts: 0, interval, due: None });
        Some(id)
    }

    /// The mobile answered, or the connection is no more.
    pub(super) fn end(&mut self, key: &FlowKey) {
        self.open.retain(|handshake| handshake.key != *key);
    }

    /// It goes on the air; says how often it was repeated, if it is still open.
    fn departed(&mut self, now: Instant, id: u64) -> Option<u32> {
        let handshake = self.open.iter_mut().find(|handshake| handshake.id == id)?;
        handshake.due = Some(now + handshake.interval * (1 << handshake.attempts));
        Some(handshake.attempts)
    }

    /// When the next one is to be repeated.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.open.iter().filter_map(|handshake| handshake.due).min()
    }

    /// Takes the next one that is due; those that were repeated often enough are forgotten.
    fn pop_due(&mut self, now: Instant) -> Option<(u64, Packet)> {
        let is_due = |handshake: &Handshake| handshake.due.is_some_and(|due| due <= now);
        self.open.retain(|handshake| !is_due(handshake) || handshake.attempts < ATTEMPTS);
        let handshake = self.open.iter_mut().find(|handshake| is_due(handshake))?;
        handshake.attempts += 1;
        handshake.due = None;
        Some((handshake.id, handshake.packet.clone()))
    }

    /// Whether none is open, which is nearly always.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
