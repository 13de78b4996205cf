//! The round trip of the path without a queue: the least of ten seconds, probed for when none as
//! low has been seen for so long (BBR's RTprop).

use crate::time::Instant;
use core::time::Duration;

/// The time for which a minimum counts.
const WINDOW: Duration = Duration::from_secs(10);
/// The least time for which a probe lasts.
const LEAST_PROBE: Duration = Duration::from_millis(50);

/// The minimum, and a probe for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct MinRoundTrip {
    least: Option<Duration>,
    /// When a sample was last as low as that.
    seen: Instant,
    probe: Option<Probe>,
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

    /// Whether a probe is under way.
    pub(super) fn is_probing(&self) -> bool {
        self.probe.is_some()
    }

    /// Takes a sample. One that is a sixteenth above the minimum confirms it: on a path without a
    /// standing queue no probe is needed. One of a frame that was alone in flight replaces it: it
    /// has no queue of this end in it, so that the path has become longer if it is above.
    pub(super) fn sample(&mut self, now: Instant, sample: Duration, was_alone: bool) {
        let Some(least) = self.least.filter(|_| !was_alone) else {
            (self.least, self.seen) = (Some(sample), now);
            return;
        };
        if self.probe.is_none() && now.since(self.seen) > WINDOW {
            (self.least, self.seen, self.probe) = (Some(sample), now, Some(Probe::Draining));
            return;
        }
        if sample < least {
            self.least = Some(sample);
        }
        if sample <= least + least / 16 {
            self.seen = now;
        }
    }

    /// Goes on with a probe, during which no more than `allowed` of the bytes in flight should be;
    /// true if it has ended with this call.
    pub(super) fn probe(&mut self, now: Instant, in_flight: u64, allowed: u64) -> bool {
        match self.probe {
            Some(Probe::Draining) if in_flight <= allowed => {
                let lasts = self.least.unwrap_or_default().max(LEAST_PROBE);
                self.probe = Some(Probe::Until(now + lasts));
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
        least.sample(at(0), ms(40), false);
        (1..100).for_each(|tenth| least.sample(at(tenth * 100), ms(60), false));
        assert_eq!((least.get(), least.is_probing()), (Some(ms(40)), false));
        least.sample(at(10_100), ms(60), false);
        assert_eq!((least.get(), least.is_probing()), (Some(ms(60)), true));
        assert!(!least.probe(at(10_110), 5_000, 1_000));
        assert!(!least.probe(at(10_120), 1_000, 1_000));
        least.sample(at(10_150), ms(45), false);
        assert!(!least.probe(at(10_160), 900, 1_000));
        assert!(least.probe(at(10_180), 900, 1_000));
        assert_eq!((least.get(), least.is_probing()), (Some(ms(45)), false));
    }

    #[test]
    fn what_is_seen_again_is_not_probed_for() {
        let mut least = MinRoundTrip::default();
        least.sample(at(0), ms(40), false);
        (1..500).for_each(|tenth| {
            least.sample(at(tenth * 100), ms(if tenth % 50 == 0 { 42 } else { 60 }), false);
        });
        assert_eq!((least.get(), least.is_probing()), (Some(ms(40)), false));
    }

    #[test]
    fn a_frame_alone_in_flight_shows_that_the_path_has_become_longer() {
        let mut least = MinRoundTrip::default();
        least.sample(at(0), ms(40), true);
        least.sample(at(1_000), ms(60), false);
        assert_eq!(least.get(), Some(ms(40)), "a queue of this end may be in it");
        least.sample(at(2_000), ms(60), true);
        assert_eq!((least.get(), least.is_probing()), (Some(ms(60)), false));
    }
}
