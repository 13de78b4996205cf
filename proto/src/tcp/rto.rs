//! The retransmission timeout: RFC 6298, Linux's version of it, and BSD's in ticks.

use super::profile::{BackoffReset, Estimator, Retransmission};
use crate::rtt::{RoundTrip, nanos};
use crate::time::Instant;
use core::time::Duration;

/// RFC 6298 5.7: the timeout for data after the timer of the SYN expired.
const AFTER_LOST_SYN: u64 = 3_000_000_000;

/// From round-trip samples to timeouts. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Rto {
    settings: Retransmission,
    /// The tick, and the least and largest timeout.
    tick: u64,
    min: u64,
    max: u64,
    /// Smoothed round trip and deviation; of [`Estimator::Bsd`] in eighths and fourths of a tick,
    /// of [`Estimator::Linux`] the second is four deviations.
    estimate: Option<RoundTrip>,
    round: Round,
    /// The timeout before back-off.
    base: u64,
    /// Timeouts in a row: each doubles.
    backoff: u32,
}

/// What Linux adds to the smoothed round trip: the largest deviation of a round trip's samples.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// The round ends when this position is acknowledged.
    end: u64,
    /// Four deviations at their largest in this round, and what they add to the timeout.
    largest: u64,
    margin: u64,
}

impl Rto {
    /// RFC 6298 2.1: before the first sample.
    pub(super) fn new(settings: Retransmission) -> Self {
        let [tick, min, max] = [settings.tick, settings.min, settings.max].map(nanos);
        let (estimate, round, base) = (None, Round::default(), nanos(settings.initial));
        Self { tick, min, max, estimate, round, base, backoff: 0, settings }
    }

    /// The timeout as it stands, back-off and limits applied.
    pub(super) fn current(&self) -> Duration {
        Duration::from_nanos(self.current_nanos())
    }

    /// The least timeout.
    pub(super) fn least(&self) -> Duration {
        self.settings.min
    }

    /// The smoothed round trip, once there was a sample.
    pub(super) fn srtt(&self) -> Option<Duration> {
        let estimate = self.estimate?;
        Some(match self.settings.estimator {
            Estimator::Bsd => Duration::from_nanos(estimate.srtt * self.tick / 8),
            Estimator::Rfc6298 | Estimator::Linux => estimate.srtt(),
        })
    }

    /// The expiry time of a timer that starts now.
    pub(super) fn deadline(&self, now: Instant) -> Instant {
        let (now, timeout) = (now.as_nanos(), self.current_nanos());
        Instant::from_nanos(match (self.tick, self.settings.estimator) {
            (0, _) => now.saturating_add(timeout),
            // The timer is a counter that every tick of the clock decrements.
            (tick, Estimator::Bsd) => (now / tick + timeout / tick).saturating_mul(tick),
            (tick, _) => now.saturating_add(timeout).div_ceil(tick).saturating_mul(tick),
        })
    }

    /// A segment sent at `sent` and never again was acknowledged now; `una` and `nxt` as for
    /// [`Rto::measured`].
    pub(super) fn sample(&mut self, sent: Instant, now: Instant, una: u64, nxt: u64) {
        match self.tick {
            0 => self.measured(now.since(sent), una, nxt),
            tick => {
                let ticks = now.as_nanos() / tick - sent.as_nanos().min(now.as_nanos()) / tick;
                self.measured(Duration::from_nanos(ticks * tick), una, nxt);
            }
        }
    }

    /// Takes a round trip that an ACK of all before `una` showed, while all before `nxt` was sent;
    /// with it the back-off ends (RFC 6298 2.2, 2.3, §5).
    pub(super) fn measured(&mut self, round_trip: Duration, una: u64, nxt: u64) {
        let sample = nanos(round_trip);
        match self.settings.estimator {
            Estimator::Bsd => self.measured_in_ticks(sample.checked_div(self.tick).unwrap_or(0)),
            Estimator::Rfc6298 => {
                let first = RoundTrip::first(round_trip);
                let next = |mut estimate: RoundTrip| {
                    estimate.sample(round_trip);
                    estimate
                };
                let RoundTrip { srtt, deviation } =
                    *self.estimate.insert(self.estimate.map_or(first, next));
                self.base = (srtt + (4 * deviation).max(self.tick)).max(self.min);
            }
            Estimator::Linux => self.measured_in_rounds(sample, una, nxt),
        }
        if self.settings.backoff_reset != BackoffReset::Never {
            self.backoff = 0;
        }
    }

    /// An ACK of new data arrived, whether or not it gave a sample.
    pub(super) fn progressed(&mut self) {
        if self.settings.backoff_reset == BackoffReset::AnyAck {
            self.backoff = 0;
        }
    }

    /// The timer expired: the next timeout is twice as long (RFC 6298 5.5).
    pub(super) fn back_off(&mut self) {
        // Beyond 2^16 every timeout is at its limit.
        self.backoff = (self.backoff + 1).min(16);
    }

    /// The handshake is done; the timer of the SYN had expired (RFC 6298 5.7).
    pub(super) fn syn_was_lost(&mut self) {
        if self.estimate.is_none() && self.settings.estimator != Estimator::Bsd {
            self.base = self.base.max(AFTER_LOST_SYN);
            self.backoff = 0;
        }
    }

    fn current_nanos(&self) -> u64 {
        self.base.saturating_mul(1 << self.backoff).max(self.min).min(self.max)
    }

    /// Linux `tcp_rtt_estimator`: deviations count an eighth when the round trip shrinks by more
    /// than they are, and what they add to the timeout shrinks by a quarter in each round at most.
    fn measured_in_rounds(&mut self, sample: u64, una: u64, nxt: u64) {
        let Some(RoundTrip { srtt, deviation }) = self.estimate else {
            let margin = (2 * sample).max(self.min);
            self.estimate = Some(RoundTrip { srtt: sample, deviation: 2 * sample });
            self.round = Round { end: nxt, largest: margin, margin };
            self.base = sample + margin;
            return;
        };
        let error = srtt.abs_diff(sample);
        let rises = sample >= srtt;
        let srtt = if rises { srtt + error / 8 } else { srtt - error / 8 };
        let change = error.abs_diff(deviation / 4);
        let deviation = if error < deviation / 4 {
            deviation - change
        } else {
            deviation + if rises { change } else { change / 8 }
        };
        let round = &mut self.round;
        round.largest = round.largest.max(deviation);
        round.margin = round.margin.max(round.largest);
        if una > round.end {
            round.margin -= (round.margin - round.largest) / 4;
            round.end = nxt;
            round.largest = self.min;
        }
        self.estimate = Some(RoundTrip { srtt, deviation });
        self.base = srtt + round.margin;
    }

    /// 4.4BSD `tcp_xmit_timer`: its `rtt` is one more than the ticks that passed.
    fn measured_in_ticks(&mut self, ticks: u64) {
        let (srtt, rttvar) = match self.estimate {
            None => ((ticks + 1) * 8, (ticks + 1) * 2),
            Some(RoundTrip { srtt, deviation: rttvar }) => {
                let smooth = srtt / 8;
                let srtt = (srtt + ticks).saturating_sub(smooth).max(1);
                let deviation = ticks.abs_diff(smooth);
                (srtt, (rttvar + deviation).saturating_sub(rttvar / 4).max(1))
            }
        };
        self.estimate = Some(RoundTrip { srtt, deviation: rttvar });
        self.base = (srtt / 8 + rttvar) * self.tick;
    }
}

#[cfg(test)]
mod tests;
