//! Half duplex: whose turn it is [tulip99 §III S2-05].
//!
//! An end that has something to send strobes a few frames onto the link and then listens. The
//! other end answers, with a packet if it has one. The link below decides who speaks when both
//! ends begin.

use super::due::Due;
use crate::time::Instant;
use core::time::Duration;

/// A link that neither sends a frame nor says that it could not is left alone for so long.
const SIGNAL_OVERDUE: Duration = Duration::from_secs(1);

/// Whose turn it is, as this end knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Turn {
    /// On a full-duplex link: always ours.
    Always,
    /// Whoever has something to send may take it.
    Free,
    /// Ours, for so many frames more.
    Ours(u32),
    /// Our last frame is with the link; whether an answer is expected, and when we give up.
    Leaving(bool, Due),
    /// Theirs to answer: we listen until then.
    Theirs(Due),
    /// Theirs, and not ended by their last frame: we listen until then.
    Listening(Due),
    /// Ours to answer: a link ACK waits for company until then.
    Answer(Due),
}

impl Turn {
    /// Whether this end may send a packet.
    pub(super) fn may_send(self) -> bool {
        matches!(self, Self::Always | Self::Free | Self::Ours(_) | Self::Answer(_))
    }

    /// Whether it must send a frame, even without a packet.
    pub(super) fn must_send(self) -> bool {
        matches!(self, Self::Ours(_) | Self::Answer(Due::Now))
    }

    /// Whether a link ACK alone may leave.
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

    /// The frame given to the link last can be exchanged: as if it had not been given yet.
    pub(super) fn take_back(&mut self) {
        *self = match *self {
            Self::Leaving(..) => Self::Ours(1),
            Self::Ours(left) => Self::Ours(left + 1),
            other => other,
        };
    }

    /// A frame was given to the link; whether more follow, and whether an answer is expected.
    pub(super) fn sent(&mut self, now: Instant, strobe: u32, more: bool, poll: bool) {
        *self = match *self {
            Self::Always => Self::Always,
            Self::Ours(left) if more => Self::Ours(left - 1),
            _ if more => Self::Ours(strobe - 1),
            _ => Self::Leaving(poll, Due::At(now + SIGNAL_OVERDUE)),
        };
    }

    /// The link has sent the last frame.
    pub(super) fn left(&mut self, now: Instant, wait: Duration) {
        if let Self::Leaving(is_answered, _) = *self {
            *self = if is_answered { Self::Theirs(Due::At(now + wait)) } else { Self::Free };
        }
    }

    /// A frame of the other end arrived. True if it was sent after all that we have sent.
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

    /// No answer will come to what was sent. True if there was one to wait for: in the middle of
    /// our own turn there is none.
    pub(super) fn give_up(&mut self) -> bool {
        let is_over = matches!(self, Self::Leaving(..) | Self::Theirs(_));
        if is_over {
            *self = Self::Free;
        }
        is_over
    }

    /// The end of the wait for an answer.
    pub(super) fn reply_timer(self) -> Option<Instant> {
        match self {
            Self::Leaving(_, due) | Self::Theirs(due) | Self::Listening(due) => due.timer(),
            _ => None,
        }
    }

    /// The end of the wait for a packet to answer with.
    pub(super) fn ack_timer(self) -> Option<Instant> {
        if let Self::Answer(due) = self { due.timer() } else { None }
    }

    /// Acts on what is due. True if the wait for an answer has ended.
    pub(super) fn ripen(&mut self, now: Instant) -> bool {
        match self {
            Self::Leaving(_, due) | Self::Theirs(due) => due.ripen(now) && self.give_up(),
            Self::Listening(due) => {
                if due.ripen(now) {
                    *self = Self::Free;
                }
                false
            }
            Self::Answer(due) => {
                due.ripen(now);
                false
            }
            _ => false,
        }
    }
}
