//! How much of a standing queue can go without the hop falling idle [C-34].
//!
//! A sender that is shown a loss halves its window at most. Where several flows share the queue,
//! more than that often stands in it: then the hop stays busy, the loss costs nothing, and a queue
//! that drops is told to all that fill it. A single flow with that much in the queue has a queue
//! as long as its round trip, for which C-22 has a rule.

use crate::extreme::Extreme;
use crate::time::Instant;
use core::time::Duration;

/// The bytes of a packet.
const PACKET: f64 = 1_500.0;
/// The arrivals from which a pace is taken, and the window of the least pace.
const PACE_PACKETS: u32 = 32;
const PACE_WINDOW: Duration = Duration::from_secs(60);
/// The least part of their largest rate that the flows of the host have while nobody else fills the
/// queue.
const LEAST_RATE: f64 = 0.8;
/// The largest part of all windows that a flow has which shares the hop with others.
const MOST_SHARE: f64 = 0.25;
/// The losses of a window up to which a recovery takes about a round trip: what is lost then is
/// shown as well, and more losses cost the sender more than half its window.
const MOST_LOSSES: f64 = 1.5;

/// The delay that a queue keeps, and what the senders that were shown a loss will take from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surplus {
    /// The sender's round trip, and the least local round trip of the last third of it.
    round_trip: Duration,
    lowest: Extreme,
    /// The arrivals since this time.
    period: (Instant, u32),
    /// The time from one arrival to the next, on average of the last period, and its least.
    pace: Option<(Duration, Extreme)>,
    /// What senders will take, and until when all of them have.
    taken: Duration,
    taken_until: Instant,
}

/// A flow that has lost a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// The window of the sender in bytes, 0 if it is not known, and the sender's round trip.
    pub(super) window: u64,
    pub(super) round_trip: Duration,
}

impl Surplus {
    pub(super) fn new(now: Instant, sample: Duration) -> Self {
        Self {
            round_trip: Duration::ZERO,
            lowest: Extreme::least(Duration::ZERO, now, sample),
            period: (now, 0),
            pace: None,
            taken: Duration::ZERO,
            taken_until: now,
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
        let first = (pace, Extreme::least(PACE_WINDOW, now, pace));
        let (last, least) = self.pace.get_or_insert(first);
        *last = pace;
        least.sample(now, pace);
    }

    /// Whether the queue outlasts that this sender halves its window too. The round trip without a
    /// queue is `least`; the air loses the share `loss` of all packets.
    pub(super) fn outlasts(&self, now: Instant, share: Share, least: Duration, loss: f32) -> bool {
        let Some((pace, least_pace)) = self.pace else { return false };
        // Other flows, whose host has no losses, would take what these ones give.
        let is_alone = pace.mul_f64(LEAST_RATE) <= least_pace.get();
        let packets = share.window as f64 / PACKET;
        let is_shared = pace.mul_f64(packets) <= share.round_trip.mul_f64(MOST_SHARE);
        let queued = self.lowest.get().saturating_sub(least);
        let taken = self.taken_at(now);
        let is_enough = self.half(share).is_some_and(|half| queued >= taken + half);
        is_alone && is_shared && is_enough && packets * f64::from(loss) <= MOST_LOSSES
    }

    /// The sender of a flow that has lost a packet sets the interval.
    pub(super) fn watch(&mut self, now: Instant, share: Share) {
        self.round_trip = share.round_trip;
        self.lowest = self.lowest.over(share.round_trip / 3);
        self.taken = self.taken_at(now);
    }

    /// A loss is shown to a sender, which halves its window within its round trip.
    pub(super) fn take(&mut self, now: Instant, share: Share) {
        self.taken += self.half(share).unwrap_or_default();
        self.taken_until = now + share.round_trip;
    }

    /// What senders will still take.
    fn taken_at(&self, now: Instant) -> Duration {
        if now < self.taken_until { self.taken } else { Duration::ZERO }
    }

    /// Half of a window, as the time that it stands in the queue.
    fn half(&self, share: Share) -> Option<Duration> {
        let (_, least) = self.pace.filter(|_| share.window > 0)?;
        Some(least.get().mul_f64(share.window as f64 / PACKET / 2.0))
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
            hop.outlasts(1, 0.0);
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

        fn share(&self, packets: u64) -> Share {
            let window = packets * PACKET as u64;
            Share { window, round_trip: WIRED + LEAST + self.queued }
        }

        fn outlasts(&mut self, packets: u64, loss: f32) -> bool {
            let share = self.share(packets);
            let outlasts = self.surplus.outlasts(self.now, share, LEAST, loss);
            self.surplus.watch(self.now, share);
            outlasts
        }
    }

    #[test]
    fn a_queue_outlasts_half_the_window_of_one_of_many_flows() {
        let mut hop = Hop::with(8);
        assert!(hop.outlasts(15, 0.0));
        assert!(!hop.outlasts(17, 0.0), "8.5 of 8 packets");
        assert!(!hop.outlasts(0, 0.0), "the window is not known");
    }

    #[test]
    fn what_senders_will_take_is_counted_until_they_have() {
        let mut hop = Hop::with(20);
        let share = hop.share(14);
        let taken = (0..5).filter(|_| {
            let outlasts = hop.outlasts(14, 0.0);
            if outlasts {
                hop.surplus.take(hop.now, share);
            }
            outlasts
        });
        assert_eq!(taken.count(), 2, "14 of 20 packets");
        hop.run(share.round_trip.as_millis() as u64);
        assert!(hop.outlasts(14, 0.0));
    }

    #[test]
    fn a_sample_without_a_queue_shows_that_none_stands() {
        let mut hop = Hop::with(20);
        hop.surplus.sample(hop.now, LEAST);
        assert!(!hop.outlasts(10, 0.0));
        hop.run(100);
        assert!(hop.outlasts(10, 0.0));
    }

    #[test]
    fn a_flow_with_a_large_part_of_the_hop_is_not_one_of_many() {
        let mut hop = Hop::with(60);
        // 144 packets are under way, and 60 of them wait.
        assert!(hop.outlasts(30, 0.0));
        assert!(!hop.outlasts(50, 0.0));
    }

    #[test]
    fn a_queue_that_others_fill_as_well_is_not_left_to_them() {
        let mut hop = Hop::with(20);
        assert!(hop.outlasts(10, 0.0));
        hop.run_at(3, 300);
        assert!(!hop.outlasts(10, 0.0), "two thirds of the arrivals are those of others");
        hop.run(300);
        assert!(hop.outlasts(10, 0.0));
    }

    #[test]
    fn a_window_that_loses_many_packets_would_lose_more_than_half() {
        let mut hop = Hop::with(20);
        assert!(hop.outlasts(20, 0.07));
        assert!(!hop.outlasts(20, 0.08));
    }
}
