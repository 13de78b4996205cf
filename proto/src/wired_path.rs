//! The round trip between here and the sender of a flow.

use crate::rtt::nanos;
use crate::time::Instant;
use crate::wire::seq::is_before;
use core::num::NonZeroU64;
use core::time::Duration;

/// The host behind the wired port is the agent's own if its round trip is less than this part of
/// that of the air.
const OWN_HOST: u32 = 20;

/// The round trip from the agent to the sender and back, from timestamps: the time from an ACK with
/// a new TSval to the first data that echoes it (RFC 7323 §4.1).
#[derive(Clone, Debug, Default)]
pub(crate) struct WiredPath {
    /// The TSval that is being timed, and the time at which it was forwarded.
    pending: Option<(u32, Instant)>,
    /// The newest TSval that was forwarded.
    newest: Option<u32>,
    /// The least of the samples, which every packet reads.
    least: Option<Duration>,
    next: u8,
    /// The last samples, of which the minimum counts: a sender that waits for its application makes
    /// a sample too long, never too short. In nanoseconds, so that a flow is small.
    samples: [Option<NonZeroU64>; 8],
}

impl WiredPath {
    /// Notes that an ACK with this TSval is forwarded to the sender.
    pub(crate) fn ack_left(&mut self, now: Instant, value: u32) {
        // Data that echoes an older TSval may be in flight already.
        if self.newest.is_none_or(|newest| is_before(newest, value)) {
            self.newest = Some(value);
            self.pending.get_or_insert((value, now));
        }
    }

    /// Notes that data with this TSecr arrived from the sender; returns the sample that it gives.
    pub(crate) fn data_came(&mut self, now: Instant, echo: u32) -> Option<Duration> {
        let (_, at) = self.pending.take_if(|(value, _)| !is_before(echo, *value))?;
        let sample = now - at;
        if let Some(slot) = self.samples.get_mut(usize::from(self.next % 8)) {
            *slot = NonZeroU64::new(nanos(sample).max(1));
        }
        self.next = self.next.wrapping_add(1);
        let least = self.samples.iter().flatten().min();
        self.least = least.map(|nanos| Duration::from_nanos(nanos.get()));
        Some(sample)
    }

    /// The round trip, if there is a sample.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.least
    }

    /// Whether the sender is in the host of whoever measures, given the least round trip of the
    /// air.
    pub(crate) fn is_own_host(&self, air: Duration) -> bool {
        self.least.is_some_and(|wired| wired < air / OWN_HOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
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
