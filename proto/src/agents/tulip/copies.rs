//! Copies of what is in flight, while the link has nothing else to carry.
//!
//! A loss delays everything behind it by a round trip of the link. At the start of a connection a
//! long link is mostly idle, and hosts take such a delay for a full path: HyStart (RFC 9406, Linux)
//! then ends slow start at a window that is much too small.
//!
//! And a copy of each short packet whose time is over before a retransmission could arrive, as of a
//! call: beside a bulk transfer repair frames come too late for it, since they mend all that is
//! lost together.

use super::Tulip;
use super::frame::Frame;
use super::turn::Turn;
use crate::agents::arq::{Class, Due, LinkEvent, Queued};
use crate::time::Instant;

impl Tulip {
    /// A packet in flight once more. Where the ends take turns, or share a path with others, no
    /// link is idle.
    pub(super) fn next_copy(&mut self, now: Instant) -> Option<Frame> {
        let is_idle = self.queue.is_empty() && self.receiver.ack_due() != Due::Now;
        if !is_idle || self.turn != Turn::Always || self.settings.rate_control {
            return None;
        }
        let numbered = self.sender.pool.copy_oldest(now, self.settings.idle_copies)?;
        let event = LinkEvent::Copied(numbered.seq);
        Some(self.numbered_frame(numbered, Some(event), false))
    }

    /// Whether only a copy of a packet can make up for its loss in time, and the path loses enough.
    pub(super) fn needs_copy(&self, queued: &Queued) -> bool {
        let is_brief = matches!(queued.class, Class::Bounded(time) if time < self.pace.wait(0));
        let is_due = self.is_coding() && self.sender.redundancy.is_due_for_one();
        queued.is_urgent() && is_brief && is_due
    }

    /// The copy of the last packet that needs one, once another frame has left or none has for a
    /// while: what loses one frame may lose the next.
    pub(super) fn next_brief(&mut self, now: Instant) -> Option<Frame> {
        let is_pause = self.pause_due == Due::Now;
        let is_due = |serial| is_pause || serial < self.sender.pool.serial();
        let (serial, seq) = self.brief.filter(|(serial, _)| is_due(*serial))?;
        self.brief = None;
        let index = self.sender.pool.index(seq)?;
        let is_original = self.sender.pool.packet(index).serial == serial;
        let numbered = is_original.then(|| self.sender.pool.copy(now, seq, 0))??;
        Some(self.numbered_frame(numbered, Some(LinkEvent::Copied(seq)), false))
    }
}
