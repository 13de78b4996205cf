//! The queue beyond the agent, as its round trips and losses show it: whether a loss is congestion
//! [C-22].
//!
//! A loss counts as congestion only while a queue stands: for a third of the sender's round trip no
//! sample came near the least round trip (the sojourn rule of RFC 8289, with the interval of the
//! sender). Then one of four findings is enough: the path loses nothing while its queue is short;
//! more is lost than while the queue is short; the delay is at a peak that it does not exceed any
//! more; or the queue is so long that the sender, which halves its window, does not empty it.

use crate::time::Instant;
use core::time::Duration;

/// The queueing delay that a queue without congestion does not keep (RFC 8289 §4.2).
const TARGET: Duration = Duration::from_millis(5);
/// The window of the largest round trip and of the least spacing.
const PEAK_WINDOW: Duration = Duration::from_secs(15);
/// The window of the least round trip: a queue of another sender may stand for long.
const LEAST_WINDOW: Duration = Duration::from_secs(60);
/// The round trip of the wired side before its measurement.
const UNKNOWN_ROUND_TRIP: Duration = Duration::from_millis(100);
/// The packets over a short queue without a loss after which the path counts as clean.
const CLEAN_PACKETS: f32 = 200.0;
/// The packets after which older ones count half.
const MEMORY_PACKETS: f32 = 4_000.0;
/// The deviations from the expected number of losses that chance explains, and the losses that may
/// come in addition, for small numbers.
const CHANCE: f32 = 3.5;
const FEW: f32 = 4.0;
/// The losses among the last 32 packets that make a train.
const TRAIN: u32 = 10;
/// The packets from which a spacing is taken.
const SPACING_PACKETS: u32 = 8;

/// The local round trips of one flow, and what was lost at which of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LocalQueue {
    history: Option<History>,
}

#[derive(Clone, Copy, Debug)]
struct History {
    least: Extreme,
    peak: Extreme,
    /// When the peak last rose.
    raised_at: Instant,
    latest: Duration,
    /// Since when every sample exceeds the least round trip by the target.
    standing_since: Option<Instant>,
    /// When a loss was last taken for congestion.
    signalled_at: Option<Instant>,
    /// The outcomes of the last packets, the newest in the lowest bit: 1 for each loss.
    outcomes: u32,
    /// The arrivals of the present round trip, and its begin.
    round: (Instant, u32),
    /// The least time from one arrival to the next, on average of a round trip.
    spacing: Option<Extreme>,
    short: Tally,
    standing: Tally,
}

/// An extreme of the last one to two windows.
#[derive(Clone, Copy, Debug)]
struct Extreme {
    value: Duration,
    previous: Duration,
    since: Instant,
}

/// Packets and losses over a short or a standing queue; old ones count less.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    packets: f32,
    lost: f32,
}

impl LocalQueue {
    /// Takes an unambiguous round-trip sample. The receiver may have delayed the ACK unless the
    /// sample `is_prompt`.
    pub(super) fn sample(&mut self, now: Instant, sample: Duration, is_prompt: bool) {
        let history = self.history.get_or_insert_with(|| History::new(now, sample));
        history.least.sample(now, sample, LEAST_WINDOW, Duration::min);
        if is_prompt {
            history.latest = sample;
            if sample > history.peak.get(Duration::max) {
                history.raised_at = now;
            }
            history.peak.sample(now, sample, PEAK_WINDOW, Duration::max);
        }
        if sample <= history.least() + TARGET {
            history.standing_since = None;
        } else if is_prompt {
            history.standing_since.get_or_insert(now);
        }
    }

    /// Counts segments that arrived.
    pub(super) fn arrived(&mut self, now: Instant, segments: u64) {
        let Some(history) = &mut self.history else { return };
        let segments = u32::try_from(segments).unwrap_or(1);
        history.count_round(now, segments);
        history.outcomes = history.outcomes.unbounded_shl(segments);
        history.tally().add(segments as f32, 0.0);
    }

    /// Counts a loss that is found now, of a packet that departed at `sent_at`; returns whether the
    /// loss counts as congestion. `wired` is the round trip of the wired side.
    pub(super) fn lost(&mut self, now: Instant, sent_at: Instant, wired: Option<Duration>) -> bool {
        let Some(history) = &mut self.history else { return false };
        history.outcomes = history.outcomes << 1 | 1;
        history.tally().add(1.0, 1.0);
        let Some(standing_since) = history.standing_since else { return false };
        let wired = wired.unwrap_or(UNKNOWN_ROUND_TRIP);
        let mut since = standing_since;
        if let Some(at) = history.signalled_at {
            if sent_at <= at + wired {
                // The sender counts this loss and the last one as one event.
                return true;
            }
            // The sender has answered by then, and the queue shows it.
            since = since.max(at + wired + history.latest);
        }
        let round_trip = wired + history.least();
        let has_stood = now >= since + round_trip / 3;
        // A queue that has grown stands for as long as it takes to empty. A late ACK in a fade, in
        // which those before it were lost, is one sample.
        let has_grown = now >= standing_since + (history.latest - history.least());
        let is_congestion =
            (has_stood || has_grown && history.is_train()) && history.is_full(now, wired);
        if is_congestion {
            history.signalled_at = Some(now);
            history.standing = Tally::default();
        }
        is_congestion
    }
}

impl History {
    fn new(now: Instant, sample: Duration) -> Self {
        let extreme = Extreme { value: sample, previous: sample, since: now };
        Self {
            least: extreme,
            peak: extreme,
            raised_at: now,
            latest: sample,
            standing_since: None,
            signalled_at: None,
            outcomes: 0,
            round: (now, 0),
            spacing: None,
            short: Tally::default(),
            standing: Tally::default(),
        }
    }

    fn least(&self) -> Duration {
        self.least.get(Duration::min)
    }

    /// Whether the standing queue loses packets.
    fn is_full(&self, now: Instant, wired: Duration) -> bool {
        let is_clean = self.short.packets >= CLEAN_PACKETS && self.short.lost < 0.5;
        // The peak is that of a full queue if the delay has stopped to rise.
        let is_at_peak = self.is_near_peak()
            && (now.since(self.raised_at) >= wired + self.latest || self.is_train());
        let is_long = self.latest - self.least() >= wired + self.least();
        is_clean || is_at_peak || is_long || self.has_excess()
    }

    /// Whether more packets are lost while the queue stands than chance explains.
    fn has_excess(&self) -> bool {
        let rate = (self.short.lost + 0.5) / (self.short.packets + 1.0);
        let expected = rate.min(1.0) * self.standing.packets;
        let variance = expected * (1.0 + self.standing.packets / (self.short.packets + 1.0));
        self.standing.lost > expected + CHANCE * libm::sqrtf(variance) + FEW
    }

    /// Whether the delay is within a tenth of its peak, or two packets, which a short queue has as
    /// soon as it drops one.
    fn is_near_peak(&self) -> bool {
        let range = self.peak.get(Duration::max) - self.least();
        let spacing = self.spacing.map_or(Duration::ZERO, |spacing| spacing.get(Duration::min));
        let threshold = range.mul_f64(0.9).saturating_sub(spacing * 2);
        self.latest >= self.least() + TARGET.max(threshold)
    }

    fn is_train(&self) -> bool {
        self.outcomes.count_ones() >= TRAIN
    }

    fn tally(&mut self) -> &mut Tally {
        if self.standing_since.is_some() { &mut self.standing } else { &mut self.short }
    }

    fn count_round(&mut self, now: Instant, segments: u32) {
        let (begin, arrived) = self.round;
        let taken = now.since(begin);
        if taken < self.latest {
            self.round.1 = arrived.saturating_add(segments);
            return;
        }
        self.round = (now, segments);
        if arrived >= SPACING_PACKETS {
            let spacing = taken / arrived;
            let first = Extreme { value: spacing, previous: spacing, since: now };
            let least = self.spacing.get_or_insert(first);
            least.sample(now, spacing, PEAK_WINDOW, Duration::min);
        }
    }
}

impl Extreme {
    fn get(&self, pick: fn(Duration, Duration) -> Duration) -> Duration {
        pick(self.value, self.previous)
    }

    fn sample(
        &mut self,
        now: Instant,
        sample: Duration,
        window: Duration,
        pick: fn(Duration, Duration) -> Duration,
    ) {
        if now.since(self.since) >= window {
            *self = Self { value: sample, previous: self.value, since: now };
        } else {
            self.value = pick(self.value, sample);
        }
    }
}

impl Tally {
    fn add(&mut self, packets: f32, lost: f32) {
        self.packets += packets;
        self.lost += lost;
        if self.packets > MEMORY_PACKETS {
            self.packets /= 2.0;
            self.lost /= 2.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRED: Option<Duration> = Some(Duration::from_millis(80));

    /// A queue over a path of 4 ms, with a sample and an arrival for each of `packets`; one of each
    /// `interval` is lost. Returns the number of losses, and of those that count as congestion.
    fn feed(
        queue: &mut LocalQueue,
        millis: &mut u64,
        delay: impl Fn(u64) -> u64,
        packets: u64,
        interval: u64,
    ) -> (u64, u64) {
        let (mut losses, mut congested) = (0, 0);
        for number in 0..packets {
            *millis += 1;
            let now = Instant::from_millis(*millis);
            let round_trip = Duration::from_millis(4 + delay(number));
            queue.sample(now, round_trip, true);
            if number % interval == interval - 1 {
                losses += 1;
                let sent_at = Instant::from_millis(millis.saturating_sub(4 + delay(number)));
                congested += u64::from(queue.lost(now, sent_at, WIRED));
            } else {
                queue.arrived(now, 1);
            }
        }
        (losses, congested)
    }

    #[test]
    fn losses_over_a_short_queue_are_the_airs() {
        let (mut queue, mut millis) = (LocalQueue::default(), 1_000);
        assert_eq!(feed(&mut queue, &mut millis, |number| number % 5, 10_000, 10), (1_000, 0));
    }

    #[test]
    fn a_queue_that_just_began_to_stand_loses_by_chance() {
        let (mut queue, mut millis) = (LocalQueue::default(), 1_000);
        feed(&mut queue, &mut millis, |_| 0, 1_000, 20);
        assert_eq!(feed(&mut queue, &mut millis, |_| 20, 20, 20), (1, 0));
    }

    #[test]
    fn on_a_clean_path_a_loss_over_a_standing_queue_is_congestion() {
        let (mut queue, mut millis) = (LocalQueue::default(), 1_000);
        feed(&mut queue, &mut millis, |_| 0, 300, u64::MAX);
        assert_eq!(feed(&mut queue, &mut millis, |number| number / 10, 400, 400), (1, 1));
    }

    #[test]
    fn an_excess_of_losses_over_a_standing_queue_is_congestion() {
        let grow = |number: u64| 6 + number / 50;
        for (interval, is_congestion) in [(20, false), (5, true)] {
            let (mut queue, mut millis) = (LocalQueue::default(), 1_000);
            feed(&mut queue, &mut millis, |_| 0, 2_000, 20);
            let (_, congested) = feed(&mut queue, &mut millis, grow, 1_000, interval);
            assert_eq!(congested > 0, is_congestion, "one of {interval} lost");
        }
    }

    #[test]
    fn a_late_ack_in_a_fade_is_no_queue() {
        let (mut queue, mut millis) = (LocalQueue::default(), 1_000);
        feed(&mut queue, &mut millis, |_| 0, 2_000, 100);
        let now = Instant::from_millis(millis + 8);
        queue.sample(now, Duration::from_millis(12), true);
        let sent_at = Instant::from_millis(millis);
        assert_eq!((0..20).filter(|_| queue.lost(now, sent_at, WIRED)).count(), 0);
        let later = Instant::from_millis(millis + 16);
        assert!(queue.lost(later, sent_at, WIRED), "a train at a queue that has stood");
    }

    #[test]
    fn the_peak_of_a_full_queue_is_congestion_once_it_does_not_rise() {
        let (mut queue, mut millis) = (LocalQueue::default(), 1_000);
        feed(&mut queue, &mut millis, |_| 0, 2_000, 100);
        let growing = feed(&mut queue, &mut millis, |number| 1 + number / 10, 400, 100);
        assert_eq!(growing.1, 0, "the queue still grows");
        let full = feed(&mut queue, &mut millis, |_| 40, 400, 100);
        assert!(full.1 > 0, "the queue is full");
    }

    #[test]
    fn a_queue_longer_than_the_round_trip_is_congestion() {
        let (mut queue, mut millis) = (LocalQueue::default(), 1_000);
        feed(&mut queue, &mut millis, |_| 0, 2_000, 100);
        let (losses, congested) = feed(&mut queue, &mut millis, |number| 85 + number, 200, 100);
        assert_eq!((losses, congested), (2, 2));
    }
}
