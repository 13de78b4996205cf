//! Fields of the frames of link protocols.

use crate::time::Instant;
use core::time::Duration;

/// The unit of the delay field of a link ACK.
pub(crate) const DELAY_UNIT: Duration = Duration::from_micros(16);

/// The unit of the clock of a link ACK, and the bits of it that are told.
pub(crate) const CLOCK_UNIT: Duration = Duration::from_micros(128);
pub(crate) const CLOCK_BITS: u32 = 14;

/// The clock of an end, which turns over each 2.1 s.
pub(crate) fn clock_field(now: Instant) -> u16 {
    let units = now.as_nanos() / CLOCK_UNIT.as_nanos() as u64;
    units as u16 & ((1 << CLOCK_BITS) - 1)
}

/// A delay in units of [`DELAY_UNIT`], at most 1.05 s.
pub(crate) fn delay_field(delay: Duration) -> u16 {
    u16::try_from(delay.as_nanos() / DELAY_UNIT.as_nanos()).unwrap_or(u16::MAX)
}

/// The big-endian 32-bit number at offset `at`; the caller has checked the length.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from(half(bytes, at)) << 16 | u32::from(half(bytes, at + 2))
}

/// The big-endian 16-bit number at offset `at`; the caller has checked the length.
pub(crate) fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
