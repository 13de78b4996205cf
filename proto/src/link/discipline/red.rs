//! RED (Floyd and Jacobson 1993), with the gentle slope that Floyd added in 2000: drops at random,
//! the more often the longer the queue is on average.

use super::queue::{Discipline, Drops, Packets, Waiting};
use crate::random::Stream;
use crate::time::Instant;
use core::time::Duration;

/// The weight of a packet in the average (1993 §4: 0.002).
const WEIGHT: f64 = 0.002;
/// The share dropped at the upper threshold (Floyd 1997: 0.1).
const MAX_SHARE: f64 = 0.1;

/// One queue, with a limit in packets. The thresholds are a sixth and a half of the limit, so that
/// the gentle slope ends at the limit.
pub(super) struct Red {
    limit: usize,
    packets: Packets,
    average: Average,
    /// Packets since the last one that was dropped or marked; `None` below the lower threshold.
    count: Option<u32>,
    random: Stream,
}

impl Red {
    /// `typical` is the time that a full packet takes.
    pub(super) fn new(limit: usize, typical: Duration, random: Stream) -> Self {
        let average = Average::new(typical);
        Self { limit, packets: Packets::default(), average, count: None, random }
    }

    /// Whether the packet that comes now is to be dropped or marked.
    fn hits(&mut self) -> bool {
        let share = self.share();
        if share <= 0.0 {
            self.count = None;
            return false;
        }
        let Some(count) = self.count else {
            self.count = Some(0);
            return false;
        };
        // So that the gaps between drops are uniform (1993 §7).
        let even = share / (1.0 - f64::from(count) * share).max(share);
        let hit = self.random.happens(even);
        self.count = Some(if hit { 0 } else { count.saturating_add(1) });
        hit
    }

    /// The share that is dropped at this average.
    fn share(&self) -> f64 {
        let limit = self.limit as f64;
        let (low, high) = (limit / 6.0, limit / 2.0);
        match self.average.packets {
            average if average < low => 0.0,
            average if average < high => MAX_SHARE * (average - low) / (high - low),
            average => (MAX_SHARE + (1.0 - MAX_SHARE) * (average - high) / high).min(1.0),
        }
    }
}

impl Discipline for Red {
    fn enqueue(&mut self, mut waiting: Waiting, drops: &mut Drops) -> bool {
        self.average.sample(waiting.since, self.packets.len());
        let is_full = self.packets.len() >= self.limit;
        // From twice the upper threshold on, what understands ECN is dropped as well.
        let spared = |waiting: &mut Waiting, share: f64| share < 1.0 && waiting.mark();
        if is_full || (self.hits() && !spared(&mut waiting, self.share())) {
            drops.add(&waiting);
            return false;
        }
        self.packets.push(waiting);
        true
    }

    fn dequeue(&mut self, now: Instant, _: &mut Drops) -> Option<Waiting> {
        let waiting = self.packets.pop();
        if self.packets.len() == 0 {
            self.average.idle_since = now;
        }
        waiting
    }

    fn is_empty(&self) -> bool {
        self.packets.len() == 0
    }
}

/// The average length of a queue, in packets (1993 §4).
struct Average {
    packets: f64,
    /// When the queue became empty, or a later sample of the empty queue.
    idle_since: Instant,
    /// The time that a packet takes: an idle queue counts as one that so many packets found empty.
    typical: f64,
}

impl Average {
    fn new(typical: Duration) -> Self {
        let typical = typical.as_secs_f64().max(1e-9);
        Self { packets: 0.0, idle_since: Instant::ZERO, typical }
    }

    /// A packet comes to a queue of this length.
    fn sample(&mut self, now: Instant, len: usize) {
        if len > 0 {
            self.packets += WEIGHT * (len as f64 - self.packets);
            return;
        }
        let missed = now.since(self.idle_since).as_secs_f64() / self.typical;
        self.packets *= libm::pow(1.0 - WEIGHT, missed);
        self.idle_since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPICAL: Duration = Duration::from_millis(1);

    #[test]
    fn the_average_follows_slowly_and_decays_while_idle() {
        let mut average = Average::new(TYPICAL);
        // 1993 §6: (1 - w)^n of the distance is left after n packets.
        (0..1000).for_each(|_| average.sample(Instant::ZERO, 50));
        let expected = 50.0 * (1.0 - 0.998_f64.powi(1000));
        assert!((average.packets - expected).abs() < 1e-6, "{}", average.packets);
        let before = average.packets;
        average.idle_since = Instant::from_millis(10);
        average.sample(Instant::from_millis(510), 0);
        assert!((average.packets / before - 0.998_f64.powi(500)).abs() < 1e-6);
    }

    #[test]
    fn the_share_has_a_slope_and_a_gentle_slope() {
        let mut red = Red::new(120, TYPICAL, Stream::new(1, 0, 0, crate::random::Purpose::Queue));
        let mut at = |average| {
            red.average.packets = average;
            (red.share() * 1e3).round() / 1e3
        };
        assert_eq!(
            [19.9, 40.0, 60.0, 90.0, 120.0, 500.0].map(&mut at),
            [0.0, 0.05, 0.1, 0.55, 1.0, 1.0]
        );
    }

    #[test]
    fn gaps_between_drops_are_uniform() {
        let random = Stream::new(1, 0, 0, crate::random::Purpose::Queue);
        let mut red = Red::new(120, TYPICAL, random);
        red.average.packets = 40.0;
        red.count = Some(0);
        let (mut gaps, mut gap) = (alloc::vec::Vec::new(), 0);
        for _ in 0..100_000 {
            gap += 1;
            if red.hits() {
                gaps.push(core::mem::take(&mut gap));
            }
        }
        // 1993 §7, method 2: uniform between 1 and 1/p, here 20.
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&20)));
        let mean = f64::from(gaps.iter().sum::<i32>()) / gaps.len() as f64;
        assert!((mean - 10.5).abs() < 0.2, "{mean}");
    }
}
