//! BBR, version 1, as Linux has it (`tcp_bbr.c` of Linux 6.18): the window and the pacing rate
//! follow a model of the path, its bandwidth and its least round trip, and not losses. Names of its
//! functions stand where order matters. Windows and flights are segments; gains are 256ths.
//!
//! Left out is the detection of policers (`lt_bw`), which begins where a fifth of all segments is
//! lost. Where Linux draws the first phase of a gain cycle at random, it follows here from the
//! number of segments delivered.

mod aggregation;
mod bandwidth;
mod full_pipe;
mod model;
mod probe_rtt;
#[cfg(test)]
mod tests;
mod window;

use super::rate_sample::{RateSample, RecoveryPhase};
use crate::time::Instant;
use crate::windowed_max::WindowedMax;
use aggregation::Aggregation;
use bandwidth::{Bandwidth, ROUNDS, UNIT};
use core::time::Duration;
use full_pipe::FullPipe;

/// 2/ln 2: the least gain that doubles the rate each round (`bbr_high_gain`), and its inverse.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Of the window in the gain cycle.
const CWND_GAIN: u64 = 2 * UNIT;
/// The gain cycle of the pacing rate, one phase for each least round trip.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The least window.
const MIN_CWND: u64 = 4;
/// The window before there is a round trip (`TCP_INIT_CWND`).
const INITIAL_CWND: u64 = 10;

/// What BBR remembers between ACKs.
#[derive(Clone, Debug)]
pub(super) struct Bbr {
    mss: u64,
    mode: Mode,
    bandwidth: WindowedMax<Bandwidth>,
    /// Least round trip of the last 10 s, and when it was seen.
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// When the least window has been held for long enough, and whether for a round trip.
    probe_rtt_until: Option<Instant>,
    probe_rtt_round: bool,
    rounds: Rounds,
    /// Whether sending began anew after an idle time.
    idle_restart: bool,
    full_pipe: FullPipe,
    cycle: Cycle,
    aggregation: Aggregation,
    /// Whether as many segments leave as arrive, in the first round of a recovery.
    conserves: bool,
    phase: RecoveryPhase,
    /// The window before a recovery or a probe of the round trip.
    prior_cwnd: u64,
    pacing_gain: u64,
    cwnd_gain: u64,
    /// In payload bytes per second.
    pacing_rate: u64,
    has_seen_rtt: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The rate doubles each round until the pipe is full.
    Startup,
    /// The queue that startup made drains.
    Drain,
    /// The gain cycle.
    ProbeBw,
    /// The least window, for a sample of the round trip without a queue.
    ProbeRtt,
}

/// Packet-timed round trips.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u64,
    /// The round ends when a segment arrives that left after so many had been delivered.
    end: u64,
    /// Whether the last ACK began a round.
    is_start: bool,
}

#[derive(Clone, Copy, Debug)]
struct Cycle {
    index: usize,
    since: Instant,
}

/// What an ACK makes of window and pacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct Control {
    /// In segments.
    pub(in crate::tcp) cwnd: u64,
    /// In payload bytes per second.
    pub(in crate::tcp) pacing_rate: u64,
    /// Whether samples count as limited by the application until all that is in flight arrived.
    pub(in crate::tcp) limits_itself: bool,
}

impl Bbr {
    /// `bbr_init`: a connection whose segments carry `mss` bytes, with this window and round trip.
    pub(super) fn new(now: Instant, mss: u64, cwnd: u64, srtt: Option<Duration>) -> Self {
        let mut bbr = Self {
            mss,
            mode: Mode::Startup,
            bandwidth: WindowedMax::new(ROUNDS),
            min_rtt: srtt,
            min_rtt_at: now,
            probe_rtt_until: None,
            probe_rtt_round: false,
            rounds: Rounds::default(),
            idle_restart: false,
            full_pipe: FullPipe::default(),
            cycle: Cycle { index: 0, since: now },
            aggregation: Aggregation::new(now),
            conserves: false,
            phase: RecoveryPhase::None,
            prior_cwnd: 0,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_rate: 0,
            has_seen_rtt: false,
        };
        bbr.begin_pacing(cwnd, srtt);
        bbr
    }

    /// In payload bytes per second.
    pub(super) fn pacing_rate(&self) -> u64 {
        self.pacing_rate
    }

    /// `bbr_main`: takes an ACK at a window of `cwnd` while the pacer's next segment leaves at
    /// `departure`.
    pub(super) fn acknowledged(
        &mut self,
        sample: &RateSample,
        cwnd: u64,
        departure: Instant,
    ) -> Control {
        self.update_bandwidth(sample);
        if sample.rate.is_some() && sample.delivered > 0 {
            if self.rounds.is_start {
                self.aggregation.round();
            }
            let (bandwidth, delivered) = (self.bandwidth.get(), sample.delivered);
            self.aggregation.update(sample.now, bandwidth, delivered, cwnd);
        }
        self.update_cycle(sample, departure);
        self.check_full_pipe(sample);
        self.check_drain(sample, departure);
        let (cwnd, limits_itself) = self.update_min_rtt(sample, cwnd);
        self.set_gains();
        self.set_pacing_rate(cwnd, sample.srtt);
        Control { cwnd: self.window(sample, cwnd), pacing_rate: self.pacing_rate, limits_itself }
    }

    /// `bbr_cwnd_event`: sending begins anew after the application had nothing to send. Returns
    /// the window.
    pub(super) fn restarted(&mut self, now: Instant, cwnd: u64, total: u64) -> u64 {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBw => self.pacing_rate = self.rate(UNIT),
            Mode::ProbeRtt => return self.check_probe_rtt_done(now, cwnd, total),
            Mode::Startup | Mode::Drain => {}
        }
        cwnd
    }

    /// `bbr_save_cwnd`: a recovery begins at a window of `cwnd`.
    pub(super) fn save_cwnd(&mut self, cwnd: u64) {
        let is_good = self.phase == RecoveryPhase::None && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if is_good { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// `bbr_set_state`: the retransmission timer expired.
    pub(super) fn timeout(&mut self) {
        self.phase = RecoveryPhase::Loss;
        self.full_pipe.forget();
    }

    /// `bbr_undo_cwnd`: a recovery was for nothing; startup may find more bandwidth yet.
    pub(super) fn undo(&mut self) {
        self.full_pipe.forget();
    }

    /// `bbr_update_gains`.
    fn set_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle.index % CYCLE.len()], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// `bbr_reset_mode`.
    fn reset_mode(&mut self, now: Instant, total: u64) {
        if self.full_pipe.is_reached() {
            self.begin_cycle(now, total);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// `bbr_reset_probe_bw_mode`: any phase but the one that drains.
    fn begin_cycle(&mut self, now: Instant, total: u64) {
        self.mode = Mode::ProbeBw;
        let index = (CYCLE.len() - (total % 7) as usize) % CYCLE.len();
        self.cycle = Cycle { index, since: now };
    }
}
