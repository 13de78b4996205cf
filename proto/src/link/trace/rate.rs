//! Rates that vary with time.

use super::opportunities::{Deliveries, Opportunities};
use super::rows::{Cursor, Trace};
use crate::packet::Packet;
use crate::time::Instant;
use core::time::Duration;

/// The rate of one way, as plain data.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableRate {
    /// That of a trace with a column of rates.
    Trace(Trace),
    /// That of Mahimahi's opportunities.
    Opportunities(Opportunities),
}

impl VariableRate {
    /// The mean in the long run, in bits per second.
    pub fn mean_bps(&self) -> f64 {
        match self {
            Self::Trace(trace) => trace.mean(|row| row.rate_bps as f64),
            Self::Opportunities(opportunities) => opportunities.mean_bps(),
        }
    }

    /// The mean between two times, in bits per second; of a trace, the rate of the first.
    pub(super) fn between(&self, from: Instant, to: Instant) -> f64 {
        match self {
            Self::Trace(trace) => trace.at(from).rate_bps as f64,
            Self::Opportunities(all) => all.between_bps(from, to),
        }
    }

    /// Until when a trace has the rate of a time; opportunities have a mean over any time.
    pub(super) fn until(&self, time: Instant) -> Instant {
        match self {
            Self::Trace(trace) => trace.until(time),
            Self::Opportunities(_) => Instant::from_nanos(u64::MAX),
        }
    }

    pub(in crate::link) fn process(&self) -> RateProcess {
        match self {
            Self::Trace(trace) => RateProcess::Steps(Steps {
                bits_of_period: trace.bits_of_period(),
                period: trace.period().unwrap_or_default(),
                cursor: Cursor::new(trace.clone()),
                carried: 0,
            }),
            Self::Opportunities(all) => RateProcess::Deliveries(Deliveries::new(all.clone())),
        }
    }
}

/// Serialises the frames of one way.
#[derive(Debug)]
pub(in crate::link) enum RateProcess {
    Steps(Steps),
    Deliveries(Deliveries),
}

impl RateProcess {
    /// When the last bit of a frame has left that begins at `start`; it `follows` another one,
    /// whose last bit left then. `start` never goes back.
    pub(in crate::link) fn end(
        &mut self,
        start: Instant,
        follows: bool,
        frame: &Packet,
    ) -> Instant {
        match self {
            Self::Steps(steps) => steps.end(start, follows, frame.wire_bits()),
            Self::Deliveries(all) => all.end(start, follows, frame.wire_len().into()),
        }
    }
}

/// A rate that is constant between steps.
#[derive(Debug)]
pub(in crate::link) struct Steps {
    cursor: Cursor,
    /// See [`Trace::bits_of_period`].
    bits_of_period: Option<u128>,
    period: Duration,
    /// What rounding the end of the last frame down has cut off, in units of a billionth of a bit.
    carried: u128,
}

impl Steps {
    fn end(&mut self, start: Instant, follows: bool, bits: u64) -> Instant {
        let carried = if follows { self.carried } else { 0 };
        let mut left = u128::from(bits) * 1_000_000_000 + carried;
        let mut at = start;
        // Whole periods carry the same wherever they begin.
        if let Some(most) = self.bits_of_period.filter(|most| *most < left) {
            let periods = (left - 1) / most;
            left -= periods * most;
            at += self.period.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX));
        }
        loop {
            let rate = u128::from(self.cursor.at(at).rate_bps);
            let until = self.cursor.until();
            let room = rate * until.since(at).as_nanos();
            if left <= room {
                self.carried = left % rate.max(1);
                let nanos = left / rate.max(1);
                return at + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            }
            if until <= at {
                // The end of time.
                return at;
            }
            left -= room;
            at = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::csv::parse_trace;
    use super::*;

    fn steps(text: &str) -> Steps {
        match VariableRate::Trace(parse_trace(text).unwrap()).process() {
            RateProcess::Steps(steps) => steps,
            RateProcess::Deliveries(_) => unreachable!(),
        }
    }

    #[test]
    fn a_frame_takes_each_rate_for_as_long_as_it_is_valid() {
        // 1 Mb/s, nothing, 3 Mb/s, and again from 4 s on.
        let mut link = steps("time_s,rate_bps\n0,1e6\n1,0\n2,3e6\n4,0\n");
        let millis = Instant::from_millis;
        assert_eq!(link.end(millis(0), false, 500_000), millis(500));
        assert_eq!(link.end(millis(500), true, 800_000), millis(2_100));
        assert_eq!(link.end(millis(3_000), false, 3_500_000), millis(4_500));
        // Two periods carry 14 Mb.
        assert_eq!(link.end(millis(4_500), true, 14_100_000), millis(12_600));
        // What begins in a silence waits.
        assert_eq!(link.end(millis(13_200), false, 3_000), millis(14_001));
    }

    #[test]
    fn the_rate_is_exact_in_the_long_run() {
        let mut link = steps("time_s,rate_bps\n0,7000003\n0.01,9999999\n0.02,0\n");
        let mut now = Instant::ZERO;
        for frame in 0..100_000 {
            now = link.end(now, frame > 0, 12_000);
        }
        let seconds = 1.2e9 / 8_500_001.0;
        assert!((now.as_secs_f64() - seconds).abs() < 1e-3, "{now} {seconds}");
        let mut forever = steps("time_s,rate_bps\n0,1000000\n");
        assert_eq!(forever.end(Instant::ZERO, false, 12_000), Instant::from_millis(12));
        assert_eq!(forever.end(Instant::from_millis(12), true, 12_000), Instant::from_millis(24));
    }

    #[test]
    fn the_end_of_time_is_reached() {
        let mut link = steps("time_s,rate_bps\n0,1\n31000000,0\n");
        let end = link.end(Instant::from_nanos(u64::MAX - 5), false, u64::MAX);
        assert_eq!(end, Instant::from_nanos(u64::MAX));
    }
}
