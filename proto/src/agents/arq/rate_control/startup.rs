//! The end of startup: the delivery rate no longer grows (BBR), or the round trip has grown and
//! stays so: a delay that passes within a round trip is no queue (HyStart++, RFC 9406 §4.2).

use core::time::Duration;

/// Round trips in which the rate grew by less than a quarter, after which the path is full.
const FULL_ROUNDS: u32 = 3;
/// Samples of a round trip that are looked at in each round.
const SAMPLES: u32 = 8;
/// Limits of the growth of the round trip that counts: an eighth of the least, within these.
const LEAST_GROWTH: Duration = Duration::from_millis(4);
const LARGEST_GROWTH: Duration = Duration::from_millis(16);

/// The growth of the round trip that HyStart takes for a full path (RFC 9406 §4.2).
pub(crate) fn noticed_growth(least: Duration) -> Duration {
    (least / 8).clamp(LEAST_GROWTH, LARGEST_GROWTH)
}

/// What startup has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Startup {
    rate: u64,
    rounds: u32,
    /// The least round trip of the present round, and the number of its samples.
    round_trip: Duration,
    samples: u32,
    /// Whether all round trips of the present round are longer, and of the one before.
    has_grown: [bool; 2],
    is_over: bool,
}

impl Startup {
    pub(super) fn new() -> Self {
        Self {
            rate: 0,
            rounds: 0,
            round_trip: Duration::MAX,
            samples: 0,
            has_grown: [false; 2],
            is_over: false,
        }
    }

    /// Whether the path has been full.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether round trips are longer, and it is open whether they stay so.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.has_grown[0] || self.has_grown[1]
    }

    /// The path says that it is full.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// A round trip has ended, at this largest delivery rate; whether the hosts limited it.
    pub(super) fn round(&mut self, rate: u64, is_host_limited: bool) {
        (self.round_trip, self.samples) = (Duration::MAX, 0);
        self.has_grown = [false, self.has_grown[0]];
        if is_host_limited || self.is_over {
            return;
        }
        if rate >= self.rate.saturating_add(self.rate / 4) {
            (self.rate, self.rounds) = (rate, 0);
            return;
        }
        self.rounds += 1;
        self.is_over = self.rounds >= FULL_ROUNDS;
    }

    /// Takes a sample of the round trip, whose least is `least`, in a round in which this end has
    /// made a queue or not: one that sends ACKs only has none in a round trip that has grown. Hosts
    /// that have more to send than the window admits are not in slow start: the first long round
    /// ends it.
    pub(super) fn round_trip(
        &mut self,
        sample: Duration,
        least: Duration,
        (has_queue, is_host_limited): (bool, bool),
    ) {
        self.round_trip = self.round_trip.min(sample);
        self.samples += 1;
        let growth = noticed_growth(least);
        let is_long = self.samples >= SAMPLES && self.round_trip > least + growth;
        self.has_grown[0] = is_long && has_queue;
        self.is_over |= self.has_grown[0] && (self.has_grown[1] || !is_host_limited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_the_rate_grows_no_more() {
        let mut startup = Startup::new();
        for rate in [10, 20, 40, 60, 61, 62] {
            startup.round(rate, false);
        }
        assert!(!startup.is_over());
        startup.round(62, true);
        assert!(!startup.is_over(), "the hosts had no more to send");
        startup.round(63, false);
        assert!(startup.is_over());
    }

    #[test]
    fn it_ends_when_all_round_trips_of_two_rounds_are_longer() {
        let least = Duration::from_millis(40);
        let mut startup = Startup::new();
        (0..10).for_each(|_| startup.round_trip(Duration::from_millis(60), least, (true, true)));
        assert!(!startup.is_over(), "a delay may pass");
        startup.round(0, true);
        (0..10).for_each(|_| startup.round_trip(Duration::from_millis(60), least, (true, true)));
        assert!(startup.is_over());
        let mut startup = Startup::new();
        startup.round_trip(Duration::from_millis(41), least, (true, true));
        (0..10).for_each(|_| startup.round_trip(Duration::from_millis(60), least, (true, true)));
        assert!(!startup.is_over(), "one was short: the others vary");
    }
}
