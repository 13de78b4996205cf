//! [C-16] Connections that are being opened: a SYN or SYN-ACK lost on the air costs its sender a
//! second or more (RFC 6298 §2: no round trip is known yet), whatever the loss rate.

use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use alloc::collections::VecDeque;
use core::time::Duration;

/// The most handshakes that are kept at once. A SYN beyond them passes and is not repeated, so that
/// a flood of SYNs has no other effect.
const MAX_OPEN: usize = 64;
/// The most repetitions of a SYN, at intervals that double. If the SYN-ACK was lost twice, Linux
/// answers no further copy for 500 ms (`tcp_invalid_ratelimit`); the fourth repetition comes later.
const ATTEMPTS: u32 = 4;
/// The bounds of the first interval, which is twice the air's round trip. Three repetitions end
/// before the host's own retransmission after one second.
pub(super) const LEAST_INTERVAL: Duration = Duration::from_millis(40);
pub(super) const LONGEST_INTERVAL: Duration = Duration::from_millis(100);

/// The SYNs and SYN-ACKs that the mobile has not answered.
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
    /// The time of the next repetition; `None` while the repetition is queued.
    due: Option<Instant>,
}

impl Handshakes {
    /// Remembers a SYN or SYN-ACK, if there is a place.
    pub(super) fn begin(&mut self, now: Instant, key: FlowKey, packet: Packet, interval: Duration) {
        if self.open.len() < MAX_OPEN {
            let due = Some(now + interval);
            self.open.push_back(Handshake { key, packet, attempts: 0, interval, due });
        }
    }

    /// Ends a handshake: the mobile has answered, or the connection was reset.
    pub(super) fn end(&mut self, key: &FlowKey) {
        self.open.retain(|handshake| handshake.key != *key);
    }

    /// The time of the next repetition.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.open.iter().filter_map(|handshake| handshake.due).min()
    }

    /// Queues the repetitions that are due, and removes handshakes after their last repetition.
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

    /// Whether there is no open handshake, the common case.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
