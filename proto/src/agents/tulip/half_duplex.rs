//! Half duplex: what ends a turn, and a frame that the link gives back.

use super::Tulip;
use super::due::Due;
use super::frame::{Frame, Kind};
use crate::time::Instant;

impl Tulip {
    /// Half duplex: the other end has spoken; whether more follows, and whether it wants an answer.
    pub(super) fn take_turn(&mut self, now: Instant, more: bool, poll: bool) {
        let (frame_wait, ack_delay) = (self.settings.frame_wait(), self.settings.ack_delay);
        if self.turn.received(now, (more, poll), frame_wait, ack_delay) {
            // What it says was true after all that we have sent: what it lacks is lost, also the
            // last frame.
            self.sender.lose_outstanding();
        }
    }

    /// Half duplex: a turn has ended, and its answer may have been lost instead of the turn. What
    /// else there is to send goes first: the answer to it settles both [tulip99 §V.B S2-04].
    pub(super) fn answer_missing(&mut self) {
        if self.unanswered > 1 || !self.has_next() {
            self.no_answer();
        }
    }

    /// Half duplex: nothing of a turn has arrived.
    pub(super) fn no_answer(&mut self) {
        self.sender.lose_outstanding();
        if self.peer.is_none() && !self.queue.is_empty() {
            self.hello = Due::Now;
        }
    }

    /// The packet that the link gave back, if it still has to be sent; what that frame told of the
    /// receiver must be told by whichever goes instead.
    pub(super) fn returned_frame(&mut self) -> Option<Frame> {
        let returned = self.returned.take()?;
        if returned.ack.is_some() {
            self.receiver.want_ack();
        }
        let is_current = self.is_current(&returned);
        is_current.then_some(Frame { poll: false, ack: None, ..returned })
    }

    /// Whether a packet that the link gave back still has to be sent.
    fn is_current(&self, returned: &Frame) -> bool {
        let Frame { kind, from, to, seq, serial, .. } = *returned;
        from == self.epoch
            && Some(to) == self.peer
            && match kind {
                Kind::Control => false,
                Kind::Unreliable => true,
                Kind::Reliable | Kind::Skip => self.sender.is_outstanding(seq, serial),
            }
    }
}
