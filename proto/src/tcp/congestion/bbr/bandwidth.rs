//! Bandwidth, and its largest value of the last ten rounds (`bbr_bw_rtts`).

use alloc::collections::VecDeque;
use core::time::Duration;

/// The precision of a bandwidth (`BW_SCALE`).
const SCALE: u32 = 24;
/// A gain of 1.
pub(super) const UNIT: u64 = 256;

/// Rounds that a sample counts for.
const ROUNDS: u64 = 10;

/// A bandwidth in 2^-24 segments per microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bandwidth(u64);

impl Bandwidth {
    pub(super) fn of(segments: u64, interval: Duration) -> Self {
        let micros = interval.as_micros().max(1);
        Self(((u128::from(segments) << SCALE) / micros) as u64)
    }

    pub(super) fn segments_in(self, time: Duration) -> u64 {
        self.segments_in_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    }

    pub(super) fn segments_in_micros(self, micros: u64) -> u64 {
        ((u128::from(self.0) * u128::from(micros)) >> SCALE) as u64
    }

    /// The segments of a time at a gain, rounded up.
    pub(super) fn segments_at(self, time: Duration, gain: u64) -> u64 {
        let scaled = u128::from(self.0).saturating_mul(time.as_micros());
        (scaled.saturating_mul(gain.into()) / u128::from(UNIT)).div_ceil(1 << SCALE) as u64
    }

    /// A quarter more.
    pub(super) fn and_a_quarter(self) -> Self {
        Self(self.0.saturating_mul(5) / 4)
    }

    /// In bytes per second, at a gain.
    pub(super) fn bytes_per_second(self, mss: u64, gain: u64) -> u64 {
        let scaled = u128::from(self.0) * u128::from(mss) * u128::from(gain) / u128::from(UNIT);
        ((scaled * 1_000_000) >> SCALE) as u64
    }
}

/// Samples that are larger than all later ones, the oldest first: one for each round at most.
#[derive(Clone, Debug, Default)]
pub(super) struct MaxBandwidth {
    samples: VecDeque<(u64, Bandwidth)>,
}

impl MaxBandwidth {
    /// Takes a sample of this round.
    pub(super) fn update(&mut self, round: u64, bandwidth: Bandwidth) {
        while self.samples.back().is_some_and(|(_, other)| *other <= bandwidth) {
            self.samples.pop_back();
        }
        // A smaller one of the same round would expire together with the larger one.
        if self.samples.back().is_none_or(|(other, _)| *other != round) {
            self.samples.push_back((round, bandwidth));
        }
        while self.samples.front().is_some_and(|(first, _)| round.saturating_sub(*first) > ROUNDS) {
            self.samples.pop_front();
        }
    }

    /// The largest; zero before the first.
    pub(super) fn get(&self) -> Bandwidth {
        self.samples.front().map_or(Bandwidth::default(), |(_, bandwidth)| *bandwidth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_forgotten_after_ten_rounds() {
        let mut filter = MaxBandwidth::default();
        assert_eq!(filter.get(), Bandwidth(0));
        filter.update(1, Bandwidth(900));
        for round in 2..=11 {
            filter.update(round, Bandwidth(100 + round));
            assert_eq!(filter.get(), Bandwidth(900), "{round}");
        }
        filter.update(12, Bandwidth(50));
        assert_eq!(filter.get(), Bandwidth(111));
        filter.update(12, Bandwidth(700));
        assert_eq!(filter.get(), Bandwidth(700));
        assert!(filter.samples.len() == 1);
    }
}
