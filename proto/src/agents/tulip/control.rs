//! What an end knows of the path, where the other end's reports show all transmissions, and the
//! control of its rate, where it has one.

use super::Tulip;
use super::frame::{Ack, Frame, FrameKind};
use crate::agents::arq::{Due, MAX_WINDOW, WIDEST_WINDOW};
use crate::codel::CoDelParams;
use crate::time::Instant;
use core::time::Duration;

/// CoDel's interval in startup: what a sender waits that knows no round trip (RFC 6298 §2.1).
const STARTUP_INTERVAL: Duration = Duration::from_secs(1);

impl Tulip {
    /// Whether the rate control is in force. Without reports, the limit of packets in flight is.
    pub(super) fn controls_rate(&self) -> bool {
        self.settings.rate_control && self.receiver.is_by_serial()
    }

    /// Whether the hosts find the path by themselves: it has not been full yet.
    fn is_starting(&self) -> bool {
        self.controls_rate() && self.rate.is_starting()
    }

    /// Whether the model of the path is kept: to control the rate, or to know for how many repair
    /// frames the path has room.
    fn follows_path(&self) -> bool {
        let settings = &self.settings;
        self.receiver.is_by_serial() && (settings.rate_control || settings.reads_repairs())
    }

    /// Whether the window and the limit of packets in flight admit another reliable packet.
    pub(super) fn has_room(&self) -> bool {
        // The other end has the window of the paper's link ACKs unless it says that it has more.
        let theirs = if self.receiver.is_by_serial() { WIDEST_WINDOW } else { MAX_WINDOW };
        let pool = &self.sender.pool;
        let fits = pool.bytes() < self.max_bytes;
        pool.span() < self.settings.window.min(theirs) && fits && self.is_below_limit()
    }

    pub(super) fn is_below_limit(&self) -> bool {
        self.controls_rate() || self.sender.pool.outstanding() < self.pace.limit()
    }

    /// Whether somebody answers for a queue on the path, or there is none. Without control of the
    /// rate nobody does: repair frames would fill the queue, and what it drops ask for more.
    pub(super) fn answers_for_queue(&self) -> bool {
        self.controls_rate() || self.rate.is_calm()
    }

    /// Whether the path has capacity that the hosts do not use: within a round trip there was a
    /// time in which nothing waited for the link, and what is in flight does not fill the path.
    /// Before the path has been full it is not known what it holds. A rate control then holds back
    /// packets for which the path has room.
    pub(super) fn has_spare_capacity(&self, now: Instant) -> bool {
        let is_filling = self.rate.is_starting() && !self.rate.is_in_doubt();
        let was_idle = self.queue.is_empty() || self.pace.was_idle(now);
        let is_idle = was_idle && (is_filling || self.rate.is_below_path());
        is_idle || (is_filling && self.controls_rate())
    }

    /// Whether the rate waits for a report on frames, those that are sent once among them.
    pub(super) fn awaits_report(&self) -> bool {
        self.controls_rate() && !self.rate.is_idle()
    }

    /// Whether a frame with a packet may leave now; if its time has not come, a timer is set.
    pub(super) fn may_leave(&mut self, now: Instant) -> bool {
        if !self.controls_rate() {
            return true;
        }
        if !self.rate.admits(now, false) {
            self.departure_due = Due::Never;
            return false;
        }
        if self.departure_due == Due::Never {
            self.rate.depart_from(now);
        }
        let departure = self.rate.departure();
        if departure > now {
            self.departure_due = Due::At(departure);
        }
        departure <= now
    }

    /// Whether one may that is sent again if it is lost.
    pub(super) fn may_leave_again(&self, now: Instant) -> bool {
        !self.controls_rate() || self.rate.admits(now, true)
    }

    /// The parameters of CoDel in the egress queue. While the rate still grows by itself, a queue
    /// does not show that the hosts are too fast.
    pub(super) fn codel(&self) -> CoDelParams {
        let codel = self.pace.codel();
        let least = if self.is_starting() { STARTUP_INTERVAL } else { Duration::ZERO };
        CoDelParams { interval: codel.interval.max(least), ..codel }
    }

    /// A frame leaves.
    pub(super) fn count_departure(&mut self, now: Instant, frame: &Frame) {
        if frame.kind != FrameKind::Control && self.follows_path() {
            let is_reliable = frame.kind != FrameKind::Unreliable;
            self.rate.sent(now, frame.serial, (frame.wire_len(), is_reliable));
        }
    }

    /// A link ACK has arrived, by which so many frames were wrongly taken for lost.
    pub(super) fn follow_path(&mut self, now: Instant, ack: &Ack, late: u32) {
        if ack.covered.is_some() && self.follows_path() {
            let is_marked = self.take_marks(ack);
            ack.clock.into_iter().for_each(|clock| self.rate.note_clock(now, clock));
            // What a report no longer covers has been lost, or its arrival was not reported.
            let arrived = |serial| ack.has_arrived(serial) == Some(true);
            // Link ACKs may overtake each other.
            let (highest, settled) = (ack.highest_serial, self.sender.settled());
            let settled = if settled < highest { settled } else { highest };
            self.rate.acknowledge(now, (highest, settled), (ack.delay, is_marked), &arrived);
            self.rate.arrived_late(late);
        }
    }
}
