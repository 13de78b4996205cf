//! The initiator's part of a handshake.

use super::NoiseChannel;
use super::gate::Verdict;
use super::handshake::{Attempt, Initiation};
use super::session::Session;
use crate::tunnel::carrier::Address;
use crate::tunnel::datagram::{self, RESPONSE_LEN, SessionId};
use crate::tunnel::notice::Notice;
use crate::tunnel::random::random;
use airmend_proto::Instant;
use std::time::Duration;

/// The initiation is sent again after this time, and up to a third more, by chance.
pub(super) const RETRY: Duration = Duration::from_millis(100);

impl NoiseChannel {
    pub(super) fn wants_session(&self, now: Instant) -> bool {
        self.current.as_ref().is_none_or(|session| {
            now - session.since >= self.rekey.after || session.bytes >= self.rekey.after_bytes
        })
    }

    /// Where the peer was, and where its name leads. The first address has a start over the others
    /// (RFC 8305 §5); whichever answers first is the peer's.
    pub(super) fn post_initiation(&mut self, now: Instant) {
        let Some(attempt) = &mut self.attempt else { return };
        let is_first = attempt.next == attempt.begun;
        attempt.next = now + RETRY + jitter();
        let mut message = datagram::initiation(&attempt.initiation.message);
        self.stamp.close(now, &mut message);
        let all = if is_first { 1 } else { self.configured.len() };
        let mut destinations: Vec<_> = self.configured.iter().copied().take(all).collect();
        // The peer may have moved, or be back where it began.
        destinations.extend(self.peer.filter(|peer| !destinations.contains(peer)));
        for to in destinations {
            self.post(to, message.clone());
        }
    }

    pub(super) fn begin_attempt(&mut self, now: Instant) {
        let label = self.labels.next(now);
        self.attempt = Initiation::new(&self.keys, &self.names, label).map(|initiation| Attempt {
            initiation,
            begun: now,
            next: now,
        });
    }

    /// The initiator's last part of a handshake.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        from: Address,
        id: SessionId,
        datagram: &[u8],
        message: &[u8; RESPONSE_LEN],
    ) {
        if !self.gate.has_mac1(datagram) {
            self.counters.forged += 1;
            return;
        }
        let Some(mut attempt) = self.attempt.take_if(|attempt| attempt.initiation.id() == id)
        else {
            // The answer to an initiation that was sent twice.
            self.counters.replayed += 1;
            return;
        };
        match self.gate.admit(now, from, datagram) {
            Verdict::Admit => {}
            verdict => {
                self.attempt = Some(attempt);
                return self.respond(now, from, verdict.into());
            }
        }
        let Some(peer_id) = attempt.initiation.accept(message) else {
            self.counters.forged += 1;
            // The genuine one may still come.
            self.attempt = Some(attempt);
            return self.tell(Notice::BadAnswer(from));
        };
        let Some((name, transport)) = attempt.initiation.into_transport() else { return };
        self.establish(Session::new(name, peer_id, transport, now), from);
        // The responder sends nothing under the new keys before it has seen them used.
        self.post_keepalive(now);
    }

    /// The peer reports that it does not know a session. This message is not authenticated: it
    /// costs a handshake, and the session remains in use meanwhile.
    pub(super) fn forgotten(&mut self, now: Instant, id: SessionId) {
        let is_old = |session: &Session| now - session.since >= RETRY;
        let is_current = self.uses(id) && self.current.as_ref().is_some_and(is_old);
        if !self.initiates || !is_current {
            self.counters.unknown_session += 1;
        } else if self.attempt.is_none() {
            self.begin_attempt(now);
        }
    }

    /// Whether this is what the peer calls the present session.
    pub(super) fn uses(&self, id: SessionId) -> bool {
        self.current.as_ref().is_some_and(|session| session.peer_id == id)
    }

    /// Whether answers from this address are expected.
    pub(super) fn expects(&self, from: Address) -> bool {
        self.attempt.is_some() && (self.configured.contains(&from) || self.peer == Some(from))
    }
}

/// Up to a third of the interval between retries.
fn jitter() -> Duration {
    let mut byte = [0];
    random(&mut byte).ok();
    RETRY * u32::from(byte[0]) / (3 * 255)
}
