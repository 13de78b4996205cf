//! The least round trip, and the probing for it (`bbr_update_min_rtt`).

use super::{Bbr, MIN_CWND, Mode, RateSample};
use crate::time::Instant;
use core::time::Duration;

/// How long a least round trip counts.
const LIFETIME: Duration = Duration::from_secs(10);
/// How long the least window is held.
const HOLD: Duration = Duration::from_millis(200);

impl Bbr {
    /// Takes a round trip. Returns the window, and whether the sender now limits itself.
    pub(super) fn update_min_rtt(&mut self, sample: &RateSample, cwnd: u64) -> (u64, bool) {
        let now = sample.now;
        let is_old = now > self.min_rtt_at + LIFETIME;
        if let Some(round_trip) = sample.round_trip
            && (self.min_rtt.is_none_or(|least| round_trip < least)
                || is_old && !sample.is_ack_delayed)
        {
            (self.min_rtt, self.min_rtt_at) = (Some(round_trip), now);
        }
        if is_old && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd(cwnd);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_until = None;
        }
        let probes = self.mode == Mode::ProbeRtt;
        let cwnd = if probes { self.probe_rtt(sample, cwnd) } else { cwnd };
        if sample.rate.is_some() {
            self.idle_restart = false;
        }
        (cwnd, probes)
    }

    /// The least window is held for 200 ms, and a round trip at least.
    fn probe_rtt(&mut self, sample: &RateSample, cwnd: u64) -> u64 {
        if self.probe_rtt_until.is_none() {
            if sample.in_flight <= MIN_CWND {
                self.probe_rtt_until = Some(sample.now + HOLD);
                self.probe_rtt_round = false;
                self.rounds.end = sample.total;
            }
            return cwnd;
        }
        self.probe_rtt_round |= self.rounds.is_start;
        if !self.probe_rtt_round {
            return cwnd;
        }
        self.check_probe_rtt_done(sample.now, cwnd, sample.total)
    }

    /// `bbr_check_probe_rtt_done`: returns the window, which is again what it was.
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant, cwnd: u64, total: u64) -> u64 {
        if self.probe_rtt_until.is_none_or(|until| now <= until) {
            return cwnd;
        }
        self.min_rtt_at = now;
        self.reset_mode(now, total);
        cwnd.max(self.prior_cwnd)
    }
}
