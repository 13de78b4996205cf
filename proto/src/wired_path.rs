//! The round trip between here and the sender of a flow.

use crate::rtt::micros;
use crate::time::Instant;
use crate::wire::seq::is_before;
use core::num::NonZeroU32;
use core::time::Duration;

/// The host behind the wired port is the agent's own if its round trip is less than this part of
/// that of the air.
const OWN_HOST: u32 = 20;

/// The samples of which the least counts: a sender that waits for its application makes a sample
/// too long, never too short.
const SAMPLES: u8 = 8;

/// The least of the last eight samples, of which three are kept: the least, the least after that,
/// and the least after that (Kathleen Nichols' filter, as in Linux `win_minmax.c`). In
/// microseconds, so that a flow is small.
#[derive(Clone, Copy, Debug, Default)]
struct LeastTime {
    least: [Option<NonZeroU32>; 3],
    /// The numbers of these samples, and that of the last one.
    numbers: [u8; 3],
    number: u8,
}

impl LeastTime {
    fn sample(&mut self, sample: Duration) {
        let number = self.number.wrapping_add(1);
        let new = NonZeroU32::new(micros(sample).max(1));
        let age = |kept: u8| number.wrapping_sub(kept);
        let ([_, second, third], [a, b, c]) = (self.least, self.numbers);
        if age(a) >= SAMPLES {
            (self.least, self.numbers) = ([second, third, third], [b, c, c]);
        }
        let ([first, second, third], [a, b, c]) = (self.least, self.numbers);
        if first.is_none() || new <= first {
            (self.least, self.numbers) = ([new; 3], [number; 3]);
        } else if new <= second || a == b && age(a) > SAMPLES / 4 {
            (self.least, self.numbers) = ([first, new, new], [a, number, number]);
        } else if new <= third || b == c && age(a) > SAMPLES / 2 {
            (self.least, self.numbers) = ([first, second, new], [a, b, number]);
        }
        self.number = number;
    }

    /// The least time, if there is a sample.
    fn get(&self) -> Option<Duration> {
        let [least, ..] = self.least;
        Some(Duration::from_micros(least?.get().into()))
    }

    /// Whether this is the round trip to the agent's own host, given the least one of the air.
    fn is_own_host(&self, air: Duration) -> bool {
        self.get().is_some_and(|wired| wired < air / OWN_HOST)
    }
}

/// The round trip from the agent to the sender and back, from timestamps: the time from an ACK with
/// a new TSval to the first data that echoes it (RFC 7323 §4.1).
#[derive(Clone, Debug, Default)]
pub(crate) struct WiredPath {
    pending: Option<Pending>,
    /// The newest TSval that was forwarded.
    newest: Option<u32>,
    least: LeastTime,
    /// The time in which the host behind the wired port answers: without the agent's own queue, in
    /// which data waits before it is passed on.
    answers_in: LeastTime,
}

/// The TSval that is being timed, and the time at which it was forwarded.
#[derive(Clone, Copy, Debug)]
struct Pending {
    at: Instant,
    value: u32,
    /// Whether data that echoes it has arrived, or none would show the time of the host: an ACK
    /// before the flow was picked up may have had the first TSval that was forwarded.
    has_arrived: bool,
}

impl WiredPath {
    /// Notes that an ACK with this TSval is forwarded to the sender.
    pub(crate) fn ack_left(&mut self, now: Instant, value: u32) {
        // Data that echoes an older TSval may be in flight already.
        if self.newest.is_none_or(|newest| is_before(newest, value)) {
            let has_arrived = self.newest.is_none();
            self.newest = Some(value);
            self.pending.get_or_insert(Pending { at: now, value, has_arrived });
        }
    }

    /// Notes that data with this TSecr has come to the agent's queue. It *came* from the sender
    /// once it leaves that.
    pub(crate) fn data_arrived(&mut self, now: Instant, echo: u32) {
        let is_first =
            |pending: &&mut Pending| !pending.has_arrived && !is_before(echo, pending.value);
        if let Some(pending) = self.pending.as_mut().filter(is_first) {
            pending.has_arrived = true;
            self.answers_in.sample(now - pending.at);
        }
    }

    /// Notes that data with this TSecr came from the sender, now if it has not arrived before;
    /// returns the sample that it gives.
    pub(crate) fn data_came(&mut self, now: Instant, echo: u32) -> Option<Duration> {
        self.data_arrived(now, echo);
        let Pending { at, .. } = self.pending.take_if(|timed| !is_before(echo, timed.value))?;
        self.least.sample(now - at);
        Some(now - at)
    }

    /// The round trip, if there is a sample.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.least.get()
    }

    /// The least time that the last data has waited in the agent's own queue.
    pub(crate) fn waited(&self) -> Option<Duration> {
        Some(self.least.get()?.saturating_sub(self.answers_in.get()?))
    }

    /// Whether the sender is in the host of whoever measures, given the least round trip of the
    /// air.
    pub(crate) fn is_own_host(&self, air: Duration) -> bool {
        self.least.is_own_host(air)
    }

    /// The same of data as it arrives.
    pub(crate) fn answers_from_own_host(&self, air: Duration) -> bool {
        self.answers_in.is_own_host(air)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn what_waits_in_the_agents_queue_arrives_before_it_comes() {
        let mut path = WiredPath::default();
        let at = Instant::from_millis;
        for round in 0..8 {
            path.ack_left(at(100 * round), round as u32);
            path.data_arrived(at(100 * round + 30), round as u32);
            path.data_came(at(100 * round + 50), round as u32);
        }
        assert_eq!(path.waited(), Some(ms(20)));
        path.ack_left(at(800), 8);
        path.data_came(at(830), 8);
        assert_eq!(path.waited(), Some(ms(0)), "a copy of what has departed");
    }

    #[test]
    fn data_that_arrives_is_timed_once_and_not_with_the_first_tsval() {
        let mut path = WiredPath::default();
        let at = Instant::from_millis;
        path.ack_left(at(0), 7);
        path.data_arrived(at(1), 7);
        assert_eq!(path.answers_in.get(), None, "an unseen ACK may have had it");
        path.data_came(at(2), 7);
        path.ack_left(at(2), 8);
        path.data_arrived(at(3), 7);
        assert_eq!(path.answers_in.get(), None, "it echoes an older TSval");
        path.data_arrived(at(4), 8);
        path.data_arrived(at(5), 8);
        assert_eq!((path.answers_in.get(), path.answers_in.number), (Some(ms(2)), 1));
        assert_eq!(path.data_came(at(6), 8), Some(ms(4)), "it waited in the queue");
    }

    #[test]
    fn an_old_least_time_is_forgotten_and_a_newer_one_follows() {
        let mut least = LeastTime::default();
        let mut after = |millis| {
            least.sample(ms(millis));
            least.get().map_or(0, |least| least.as_millis())
        };
        assert_eq!([9, 5, 8, 8, 7, 9, 9, 9, 9].map(&mut after), [9, 5, 5, 5, 5, 5, 5, 5, 5]);
        assert_eq!([9, 9, 9, 9, 9].map(&mut after), [7, 7, 7, 9, 9]);
        assert_eq!([9, 9, 9, 9, 4].map(&mut after), [9, 9, 9, 9, 4]);
    }

    #[test]
    fn the_wired_round_trip_is_the_least_of_the_last_eight() {
        let mut path = WiredPath::default();
        let mut now = Instant::ZERO;
        assert_eq!(path.round_trip(), None);
        let values = (0..24).map(|turn| (u32::MAX - 7).wrapping_add(2 * turn));
        for (value, taken) in values.zip((1..=24).map(ms)) {
            path.ack_left(now, value);
            path.ack_left(now + ms(1), value.wrapping_add(1));
            path.data_came(now + taken / 2, value.wrapping_sub(1));
            now += taken;
            path.data_came(now, value.wrapping_add(1));
            path.ack_left(now, value.wrapping_add(1));
            path.data_came(now, value.wrapping_add(1));
        }
        assert_eq!(path.round_trip(), Some(ms(17)), "an old TSval is not timed");
    }
}
