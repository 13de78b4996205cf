//! Whether a standing queue outlasts the answer of a sender [C-34].
//!
//! A sender that is shown a loss halves its window at most. Where more than that stands in the
//! queue the hop stays busy, the loss costs nothing, and a queue that drops is told to all that
//! fill it.

use crate::extreme::{Extreme, PATH_WINDOW};
use crate::time::Instant;
use core::time::Duration;

/// The bytes of a packet.
const PACKET: f64 = 1_500.0;
/// The arrivals from which a pace is taken.
const PACE_PACKETS: u32 = 32;
/// The least part of their largest rate that the flows of the host have while nobody else fills the
/// queue.
const LEAST_RATE: f64 = 0.8;

/// The delay that a queue keeps, and the rate at which it empties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surplus {
    /// The round trip of the last sender that has lost a packet, and the least local round trip in
    /// one to two of them; of all time before the first.
    round_trip: Duration,
    lowest: Extreme,
    /// The arrivals since this time.
    period: (Instant, u32),
    /// The time from one arrival to the next, on average of the last period, and its least.
    pace: Option<(Duration, Extreme)>,
}

impl Surplus {
    pub(super) fn new(now: Instant, sample: Duration) -> Self {
        Self {
            round_trip: Duration::ZERO,
            lowest: Extreme::least(Duration::MAX, now, sample),
            period: (now, 0),
            pace: None,
        }
    }

    /// Takes a local round trip.
    pub(super) fn sample(&mut self, now: Instant, sample: Duration) {
        self.lowest.sample(now, sample);
    }

    /// Takes so many arrivals.
    pub(super) fn arrived(&mut self, now: Instant, segments: u32) {
        let (begin, arrived) = self.period;
        let taken = now.since(begin);
        if arrived < PACE_PACKETS || taken < self.round_trip {
            self.period.1 = arrived.saturating_add(segments);
            return;
        }
        self.period = (now, segments);
        let pace = taken / arrived;
        let first = (pace, Extreme::least(PATH_WINDOW, now, pace));
        let (last, least) = self.pace.get_or_insert(first);
        *last = pace;
        least.sample(now, pace);
    }

    /// The time in which the hop now carries so many packets, if that is known.
    pub(super) fn service_time(&self, packets: u32) -> Option<Duration> {
        self.pace.map(|(pace, _)| pace * packets)
    }

    /// Whether nobody else fills the queue, who would take what these flows give: they have the
    /// most of their largest rate.
    pub(super) fn is_own(&self) -> bool {
        self.pace.is_none_or(|(pace, least)| pace.mul_f64(LEAST_RATE) <= least.get())
    }

    /// Whether the queue outlasts that a sender with this window halves it. The round trip without
    /// a queue is `least`.
    pub(super) fn outlasts(&self, window: u64, least: Duration) -> bool {
        let Some((_, pace)) = self.pace.filter(|_| window > 0) else { return false };
        let half = pace.get().mul_f64(window as f64 / PACKET / 2.0);
        self.is_own() && self.lowest.get().saturating_sub(least) >= half
    }

    /// The sender of a flow that has lost a packet, whose round trip this is, sets the interval.
    pub(super) fn watch(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
        self.lowest = self.lowest.over(round_trip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Duration = Duration::from_millis(4);
    const WIRED: Duration = Duration::from_millis(80);

    /// A hop that carries a packet in a millisecond, whose queue holds so many packets.
    struct Hop {
        surplus: Surplus,
        now: Instant,
        queued: Duration,
    }

    impl Hop {
        fn with(queued: u64) -> Self {
            let mut hop = Self {
                surplus: Surplus::new(Instant::ZERO, LEAST),
                now: Instant::ZERO,
                queued: Duration::from_millis(queued),
            };
            hop.run(200);
            // The first question tells the interval.
            hop.outlasts(1);
            hop.run(200);
            hop
        }

        fn run(&mut self, millis: u64) {
            self.run_at(1, millis);
        }

        /// An arrival each `interval`.
        fn run_at(&mut self, interval: u64, millis: u64) {
            for _ in 0..millis / interval {
                self.now += Duration::from_millis(interval);
                self.surplus.sample(self.now, LEAST + self.queued);
                self.surplus.arrived(self.now, 1);
            }
        }

        fn outlasts(&mut self, packets: u64) -> bool {
            let outlasts = self.surplus.outlasts(packets * PACKET as u64, LEAST);
            self.surplus.watch(WIRED + LEAST + self.queued);
            outlasts
        }
    }

    #[test]
    fn a_queue_outlasts_half_the_window() {
        let mut hop = Hop::with(8);
        assert!(hop.outlasts(15));
        assert!(!hop.outlasts(17), "8.5 of 8 packets");
        assert!(!hop.outlasts(0), "the window is not known");
    }

    #[test]
    fn a_sample_without_a_queue_shows_that_none_stands() {
        let mut hop = Hop::with(20);
        hop.surplus.sample(hop.now, LEAST);
        assert!(!hop.outlasts(10));
        hop.run(100);
        assert!(!hop.outlasts(10), "within a round trip");
        hop.run(150);
        assert!(hop.outlasts(10));
    }

    #[test]
    fn a_queue_that_others_fill_as_well_is_not_left_to_them() {
        let mut hop = Hop::with(20);
        assert!(hop.outlasts(10));
        hop.run_at(3, 300);
        assert!(!hop.outlasts(10), "two thirds of the arrivals are those of others");
        hop.run(300);
        assert!(hop.outlasts(10));
    }
}
