//! What crosses in each of two directions, over the last seconds and since it paused. Sans-I/O.

use airmend_proto::Instant;
use std::collections::VecDeque;
use std::time::Duration;

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

/// Whoever sends nothing for so long has done with what it sent: TCP waits less, but for its timer.
const PAUSE: Duration = Duration::from_secs(1);

/// What has crossed without a pause, in one direction: a transfer, or several at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Transfer {
    begun: Instant,
    last: Instant,
    pub(crate) bytes: u64,
}

impl Transfer {
    pub(crate) fn add(&mut self, now: Instant, bytes: u64) {
        if self.bytes == 0 || now - self.last > PAUSE {
            *self = Self { begun: now, last: now, bytes: 0 };
        }
        self.last = now;
        self.bytes += bytes;
    }

    pub(crate) fn seconds(&self) -> f64 {
        (self.last - self.begun).as_secs_f64()
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

    #[test]
    fn a_transfer_goes_on_until_it_pauses() {
        let mut transfer = Transfer::default();
        (3_000..8_000).step_by(900).for_each(|at| transfer.add(Instant::from_millis(at), 500));
        assert_eq!((transfer.bytes, transfer.seconds()), (3_000, 4.5));
        transfer.add(Instant::from_millis(8_600), 100);
        assert_eq!((transfer.bytes, transfer.seconds()), (100, 0.0));
    }
}
