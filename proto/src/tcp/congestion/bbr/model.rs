//! The model of the path: bandwidth, whether the pipe is full, and the phases that follow from it.

use super::bandwidth::Bandwidth;
use super::{Bbr, CYCLE, Cycle, DRAIN_GAIN, HIGH_GAIN, Mode, RateSample, UNIT};
use crate::time::Instant;

impl Bbr {
    /// `bbr_update_bw`.
    pub(super) fn update_bandwidth(&mut self, sample: &RateSample) {
        self.rounds.is_start = false;
        let Some(rate) = sample.rate else { return };
        if rate.prior_total >= self.rounds.end {
            self.rounds.end = sample.total;
            self.rounds.count += 1;
            self.rounds.is_start = true;
            self.conserves = false;
        }
        let bandwidth = Bandwidth::of(rate.segments, rate.interval);
        if !rate.is_app_limited || bandwidth >= self.bandwidth.get() {
            self.bandwidth.update(self.rounds.count, bandwidth);
        }
    }

    /// `bbr_update_cycle_phase`.
    pub(super) fn update_cycle(&mut self, sample: &RateSample, departure: Instant) {
        if self.mode == Mode::ProbeBw && self.phase_is_over(sample, departure) {
            let index = (self.cycle.index + 1) % CYCLE.len();
            self.cycle = Cycle { index, since: sample.now };
        }
    }

    /// `bbr_is_next_cycle_phase`: a phase lasts a least round trip; probing until there is a queue
    /// or a loss, draining no longer than there is a queue.
    fn phase_is_over(&self, sample: &RateSample, departure: Instant) -> bool {
        let elapsed = sample.now.since(self.cycle.since);
        let is_full_length = self.min_rtt.is_none_or(|least| elapsed > least);
        let in_flight = self.in_net(sample.now, sample.prior_in_flight, departure);
        match self.pacing_gain {
            UNIT => is_full_length,
            gain if gain > UNIT => {
                is_full_length && (sample.losses > 0 || in_flight >= self.inflight(gain))
            }
            _ => is_full_length || in_flight <= self.inflight(UNIT),
        }
    }

    pub(super) fn check_full_pipe(&mut self, sample: &RateSample) {
        let is_limited = sample.rate.is_some_and(|rate| rate.is_app_limited);
        if !self.full_pipe.is_reached() && self.rounds.is_start && !is_limited {
            self.full_pipe.round(self.bandwidth.get());
        }
    }

    /// `bbr_check_drain`.
    pub(super) fn check_drain(&mut self, sample: &RateSample, departure: Instant) {
        if self.mode == Mode::Startup && self.full_pipe.is_reached() {
            self.mode = Mode::Drain;
            (self.pacing_gain, self.cwnd_gain) = (DRAIN_GAIN, HIGH_GAIN);
        }
        let in_flight = self.in_net(sample.now, sample.in_flight, departure);
        if self.mode == Mode::Drain && in_flight <= self.inflight(UNIT) {
            self.begin_cycle(sample.now, sample.total);
        }
    }

    /// `bbr_packets_in_net_at_edt`: segments in the network when the next one leaves.
    fn in_net(&self, now: Instant, in_flight: u64, departure: Instant) -> u64 {
        let delivered = self.bandwidth.get().segments_in(departure.max(now).since(now));
        let burst = if self.pacing_gain > UNIT { self.burst() } else { 0 };
        (in_flight + burst).saturating_sub(delivered)
    }
}
