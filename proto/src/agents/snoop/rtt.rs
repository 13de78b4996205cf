//! Estimators of the path: round trips, delayed ACKs and reordering.

use crate::rtt::RoundTrip;
use crate::time::Instant;
use core::time::Duration;

/// The window of the minimum round trip, so that the minimum follows a path that becomes longer.
const MIN_WINDOW: Duration = Duration::from_secs(10);
/// The delayed-ACK time of Linux, assumed of a receiver before the first measurement.
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// The longest delayed-ACK time (RFC 9293 §3.8.6.3).
const MAX_DELAYED_ACK: Duration = Duration::from_millis(500);
/// The repairs without reordering after which the reordering window shrinks, as in RFC 8985 §6.2.
const REORDERING_PERSISTS: u32 = 16;
/// The host behind the wired port is the agent's own if its round trip is less than this part of
/// that of the air.
pub(super) const OWN_HOST: u32 = 20;

/// The round trip from the agent to the mobile and back: smoothed as in RFC 6298, with a windowed
/// minimum as in RFC 8985.
#[derive(Clone, Debug)]
pub(super) struct AirPath {
    /// The smoothed round trip; an assumed value before the first sample.
    smoothed: RoundTrip,
    /// The minimum of the last ten seconds, and the time of its sample.
    min: Option<(Duration, Instant)>,
    /// The delayed-ACK time of the mobile.
    delayed_ack: Duration,
    /// The reordering window, in quarters of the minimum round trip.
    reordering_steps: u32,
    /// Repairs since reordering was last detected.
    repairs_in_order: u32,
}

impl AirPath {
    pub(super) fn new(initial: Duration) -> Self {
        Self {
            smoothed: RoundTrip::first(initial),
            min: None,
            delayed_ack: DELAYED_ACK,
            reordering_steps: 0,
            repairs_in_order: 0,
        }
    }

    /// Takes an unambiguous round-trip sample; returns the smoothed round trip.
    pub(super) fn sample(&mut self, now: Instant, sample: Duration) -> Duration {
        if self.min.is_none() {
            self.smoothed = RoundTrip::first(sample);
        } else {
            self.smoothed.sample(sample);
        }
        if self.min.is_none_or(|(min, at)| sample <= min || now - at >= MIN_WINDOW) {
            self.min = Some((sample, now));
        }
        self.srtt()
    }

    /// Takes the time until the acknowledgment of a segment that no other segment followed.
    pub(super) fn sample_lone_segment(&mut self, taken: Duration) {
        let delay = taken.saturating_sub(self.min());
        if delay > self.delayed_ack {
            self.delayed_ack = delay.min(MAX_DELAYED_ACK);
        } else {
            self.delayed_ack = ((self.delayed_ack * 15 + delay) / 16).max(DELAYED_ACK);
        }
    }

    /// The smoothed round trip.
    pub(super) fn srtt(&self) -> Duration {
        self.smoothed.srtt()
    }

    /// The minimum round trip; zero before the first sample.
    pub(super) fn min(&self) -> Duration {
        self.min.map_or(Duration::ZERO, |(min, _)| min)
    }

    /// [C-5] The probe timeout (RFC 8985 §7.2): twice the smoothed round trip, or round trip and
    /// four deviations if that is more, with the delayed-ACK time for a lone segment.
    pub(super) fn probe_timeout(&self, lone_segment: bool) -> Duration {
        let quiet = self.smoothed.quiet_time();
        // One millisecond of timer slack; receivers delay SACKs by no more.
        let timeout = quiet + Duration::from_millis(1);
        if lone_segment { timeout + self.delayed_ack } else { timeout }
    }

    /// [C-4] The reordering window: the longest time by which a packet may arrive after one that
    /// was sent later. Zero until reordering has been detected.
    pub(super) fn reordering_window(&self) -> Duration {
        (self.min() / 4 * self.reordering_steps).min(self.srtt())
    }

    /// Widens the reordering window: a packet taken for lost was only late.
    pub(super) fn saw_reordering(&mut self) {
        self.reordering_steps = (self.reordering_steps + 1).min(8);
        self.repairs_in_order = 0;
    }

    /// Counts a loss without reordering, which may shrink the reordering window.
    pub(super) fn saw_loss(&mut self) {
        self.repairs_in_order += 1;
        if self.repairs_in_order >= REORDERING_PERSISTS {
            self.reordering_steps = self.reordering_steps.saturating_sub(1);
            self.repairs_in_order = 0;
        }
    }
}

/// The round trip from the agent to the sender and back, from timestamps: the time from an ACK with
/// a new TSval to the first data that echoes it (RFC 7323 §4.1).
#[derive(Clone, Debug, Default)]
pub struct WiredPath {
    /// The TSval that is being timed, and the time at which it was forwarded.
    pending: Option<(u32, Instant)>,
    /// The newest TSval that was forwarded.
    newest: Option<u32>,
    /// The last samples, of which the minimum counts: a sender that waits for its application makes
    /// a sample too long, never too short.
    samples: [Option<Duration>; 8],
    next: u8,
    /// The least of the samples, which every packet reads.
    least: Option<Duration>,
}

impl WiredPath {
    /// Notes that an ACK with this TSval is forwarded to the sender.
    pub fn ack_left(&mut self, now: Instant, value: u32) {
        // Data that echoes an older TSval may be in flight already.
        if self.newest.is_none_or(|newest| is_before(newest, value)) {
            self.newest = Some(value);
            self.pending.get_or_insert((value, now));
        }
    }

    /// Notes that data with this TSecr arrived from the sender; returns the sample that it gives.
    pub fn data_came(&mut self, now: Instant, echo: u32) -> Option<Duration> {
        let (_, at) = self.pending.take_if(|(value, _)| !is_before(echo, *value))?;
        let sample = now - at;
        if let Some(slot) = self.samples.get_mut(usize::from(self.next % 8)) {
            *slot = Some(sample);
        }
        self.next = self.next.wrapping_add(1);
        self.least = self.samples.iter().flatten().min().copied();
        Some(sample)
    }

    /// The round trip, if there is a sample.
    pub fn round_trip(&self) -> Option<Duration> {
        self.least
    }
}

/// Where the agent is, by the time in which the host behind the wired port answers: without the
/// agent's own queue, in which data waits before it departs.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    path: WiredPath,
    /// The first TSval that was forwarded: an ACK before the flow was picked up may have had it.
    first: Option<u32>,
}

impl Place {
    /// Notes that an ACK with this TSval is forwarded to the sender.
    pub(super) fn ack_left(&mut self, now: Instant, value: u32) {
        if *self.first.get_or_insert(value) != value {
            self.path.ack_left(now, value);
        }
    }

    /// Notes that data with this TSecr arrived from the sender.
    pub(super) fn data_came(&mut self, now: Instant, echo: u32) {
        self.path.data_came(now, echo);
    }

    /// Whether the sender is in the agent's own host, given the least round trip of the air.
    pub(super) fn is_own_host(&self, air: Duration) -> bool {
        self.path.round_trip().is_some_and(|wired| wired < air / OWN_HOST)
    }
}

/// Whether timestamp `a` is older than `b`, modulo 2^32 (RFC 7323 §5.2).
pub(super) fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_first_sample_replaces_the_guess() {
        let mut path = AirPath::new(ms(20));
        assert_eq!((path.min(), path.srtt()), (Duration::ZERO, ms(20)));
        assert_eq!(path.sample(Instant::ZERO, ms(8)), ms(8));
        assert_eq!(path.sample(Instant::ZERO, ms(16)), ms(9));
        assert_eq!(path.min(), ms(8));
        path.sample(Instant::from_millis(10_001), ms(12));
        assert_eq!(path.min(), ms(12), "an old minimum is forgotten");
    }

    #[test]
    fn the_probe_waits_for_a_delayed_ack_only_of_a_lone_segment() {
        let mut path = AirPath::new(ms(20));
        for _ in 0..100 {
            path.sample(Instant::ZERO, ms(10));
        }
        assert_eq!(path.probe_timeout(false).as_millis(), 21);
        assert_eq!(path.probe_timeout(true).as_millis(), 61);
        path.sample_lone_segment(ms(210));
        assert_eq!(path.probe_timeout(true).as_millis(), 221, "this receiver takes longer");
        for _ in 0..1_000 {
            path.sample_lone_segment(ms(10));
        }
        assert_eq!(path.probe_timeout(true).as_millis(), 61);
    }

    #[test]
    fn reordering_widens_the_window_and_order_closes_it() {
        let mut path = AirPath::new(ms(20));
        path.sample(Instant::ZERO, ms(8));
        assert_eq!(path.reordering_window(), Duration::ZERO);
        path.saw_reordering();
        path.saw_reordering();
        assert_eq!(path.reordering_window(), ms(4));
        for _ in 0..20 {
            path.saw_reordering();
        }
        assert_eq!(path.reordering_window(), ms(8), "at most one round trip");
        for _ in 0..8 * REORDERING_PERSISTS {
            path.saw_loss();
        }
        assert_eq!(path.reordering_window(), Duration::ZERO);
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
