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
    /// It is authentic and older than one that was received before.
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
    remembered: VecDeque<[u8; 32]>,
    repeats: Bucket,
    strange_repeats: Bucket,
    unused: u32,
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
        if self.remembered.contains(ephemeral) {
            return Outcome::Replayed;
        }
        match gate.admit(now, from, datagram) {
            Verdict::Admit => self.answer(now, from, (keys, names), message, *ephemeral),
            verdict => verdict.into(),
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

    fn answer(
        &mut self,
        now: Instant,
        from: Address,
        (keys, names): (&Keys, &Names),
        message: &[u8; INITIATION_LEN],
        ephemeral: [u8; 32],
    ) -> Outcome {
        let Some(request) = Request::read(keys, message) else { return Outcome::WrongKey };
        self.remembered.truncate(REMEMBERED - 1);
        self.remembered.push_front(ephemeral);
        if self.newest.is_some_and(|newest| request.timestamp <= newest) {
            return Outcome::Old;
        }
        self.newest = Some(request.timestamp);
        let Some(response) = request.answer(names) else { return Outcome::Refused };
        self.unused = self.unused.saturating_add(1);
        let session = Session::new(response.name, response.peer_id, response.transport, now);
        let response = datagram::response(response.peer_id, &response.message);
        let answer = Outcome::Answer(response.clone());
        self.pending = Some(Pending { session, from, ephemeral, response });
        answer
    }
}
