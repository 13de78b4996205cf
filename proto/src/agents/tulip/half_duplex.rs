//! Half duplex: the end of a turn, and frames that the link returns.

use super::Tulip;
use super::frame::{Frame, FrameKind};
use crate::time::Instant;

impl Tulip {
    /// Half duplex: a frame of the other end arrived, with these flags.
    pub(super) fn take_turn(&mut self, now: Instant, more: bool, poll: bool) {
        let (frame_wait, ack_delay) = (self.settings.frame_wait(), self.settings.ack_delay);
        if self.turn.received(now, (more, poll), frame_wait, ack_delay) {
            // The link ACK was written after every frame of this end: what it does not acknowledge
            // is lost, the last frame included.
            self.sender.pool.lose_outstanding();
        }
    }

    /// Half duplex: the answer to a turn is missing. Either the turn or its answer may have been
    /// lost, so other packets are sent first: their answer settles both [tulip99 §V.B S2-04].
    pub(super) fn answer_missing(&mut self) {
        if self.unanswered > 1 || !self.has_next() {
            self.no_answer();
        }
    }

    /// Half duplex: every packet of the turn counts as lost.
    pub(super) fn no_answer(&mut self) {
        self.sender.pool.lose_outstanding();
        if !self.queue.is_empty() {
            self.epochs.ask();
        }
    }

    /// The packet that the link returned, if it still has to be sent. The link ACK of that frame
    /// must travel with the frame that is sent instead.
    pub(super) fn returned_frame(&mut self) -> Option<Frame> {
        let returned = self.returned.take()?;
        if returned.ack.is_some() {
            self.receiver.want_ack();
        }
        let is_current = self.is_current(&returned);
        is_current.then_some(Frame { poll: false, ack: None, ..returned })
    }

    /// Whether a packet that the link returned still has to be sent.
    fn is_current(&self, returned: &Frame) -> bool {
        let Frame { kind, from, to, seq, serial, .. } = *returned;
        from == self.epochs.own()
            && Some(to) == self.epochs.peer()
            && match kind {
                FrameKind::Control | FrameKind::Repair => false,
                FrameKind::Unreliable => true,
                FrameKind::Reliable | FrameKind::Skip => {
                    self.sender.pool.is_outstanding(seq, serial)
                }
            }
    }
}
