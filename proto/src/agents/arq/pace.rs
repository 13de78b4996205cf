//! The reply timeout and the limit of packets in flight: from the link's constants, or from the
//! measured round trip and rate.

use crate::codel::CoDelParams;
use crate::extreme::Extreme;
use crate::rtt::RoundTrip;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use core::ops::Range;
use core::time::Duration;

/// The least reply timeout of an adaptive link: allows for scheduling delays of the processor.
const MIN_WAIT: Duration = Duration::from_millis(2);
/// The reply timeout before the first measurement.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The reply timeout doubles with each timeout in a row, up to this or to twice its base value,
/// whichever is more.
const MAX_BACKED_OFF: Duration = Duration::from_millis(100);
/// The window of the minimum round trip.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Rounds over which the maximum rate is taken; a round lasts one round trip.
const ROUNDS: usize = 8;
/// The least limit of packets in flight, and the time at full rate by which packets in flight may
/// exceed twice the minimum round trip: link ACKs come in batches.
const MIN_LIMIT: u64 = 16;
const SLACK: Duration = Duration::from_millis(3);
/// The limit in bandwidth-delay products, and while the rate grows: hosts in slow start send four
/// times what arrived in the last complete round. A queue at the limit would lengthen the round
/// trip, which HyStart takes for a full path. Losses lower what arrives.
const GAIN: u128 = 2;
const STARTUP_GAIN: u128 = 8;
/// The least period over which the widest window is taken.
const LEAST_SPAN_PERIOD: Duration = Duration::from_secs(1);
/// The limit of packets in flight before the rate has been measured.
const FIRST_LIMIT: u32 = 32;

/// The measurements of the link, and the limits that follow from them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pace {
    is_adaptive: bool,
    limit: u32,
    /// The reply timeout by the link's constants.
    answer_wait: Duration,
    ack_delay: Duration,
    smoothed: Option<RoundTrip>,
    least: Option<Extreme>,
    /// Packets per second that arrived, in each of the last rounds.
    rates: [u64; ROUNDS],
    round: u64,
    /// The present round: its start, the packets that had arrived by then, and the serial number
    /// whose acknowledgment ends it.
    round_began: Instant,
    arrived_before: u64,
    round_ends: SeqNumber,
    /// The widest window and the longest time for which the link has kept a packet, each of the
    /// present period and of the one before it.
    spans: [u32; 2],
    ages: [Duration; 2],
    spans_end: Instant,
    /// When last a packet came for which no other one waited.
    idle_at: Instant,
}

impl Pace {
    /// Nothing has been measured. Without adaptation the reply timeout is always `answer_wait`; the
    /// other end delays a link ACK by at most `ack_delay`.
    pub(crate) fn new(is_adaptive: bool, answer_wait: Duration, ack_delay: Duration) -> Self {
        Self {
            is_adaptive,
            limit: if is_adaptive { FIRST_LIMIT } else { u32::MAX },
            answer_wait,
            ack_delay,
            smoothed: None,
            least: None,
            rates: [0; ROUNDS],
            round: 0,
            round_began: Instant::ZERO,
            arrived_before: 0,
            round_ends: SeqNumber(0),
            spans: [0; 2],
            ages: [Duration::ZERO; 2],
            spans_end: Instant::ZERO,
            idle_at: Instant::ZERO,
        }
    }

    /// The reply timeout after `unanswered` timeouts in a row.
    pub(crate) fn wait(&self, unanswered: u32) -> Duration {
        if !self.is_adaptive {
            return self.answer_wait;
        }
        let wait = self
            .smoothed
            .map_or(FIRST_WAIT, |smoothed| MIN_WAIT.max(smoothed.bound()) + self.ack_delay);
        let backed_off = wait.saturating_mul(1 << unanswered.min(16));
        backed_off.min(MAX_BACKED_OFF.max(2 * wait))
    }

    /// The least round trip of late.
    pub(crate) fn least_round_trip(&self) -> Option<Duration> {
        self.least.map(|least| least.get())
    }

    /// The smoothed round trip and its mean deviation.
    pub(crate) fn smoothed_round_trip(&self) -> Option<(Duration, Duration)> {
        self.smoothed.map(|smoothed| (smoothed.srtt(), Duration::from_nanos(smoothed.deviation)))
    }

    /// The limit of packets in flight.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// The parameters of CoDel in front of the link: the interval covers two round trips (RFC 8289
    /// §4.3), since a loss makes packets wait for one more; the target is what CUBIC needs in front
    /// of so long a path. The round trips are in the longest time for which the link kept a packet.
    pub(crate) fn codel(&self) -> CoDelParams {
        let CoDelParams { target, interval } = CoDelParams::default();
        let kept = self.ages[0].max(self.ages[1]);
        CoDelParams { target: target.max(kept), interval: interval.max(2 * kept) }
    }

    /// A packet comes, and nothing waits for the link if its queue `is_empty`.
    pub(crate) fn note_queue(&mut self, now: Instant, is_empty: bool) {
        if is_empty {
            self.idle_at = now;
        }
    }

    /// Whether within the last round trip there was a time in which nothing waited for the link.
    pub(crate) fn was_idle(&self, now: Instant) -> bool {
        self.least_round_trip().is_some_and(|least| now.since(self.idle_at) < least)
    }

    /// The window spans so many packets, from the oldest that is not acknowledged, and which was
    /// first sent so long ago.
    pub(crate) fn note_span(&mut self, now: Instant, span: u32, age: Duration) {
        if now >= self.spans_end {
            let round_trips = self.smoothed.map_or(Duration::ZERO, |smoothed| 4 * smoothed.srtt());
            self.spans = [0, self.spans[0]];
            self.ages = [Duration::ZERO, self.ages[0]];
            self.spans_end = now + round_trips.max(LEAST_SPAN_PERIOD);
        }
        self.spans[0] = self.spans[0].max(span);
        self.ages[0] = self.ages[0].max(age);
    }

    /// The number of packets that may arrive from the hosts at once: when a packet that was lost
    /// has arrived, all that waited behind it are acknowledged together.
    pub(crate) fn burst(&self) -> usize {
        self.spans[0].max(self.spans[1]) as usize
    }

    /// Takes a round-trip sample, as in RFC 6298 §2.
    pub(crate) fn round_trip(&mut self, now: Instant, sample: Duration) {
        match &mut self.smoothed {
            None => self.smoothed = Some(RoundTrip::first(sample)),
            Some(smoothed) => smoothed.sample(sample),
        }
        let first = Extreme::least(MIN_RTT_WINDOW, now, sample);
        self.least.get_or_insert(first).sample(now, sample);
    }

    /// Takes a link ACK: `acked_serial` of the `sent` serial numbers is the highest one received,
    /// and `arrived` packets have arrived in all. Gives one rate sample for each round.
    pub(crate) fn acknowledged(
        &mut self,
        now: Instant,
        arrived: u64,
        acked_serial: SeqNumber,
        sent: SeqNumber,
    ) {
        if !self.is_adaptive || acked_serial < self.round_ends {
            return;
        }
        let nanos = (now - self.round_began).as_nanos() as u64;
        if nanos > 0 && self.round > 0 {
            let rate = (arrived - self.arrived_before).saturating_mul(1_000_000_000) / nanos;
            self.rates[self.round as usize % ROUNDS] = rate;
        }
        self.round += 1;
        self.round_began = now;
        self.arrived_before = arrived;
        self.round_ends = sent + 1;
        self.set_limit();
    }

    /// A new stream begins: serial numbers restart.
    pub(crate) fn restart(&mut self) {
        self.round_ends = SeqNumber(0);
        self.round = 0;
    }

    /// Sets the limit to twice the bandwidth-delay product, which keeps the link busy and its queue
    /// short; to more while the rate grows.
    fn set_limit(&mut self) {
        let rate = self.rates.iter().copied().max().unwrap_or(0);
        if let Some(least) = self.least_round_trip().filter(|_| rate > 0) {
            let gain = if self.is_growing() { STARTUP_GAIN } else { GAIN };
            let nanos = gain * least.as_nanos() + SLACK.as_nanos();
            let held = u128::from(rate) * nanos / 1_000_000_000 + u128::from(MIN_LIMIT);
            self.limit = u32::try_from(held).unwrap_or(u32::MAX);
        }
    }

    /// Whether one of the last three rounds has raised the largest rate by a quarter.
    fn is_growing(&self) -> bool {
        let latest = |age: usize| self.rates[(self.round as usize + ROUNDS - 1 - age) % ROUNDS];
        let largest = |ages: Range<usize>| ages.map(latest).max().unwrap_or(0);
        let (last, before) = (largest(0..3), largest(3..ROUNDS));
        last > before + before / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit after rounds of 100 ms in which so many packets arrived.
    fn limit_after(rounds: &[u64]) -> u32 {
        let mut pace = Pace::new(true, Duration::ZERO, Duration::ZERO);
        let (mut now, mut arrived, mut serial) = (Instant::ZERO, 0, SeqNumber(0));
        pace.acknowledged(now, 0, serial, serial);
        for packets in rounds {
            now += Duration::from_millis(100);
            pace.round_trip(now, Duration::from_millis(100));
            (arrived, serial) = (arrived + packets, serial + 1);
            pace.acknowledged(now, arrived, serial, serial);
        }
        pace.limit()
    }

    #[test]
    fn the_limit_is_above_what_slow_start_sends_and_twice_what_the_link_carries() {
        // Two rounds later hosts have four times as much in flight.
        assert!(limit_after(&[10, 20, 40, 80]) > 4 * 80);
        let carries = |limit: u32| (2 * 100..3 * 100).contains(&limit);
        assert!(carries(limit_after(&[10, 20, 40, 80, 100, 100, 100, 100])));
        assert!(carries(limit_after(&[100; 20])));
    }
}
