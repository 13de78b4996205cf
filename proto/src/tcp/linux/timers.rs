//! The one timer: retransmission (`tcp_retransmit_timer`), the end of RACK's wait
//! (`tcp_rack_reo_timeout`), or a tail loss probe (`tcp_send_loss_probe`).

use super::{Linux, State, Turn};
use crate::ranges::Span;
use crate::tcp::outgoing::Outgoing;
use crate::tcp::state::Timer;
use crate::time::Instant;
use alloc::vec::Vec;
use core::time::Duration;

/// What Linux adds to short waits: two ticks of a clock of 250 Hz (`TCP_TIMEOUT_MIN_US`).
pub(super) const SLACK: Duration = Duration::from_millis(8);

impl Linux {
    /// The timer is due.
    pub(in crate::tcp) fn timeout(&mut self, now: Instant, out: &mut Outgoing) {
        out.timer = None;
        match self.timer {
            Timer::Reordering => self.reordering_timeout(now, out),
            Timer::LossProbe => self.probe_due = true,
            _ => self.retransmission_timeout(now, out),
        }
    }

    /// Restarts the timer.
    pub(super) fn start_timer(&mut self, out: &mut Outgoing, why: Timer, at: Instant) {
        self.timer = why;
        out.timer = Some(at);
    }

    /// `tcp_rearm_rto`: the retransmission timer counts from now, but from when the oldest segment
    /// left where it takes the place of another timer.
    pub(super) fn rearm_timeout(&mut self, now: Instant, out: &mut Outgoing) {
        let Some(head) = self.queue.head() else {
            self.timer = Timer::Retransmit;
            out.timer = None;
            return;
        };
        let from = if self.timer == Timer::Retransmit { now } else { head.at };
        self.start_timer(out, Timer::Retransmit, out.rto.deadline(from).max(now));
    }

    /// `tcp_schedule_loss_probe` (RFC 8985 §7.2): says whether a probe is due before the timeout.
    /// Without `advances` the timeout counts from when the oldest segment left.
    pub(super) fn schedule_probe(
        &mut self,
        now: Instant,
        out: &mut Outgoing,
        advances: bool,
    ) -> bool {
        let Some(head) = self.queue.head().filter(|_| self.wants_tlp) else { return false };
        if self.state != State::Open {
            return false;
        }
        let wait = match out.rto.srtt() {
            // The receiver may delay its ACK of a single segment.
            Some(srtt) if self.queue.packets_out() == 1 => 2 * srtt + out.rto.least(),
            Some(srtt) => 2 * srtt + SLACK,
            None => Duration::from_secs(1),
        };
        let timeout = out.rto.deadline(if advances { now } else { head.at });
        let at = if timeout > now { timeout.min(now + wait) } else { now + wait };
        self.start_timer(out, Timer::LossProbe, at);
        true
    }

    /// The probe: new data if there are any, else the last segment again (RFC 8985 §7.3).
    pub(super) fn send_probe(&mut self, now: Instant, out: &mut Outgoing) -> Option<Span> {
        if self.probed.is_some() {
            self.rearm_timeout(now, out);
            return None;
        }
        if let Some(segment) = out.new_segment(out.mss) {
            self.new_data_leaves(now, out, segment);
            self.probe_left(now, out, false);
            return Some(segment);
        }
        let Some(last) = self.queue.last() else {
            self.rearm_timeout(now, out);
            return None;
        };
        let segment = self.resend(now, out, last.span, true);
        self.probe_left(now, out, true);
        Some(segment)
    }

    fn probe_left(&mut self, now: Instant, out: &mut Outgoing, again: bool) {
        self.probed = Some((out.nxt, again));
        out.counters.loss_probes += 1;
        self.start_timer(out, Timer::Retransmit, out.rto.deadline(now));
    }

    fn reordering_timeout(&mut self, now: Instant, out: &mut Outgoing) {
        if self.detect(now, out).lost > 0 {
            if self.state != State::Recovery {
                self.enter_recovery(out);
                if !out.congestion.is_model_based() {
                    self.reduce(out, 1, false);
                }
            }
            self.turn = Turn::LostFirst;
        }
        // After what leaves now: the timer counts from when the oldest segment left.
        self.rearm = true;
    }

    /// Everything that is old enough is lost (RFC 6298 5.4 to 5.6, RFC 8985 §6.3), or a closed
    /// window is probed.
    fn retransmission_timeout(&mut self, now: Instant, out: &mut Outgoing) {
        out.rto.back_off();
        if out.persist_timeout() {
            return;
        }
        out.counters.timeouts += 1;
        self.enter_loss(now, out);
        self.timeouts += 1;
        self.start_timer(out, Timer::Retransmit, out.rto.deadline(now));
    }

    /// `tcp_enter_loss`.
    fn enter_loss(&mut self, now: Instant, out: &mut Outgoing) {
        let is_new = matches!(self.state, State::Open | State::Disorder);
        self.lose_after_timeout(now);
        if is_new || out.una >= self.recover || self.state == State::Loss && self.timeouts == 0 {
            self.undo.ssthresh = Some(self.current_ssthresh(out));
            self.undo.cwnd = out.congestion.cwnd();
            out.congestion.reduce(out.congestion.cwnd());
            self.begin_undo(out);
        }
        if is_new && self.queue.sacked_out >= 3 {
            self.rack.overestimated();
        }
        out.congestion.collapse();
        out.congestion.set_cwnd(u64::from(self.in_flight() + 1) * out.mss);
        self.state = State::Loss;
        self.recover = out.nxt;
        self.probed = None;
        self.turn = Turn::LostFirst;
        self.frto = self.wants_frto && (is_new || self.timeouts > 0);
    }

    /// `tcp_timeout_mark_lost`: the oldest segment is lost, and with RACK what was sent as long
    /// ago, without it all of them.
    fn lose_after_timeout(&mut self, now: Instant) {
        let reneged = self.queue.head().is_some_and(|head| head.sacked);
        if reneged {
            self.queue.renege();
        }
        let head = self.queue.head().map(|head| head.span.start);
        let lost: Vec<u64> = self
            .queue
            .iter()
            .filter(|segment| {
                let is_late = self.rack.remaining(now, segment, Duration::ZERO).is_zero();
                reneged || is_late || !self.wants_rack || Some(segment.span.start) == head
            })
            .map(|segment| segment.span.start)
            .collect();
        let before = self.queue.lost_out;
        for start in lost {
            self.queue.lose(start);
        }
        self.lost += u64::from(self.queue.lost_out - before);
    }
}
