//! Fields of the frames of link protocols.

use core::time::Duration;

/// The unit of the delay field of a link ACK.
pub(crate) const DELAY_UNIT: Duration = Duration::from_micros(16);

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
