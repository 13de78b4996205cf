//! Copies of what is in flight, while the link has nothing else to carry.
//!
//! A loss delays everything behind it by a round trip of the link. At the start of a connection a
//! long link is mostly idle, and hosts take such a delay for a full path: HyStart (RFC 9406, Linux)
//! then ends slow start at a window that is much too small.
//!
//! And a copy of each short packet that has no time for a second retransmission, as of a call:
//! beside a bulk transfer repair frames come too late for it, since they mend all that is lost
//! together.
//!
//! And a copy of the last TCP ACK of a burst ([`super::last_acks`]).

use super::Tulip;
use super::frame::Frame;
use super::redundancy::Redundancy;
use super::turn::Turn;
use crate::agents::arq::{Class, Due, LinkEvent, Queued, noticed_growth};
use crate::time::Instant;
use crate::wire::tcp::Segment;

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

    /// Whether a packet has no time for a second retransmission, the first of which may be lost as
    /// well, and the path loses enough.
    pub(super) fn needs_copy(&self, queued: &Queued) -> bool {
        let is_brief = matches!(queued.class, Class::Bounded(time) if time < 2 * self.pace.wait(0));
        let share = self.sender.redundancy.share();
        queued.is_urgent() && is_brief && self.is_coding() && Redundancy::is_due_for_one(share)
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

    /// Notes a TCP ACK that leaves, if the path loses enough of them and has room for copies.
    pub(super) fn note_ack(&mut self, now: Instant, queued: &Queued) {
        // Of what is sent once the rate control alone knows whether it arrives.
        let share = self.rate.loss().unwrap_or_else(|| self.sender.redundancy.share());
        let is_due = self.is_coding() && Redundancy::is_due_for_one(share);
        let Some(least) = self.pace.least_round_trip().filter(|_| is_due) else { return };
        let is_ack = |packet| Segment::parse(packet).is_ok_and(|segment| segment.is_pure_ack());
        if self.has_spare_capacity(now) && is_ack(&queued.packet) {
            let until = now + noticed_growth(least);
            self.last_acks.note(queued.flow, queued.packet.clone(), until);
        }
    }

    /// The last TCP ACK of a burst once more.
    pub(super) fn next_last_ack(&mut self) -> Option<Frame> {
        let (flow, packet) = self.last_acks.pop()?;
        self.report(LinkEvent::AckCopied);
        Some(self.frame_once(flow, packet))
    }
}
