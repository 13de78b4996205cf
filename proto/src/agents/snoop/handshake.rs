//! [C-16] Connections that are being opened: a SYN or SYN-ACK lost on the air costs its sender a
//! second or more (RFC 6298 §2: no round trip is known yet), whatever the loss rate.

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
pub(super) const LEAST_INTERVAL: Duration = Duration::from_millis(40);
pub(super) const LONGEST_INTERVAL: Duration = Duration::from_millis(100);

/// SYNs and SYN-ACKs towards the mobile that it has not answered.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    open: VecDeque<Handshake>,
}

#[derive(Debug)]
struct Handshake {
    key: FlowKey,
    packet: Packet,
    attempts: u32,
    interval: Duration,
    /// When it is repeated; `None` while the repetition waits for the air.
    due: Option<Instant>,
}

impl Handshakes {
    /// Remembers a SYN or SYN-ACK, if there is a place.
    pub(super) fn begin(&mut self, now: Instant, key: FlowKey, packet: Packet, interval: Duration) {
        if self.open.len() < PLACES {
            let due = Some(now + interval);
            self.open.push_back(Handshake { key, packet, attempts: 0, interval, due });
        }
    }

    /// The mobile answered, or the connection is no more.
    pub(super) fn end(&mut self, key: &FlowKey) {
        self.open.retain(|handshake| handshake.key != *key);
    }

    /// When the next one is to be repeated.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.open.iter().filter_map(|handshake| handshake.due).min()
    }

    /// Lets those that are due wait for the air, and forgets those that were repeated often enough.
    pub(super) fn expire(&mut self, now: Instant) {
        let is_due = |handshake: &Handshake| handshake.due.is_some_and(|due| due <= now);
        self.open.retain(|handshake| !is_due(handshake) || handshake.attempts < ATTEMPTS);
        for handshake in self.open.iter_mut().filter(|handshake| is_due(handshake)) {
            handshake.due = None;
        }
    }

    /// The next one that waits for the air, and how often it has been repeated with that.
    pub(super) fn poll_due(&mut self, now: Instant) -> Option<(Packet, u32)> {
        let handshake = self.open.iter_mut().find(|handshake| handshake.due.is_none())?;
        handshake.attempts += 1;
        handshake.due = Some(now + handshake.interval * (1 << handshake.attempts));
        Some((handshake.packet.clone(), handshake.attempts))
    }

    /// Whether none is open, which is nearly always.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
