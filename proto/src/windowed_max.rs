//! The largest value of the last rounds.

use alloc::collections::VecDeque;

/// Samples that are larger than all later ones, the oldest first: one for each round at most.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WindowedMax<T> {
    /// Rounds that a sample counts for.
    rounds: u64,
    samples: VecDeque<(u64, T)>,
}

impl<T: Copy + Default + Ord> WindowedMax<T> {
    /// Without a sample.
    pub(crate) fn new(rounds: u64) -> Self {
        Self { rounds, samples: VecDeque::new() }
    }

    /// Takes a sample of this round.
    pub(crate) fn update(&mut self, round: u64, sample: T) {
        while self.samples.back().is_some_and(|(_, other)| *other <= sample) {
            self.samples.pop_back();
        }
        // A smaller one of the same round would expire together with the larger one.
        if self.samples.back().is_none_or(|(other, _)| *other != round) {
            self.samples.push_back((round, sample));
        }
        let expired = |(first, _): &mut (u64, T)| round.saturating_sub(*first) > self.rounds;
        while self.samples.pop_front_if(expired).is_some() {}
    }

    /// The largest; the default before the first.
    pub(crate) fn get(&self) -> T {
        self.samples.front().map_or(T::default(), |(_, sample)| *sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_forgotten_after_its_rounds() {
        let mut filter = WindowedMax::new(10);
        assert_eq!(filter.get(), 0);
        filter.update(1, 900);
        for round in 2..=11 {
            filter.update(round, 100 + round);
            assert_eq!(filter.get(), 900, "{round}");
        }
        filter.update(12, 50);
        assert_eq!(filter.get(), 111);
        filter.update(12, 700);
        assert_eq!(filter.get(), 700);
        assert!(filter.samples.len() == 1);
    }
}
