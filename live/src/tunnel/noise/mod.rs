//! The secure channel: handshakes, sessions, and where the peer is. Sans-I/O.
//!
//! One end, which knows the other's address, initiates; the other one responds. Old sessions stay
//! open for datagrams in flight. A new session begins every two minutes, when the peer reports that
//! it does not know the session, and when this end starts.

mod handshake;
mod replay;
mod session;
#[cfg(test)]
mod tests;

pub use handshake::Keys;

use super::carrier::Address;
use super::channel::Channel;
use super::counters::Counters;
use super::datagram::{self, Datagram, HANDSHAKE_LEN, SEALED_OVERHEAD, SessionId};
use super::notice::Notice;
use airmend_proto::{Instant, with_defaults};
use bytes::BytesMut;
use handshake::Initiation;
use replay::Stale;
use session::{Refused, Session};
use std::collections::VecDeque;
use std::time::Duration;

/// The initiator sends something at least this often: it keeps address translators open, and finds
/// a restarted peer soon.
const KEEPALIVE: Duration = Duration::from_millis(100);
/// The initiation is sent again after this time.
const RETRY: Duration = Duration::from_millis(100);
/// A handshake without an answer for this time is reported and restarted.
const NO_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between replies of a responder to datagrams of unknown sessions.
const UNKNOWN_INTERVAL: Duration = Duration::from_millis(10);
/// Initiations that a responder answers in one second.
const HANDSHAKES_PER_SECOND: u32 = 50;
/// Ephemeral keys that a responder remembers, to know a replayed initiation.
const REMEMBERED: usize = 1024;
/// Messages that wait to be sent.
const OUTBOX: usize = 16;

with_defaults! {
    /// When keys are changed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    Rekey;
    /// The initiator begins a new session after this time.
    after: Duration = Duration::from_secs(120);
    /// Or after so many bytes in both directions together: 64 GiB; AES-GCM keeps a wide margin up
    /// to 2^38 bytes (RFC 8446 §5.5).
    after_bytes: u64 = 1 << 36;
    /// No session is used for longer.
    reject_after: Duration = Duration::from_secs(180);
}

/// The secure channel to one peer.
pub(super) struct NoiseChannel {
    keys: Keys,
    rekey: Rekey,
    /// The destination of initiations; none at the responder.
    configured: Option<Address>,
    peer: Option<Address>,
    current: Option<Session>,
    previous: Option<Session>,
    /// The responder's newest session, until the initiator has used it.
    pending: Option<Pending>,
    attempt: Option<Attempt>,
    remembered: VecDeque<[u8; 32]>,
    peer_budget: Budget,
    stranger_budget: Budget,
    last_unknown: Instant,
    /// Whether the operator has been notified that the peer does not answer.
    is_no_answer_reported: bool,
    last_sent: Instant,
    outbox: VecDeque<(Address, Vec<u8>)>,
    notices: VecDeque<Notice>,
    counters: Counters,
}

struct Pending {
    session: Session,
    ephemeral: [u8; 32],
    response: Vec<u8>,
}

struct Attempt {
    initiation: Initiation,
    begun: Instant,
    next: Instant,
}

impl NoiseChannel {
    /// A channel; with a peer's address it initiates.
    pub(super) fn new(keys: Keys, rekey: Rekey, peer: Option<Address>) -> Self {
        Self {
            keys,
            rekey,
            configured: peer,
            peer,
            current: None,
            previous: None,
            pending: None,
            attempt: None,
            remembered: VecDeque::new(),
            peer_budget: Budget::new(),
            stranger_budget: Budget::new(),
            last_unknown: Instant::ZERO,
            is_no_answer_reported: false,
            last_sent: Instant::ZERO,
            outbox: VecDeque::new(),
            notices: VecDeque::new(),
            counters: Counters::default(),
        }
    }
}

impl Channel for NoiseChannel {
    fn overhead(&self) -> usize {
        SEALED_OVERHEAD
    }

    fn peer(&self) -> Option<Address> {
        self.peer.filter(|_| self.is_open())
    }

    fn seal(&mut self, now: Instant, frame: &[u8], out: &mut Vec<u8>) {
        if let Some(session) = &mut self.current {
            session.seal(frame, out);
            self.last_sent = now;
        }
    }

    fn receive(
        &mut self,
        now: Instant,
        from: Address,
        datagram: &[u8],
        out: &mut BytesMut,
    ) -> bool {
        match Datagram::parse(datagram) {
            Some(Datagram::Sealed(id, counter, ciphertext)) => {
                let begin = out.len();
                self.open(now, from, id, counter, ciphertext, out);
                return out.len() > begin;
            }
            Some(Datagram::Initiation(message)) => self.respond(now, from, message),
            Some(Datagram::Response(id, message)) => self.finish(now, from, id, message),
            Some(Datagram::Unknown(id)) => self.forgotten(now, id),
            // An open datagram: a peer with the key never sends one.
            Some(Datagram::Open(_)) => self.counters.forged += 1,
            None => self.counters.truncated += 1,
        }
        false
    }

    fn handle_timeout(&mut self, now: Instant) {
        let reject_after = self.rekey.reject_after;
        for session in [&mut self.current, &mut self.previous] {
            session.take_if(|session| now - session.since > reject_after);
        }
        self.pending.take_if(|pending| now - pending.session.since > reject_after);
        let Some(configured) = self.configured else { return };
        if self.wants_session(now) && self.attempt.is_none() {
            self.begin_attempt(now);
        }
        let mut message = None;
        if let Some(attempt) = &mut self.attempt {
            if now - attempt.begun >= NO_ANSWER_TIMEOUT {
                if !std::mem::replace(&mut self.is_no_answer_reported, true) {
                    self.notices.push_back(Notice::NoAnswer(configured));
                }
                self.begin_attempt(now);
            } else if attempt.next <= now {
                attempt.next = now + RETRY;
                message = Some(datagram::initiation(&attempt.initiation.message));
            }
        }
        if let Some(message) = message {
            // The peer may have moved, or be back where it began.
            if let Some(peer) = self.peer.filter(|peer| *peer != configured) {
                self.post(peer, message.clone());
            }
            self.post(configured, message);
        }
        if self.is_open() && now - self.last_sent >= KEEPALIVE {
            self.post_keepalive(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.configured?;
        let attempt = self.attempt.as_ref().map(|attempt| attempt.next);
        let keepalive = self.is_open().then(|| self.last_sent + KEEPALIVE);
        attempt.into_iter().chain(keepalive).min().or(Some(Instant::ZERO))
    }

    fn poll_transmit(&mut self) -> Option<(Address, Vec<u8>)> {
        self.outbox.pop_front()
    }

    fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl NoiseChannel {
    /// Whether there is a session to send with.
    fn is_open(&self) -> bool {
        self.current.is_some()
    }

    fn wants_session(&self, now: Instant) -> bool {
        self.current.as_ref().is_none_or(|session| {
            now - session.since >= self.rekey.after || session.bytes >= self.rekey.after_bytes
        })
    }

    fn begin_attempt(&mut self, now: Instant) {
        self.attempt = Initiation::new(&self.keys).map(|initiation| Attempt {
            initiation,
            begun: now,
            next: now,
        });
    }

    fn open(
        &mut self,
        now: Instant,
        from: Address,
        id: SessionId,
        counter: u64,
        ciphertext: &[u8],
        out: &mut BytesMut,
    ) {
        let established = [&mut self.current, &mut self.previous].into_iter().flatten();
        let known = { established }.find(|session| session.id == id);
        let result = known.map(|session| session.open(counter, ciphertext, out));
        match result {
            Some(Ok(is_newest)) => return self.received_from(from, is_newest),
            Some(Err(refused)) => return self.refuse(refused),
            None => {}
        }
        let Some(mut pending) = self.pending.take_if(|pending| pending.session.id == id) else {
            self.counters.unknown_session += 1;
            // Only a responder replies: an initiator begins a new session when it needs one.
            if self.configured.is_none() && now - self.last_unknown >= UNKNOWN_INTERVAL {
                self.last_unknown = now;
                self.post(from, datagram::unknown(id));
            }
            return;
        };
        match pending.session.open(counter, ciphertext, out) {
            Ok(_) => self.establish(pending.session, from),
            Err(refused) => {
                self.refuse(refused);
                self.pending = Some(pending);
            }
        }
    }

    /// An authentic datagram came from this address. Only the newest one decides where the peer is.
    fn received_from(&mut self, from: Address, is_newest: bool) {
        self.counters.frames_received += 1;
        if is_newest && self.peer != Some(from) {
            self.peer = Some(from);
            self.counters.peer_moves += 1;
            self.notices.push_back(Notice::PeerMoved(from));
        }
    }

    fn refuse(&mut self, refused: Refused) {
        let counter = match refused {
            Refused::Forged => &mut self.counters.forged,
            Refused::Stale(Stale::Replayed) => &mut self.counters.replayed,
            Refused::Stale(Stale::TooOld) => &mut self.counters.reordered_too_far,
        };
        *counter += 1;
    }

    fn establish(&mut self, session: Session, from: Address) {
        if self.counters.sessions == 0 || self.is_no_answer_reported {
            self.notices.push_back(Notice::PeerFound(from));
            self.peer = Some(from);
            self.is_no_answer_reported = false;
        }
        self.counters.sessions += 1;
        self.previous = self.current.replace(session);
        self.received_from(from, true);
    }

    /// The responder's part of a handshake.
    fn respond(&mut self, now: Instant, from: Address, message: &[u8; HANDSHAKE_LEN]) {
        let (ephemeral, _) = message.split_first_chunk::<32>().unwrap_or((&[0; 32], &[]));
        if self.configured.is_some() {
            // An initiator's own message, sent back to it.
            self.counters.forged += 1;
            return;
        }
        if let Some(pending) = self.pending.as_ref().filter(|p| p.ephemeral == *ephemeral) {
            // The response was lost, or the initiator is impatient.
            let response = pending.response.clone();
            self.post(from, response);
            return;
        }
        if self.remembered.contains(ephemeral) {
            self.counters.replayed += 1;
            return;
        }
        // Strangers must not use up what the peer needs.
        let is_known = self.peer.is_some_and(|peer| peer.is_same_host(from));
        let budget = if is_known { &mut self.peer_budget } else { &mut self.stranger_budget };
        if !budget.take(now) {
            self.counters.handshakes_refused += 1;
            return;
        }
        let Some(response) = handshake::respond(&self.keys, message) else {
            self.counters.forged += 1;
            return;
        };
        self.remembered.truncate(REMEMBERED - 1);
        self.remembered.push_front(*ephemeral);
        let session = Session::new(response.id, response.peer_id, response.transport, now);
        let response = datagram::response(response.peer_id, &response.message);
        self.post(from, response.clone());
        self.pending = Some(Pending { session, ephemeral: *ephemeral, response });
    }

    /// The initiator's last part of a handshake.
    fn finish(
        &mut self,
        now: Instant,
        from: Address,
        id: SessionId,
        message: &[u8; HANDSHAKE_LEN],
    ) {
        let Some(mut attempt) = self.attempt.take_if(|attempt| attempt.initiation.id == id) else {
            // The answer to an initiation that was sent twice.
            self.counters.replayed += 1;
            return;
        };
        let Some(peer_id) = attempt.initiation.accept(message) else {
            self.counters.forged += 1;
            // The genuine one may still come.
            self.attempt = Some(attempt);
            return;
        };
        let Some(transport) = attempt.initiation.into_transport() else { return };
        self.establish(Session::new(id, peer_id, transport, now), from);
        // The responder sends nothing under the new keys before it has seen them used.
        self.post_keepalive(now);
    }

    /// The peer reports that it does not know a session. This message is not authenticated: it
    /// costs a handshake, and the session remains in use meanwhile.
    fn forgotten(&mut self, now: Instant, id: SessionId) {
        let is_current = self
            .current
            .as_ref()
            .is_some_and(|session| session.peer_id == id && now - session.since >= RETRY);
        if self.configured.is_none() || !is_current {
            self.counters.unknown_session += 1;
        } else if self.attempt.is_none() {
            self.begin_attempt(now);
        }
    }

    fn post_keepalive(&mut self, now: Instant) {
        let mut message = Vec::new();
        self.seal(now, &[], &mut message);
        if let Some(peer) = self.peer.filter(|_| !message.is_empty()) {
            self.post(peer, message);
        }
    }

    fn post(&mut self, to: Address, message: Vec<u8>) {
        if self.outbox.len() < OUTBOX {
            self.outbox.push_back((to, message));
        }
    }
}

/// Work that strangers can cause, bounded in each second.
struct Budget {
    since: Instant,
    left: u32,
}

impl Budget {
    fn new() -> Self {
        Self { since: Instant::ZERO, left: HANDSHAKES_PER_SECOND }
    }

    fn take(&mut self, now: Instant) -> bool {
        if now - self.since >= Duration::from_secs(1) {
            *self = Self { since: now, left: HANDSHAKES_PER_SECOND };
        }
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }
}
