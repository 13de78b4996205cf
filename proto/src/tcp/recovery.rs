//! What ACKs do to a sender: growth, fast retransmit, recovery by Tahoe, Reno, NewReno or SACK.

use super::congestion::Acked;
use super::profile::Recovery;
use super::rack::Rack;
use super::sender::{Phase, Sender};
use crate::ranges::Span;
use crate::time::Instant;
use core::time::Duration;

/// An ACK, its numbers as positions of the stream.
#[derive(Clone, Debug)]
pub(super) struct Ack {
    /// Everything before this position arrived.
    pub(super) position: u64,
    /// The first position that the window excludes.
    pub(super) edge: u64,
    /// Whether the segment carries nothing else: only such can be duplicate ACKs.
    pub(super) is_bare: bool,
    /// The round trip by timestamps (RFC 7323 §4.2), if they are in use.
    pub(super) round_trip: Option<Duration>,
}

impl Sender {
    /// Takes an ACK and its SACK blocks.
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        ack: &Ack,
        blocks: impl Iterator<Item = Span>,
    ) {
        if ack.position < self.una || ack.position > self.nxt {
            return;
        }
        let in_flight = self.in_flight();
        let mut news = false;
        if self.sack {
            for block in blocks {
                news |= self.scoreboard.update(block, ack.position, self.nxt);
            }
        }
        let same_window = ack.edge == self.edge();
        let advances = ack.position > self.una;
        if advances {
            self.advance(now, ack, in_flight);
        }
        self.set_edge(ack.edge);
        // RFC 6675 §2 counts news, RFC 5681 §2 ACKs that say nothing new at all.
        let plain = ack.is_bare && same_window && !advances && self.nxt > self.una;
        let is_duplicate = if self.sack { news } else { plain };
        if is_duplicate {
            self.counters.dup_acks += 1;
            self.dup_acks += 1;
            self.duplicate(advances);
        }
        if let Some(rack) = &mut self.rack {
            rack.acknowledged(now, self.una, &self.scoreboard);
            self.detect_losses(now);
        }
    }

    /// What RACK says is lost. While no loss is certain, a segment that is late may be reordered,
    /// and is waited for.
    pub(super) fn detect_losses(&mut self, now: Instant) {
        let Some(rack) = &mut self.rack else { return };
        self.reordering = None;
        if self.phase == Phase::Open {
            match rack.oldest_is_lost_at() {
                Some(at) if at <= now => self.fast_retransmit(),
                waiting => {
                    self.reordering = waiting;
                    return;
                }
            }
        }
        let border = self.rack.as_mut().and_then(Rack::detect);
        self.lost = self.lost.max(border.unwrap_or(0));
    }

    /// New data was acknowledged.
    fn advance(&mut self, now: Instant, ack: &Ack, in_flight: u64) {
        let acked = ack.position - self.una;
        self.una = ack.position;
        self.rxt = self.rxt.max(self.una);
        self.lost = self.lost.max(self.una);
        self.scoreboard.remove_below(self.una);
        self.dup_acks = 0;
        let round_trip = self.measure(now, ack);
        let was_partial = self.impatient && self.partial_acks > 0;
        match self.phase {
            Phase::Open => self.grow(now, acked, in_flight, round_trip),
            Phase::Loss => {
                self.grow(now, acked, in_flight, round_trip);
                if self.una >= self.recover {
                    self.phase = Phase::Open;
                }
            }
            Phase::Recovery => self.recovery_ack(acked),
        }
        // RFC 6298 5.2 and 5.3; in NewReno's impatient recovery only the first partial ACK
        // restarts the timer (RFC 6582 §3.2 step 3).
        if self.una == self.nxt {
            self.timer = None;
        } else if !(was_partial && self.partial_acks > 0) {
            self.timer = Some(self.rto.deadline(now));
        }
    }

    /// Takes the round trip that this ACK shows, if any.
    fn measure(&mut self, now: Instant, ack: &Ack) -> Option<Duration> {
        self.rto.progressed();
        if let Some(round_trip) = ack.round_trip {
            self.timed = None;
            self.rto.measured(round_trip);
            return Some(round_trip);
        }
        let (_, sent) = self.timed.filter(|(end, _)| *end <= self.una)?;
        self.timed = None;
        self.rto.sample(sent, now);
        Some(now.since(sent))
    }

    /// Opens the window, if it was what limited the sender (RFC 9438 §5.8, Linux): within a segment
    /// of full, or in slow start half full.
    fn grow(&mut self, now: Instant, bytes: u64, in_flight: u64, round_trip: Option<Duration>) {
        let cwnd = self.congestion.cwnd();
        let in_use = in_flight + self.mss > cwnd
            || cwnd < self.congestion.ssthresh() && 2 * in_flight >= cwnd;
        if in_use && self.una > 1 {
            let srtt = self.rto.srtt().unwrap_or_default();
            let acked = Acked { bytes, una: self.una, nxt: self.nxt, round_trip, srtt };
            self.congestion.acknowledged(now, &acked);
        }
    }

    /// New data was acknowledged in fast recovery.
    fn recovery_ack(&mut self, acked: u64) {
        let all = self.una >= self.recover;
        let ssthresh = self.congestion.ssthresh();
        if self.sack {
            if all {
                self.phase = Phase::Open;
            } else {
                self.mark_lost();
            }
        } else if self.recovery == Recovery::Reno {
            // RFC 5681 §3.2 step 6.
            self.congestion.set_cwnd(ssthresh);
            self.phase = Phase::Open;
        } else if all {
            // RFC 6582 §3.2 step 3, option 1: no burst when little is in flight.
            let little = self.in_flight().max(self.mss) + self.mss;
            self.congestion.set_cwnd(ssthresh.min(little));
            self.phase = Phase::Open;
        } else {
            // The ACK ends where the next loss begins; the window deflates by what left.
            let back = if acked >= self.mss { self.mss } else { 0 };
            let cwnd = self.congestion.cwnd().saturating_sub(acked) + back;
            self.congestion.set_cwnd(cwnd);
            self.resend_head = true;
            self.partial_acks += 1;
        }
        if self.phase == Phase::Open {
            self.partial_acks = 0;
        }
    }

    /// A duplicate ACK arrived, or with SACK one that tells of more that arrived.
    fn duplicate(&mut self, advances: bool) {
        match self.phase {
            Phase::Recovery if self.sack => self.mark_lost(),
            // RFC 5681 §3.2 step 4: the window inflates by what left the network.
            Phase::Recovery => self.congestion.set_cwnd(self.congestion.cwnd() + self.mss),
            Phase::Open | Phase::Loss if self.is_loss(advances) => self.fast_retransmit(),
            Phase::Open | Phase::Loss => {}
        }
    }

    /// Whether the duplicate ACKs so far mean a new loss.
    fn is_loss(&self, advances: bool) -> bool {
        if self.sack {
            // RFC 6675 §5 steps 1 and 2; §5.1: not before the last recovery is over.
            let counted = !advances && self.dup_acks >= self.dupack_threshold;
            return self.phase == Phase::Open && (counted || self.lost_below() > self.una);
        }
        // RFC 6582 §3.2 step 2: not for what a go-back-N sent twice. Tahoe and Reno do not look.
        let is_new = self.recovery != Recovery::NewReno || self.una > self.recover;
        self.dup_acks == self.dupack_threshold && is_new
    }

    /// RFC 5681 §3.2 steps 2 and 3, RFC 6675 §5 step 4, or Tahoe's slow start.
    fn fast_retransmit(&mut self) {
        self.counters.fast_retransmits += 1;
        let in_flight = self.nxt - self.una;
        // What limited transmit sent beyond the window does not count.
        self.congestion.reduce(in_flight.min(self.congestion.cwnd()));
        let ssthresh = self.congestion.ssthresh();
        self.recover = self.nxt;
        self.timed = None;
        // It starts anew when the segment leaves, as in BSD and Linux.
        self.timer = None;
        self.partial_acks = 0;
        if self.sack {
            self.congestion.set_cwnd(ssthresh);
            self.rxt = self.una;
            self.rescued = 0;
            self.mark_lost();
        } else if self.recovery == Recovery::Tahoe {
            self.congestion.collapse();
            self.phase = Phase::Loss;
            self.lost = self.nxt;
            self.rxt = self.una;
            return;
        } else {
            self.congestion.set_cwnd(ssthresh + u64::from(self.dupack_threshold) * self.mss);
        }
        self.phase = Phase::Recovery;
        self.resend_head = true;
    }

    /// Everything counts as lost that the scoreboard says is (RFC 6675 §5 step C).
    fn mark_lost(&mut self) {
        self.lost = self.lost.max(self.lost_below());
    }

    fn lost_below(&self) -> u64 {
        self.scoreboard.lost_below(self.dupack_threshold, self.mss).unwrap_or(self.una)
    }
}
