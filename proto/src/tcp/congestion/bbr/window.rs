//! From the model to the window and the pacing rate.

use super::bandwidth::Bandwidth;
use super::{Bbr, HIGH_GAIN, INITIAL_CWND, MIN_CWND, Mode, RateSample, RecoveryPhase};
use core::time::Duration;

/// Bytes that a super-packet carries at most, and segments (`bbr_tso_segs_goal`).
const LARGEST_BURST: u64 = 65_215;
const MOST_SEGMENTS: u64 = 0x7f;
/// Below this rate, in bytes per second, segments leave one by one (1.2 Mbit/s).
const SLOW: u64 = 150_000;
/// The pacing rate stays below the bandwidth by so many percent, lest a queue stands.
const MARGIN: u64 = 1;

impl Bbr {
    /// `bbr_init_pacing_rate_from_rtt`.
    pub(super) fn begin_pacing(&mut self, cwnd: u64, srtt: Option<Duration>) {
        self.has_seen_rtt |= srtt.is_some();
        let round_trip = srtt.unwrap_or(Duration::from_millis(1)).max(Duration::from_micros(1));
        self.pacing_rate = self.paced(Bandwidth::of(cwnd, round_trip), HIGH_GAIN);
    }

    /// `bbr_set_pacing_rate`: before the pipe is full the rate never falls.
    pub(super) fn set_pacing_rate(&mut self, cwnd: u64, srtt: Option<Duration>) {
        if !self.has_seen_rtt && srtt.is_some() {
            self.begin_pacing(cwnd, srtt);
        }
        let rate = self.rate(self.pacing_gain);
        if self.full_pipe.is_reached() || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// The pacing rate at a gain.
    pub(super) fn rate(&self, gain: u64) -> u64 {
        self.paced(self.bandwidth.get(), gain)
    }

    fn paced(&self, bandwidth: Bandwidth, gain: u64) -> u64 {
        bandwidth.bytes_per_second(self.mss, gain) / 100 * (100 - MARGIN)
    }

    /// `bbr_tso_segs_goal`: segments that Linux sends at once.
    pub(super) fn burst(&self) -> u64 {
        let least = if self.pacing_rate < SLOW { 1 } else { 2 };
        let segments = (self.pacing_rate >> 10).min(LARGEST_BURST) / self.mss.max(1);
        segments.max(least).min(MOST_SEGMENTS)
    }

    /// `bbr_inflight`: the segments in flight that keep the path busy at a gain.
    pub(super) fn inflight(&self, gain: u64) -> u64 {
        self.with_bursts(self.bdp(gain))
    }

    /// `bbr_bdp`, rounded up.
    fn bdp(&self, gain: u64) -> u64 {
        let Some(least) = self.min_rtt else { return INITIAL_CWND };
        self.bandwidth.get().segments_at(least, gain)
    }

    /// `bbr_quantization_budget`: room for bursts at both hosts and on the way, and for delayed
    /// ACKs of pairs.
    fn with_bursts(&self, segments: u64) -> u64 {
        let even = (segments + 3 * self.burst()).next_multiple_of(2);
        let probes = self.mode == Mode::ProbeBw && self.cycle.index == 0;
        even + if probes { 2 } else { 0 }
    }

    /// `bbr_set_cwnd`.
    pub(super) fn window(&mut self, sample: &RateSample, cwnd: u64) -> u64 {
        let mut cwnd = cwnd;
        if sample.delivered > 0 {
            cwnd = self.recover_or_restore(sample, cwnd);
            if !self.conserves {
                let mut target = self.bdp(self.cwnd_gain);
                if self.full_pipe.is_reached() {
                    target += self.aggregation.cwnd(self.bandwidth.get());
                }
                let target = self.with_bursts(target);
                if self.full_pipe.is_reached() {
                    cwnd = (cwnd + sample.delivered).min(target);
                } else if cwnd < target || sample.total < INITIAL_CWND {
                    cwnd += sample.delivered;
                }
                cwnd = cwnd.max(MIN_CWND);
            }
        }
        if self.mode == Mode::ProbeRtt { cwnd.min(MIN_CWND) } else { cwnd }
    }

    /// `bbr_set_cwnd_to_recover_or_restore`: in the first round of a recovery as many segments
    /// leave as arrive, and afterwards the window is what it was.
    fn recover_or_restore(&mut self, sample: &RateSample, cwnd: u64) -> u64 {
        let before = core::mem::replace(&mut self.phase, sample.recovery);
        let mut cwnd = cwnd.saturating_sub(sample.losses).max(1);
        let conserved = sample.in_flight + sample.delivered;
        if sample.recovery == RecoveryPhase::Recovery && before != RecoveryPhase::Recovery {
            self.conserves = true;
            self.rounds.end = sample.total;
            cwnd = conserved;
        } else if before != RecoveryPhase::None && sample.recovery == RecoveryPhase::None {
            self.conserves = false;
            cwnd = cwnd.max(self.prior_cwnd);
        }
        if self.conserves { cwnd.max(conserved) } else { cwnd }
    }
}
