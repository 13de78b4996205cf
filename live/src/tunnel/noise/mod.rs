//! The secure channel: handshakes, sessions, and where the peer is. Sans-I/O.
//!
//! One end, which knows the other's address, initiates; the other one responds. Old sessions stay
//! open for datagrams in flight. A new session begins every two minutes, when the peer reports that
//! it does not know the session, and when this end starts.

mod gate;
mod handshake;
mod initiator;
mod limits;
mod macs;
mod names;
mod replay;
mod responder;
mod session;
mod strangers;
#[cfg(test)]
mod tests;
mod timestamp;

pub use handshake::Keys;
pub(super) use names::Names;
pub(super) use strangers::Strangers;

use super::carrier::Address;
use super::channel::Channel;
use super::counters::Counters;
use super::datagram::{self, Datagram, SEALED_OVERHEAD, SessionId};
use super::notice::Notice;
use crate::rate::{Bucket, Rate};
use airmend_proto::{Instant, with_defaults};
use bytes::BytesMut;
use gate::Gate;
use handshake::Attempt;
use macs::{PairKey, Stamp};
use replay::Stale;
use responder::{Outcome, Responder};
use session::{Refused, Session};
use std::collections::VecDeque;
use std::time::Duration;
use timestamp::Labels;

/// The initiator sends something at least this often: it keeps address translators open, and finds
/// a restarted peer soon.
const KEEPALIVE: Duration = Duration::from_millis(100);
/// A handshake without an answer for this time is reported and restarted.
const NO_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Replies of a responder to datagrams of unknown sessions: so many that a peer learns soon of a
/// restart that strangers cover with such datagrams.
const UNKNOWN: Rate = Rate::per_second(2_000, 200);
/// Initiations of version 1 that are read, to tell the operator.
const VERSION_1: Rate = Rate::per_second(1, 1);
/// Replies to other versions.
const VERSION_REPLIES: Rate = Rate::per_second(10, 10);
/// Messages that wait to be sent.
const OUTBOX: usize = 256;
/// Those among them that are for strangers.
const OUTBOX_STRANGERS: usize = 192;

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
    names: Names,
    rekey: Rekey,
    /// Whether this end initiates, and to where.
    initiates: bool,
    configured: Vec<Address>,
    peer: Option<Address>,
    current: Option<Session>,
    previous: Option<Session>,
    attempt: Option<Attempt>,
    responder: Responder,
    gate: Gate,
    stamp: Stamp,
    labels: Labels,
    unknown_replies: Bucket,
    version_1: Bucket,
    version_replies: Bucket,
    /// What the operator has been told since the last session began.
    told: Vec<Notice>,
    last_sent: Instant,
    outbox: VecDeque<(Address, Vec<u8>)>,
    notices: VecDeque<Notice>,
    counters: Counters,
}

impl NoiseChannel {
    /// A channel; with a peer's address it initiates. `since_1970` is the time at `Instant::ZERO`.
    pub(super) fn new(
        keys: Keys,
        names: Names,
        rekey: Rekey,
        peer: Option<Address>,
        since_1970: Duration,
    ) -> Self {
        let pair = PairKey::new(&keys.private, &keys.peer);
        Self {
            gate: Gate::new(&keys.private.public(), pair.clone()),
            stamp: Stamp::new(&keys.peer, Some(pair)),
            labels: Labels::new(since_1970),
            keys,
            names,
            rekey,
            initiates: peer.is_some(),
            configured: peer.into_iter().collect(),
            peer,
            current: None,
            previous: None,
            attempt: None,
            responder: Responder::default(),
            unknown_replies: Bucket::default(),
            version_1: Bucket::default(),
            version_replies: Bucket::default(),
            told: Vec::new(),
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
            Some(Datagram::Initiation(message)) if !self.initiates => {
                let (keys, initiation) = ((&self.keys, &self.names), (datagram, message));
                let outcome = self.responder.handle(now, from, keys, &mut self.gate, initiation);
                self.respond(now, from, outcome);
            }
            Some(Datagram::Response(id, message)) => self.finish(now, from, id, datagram, message),
            Some(Datagram::Unknown(id)) => self.forgotten(now, id),
            Some(Datagram::Cookie(knows_pairs, nonce, sealed)) => {
                let is_mine = self.stamp.take_cookie(now, knows_pairs, nonce, sealed);
                self.counters.forged += u64::from(!is_mine);
            }
            Some(other @ (Datagram::Initiation1(_) | Datagram::OtherInitiation(_))) => {
                self.refuse_version(now, from, datagram, &other);
            }
            Some(Datagram::Version(version)) => self.refused_by(from, version, datagram),
            // An initiator's own message, sent back to it.
            Some(Datagram::Initiation(_)) => self.counters.forged += 1,
            // An open datagram: a peer with the key never sends one.
            Some(Datagram::Open(_)) => self.counters.forged += 1,
            None => self.counters.truncated += 1,
        }
        false
    }

    fn is_for(&mut self, now: Instant, from: Address, datagram: &[u8]) -> bool {
        match Datagram::parse(datagram) {
            Some(Datagram::Initiation(_)) => {
                !self.initiates && self.gate.proof(now, from, datagram).key
            }
            Some(Datagram::Unknown(id)) => self.uses(id),
            Some(Datagram::Cookie(..) | Datagram::Version(_)) => self.expects(from),
            _ => false,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let reject_after = self.rekey.reject_after;
        for session in [&mut self.current, &mut self.previous] {
            session.take_if(|session| now - session.since > reject_after);
        }
        self.responder.expire(|session| now - session.since > reject_after);
        if !self.initiates {
            return;
        }
        if self.wants_session(now) && self.attempt.is_none() {
            self.begin_attempt(now);
        }
        if self.attempt.as_ref().is_some_and(|attempt| now - attempt.begun >= NO_ANSWER_TIMEOUT) {
            self.no_answer();
            self.begin_attempt(now);
        }
        if self.attempt.as_ref().is_some_and(|attempt| attempt.next <= now) {
            self.post_initiation(now);
        }
        if self.is_open() && now - self.last_sent >= KEEPALIVE {
            self.post_keepalive(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.initiates {
            return None;
        }
        let attempt = self.attempt.as_ref().map(|attempt| attempt.next);
        let keepalive = self.is_open().then(|| self.last_sent + KEEPALIVE);
        attempt.into_iter().chain(keepalive).min().or(Some(Instant::ZERO))
    }

    fn initiate(&mut self, addresses: &[Address]) {
        self.initiates = true;
        self.configured = addresses.to_vec();
        // Now rather than when the attempt was to be repeated.
        if let Some(attempt) = &mut self.attempt {
            attempt.next = attempt.begun;
        }
    }

    fn handle_silence(&mut self, now: Instant) {
        self.no_answer();
        if self.initiates && self.attempt.is_none() {
            self.begin_attempt(now);
        }
    }

    fn established(&self) -> Option<Instant> {
        self.current.as_ref().map(|session| session.since)
    }

    fn poll_transmit(&mut self) -> Option<(Address, Vec<u8>)> {
        self.outbox.pop_front()
    }

    fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    fn resume(&mut self, counters: Counters) {
        self.counters = counters;
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

    fn no_answer(&mut self) {
        let from = if self.initiates { self.configured.first().copied() } else { None };
        if let Some(peer) = from.or(self.peer) {
            self.tell(if self.initiates { Notice::NoAnswer(peer) } else { Notice::Silent(peer) });
        }
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
        let known = { established }.find(|session| session.id() == id);
        let result = known.map(|session| session.open(counter, ciphertext, out));
        match result {
            Some(Ok(is_newest)) => return self.received_from(from, is_newest),
            Some(Err(refused)) => return self.refuse(refused),
            None => {}
        }
        match self.responder.confirm(id, |session| session.open(counter, ciphertext, out)) {
            Some(Ok(session)) => self.establish(session, from),
            Some(Err(refused)) => self.refuse(refused),
            None => {
                self.counters.unknown_session += 1;
                // Only a responder replies: an initiator begins a new session when it needs one.
                if !self.initiates && self.unknown_replies.take(UNKNOWN, now) {
                    self.post_to_stranger(from, datagram::unknown(id));
                }
            }
        }
    }

    /// An authentic datagram came from this address. Only the newest one decides where the peer is.
    fn received_from(&mut self, from: Address, is_newest: bool) {
        self.counters.frames_received += 1;
        let is_away = |told: &Notice| matches!(told, Notice::NoAnswer(_) | Notice::Silent(_));
        if is_newest && self.told.iter().any(is_away) {
            self.told.retain(|told| !is_away(told));
            self.peer = Some(from);
            self.notices.push_back(Notice::PeerFound(from));
        }
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
        let is_away = |told: &Notice| !matches!(told, Notice::OldInitiation(_));
        if self.counters.sessions == 0 || self.told.iter().any(is_away) {
            self.notices.push_back(Notice::PeerFound(from));
            self.peer = Some(from);
        }
        self.told.clear();
        self.counters.sessions += 1;
        self.previous = self.current.replace(session);
        self.received_from(from, true);
    }

    /// The responder's part of a handshake.
    fn respond(&mut self, now: Instant, from: Address, outcome: Outcome) {
        match outcome {
            Outcome::Answer(mut message) | Outcome::Again(mut message) => {
                self.stamp.close(now, &mut message);
                self.post(from, message);
                if self.responder.is_unused() {
                    self.tell(Notice::NoUse(from));
                }
            }
            Outcome::Challenge(reply) => {
                self.counters.challenged += 1;
                self.post_to_stranger(from, reply);
            }
            Outcome::Old => {
                self.counters.replayed += 1;
                self.tell(Notice::OldInitiation(from));
            }
            Outcome::Replayed => self.counters.replayed += 1,
            Outcome::Refused => self.counters.handshakes_refused += 1,
            Outcome::Forged => self.counters.forged += 1,
            Outcome::WrongKey => {
                self.counters.forged += 1;
                self.tell(Notice::WrongKey(from));
            }
        }
    }

    /// An initiation of another version: the peer's, as its operator should know.
    fn refuse_version(
        &mut self,
        now: Instant,
        from: Address,
        datagram: &[u8],
        initiation: &Datagram<'_>,
    ) {
        self.counters.handshakes_refused += 1;
        match initiation {
            Datagram::Initiation1(message)
                if self.version_1.take(VERSION_1, now)
                    && handshake::is_version_1(&self.keys, message) =>
            {
                self.tell(Notice::OtherVersion(from, 1));
            }
            Datagram::OtherInitiation(version) if self.gate.has_mac1(datagram) => {
                self.tell(Notice::OtherVersion(from, *version));
                if self.version_replies.take(VERSION_REPLIES, now) {
                    let mut reply = datagram::version();
                    self.stamp.append_mac1(&mut reply);
                    self.post_to_stranger(from, reply);
                }
            }
            _ => {}
        }
    }

    /// The responder speaks another version.
    fn refused_by(&mut self, from: Address, version: u8, datagram: &[u8]) {
        if self.attempt.is_some() && self.gate.ends_in_mac1(datagram) {
            self.tell(Notice::OtherVersion(from, version));
        } else {
            self.counters.forged += 1;
        }
    }

    fn post_keepalive(&mut self, now: Instant) {
        let mut message = Vec::new();
        self.seal(now, &[], &mut message);
        if let Some(peer) = self.peer.filter(|_| !message.is_empty()) {
            self.post(peer, message);
        }
    }

    /// Tells the operator, once until the next session begins: anybody may cause some of it.
    fn tell(&mut self, notice: Notice) {
        let is_told =
            |told: &Notice| std::mem::discriminant(told) == std::mem::discriminant(&notice);
        if !self.told.iter().any(is_told) {
            self.told.push(notice);
            self.notices.push_back(notice);
        }
    }

    fn post(&mut self, to: Address, message: Vec<u8>) {
        if self.outbox.len() < OUTBOX {
            self.outbox.push_back((to, message));
        }
    }

    /// What answers strangers leaves room for what the peer needs.
    fn post_to_stranger(&mut self, to: Address, message: Vec<u8>) {
        if self.outbox.len() < OUTBOX_STRANGERS {
            self.post(to, message);
        }
    }
}
