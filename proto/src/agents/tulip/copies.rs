//! Copies of what is in flight, while the link has nothing else to carry.
//!
//! A loss delays everything behind it by a round trip of the link. At the start of a connection a
//! long link is mostly idle, and hosts take such a delay for a full path: HyStart (RFC 9406, Linux)
//! then ends slow start at a window that is much too small.

use super::Tulip;
use super::frame::Frame;
use super::turn::Turn;
use crate::agents::arq::{Due, LinkEvent};
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
}
