//! From what was detected to a state: the beginning of a recovery, its end, and its undoing.

use super::rack::Detected;
use super::timers::SLACK;
use super::{Linux, Reduction, State, cwnd};
use crate::tcp::outgoing::Outgoing;
use crate::tcp::state::Timer;
use crate::time::Instant;

impl Linux {
    /// `tcp_rack_detect_loss`: marks what is lost, and waits for what is only late.
    pub(super) fn detect(&mut self, now: Instant, out: &Outgoing) -> Detected {
        let is_certain = matches!(self.state, State::Recovery | State::Loss)
            || self.rack.is_enough(self.queue.sacked_out);
        let window = self.rack.window(is_certain, out.rto.srtt().unwrap_or_default());
        let detected = self.rack.detect(now, &mut self.queue, window);
        self.lost += u64::from(detected.lost);
        detected
    }

    /// `tcp_identify_packet_loss`; says what was found after having set the timer for the rest.
    pub(super) fn identify_losses(&mut self, now: Instant, out: &mut Outgoing) -> Detected {
        if !self.wants_rack || !self.rack.advanced || self.queue.packets_out() == 0 {
            return Detected::default();
        }
        let detected = self.detect(now, out);
        if !detected.wait.is_zero() {
            let at = (now + detected.wait + SLACK).min(out.rto.deadline(now));
            self.start_timer(out, Timer::Reordering, at);
        }
        detected
    }

    /// `tcp_time_to_recover`.
    pub(super) fn is_time_to_recover(&self) -> bool {
        let is_counted = !self.wants_rack && self.rack.is_enough(self.queue.sacked_out);
        self.queue.lost_out > 0 || is_counted
    }

    /// `tcp_update_scoreboard`: without RACK a segment is lost if as many above it are SACKed as
    /// the path has reordered.
    pub(super) fn count_losses(&mut self) {
        if !self.wants_rack {
            self.lost += u64::from(self.queue.lose_below(self.rack.degree));
        }
    }

    /// `tcp_force_fast_retransmit`: SACKed data is as far ahead as the path has reordered.
    pub(super) fn is_far_ahead(&self, out: &Outgoing) -> bool {
        let far = out.una + u64::from(self.rack.degree) * out.mss;
        self.queue.highest_sacked().is_some_and(|highest| highest > far)
    }

    /// `tcp_enter_recovery`.
    pub(super) fn enter_recovery(&mut self, out: &mut Outgoing) {
        out.counters.recoveries += 1;
        if !self.queue.any_resent() {
            self.undo.forget_stamp();
        }
        self.begin_undo(out);
        self.undo.ssthresh = Some(self.current_ssthresh(out));
        self.begin_reduction(out);
        self.state = State::Recovery;
    }

    /// `tcp_init_undo`.
    pub(super) fn begin_undo(&mut self, out: &Outgoing) {
        let probe = u32::from(self.probed.is_some_and(|(_, again)| again));
        self.undo.begin(out.una, self.queue.resent_out + probe);
    }

    /// `tcp_init_cwnd_reduction`.
    pub(super) fn begin_reduction(&mut self, out: &mut Outgoing) {
        self.recover = out.nxt;
        self.probed = None;
        self.undo.cwnd = out.congestion.cwnd();
        self.reduction = Reduction::new(cwnd(out));
        out.congestion.reduce(out.congestion.cwnd());
    }

    /// `tcp_cwnd_reduction`.
    pub(super) fn reduce(&mut self, out: &mut Outgoing, delivered: u64, is_safe: bool) {
        let ssthresh = out.congestion.ssthresh() / out.mss;
        let in_flight = u64::from(self.in_flight());
        if let Some(window) = self.reduction.window(in_flight, ssthresh, delivered, is_safe) {
            out.congestion.set_cwnd(window * out.mss);
        }
    }

    /// `tcp_end_cwnd_reduction`: the window is the threshold, unless the reduction was undone.
    pub(super) fn end_reduction(&self, out: &mut Outgoing) {
        if self.undo.marker.is_some() && !out.congestion.is_model_based() {
            out.congestion.set_cwnd(out.congestion.ssthresh());
        }
    }

    /// `tcp_undo_cwnd_reduction`.
    pub(super) fn undo_reduction(&mut self, out: &mut Outgoing, nothing_is_lost: bool) {
        if nothing_is_lost {
            self.queue.unlose();
        }
        if let Some(ssthresh) = self.undo.ssthresh {
            out.congestion.restore(self.undo.cwnd, ssthresh);
        }
        self.undo.marker = None;
        self.rack.advanced = true;
    }

    /// `tcp_try_undo_recovery`: all is acknowledged that was in flight when the loss was noticed.
    pub(super) fn leave_recovery(&mut self, out: &mut Outgoing, echo: Option<u32>) {
        if self.undo.is_due(echo) {
            self.count_undone(out);
            self.undo_reduction(out, false);
        } else {
            self.rack.recovered(false);
        }
        self.state = State::Open;
    }

    /// `tcp_try_undo_dsack`: every retransmission was needless.
    pub(super) fn undo_by_duplicates(&mut self, out: &mut Outgoing) -> bool {
        if !self.undo.all_were_needless() {
            return false;
        }
        self.rack.recovered(true);
        self.count_undone(out);
        self.undo_reduction(out, false);
        true
    }

    /// `tcp_try_undo_loss`: the timeout was spurious.
    pub(super) fn undo_loss(&mut self, out: &mut Outgoing, echo: Option<u32>, frto: bool) -> bool {
        if !frto && !self.undo.is_due(echo) {
            return false;
        }
        self.count_undone(out);
        out.counters.spurious_timeouts += u64::from(frto);
        self.undo_reduction(out, true);
        self.timeouts = 0;
        self.state = State::Open;
        true
    }

    /// `tcp_try_keep_open`.
    pub(super) fn keep_open(&mut self, out: &Outgoing) {
        let disorder = self.queue.left_out() > 0 || self.queue.any_resent();
        let state = if disorder { State::Disorder } else { State::Open };
        if self.state != state {
            self.state = state;
            self.recover = out.nxt;
        }
    }

    /// The threshold as it would be if the window were one of congestion avoidance.
    pub(super) fn current_ssthresh(&self, out: &Outgoing) -> u64 {
        let ssthresh = out.congestion.ssthresh();
        if self.is_reducing() {
            return ssthresh;
        }
        ssthresh.max(out.congestion.cwnd() / 4 * 3)
    }

    fn count_undone(&self, out: &mut Outgoing) {
        let counters = &mut out.counters;
        match self.state {
            State::Loss => counters.undone_timeouts += 1,
            _ => counters.undone_recoveries += 1,
        }
    }
}
