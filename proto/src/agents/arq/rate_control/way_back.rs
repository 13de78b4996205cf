//! The queue of the way back. A round trip includes it, and an end that took it for a queue of its
//! own would slow down for what others send to it: for the ACKs of its own data, where the way back
//! is narrow.
//!
//! A link ACK tells the clock of the other end at its departure. The time that it took is known but
//! for the difference of both clocks, so that the least one of the last ten to twenty seconds is
//! the way back without a queue, as in LEDBAT (RFC 6817 §3.4.2).

use super::min_round_trip::WINDOW;
use crate::agents::arq::fields::{CLOCK_BITS, CLOCK_UNIT, clock_field};
use crate::time::Instant;
use core::time::Duration;

/// The longest queue that is told from none: half of what the clock tells apart.
const LONGEST: i64 = 1 << (CLOCK_BITS - 1);

/// Times are units of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WayBack {
    /// The last time, as the clock tells it, and counted on from the first one.
    told: u16,
    time: i64,
    /// The least since `since`, and of the ten seconds before.
    least: Option<[i64; 2]>,
    since: Instant,
}

impl WayBack {
    /// A link ACK has arrived that left at this time of the other end's clock. How much longer the
    /// way is taken to be without a queue than it was before.
    pub(super) fn sample(&mut self, now: Instant, clock: u16) -> Duration {
        let told = clock_field(now).wrapping_sub(clock);
        // The clock turns over: the nearest time that ends so.
        let step = (told.wrapping_sub(self.told) << (16 - CLOCK_BITS)) as i16;
        (self.told, self.time) = (told, self.time + i64::from(step >> (16 - CLOCK_BITS)));
        let known = self.least.unwrap_or([self.time; 2]);
        let mut least = [known[0].min(self.time), known[1]];
        if now.since(self.since) > WINDOW {
            (least, self.since) = ([self.time, least[0]], now);
        }
        self.least = Some(least);
        let least_of = |times: [i64; 2]| times[0].min(times[1]);
        CLOCK_UNIT * (least_of(least) - least_of(known)).clamp(0, LONGEST) as u32
    }

    /// How long the last link ACK waited on its way: less by what the units of two clocks may hide.
    pub(super) fn queueing(&self) -> Duration {
        let least = self.least.map_or(self.time, |least| least[0].min(least[1]));
        CLOCK_UNIT * (self.time - least - 1).clamp(0, LONGEST) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A way back of 30 ms with such queues, a link ACK each 100 ms; the other end is ahead
    /// by an hour. What is told of the last one, in milliseconds.
    fn told(queues: impl IntoIterator<Item = u64>) -> u64 {
        let mut way_back = WayBack::default();
        for (queue, number) in queues.into_iter().zip(1u64..) {
            let arrives = Instant::from_millis(100 * number);
            let left = Instant::from_millis(3_600_000 + 100 * number - 30 - queue);
            way_back.sample(arrives, clock_field(left));
        }
        way_back.queueing().as_millis() as u64
    }

    #[test]
    fn what_is_longer_than_the_least_is_a_queue() {
        assert_eq!(told([7]), 0, "nothing is known");
        assert_eq!(told([7, 0, 0]), 0);
        assert!((48..=50).contains(&told([0, 20, 50])));
        assert!((898..=900).contains(&told([0, 300, 600, 900])), "the clock turns over each 2.1 s");
    }

    #[test]
    fn a_way_that_stays_longer_is_one_without_a_queue() {
        let longer = |times| [0u64].into_iter().chain(core::iter::repeat_n(40, times));
        assert!((38..=40).contains(&told(longer(99))));
        assert_eq!(told(longer(300)), 0);
    }
}
