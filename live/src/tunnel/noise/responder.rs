//! The responder's part of a handshake: what it answers, and what it remembers.

use super::gate::{Gate, Verdict};
use super::handshake::{Keys, Request};
use super::names::Names;
use super::session::Session;
use super::timestamp::Timestamp;
use crate::rate::{Bucket, Rate};
use crate::tunnel::carrier::Address;
use crate::tunnel::datagram::{self, INITIATION_LEN, SessionId};
use airmend_proto::Instant;
use std::collections::VecDeque;

/// Ephemeral keys that are remembered, to know a replayed initiation without a key agreement: more
/// than a peer begins while its cookie is good.
const REMEMBERED: usize = 64;
/// Repeated answers to the source of the pending initiation; it retries ten times a second.
const REPEATS: Rate = Rate::per_second(50, 5);
/// Repeated answers to other sources: whoever replays it, or the peer behind another address.
const STRANGE_REPEATS: Rate = Rate::per_second(500, 50);
/// Sessions in a row that the peer has begun and not used, after which the operator is told.
const UNUSED: u32 = 3;

/// What comes of an initiation.
pub(super) enum Outcome {
    /// This answer, which lacks its MACs. A new session is pending.
    Answer(Vec<u8>),
    /// The same answer again.
    Again(Vec<u8>),
    /// A cookie for its sender.
    Challenge(Vec<u8>),
    /// It was received before.
    Replayed,
    /// It is authentic, older than one that was received before, and of an older end, which cannot
    /// show that it is no replay.
    Old,
    /// It is one too many.
    Refused,
    /// Whoever sent it does not know this end's public key.
    Forged,
    /// Whoever sent it knows it, and has not the peer's key.
    WrongKey,
}

impl From<Verdict> for Outcome {
    /// Of what is not admitted.
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Challenge(reply) => Self::Challenge(reply),
            Verdict::Admit | Verdict::Refuse => Self::Refused,
        }
    }
}

/// What a responder remembers.
#[derive(Default)]
pub(super) struct Responder {
    /// The newest session, until the initiator has used it.
    pending: Option<Pending>,
    /// Of the newest initiation.
    newest: Option<Timestamp>,
    remembered: VecDeque<Remembered>,
    repeats: Bucket,
    strange_repeats: Bucket,
    unused: u32,
}

/// The ephemeral key of an authentic initiation.
struct Remembered {
    ephemeral: [u8; 32],
    /// Whether it was older than the newest one, and may come again with a cookie.
    is_old: bool,
}

struct Pending {
    session: Session,
    from: Address,
    ephemeral: [u8; 32],
    response: Vec<u8>,
}

impl Responder {
    /// Handles an initiation: `datagram` is all of it, `message` its Noise message.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        from: Address,
        (keys, names): (&Keys, &Names),
        gate: &mut Gate,
        (datagram, message): (&[u8], &[u8; INITIATION_LEN]),
    ) -> Outcome {
        if !gate.has_mac1(datagram) {
            return Outcome::Forged;
        }
        let Some((ephemeral, _)) = message.split_first_chunk::<32>() else {
            return Outcome::Forged;
        };
        if self.pending.as_ref().is_some_and(|pending| pending.ephemeral == *ephemeral) {
            return self.repeat(now, from);
        }
        let known = self.remembered.iter().find(|known| known.ephemeral == *ephemeral);
        match known.map(|known| known.is_old) {
            Some(false) => return Outcome::Replayed,
            Some(true) if !gate.proof(now, from, datagram).is_fresh() => {
                return gate.challenge(now, from, datagram).into();
            }
            _ => {}
        }
        match gate.admit(now, from, datagram) {
            Verdict::Admit => {}
            verdict => return verdict.into(),
        }
        let Some(request) = Request::read(keys, message) else { return Outcome::WrongKey };
        let is_old = self.newest.is_some_and(|newest| request.timestamp <= newest);
        let proof = gate.proof(now, from, datagram);
        // The clock of a peer that holds a cookie was set back. Without one it may be a replay.
        let is_refused = is_old && !proof.is_fresh();
        self.remember(*ephemeral, is_refused);
        match (is_refused, proof.key) {
            (true, true) => gate.challenge(now, from, datagram).into(),
            (true, false) => Outcome::Old,
            (false, _) => self.answer(now, from, request, names, *ephemeral),
        }
    }

    /// Opens a datagram for the pending session; `None` if that has another name. A session that
    /// the initiator has used is handed out.
    pub(super) fn confirm<E>(
        &mut self,
        id: SessionId,
        open: impl FnOnce(&mut Session) -> Result<bool, E>,
    ) -> Option<Result<Session, E>> {
        let mut pending = self.pending.take_if(|pending| pending.session.id() == id)?;
        match open(&mut pending.session) {
            Ok(_) => {
                self.unused = 0;
                Some(Ok(pending.session))
            }
            Err(error) => {
                self.pending = Some(pending);
                Some(Err(error))
            }
        }
    }

    /// Forgets a pending session that has been waiting for too long.
    pub(super) fn expire(&mut self, is_expired: impl FnOnce(&Session) -> bool) {
        self.pending.take_if(|pending| is_expired(&pending.session));
    }

    /// Whether the peer keeps beginning sessions without using them; true once.
    pub(super) fn is_unused(&self) -> bool {
        self.unused == UNUSED
    }

    /// The response was lost, or the initiator is impatient.
    fn repeat(&mut self, now: Instant, from: Address) -> Outcome {
        let Some(pending) = &self.pending else { return Outcome::Replayed };
        let may_repeat = match pending.from == from {
            true => self.repeats.take(REPEATS, now),
            false => self.strange_repeats.take(STRANGE_REPEATS, now),
        };
        if may_repeat { Outcome::Again(pending.response.clone()) } else { Outcome::Replayed }
    }

    fn remember(&mut self, ephemeral: [u8; 32], is_old: bool) {
        self.remembered.retain(|known| known.ephemeral != ephemeral);
        self.remembered.truncate(REMEMBERED - 1);
        self.remembered.push_front(Remembered { ephemeral, is_old });
    }

    fn answer(
        &mut self,
        now: Instant,
        from: Address,
        request: Request,
        names: &Names,
        ephemeral: [u8; 32],
    ) -> Outcome {
        self.newest = self.newest.max(Some(request.timestamp));
        let Some(response) = request.answer(names) else { return Outcome::Refused };
        self.unused = self.unused.saturating_add(1);
        let session = Session::new(response.name, response.peer_id, response.transport, now);
        let response = datagram::response(response.peer_id, &response.message);
        let answer = Outcome::Answer(response.clone());
        self.pending = Some(Pending { session, from, ephemeral, response });
        answer
    }
}
