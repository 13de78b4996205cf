//! Variation of the propagation delay: steps, as when the path goes over another satellite, and
//! jitter, by which frames overtake each other.

use crate::random::{Purpose, Stream};
use crate::time::Instant;
use core::time::Duration;

/// The least time from one step to the next; shorter ones act as this.
const LEAST_EVERY: Duration = Duration::from_millis(1);

/// What is added to the propagation delay of the frames of one way.
pub trait DelayProcess {
    /// What is added to the delay of a frame whose first bit leaves at `start` and whose last one
    /// at `end`. Neither ever goes backwards.
    fn draw(&mut self, start: Instant, end: Instant) -> Duration;
}

/// What is added to the propagation delay of each frame, as plain data. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayVariation {
    /// From one step to the next; 0 for no steps.
    pub every: Duration,
    /// From one step to the next the same time is added, uniformly distributed from 0 to this. Both
    /// ways of a link have the same steps, since the path has changed.
    pub step: Duration,
    /// To each frame a time of its own is added, uniformly distributed from 0 to this.
    pub jitter: Duration,
}

impl DelayVariation {
    /// The delays of one way of a link, with the random streams of `link` under `seed`.
    pub fn process(&self, seed: u64, link: u32, direction: u8) -> VariableDelay {
        VariableDelay {
            variation: *self,
            steps: Stream::new(seed, link, 0, Purpose::DelayStep),
            jitter: Stream::new(seed, link, direction, Purpose::Jitter),
            next_step: Instant::ZERO,
            step: Duration::ZERO,
        }
    }
}

/// The additional delay of each frame of one way.
#[derive(Clone, Debug)]
pub struct VariableDelay {
    variation: DelayVariation,
    steps: Stream,
    jitter: Stream,
    next_step: Instant,
    /// What the last step adds.
    step: Duration,
}

impl DelayProcess for VariableDelay {
    fn draw(&mut self, now: Instant, _end: Instant) -> Duration {
        let DelayVariation { every, step, jitter } = self.variation;
        while !every.is_zero() && self.next_step <= now {
            self.step = step.mul_f64(self.steps.uniform());
            self.next_step += every.max(LEAST_EVERY);
        }
        self.step + jitter.mul_f64(self.jitter.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: DelayVariation = DelayVariation {
        every: Duration::from_secs(15),
        step: Duration::from_millis(30),
        jitter: Duration::ZERO,
    };

    fn draw(delay: &mut VariableDelay, millis: u64) -> Duration {
        let start = Instant::from_millis(millis);
        delay.draw(start, start)
    }

    #[test]
    fn both_ways_step_at_once_and_by_the_same_time() {
        let mut ways = [0, 1].map(|way| STEPS.process(7, 3, way));
        let mut drawn = |millis| ways.each_mut().map(|way| draw(way, millis));
        let [first, back] = drawn(0);
        assert_eq!(first, back);
        assert_eq!(drawn(14_999), [first; 2]);
        let [second, back] = drawn(15_000);
        assert_eq!(second, back);
        assert_ne!(first, second);
        assert!(first.max(second) <= STEPS.step);
        // A way on which nothing was sent meanwhile has missed no step.
        let late = draw(&mut STEPS.process(7, 3, 0), 15_000);
        assert_eq!(late, second);
    }

    #[test]
    fn jitter_is_of_each_frame_and_within_its_limit() {
        let jitter = Duration::from_millis(4);
        let variation = DelayVariation { jitter, ..DelayVariation::default() };
        let mut delay = variation.process(1, 0, 0);
        let drawn: [Duration; 100] = core::array::from_fn(|_| draw(&mut delay, 0));
        let mean = drawn.iter().sum::<Duration>() / 100;
        assert!(drawn.iter().all(|drawn| *drawn <= jitter));
        assert!((jitter / 2).abs_diff(mean) < jitter / 10, "{mean:?}");
        let none = draw(&mut DelayVariation::default().process(1, 0, 0), 1);
        assert_eq!(none, Duration::ZERO);
    }
}
