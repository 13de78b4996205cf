//! Variation of the propagation delay: steps, as when the path goes over another satellite; jitter
//! and detours, by which frames overtake each other; and turns, as where a scheduler serves a
//! station now and then.

use crate::random::{Purpose, Stream};
use crate::time::Instant;
use core::time::Duration;

/// The least time from one step to the next, and from turn to turn; shorter ones act as this.
const LEAST_EVERY: Duration = Duration::from_millis(1);

/// What is added to the propagation delay of the frames of one way.
pub trait DelayProcess {
    /// What is added to the delay of a frame whose first bit leaves at `start` and whose last one
    /// at `end`. Neither ever goes backwards.
    fn draw(&mut self, start: Instant, end: Instant) -> Duration;
}

/// What is added to the propagation delay of each frame, as plain data. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DelayVariation {
    /// From one step to the next; 0 for no steps.
    pub every: Duration,
    /// From one step to the next the same time is added, uniformly distributed from 0 to this. Both
    /// ways of a link have the same steps, since the path has changed.
    pub step: Duration,
    /// To each frame a time of its own is added, uniformly distributed from 0 to this.
    pub jitter: Duration,
    /// Whether frames keep their order all the same: each waits for those before it, and comes no
    /// less than its airtime behind them.
    pub in_order: bool,
    /// The share of frames, each by itself, that take another way, and by how much it is longer: as
    /// where a router shares out packets over two ways.
    pub detour: (f64, Duration),
    /// The least and the longest time from one turn to the next, uniformly distributed; 0 for no
    /// turns. What has crossed the path since the last turn comes in the next one, in order.
    pub turns: [Duration; 2],
}

impl DelayVariation {
    /// The delays of one way of a link, with the random streams of `link` under `seed`.
    pub fn process(&self, seed: u64, link: u32, direction: u8) -> VariableDelay {
        VariableDelay {
            variation: *self,
            steps: Stream::new(seed, link, 0, Purpose::DelayStep),
            jitter: Stream::new(seed, link, direction, Purpose::Jitter),
            detours: Stream::new(seed, link, direction, Purpose::Detour),
            turns: Stream::new(seed, link, direction, Purpose::Turn),
            next_step: Instant::ZERO,
            step: Duration::ZERO,
            last: Instant::ZERO,
            turn: Instant::ZERO,
        }
    }
}

/// The additional delay of each frame of one way.
#[derive(Clone, Debug)]
pub struct VariableDelay {
    variation: DelayVariation,
    steps: Stream,
    jitter: Stream,
    detours: Stream,
    turns: Stream,
    next_step: Instant,
    /// What the last step adds.
    step: Duration,
    /// When the last frame arrives, and the last turn that was drawn, without the propagation
    /// delay.
    last: Instant,
    turn: Instant,
}

impl VariableDelay {
    /// The turn in which what has crossed the path at `crossed` arrives.
    fn turn(&mut self, crossed: Instant) -> Instant {
        let [least, longest] = self.variation.turns;
        while self.turn < crossed {
            let more = longest.saturating_sub(least).mul_f64(self.turns.uniform());
            self.turn += (least + more).max(LEAST_EVERY);
        }
        self.turn
    }
}

impl DelayProcess for VariableDelay {
    fn draw(&mut self, start: Instant, end: Instant) -> Duration {
        let DelayVariation { every, step, jitter, in_order, detour, turns } = self.variation;
        while !every.is_zero() && self.next_step <= start {
            self.step = step.mul_f64(self.steps.uniform());
            self.next_step += every.max(LEAST_EVERY);
        }
        let (share, longer) = detour;
        let takes_detour = share > 0.0 && self.detours.happens(share);
        let mut arrives = end + self.step + jitter.mul_f64(self.jitter.uniform());
        if takes_detour {
            arrives += longer;
        }
        if in_order {
            arrives = arrives.max(self.last + (end - start));
        }
        if !turns[1].is_zero() {
            arrives = self.turn(arrives);
        }
        self.last = arrives;
        arrives - end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const STEPS: DelayVariation = DelayVariation {
        every: Duration::from_secs(15),
        step: Duration::from_millis(30),
        jitter: Duration::ZERO,
        in_order: false,
        detour: (0.0, Duration::ZERO),
        turns: [Duration::ZERO; 2],
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

    /// Arrivals in ms of a frame of 1 ms every 2 ms, the first of which leaves at 0.
    fn arrivals(variation: DelayVariation) -> [f64; 1_000] {
        let mut delay = variation.process(3, 0, 0);
        core::array::from_fn(|frame| {
            let start = Instant::from_millis(2 * frame as u64);
            let end = start + Duration::from_millis(1);
            (end + delay.draw(start, end)).since(Instant::ZERO).as_secs_f64() * 1e3
        })
    }

    #[test]
    fn what_keeps_its_order_comes_an_airtime_behind_the_frame_before_it() {
        let jitter = Duration::from_millis(20);
        let free = arrivals(DelayVariation { jitter, ..DelayVariation::default() });
        let ordered =
            arrivals(DelayVariation { jitter, in_order: true, ..DelayVariation::default() });
        assert!(free.windows(2).any(|pair| pair[1] < pair[0]));
        assert!(ordered.windows(2).all(|pair| pair[1] >= pair[0] + 0.999_999));
        let mut last = 0.0f64;
        for (free, ordered) in free.into_iter().zip(ordered) {
            last = free.max(last + 1.0);
            assert!((last - ordered).abs() < 1e-3, "{last} {ordered}");
        }
    }

    #[test]
    fn a_share_of_frames_takes_the_longer_way() {
        let detour = (0.25, Duration::from_millis(30));
        let arrived = arrivals(DelayVariation { detour, ..DelayVariation::default() });
        let delays = arrived.into_iter().zip(0u32..).map(|(at, frame)| at - f64::from(2 * frame));
        let longer = delays.clone().filter(|delay| (delay - 31.0).abs() < 1e-6).count();
        let short = delays.filter(|delay| (delay - 1.0).abs() < 1e-6).count();
        assert_eq!(longer + short, 1_000);
        assert!((200..300).contains(&longer), "{longer}");
    }

    #[test]
    fn what_crosses_between_two_turns_arrives_in_the_second_one() {
        let turns = [10, 30].map(Duration::from_millis);
        let arrived = arrivals(DelayVariation { turns, ..DelayVariation::default() });
        let mut seen: Vec<f64> = Vec::new();
        for (frame, at) in arrived.into_iter().enumerate() {
            let crossed = 2.0 * frame as f64 + 1.0;
            assert!((crossed..crossed + 30.0).contains(&at), "{crossed} {at}");
            if seen.last() != Some(&at) {
                assert!(seen.last().is_none_or(|last| *last < crossed), "it would have gone then");
                seen.push(at);
            }
        }
        assert!(seen.windows(2).all(|pair| (9.99..30.01).contains(&(pair[1] - pair[0]))));
    }
}
