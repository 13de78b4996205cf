//! Which frames a link ACK travels with.

use super::Tulip;
use super::frame::{Frame, FrameKind};
use crate::agents::arq::{Due, LinkEvent, noticed_growth};
use crate::time::Instant;
use core::time::Duration;

/// The longest bit vector that travels with a packet, in bytes: a longer one would make the frame
/// too long.
const MAX_TRAVELLING_VECTOR: usize = 16;

impl Tulip {
    /// Adds a link ACK if one is due and the frame has room for it.
    pub(super) fn add_ack(&mut self, now: Instant, frame: &mut Frame) {
        let due = self.receiver.ack_due();
        let is_control = frame.kind == FrameKind::Control;
        if !is_control && !self.receiver.is_worth_sending(now, &self.settings) {
            return;
        }
        let (ack_len, vector_len) = self.receiver.ack_len();
        let len = frame.wire_len() as usize + ack_len;
        let is_short = vector_len <= MAX_TRAVELLING_VECTOR && !self.must_tell();
        if is_control || (is_short && len <= self.settings.max_frame as usize) {
            frame.ack = Some(self.receiver.ack(now));
            self.alone += u32::from(is_control);
        } else {
            self.ack_alone = due == Due::Now;
        }
        if !self.settings.half_duplex {
            self.report_bare_ack(frame);
        }
    }

    /// Whether a packet waits with which a link ACK can travel soon, once its time to leave comes.
    pub(super) fn has_companion(&self, now: Instant) -> bool {
        let Due::At(departure) = self.departure_due else { return false };
        let soon = self.pace.least_round_trip().map_or(Duration::ZERO, noticed_growth);
        departure <= now + soon && self.queue.has_next(self.has_room())
    }

    pub(super) fn report_bare_ack(&mut self, frame: &Frame) {
        if let (FrameKind::Control, Some(ack)) = (frame.kind, &frame.ack) {
            self.report(LinkEvent::BareAck(ack.next));
        }
    }
}
