//! The round trip of the path without a queue: the least of ten seconds, probed for when none as
//! low has been seen for so long (BBR's RTprop).
//!
//! Where each frame takes a time of its own, the path's round trip is the mean and not the least: a
//! window of the least would leave the path idle, and all that is longer would look like a queue. A
//! queue lengthens all round trips, so that the least mean of a few is the path without one.

use crate::time::Instant;
use core::time::Duration;

/// The time for which a minimum counts.
pub(super) const WINDOW: Duration = Duration::from_secs(10);
/// The least time for which a probe lasts.
const LEAST_PROBE: Duration = Duration::from_millis(50);
/// Samples of which the mean is taken, as HyStart looks at in a round (RFC 9406 §4.2).
const SAMPLES: usize = 8;

/// The minimum, and a probe for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct MinRoundTrip {
    least: Option<Duration>,
    /// When the mean was last as low as that.
    seen: Instant,
    probe: Option<Probe>,
    /// The last samples, the newest first, since a probe began or nothing was sent for long.
    recent: [Duration; SAMPLES],
    known: usize,
    sampled: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Probe {
    /// More is in flight than the probe allows.
    Draining,
    /// The queue is empty, as far as it is ours, until then.
    Until(Instant),
}

impl MinRoundTrip {
    /// The minimum.
    pub(super) fn get(&self) -> Option<Duration> {
        self.least
    }

    /// The mean of the last samples.
    pub(super) fn mean(&self) -> Option<Duration> {
        let count = u32::try_from(self.known).ok().filter(|count| *count > 0)?;
        Some(self.recent[..self.known].iter().sum::<Duration>() / count)
    }

    /// Whether a probe is under way.
    pub(super) fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    /// Takes a sample of a frame that has overtaken no other. A mean that is a sixteenth above the
    /// minimum confirms it: on a path without a standing queue no probe is needed.
    pub(super) fn sample(&mut self, now: Instant, sample: Duration) {
        if now.since(self.sampled) > WINDOW {
            self.known = 0;
        }
        self.sampled = now;
        self.recent.rotate_right(1);
        self.recent[0] = sample;
        self.known = SAMPLES.min(self.known + 1);
        let mean = self.mean().unwrap_or(sample);
        let Some(least) = self.least else {
            (self.least, self.seen) = (Some(sample), now);
            return;
        };
        if self.probe.is_none() && now.since(self.seen) > WINDOW {
            (self.least, self.seen, self.probe) = (Some(mean), now, Some(Probe::Draining));
            return;
        }
        if self.known < SAMPLES && self.probe.is_none() {
            return;
        }
        self.least = Some(least.min(mean));
        if mean <= least + least / 16 {
            self.seen = now;
        }
    }

    /// What counted as a queue elsewhere counts as the path from now on.
    pub(super) fn lengthen(&mut self, longer: Duration) {
        self.least = self.least.map(|least| least + longer);
        self.recent[..self.known].iter_mut().for_each(|sample| *sample += longer);
    }

    /// Goes on with a probe, during which no more than `allowed` of the bytes in flight should be;
    /// true if it has ended with this call.
    pub(super) fn probe(&mut self, now: Instant, in_flight: u64, allowed: u64) -> bool {
        match self.probe {
            Some(Probe::Draining) if in_flight <= allowed => {
                let lasts = self.least.unwrap_or_default().max(LEAST_PROBE);
                self.probe = Some(Probe::Until(now + lasts));
                self.known = 0;
                false
            }
            Some(Probe::Until(end)) if end <= now => {
                (self.probe, self.seen) = (None, now);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_minimum_that_is_not_seen_again_is_probed_for() {
        let mut least = MinRoundTrip::default();
        least.sample(at(0), ms(40));
        (1..100).for_each(|tenth| least.sample(at(tenth * 100), ms(60)));
        assert_eq!((least.get(), least.is_probing()), (Some(ms(40)), false));
        least.sample(at(10_100), ms(60));
        assert_eq!((least.get(), least.is_probing()), (Some(ms(60)), true));
        assert!(!least.probe(at(10_110), 5_000, 1_000));
        assert!(!least.probe(at(10_120), 1_000, 1_000));
        least.sample(at(10_150), ms(45));
        assert!(!least.probe(at(10_160), 900, 1_000));
        assert!(least.probe(at(10_180), 900, 1_000));
        assert_eq!((least.get(), least.is_probing()), (Some(ms(45)), false));
    }

    #[test]
    fn what_is_seen_again_is_not_probed_for() {
        let mut least = MinRoundTrip::default();
        least.sample(at(0), ms(40));
        (1..500).for_each(|tenth| {
            least.sample(at(tenth * 100), ms(if tenth % 50 < 8 { 42 } else { 60 }));
        });
        assert_eq!((least.get(), least.is_probing()), (Some(ms(40)), false));
    }

    #[test]
    fn where_frames_take_times_of_their_own_the_mean_is_the_path() {
        let mut least = MinRoundTrip::default();
        least.sample(at(0), ms(45));
        for sample in 0..1_000 {
            let [time, queue] = [[5, 30, 40, 45][sample % 4], if sample < 800 { 0 } else { 20 }];
            least.sample(at(1_000 + sample as u64), ms(time + queue));
        }
        assert_eq!((least.get(), least.mean()), (Some(ms(30)), Some(ms(50))));
    }
}
