//! The processing of ACKs: window growth, fast retransmit, recovery by Tahoe, Reno, NewReno or
//! SACK.

use super::{Classic, Phase};
use crate::ranges::Span;
use crate::tcp::congestion::Acked;
use crate::tcp::outgoing::Outgoing;
use crate::tcp::profile::Recovery;
use crate::tcp::sender::Ack;
use crate::time::Instant;
use core::time::Duration;

impl Classic {
    /// Takes an ACK and its SACK blocks.
    pub(in crate::tcp) fn acknowledged(
        &mut self,
        now: Instant,
        out: &mut Outgoing,
        ack: &Ack,
        blocks: &[Span],
    ) {
        if ack.position < out.una || ack.position > out.nxt {
            return;
        }
        let in_flight = self.in_flight(out);
        self.sack |= self.sack_alone && !blocks.is_empty();
        let mut news = false;
        if self.sack {
            for &block in blocks {
                news |= self.scoreboard.update(block, ack.position, out.nxt);
            }
        }
        let same_window = ack.edge == out.edge();
        let (advances, was_shut) = (ack.position > out.una, out.is_shut());
        if advances {
            self.advance(now, out, ack, in_flight);
        }
        out.set_edge(ack.edge);
        if out.is_shut() != was_shut && out.una < out.nxt {
            // From the retransmission timer to the persist timer, or back.
            out.timer = Some(out.rto.deadline(now));
            self.timed = None;
        }
        // RFC 6675 §2 counts news, RFC 5681 §2 ACKs that say nothing new at all.
        let plain = ack.is_bare && same_window && !advances && out.nxt > out.una && !out.is_shut();
        let is_duplicate = if self.sack { news } else { plain };
        if is_duplicate {
            self.dup_acks += 1;
            self.duplicate(out, advances);
        }
    }

    /// New data was acknowledged.
    fn advance(&mut self, now: Instant, out: &mut Outgoing, ack: &Ack, in_flight: u64) {
        let acked = ack.position - out.una;
        out.una = ack.position;
        self.rxt = self.rxt.max(out.una);
        self.lost = self.lost.max(out.una);
        self.scoreboard.remove_below(out.una);
        self.dup_acks = 0;
        let round_trip = self.measure(now, out, ack);
        let was_partial = self.impatient && self.partial_acks > 0;
        match self.phase {
            Phase::Open => grow(now, out, acked, in_flight, round_trip),
            Phase::Loss => {
                grow(now, out, acked, in_flight, round_trip);
                if out.una >= self.recover {
                    self.phase = Phase::Open;
                }
            }
            Phase::Recovery => self.recovery_ack(out, acked),
        }
        // RFC 6298 5.2 and 5.3; in NewReno's impatient recovery only the first partial ACK
        // restarts the timer (RFC 6582 §3.2 step 3).
        if out.una == out.nxt {
            out.timer = None;
        } else if !(was_partial && self.partial_acks > 0) {
            out.timer = Some(out.rto.deadline(now));
        }
    }

    /// Takes the round trip that this ACK shows, if any.
    fn measure(&mut self, now: Instant, out: &mut Outgoing, ack: &Ack) -> Option<Duration> {
        out.rto.progressed();
        if let Some(round_trip) = ack.round_trip {
            self.timed = None;
            out.rto.measured(round_trip, out.una, out.nxt);
            return Some(round_trip);
        }
        let (_, sent) = self.timed.filter(|(end, _)| *end <= out.una)?;
        self.timed = None;
        out.rto.sample(sent, now, out.una, out.nxt);
        Some(now.since(sent))
    }

    /// New data was acknowledged in fast recovery.
    fn recovery_ack(&mut self, out: &mut Outgoing, acked: u64) {
        let all = out.una >= self.recover;
        let ssthresh = out.congestion.ssthresh();
        if self.sack {
            if all {
                self.phase = Phase::Open;
            } else {
                self.mark_lost(out);
            }
        } else if self.recovery == Recovery::Reno {
            // RFC 5681 §3.2 step 6.
            out.congestion.set_cwnd(ssthresh);
            self.phase = Phase::Open;
        } else if all {
            // RFC 6582 §3.2 step 3, option 1: no burst when little is in flight.
            let little = self.in_flight(out).max(out.mss) + out.mss;
            out.congestion.set_cwnd(ssthresh.min(little));
            self.phase = Phase::Open;
        } else {
            // The ACK ends where the next loss begins; the window deflates by what left.
            let back = if acked >= out.mss { out.mss } else { 0 };
            let cwnd = out.congestion.cwnd().saturating_sub(acked) + back;
            out.congestion.set_cwnd(cwnd);
            self.resend_head = true;
            self.partial_acks += 1;
        }
        if self.phase == Phase::Open {
            self.partial_acks = 0;
        }
    }

    /// A duplicate ACK arrived, or with SACK an ACK that reports further data.
    fn duplicate(&mut self, out: &mut Outgoing, advances: bool) {
        match self.phase {
            Phase::Recovery if self.sack => self.mark_lost(out),
            // RFC 5681 §3.2 step 4: the window inflates by what left the network.
            Phase::Recovery => out.congestion.set_cwnd(out.congestion.cwnd() + out.mss),
            Phase::Open | Phase::Loss if self.is_loss(out, advances) => self.fast_retransmit(out),
            Phase::Open | Phase::Loss => {}
        }
    }

    /// Whether the duplicate ACKs so far mean a new loss.
    fn is_loss(&self, out: &Outgoing, advances: bool) -> bool {
        if self.sack {
            // RFC 6675 §5 steps 1 and 2; §5.1: not before the last recovery is over.
            let counted = !advances && self.dup_acks >= self.dupack_threshold;
            return self.phase == Phase::Open && (counted || self.lost_below(out) > out.una);
        }
        // RFC 6582 §3.2 step 2: not for what a go-back-N sent twice. Tahoe and Reno do not look.
        let is_new = self.recovery != Recovery::NewReno || out.una > self.recover;
        self.dup_acks == self.dupack_threshold && is_new
    }

    /// RFC 5681 §3.2 steps 2 and 3, RFC 6675 §5 step 4, or Tahoe's slow start.
    fn fast_retransmit(&mut self, out: &mut Outgoing) {
        out.counters.recoveries += 1;
        let in_flight = out.nxt - out.una;
        // What limited transmit sent beyond the window does not count.
        out.congestion.reduce(in_flight.min(out.congestion.cwnd()));
        let ssthresh = out.congestion.ssthresh();
        self.recover = out.nxt;
        self.timed = None;
        // The timer restarts when the segment is sent, as in BSD and Linux.
        out.timer = None;
        self.partial_acks = 0;
        if self.sack {
            out.congestion.set_cwnd(ssthresh);
            self.rxt = out.una;
            self.rescued = 0;
            self.mark_lost(out);
        } else if self.recovery == Recovery::Tahoe {
            out.congestion.collapse();
            self.phase = Phase::Loss;
            self.lost = out.nxt;
            self.rxt = out.una;
            return;
        } else {
            out.congestion.set_cwnd(ssthresh + u64::from(self.dupack_threshold) * out.mss);
        }
        self.phase = Phase::Recovery;
        self.resend_head = true;
    }

    /// Everything counts as lost that the scoreboard says is (RFC 6675 §5 step C).
    fn mark_lost(&mut self, out: &Outgoing) {
        self.lost = self.lost.max(self.lost_below(out));
    }

    fn lost_below(&self, out: &Outgoing) -> u64 {
        self.scoreboard.lost_below(self.dupack_threshold, out.mss).unwrap_or(out.una)
    }
}

/// Opens the window, if it was what limited the sender (RFC 9438 §5.8, Linux): within a segment of
/// full, or in slow start half full.
fn grow(
    now: Instant,
    out: &mut Outgoing,
    bytes: u64,
    in_flight: u64,
    round_trip: Option<Duration>,
) {
    let cwnd = out.congestion.cwnd();
    let in_use =
        in_flight + out.mss > cwnd || cwnd < out.congestion.ssthresh() && 2 * in_flight >= cwnd;
    if in_use && out.una > 1 {
        let acked = Acked { una: out.una, nxt: out.nxt, round_trip };
        out.congestion.measured(now, &acked);
        out.congestion.acknowledged(now, bytes);
    }
}
