//! The least or largest duration of a window of time.

use crate::time::Instant;
use core::time::Duration;

/// The window of a quantity that a path keeps, such as its least round trip and its rate: a queue
/// of another sender may stand for long.
pub const PATH_WINDOW: Duration = Duration::from_secs(60);

/// The least or largest sample of the last one to two windows, without a list of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extreme {
    is_largest: bool,
    window: Duration,
    /// That of the present window and of the one before, which may end at different samples.
    value: Duration,
    previous: Duration,
    since: Instant,
}

impl Extreme {
    /// The least sample of one to two times `window`, of which `first` is the first.
    pub fn least(window: Duration, now: Instant, first: Duration) -> Self {
        Self { is_largest: false, window, value: first, previous: first, since: now }
    }

    /// The largest one.
    pub fn largest(window: Duration, now: Instant, first: Duration) -> Self {
        Self { is_largest: true, ..Self::least(window, now, first) }
    }

    /// The same over windows of another length.
    pub fn over(self, window: Duration) -> Self {
        Self { window, ..self }
    }

    /// Takes a sample; returns what is the extreme now.
    pub fn sample(&mut self, now: Instant, sample: Duration) -> Duration {
        if now.since(self.since) >= self.window {
            *self = Self { value: sample, previous: self.value, since: now, ..*self };
        } else {
            self.value = self.pick(self.value, sample);
        }
        self.get()
    }

    /// Whatever gives the samples gives more from now on, by this.
    pub fn rise(&mut self, by: Duration) {
        self.value = self.value.saturating_add(by);
        self.previous = self.previous.saturating_add(by);
    }

    /// The extreme.
    pub fn get(&self) -> Duration {
        self.pick(self.value, self.previous)
    }

    fn pick(&self, one: Duration, other: Duration) -> Duration {
        if self.is_largest { one.max(other) } else { one.min(other) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extreme_is_forgotten_after_one_to_two_windows() {
        let (at, ms) = (Instant::from_millis, Duration::from_millis);
        let mut least = Extreme::least(ms(100), at(0), ms(9));
        let mut largest = Extreme::largest(ms(100), at(0), ms(9));
        for (millis, sample, expected) in
            [(10, 5, (5, 9)), (100, 7, (5, 9)), (199, 8, (5, 9)), (200, 6, (6, 8))]
        {
            let found =
                (least.sample(at(millis), ms(sample)), largest.sample(at(millis), ms(sample)));
            assert_eq!(found, (ms(expected.0), ms(expected.1)), "{millis}");
        }
    }
}
