//! HyStart: leaves slow start before it overruns the path, by the signs that Linux looks for.

use super::acked::Acked;
use crate::time::Instant;
use core::time::Duration;

/// Windows of fewer segments are left alone.
const LOW_WINDOW: u64 = 16;
/// ACKs closer together than this are one train.
const ACK_SPACING: Duration = Duration::from_millis(2);
/// What bursts of a host may add to a train (Linux `hystart_ack_delay`, at its limit).
const ACK_DELAY: Duration = Duration::from_millis(1);
/// Round trips that are looked at in each round.
const SAMPLES: u32 = 8;
/// Limits of the growth of a round trip that counts: an eighth of the least, within these.
const LEAST_GROWTH: Duration = Duration::from_millis(4);
const LARGEST_GROWTH: Duration = Duration::from_millis(16);

/// One round of slow start as its ACKs show it.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    /// The round ends when this position is acknowledged.
    round_end: u64,
    round_start: Instant,
    /// When the last ACK of the train at the round's start arrived.
    train_end: Instant,
    /// Least round trip of this round, and how many there were.
    round_trip: Duration,
    samples: u32,
    /// Least round trip ever.
    least: Duration,
}

impl Default for HyStart {
    fn default() -> Self {
        Self {
            round_end: 0,
            round_start: Instant::ZERO,
            train_end: Instant::ZERO,
            round_trip: Duration::MAX,
            samples: 0,
            least: Duration::MAX,
        }
    }
}

impl HyStart {
    /// Whether this ACK shows that a window of `segments` is enough: the ACKs of one round span
    /// half the least round trip, or round trips have grown by an eighth.
    pub(super) fn ends_slow_start(&mut self, now: Instant, acked: &Acked, segments: u64) -> bool {
        let Some(round_trip) = acked.round_trip else { return false };
        self.least = self.least.min(round_trip);
        if acked.una > self.round_end {
            let least = self.least;
            *self = Self { least, round_start: now, train_end: now, ..Self::default() };
            self.round_end = acked.nxt;
        }
        if segments < LOW_WINDOW {
            return false;
        }
        if now.since(self.train_end) <= ACK_SPACING {
            self.train_end = now;
            if now.since(self.round_start) > (self.least + ACK_DELAY) / 2 {
                return true;
            }
        }
        self.round_trip = self.round_trip.min(round_trip);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let growth = (self.least / 8).clamp(LEAST_GROWTH, LARGEST_GROWTH);
        self.round_trip > self.least + growth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds rounds of ACKs that come `spacing` apart, with these round trips in milliseconds; says
    /// in which round slow start ends.
    fn ends_in_round(segments: u64, spacing: Duration, round_trips: &[u64]) -> Option<usize> {
        let mut hystart = HyStart::default();
        let (mut now, mut una) = (Instant::ZERO, 1);
        for (round, &round_trip) in round_trips.iter().enumerate() {
            let nxt = una + segments;
            now += Duration::from_millis(100);
            for _ in 0..segments {
                una += 1;
                now += spacing;
                let round_trip = Some(Duration::from_millis(round_trip));
                let acked = Acked { una, nxt, round_trip };
                if hystart.ends_slow_start(now, &acked, segments) {
                    return Some(round);
                }
            }
        }
        None
    }

    #[test]
    fn a_train_of_acks_as_long_as_half_the_round_trip_ends_slow_start() {
        let millisecond = Duration::from_millis(1);
        assert_eq!(ends_in_round(49, millisecond, &[100, 100, 100]), None);
        assert_eq!(ends_in_round(60, millisecond, &[100, 100, 100]), Some(0));
        // ACKs further apart are no train, small windows no evidence.
        assert_eq!(ends_in_round(60, 3 * millisecond, &[100, 100, 100]), None);
        assert_eq!(ends_in_round(15, 2 * millisecond, &[20, 20, 20]), None);
    }

    #[test]
    fn round_trips_that_grow_by_an_eighth_end_slow_start() {
        let apart = Duration::from_millis(3);
        assert_eq!(ends_in_round(20, apart, &[100, 112, 112, 112]), None);
        assert_eq!(ends_in_round(20, apart, &[100, 105, 113, 130]), Some(2));
        // At least 4 ms and at most 16 ms.
        assert_eq!(ends_in_round(20, apart, &[10, 14, 15]), Some(2));
        assert_eq!(ends_in_round(20, apart, &[400, 416, 417]), Some(2));
    }
}
