//! The smoothed round trip (RFC 6298 §2), as TCP and the agents use it.

use core::time::Duration;

/// The smoothed round trip and its mean deviation, in nanoseconds; gains 1/8 and 1/4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RoundTrip {
    pub(crate) srtt: u64,
    pub(crate) deviation: u64,
}

impl RoundTrip {
    /// RFC 6298 2.2: after the first sample.
    pub(crate) fn first(sample: Duration) -> Self {
        let srtt = nanos(sample);
        Self { srtt, deviation: srtt / 2 }
    }

    /// RFC 6298 2.3: after a further sample.
    pub(crate) fn sample(&mut self, sample: Duration) {
        let sample = nanos(sample);
        self.deviation = (3 * self.deviation + self.srtt.abs_diff(sample)) / 4;
        self.srtt = (7 * self.srtt + sample) / 8;
    }

    /// The smoothed round trip.
    pub(crate) fn srtt(&self) -> Duration {
        Duration::from_nanos(self.srtt)
    }

    /// Twice the round trip, or [`RoundTrip::bound`] if that is more.
    pub(crate) fn quiet_time(&self) -> Duration {
        Duration::from_nanos((2 * self.srtt).max(self.srtt + 4 * self.deviation))
    }

    /// The round trip and four deviations: the least timeout (RFC 6298 2.3).
    pub(crate) fn bound(&self) -> Duration {
        Duration::from_nanos(self.srtt + 4 * self.deviation)
    }
}

/// Microseconds, at most 71 minutes: half of the memory where flows are many.
pub(crate) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// Nanoseconds, at most 36 years: sums of a few still fit.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX / 16)
}
