//! What crosses in each of two directions, over the last seconds. Sans-I/O.

use airmend_proto::Instant;
use std::collections::VecDeque;

/// Samples over which rates are taken; one a second.
const SAMPLES: usize = 6;

/// Totals of bytes, a second apart.
#[derive(Debug, Default)]
pub(crate) struct Meter(VecDeque<(Instant, u64, u64)>);

impl Meter {
    /// So many bytes by now, in the one direction and in the other; called once a second.
    pub(crate) fn add(&mut self, now: Instant, one: u64, other: u64) {
        self.0.push_back((now, one, other));
        if self.0.len() > SAMPLES {
            self.0.pop_front();
        }
    }

    /// Bits per second in both directions.
    pub(crate) fn rates(&self) -> (f64, f64) {
        let (Some(first), Some(last)) = (self.0.front(), self.0.back()) else { return (0.0, 0.0) };
        let seconds = (last.0 - first.0).as_secs_f64();
        let rate = |from: u64, to: u64| {
            if seconds > 0.0 { to.saturating_sub(from) as f64 * 8.0 / seconds } else { 0.0 }
        };
        (rate(first.1, last.1), rate(first.2, last.2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_last_seconds() {
        let mut meter = Meter::default();
        assert_eq!(meter.rates(), (0.0, 0.0));
        for second in 0..20 {
            let sent = 1_000 * second.min(10);
            meter.add(Instant::from_millis(1_000 * second), sent, 250 * second);
        }
        assert_eq!(meter.rates(), (0.0, 2_000.0));
        assert_eq!(meter.0.len(), SAMPLES);
    }
}
