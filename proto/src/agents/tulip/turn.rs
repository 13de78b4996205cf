//! Half duplex: whose turn it is [tulip99 §III S2-05].
//!
//! An end that has packets to send transmits a few frames and then listens. The other end answers,
//! with a packet if it has one. Medium access below decides who transmits when both ends begin.

use crate::agents::arq::Due;
use crate::time::Instant;
use core::time::Duration;

/// The timeout of a link that reports neither a transmission nor a failure.
const SIGNAL_OVERDUE: Duration = Duration::from_secs(1);

/// Whose turn it is, from the view of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Turn {
    /// Full duplex: this end may always send.
    Always,
    /// Either end may begin a turn.
    Free,
    /// The turn of this end; the number of frames left in it.
    Ours(u32),
    /// The link holds the last frame of this turn; whether an answer is expected, and the timeout.
    Leaving(bool, Due),
    /// The other end must answer; the reply timeout.
    Theirs(Due),
    /// The turn of the other end, whose last frame announced another one; the timeout.
    Listening(Due),
    /// This end must answer; when a link ACK is sent without a packet.
    Answer(Due),
}

impl Turn {
    /// Whether this end may send a packet.
    pub(super) fn may_send(self) -> bool {
        matches!(self, Self::Always | Self::Free | Self::Ours(_) | Self::Answer(_))
    }

    /// Whether this end must send a frame, even without a packet.
    pub(super) fn must_send(self) -> bool {
        matches!(self, Self::Ours(_) | Self::Answer(Due::Now))
    }

    /// Whether a link ACK may be sent without a packet.
    pub(super) fn may_ack(self) -> bool {
        matches!(self, Self::Always | Self::Free)
    }

    /// Whether another frame of this turn may follow the next one.
    pub(super) fn has_more(self, strobe: u32) -> bool {
        match self {
            Self::Free | Self::Answer(_) => strobe > 1,
            Self::Ours(left) => left > 1,
            Self::Always | Self::Leaving(..) | Self::Theirs(_) | Self::Listening(_) => false,
        }
    }

    /// Reverts [`Self::sent`] for the frame that the link returned.
    pub(super) fn take_back(&mut self) {
        *self = match *self {
            Self::Leaving(..) => Self::Ours(1),
            Self::Ours(left) => Self::Ours(left + 1),
            other => other,
        };
    }

    /// A frame was handed to the link. `more` frames of the turn follow; `poll` expects an answer.
    pub(super) fn sent(&mut self, now: Instant, strobe: u32, more: bool, poll: bool) {
        *self = match *self {
            Self::Always => Self::Always,
            Self::Ours(left) if more => Self::Ours(left - 1),
            _ if more => Self::Ours(strobe - 1),
            _ => Self::Leaving(poll, Due::At(now + SIGNAL_OVERDUE)),
        };
    }

    /// The link has transmitted the last frame of the turn.
    pub(super) fn left(&mut self, now: Instant, wait: Duration) {
        if let Self::Leaving(is_answered, _) = *self {
            *self = if is_answered { Self::Theirs(Due::At(now + wait)) } else { Self::Free };
        }
    }

    /// A frame of the other end arrived. True if it was sent after every frame of this end.
    pub(super) fn received(
        &mut self,
        now: Instant,
        (more, poll): (bool, bool),
        frame_wait: Duration,
        ack_delay: Duration,
    ) -> bool {
        match self {
            Self::Always | Self::Ours(_) | Self::Leaving(..) => return false,
            Self::Free | Self::Theirs(_) | Self::Listening(_) | Self::Answer(_) => {}
        }
        *self = match (more, poll) {
            (true, _) => Self::Listening(Due::At(now + frame_wait)),
            (false, true) => match *self {
                Self::Answer(due) => Self::Answer(due),
                _ => Self::Answer(Due::At(now + ack_delay)),
            },
            (false, false) => Self::Free,
        };
        true
    }

    /// No answer will come. True if this end was waiting for one, which it is not in the middle of
    /// its own turn.
    pub(super) fn give_up(&mut self) -> bool {
        let is_over = matches!(self, Self::Leaving(..) | Self::Theirs(_));
        if is_over {
            *self = Self::Free;
        }
        is_over
    }

    /// The reply timeout.
    pub(super) fn reply_timer(self) -> Option<Instant> {
        match self {
            Self::Leaving(_, due) | Self::Theirs(due) | Self::Listening(due) => due.timer(),
            _ => None,
        }
    }

    /// The end of the wait for a packet to piggyback the link ACK on.
    pub(super) fn ack_timer(self) -> Option<Instant> {
        if let Self::Answer(due) = self { due.timer() } else { None }
    }

    /// Acts on expired timers. True if the reply timeout has expired.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        match self {
            Self::Leaving(_, due) | Self::Theirs(due) => due.expire(now) && self.give_up(),
            Self::Listening(due) => {
                if due.expire(now) {
                    *self = Self::Free;
                }
                false
            }
            Self::Answer(due) => {
                due.expire(now);
                false
            }
            _ => false,
        }
    }
}
