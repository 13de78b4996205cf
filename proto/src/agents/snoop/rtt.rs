//! The air hop as the data of one flow shows it: smoothed round trip, delayed ACKs and reordering.

use crate::rtt::{RoundTrip, micros, nanos};
use crate::time::Instant;
use core::time::Duration;

/// The window of the least round trip. It is shorter than that of the hop's: what is sent again at
/// a standing queue waits in it, and an earlier ACK is that of the original (10 s of the hop's,
/// tried on the board, cost a sender without SACK 0.14 without loss).
const MIN_WINDOW: Duration = Duration::from_secs(10);
/// The delayed-ACK time of Linux, assumed of a receiver before the first measurement.
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// The longest delayed-ACK time (RFC 9293 §3.8.6.3).
const MAX_DELAYED_ACK: Duration = Duration::from_millis(500);
/// The repairs without reordering after which the reordering window shrinks, as in RFC 8985 §6.2.
const REORDERING_PERSISTS: u8 = 16;
/// The round trip from the agent to the mobile and back: smoothed as in RFC 6298, with a windowed
/// minimum as in RFC 8985.
#[derive(Clone, Debug)]
pub(super) struct AirPath {
    /// The smoothed round trip; an assumed value before the first sample.
    smoothed: RoundTrip,
    /// The least round trip of the last ten seconds in nanoseconds, and the time of its sample.
    min: Option<(u64, Instant)>,
    /// The delayed-ACK time of the mobile, in microseconds.
    delayed_ack: u32,
    /// The reordering window, in quarters of the minimum round trip.
    reordering_steps: u8,
    /// Repairs since reordering was last detected.
    repairs_in_order: u8,
}

impl AirPath {
    pub(super) fn new(initial: Duration) -> Self {
        Self {
            smoothed: RoundTrip::first(initial),
            min: None,
            delayed_ack: micros(DELAYED_ACK),
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
        let taken = nanos(sample);
        if self.min.is_none_or(|(min, at)| taken <= min || now - at >= MIN_WINDOW) {
            self.min = Some((taken, now));
        }
        self.srtt()
    }

    /// Takes the time until the acknowledgment of a segment that no other segment followed.
    pub(super) fn sample_lone_segment(&mut self, taken: Duration) {
        let delay = taken.saturating_sub(self.min());
        let known = self.delayed_ack();
        self.delayed_ack = micros(match delay > known {
            true => delay.min(MAX_DELAYED_ACK),
            false => ((known * 15 + delay) / 16).max(DELAYED_ACK),
        });
    }

    fn delayed_ack(&self) -> Duration {
        Duration::from_micros(self.delayed_ack.into())
    }

    /// The smoothed round trip.
    pub(super) fn srtt(&self) -> Duration {
        self.smoothed.srtt()
    }

    /// The minimum round trip; zero before the first sample.
    pub(super) fn min(&self) -> Duration {
        self.min.map_or(Duration::ZERO, |(min, _)| Duration::from_nanos(min))
    }

    /// [C-5] The probe timeout (RFC 8985 §7.2): twice the smoothed round trip, or round trip and
    /// four deviations if that is more, with the delayed-ACK time for a lone segment.
    pub(super) fn probe_timeout(&self, lone_segment: bool) -> Duration {
        let quiet = self.smoothed.quiet_time();
        // One millisecond of timer slack; receivers delay SACKs by no more.
        let timeout = quiet + Duration::from_millis(1);
        if lone_segment { timeout + self.delayed_ack() } else { timeout }
    }

    /// [C-4] The reordering window: the longest time by which a packet may arrive after one that
    /// was sent later. Zero until reordering has been detected.
    pub(super) fn reordering_window(&self) -> Duration {
        (self.min() / 4 * u32::from(self.reordering_steps)).min(self.srtt())
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
}
