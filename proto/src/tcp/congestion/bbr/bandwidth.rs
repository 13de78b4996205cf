//! Bandwidth, and its largest value of the last ten rounds (`bbr_bw_rtts`).

use core::time::Duration;

/// The precision of a bandwidth (`BW_SCALE`).
const SCALE: u32 = 24;
/// A gain of 1.
pub(super) const UNIT: u64 = 256;

/// Rounds that a sample of the bandwidth counts for.
pub(super) const ROUNDS: u64 = 10;

/// A bandwidth in 2^-24 segments per microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bandwidth(u64);

impl Bandwidth {
    pub(super) fn of(segments: u64, interval: Duration) -> Self {
        let micros = interval.as_micros().max(1);
        Self(((u128::from(segments) << SCALE) / micros) as u64)
    }

    pub(super) fn segments_in(self, time: Duration) -> u64 {
        self.segments_in_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    }

    pub(super) fn segments_in_micros(self, micros: u64) -> u64 {
        ((u128::from(self.0) * u128::from(micros)) >> SCALE) as u64
    }

    /// The segments of a time at a gain, rounded up.
    pub(super) fn segments_at(self, time: Duration, gain: u64) -> u64 {
        let scaled = u128::from(self.0).saturating_mul(time.as_micros());
        (scaled.saturating_mul(gain.into()) / u128::from(UNIT)).div_ceil(1 << SCALE) as u64
    }

    /// A quarter more.
    pub(super) fn and_a_quarter(self) -> Self {
        Self(self.0.saturating_mul(5) / 4)
    }

    /// In bytes per second, at a gain.
    pub(super) fn bytes_per_second(self, mss: u64, gain: u64) -> u64 {
        let scaled = u128::from(self.0) * u128::from(mss) * u128::from(gain) / u128::from(UNIT);
        ((scaled * 1_000_000) >> SCALE) as u64
    }
}
