//! TCP sequence numbers: 32-bit arithmetic that survives the wrap (RFC 9293 §3.4).

use core::cmp::Ordering;
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A sequence number. Comparisons are modular: `a < b` means that `b` is up to 2^31 − 1 bytes
/// ahead of `a`. The order is meaningful only between numbers of one window, as in TCP itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNumber(pub u32);

/// The largest window (RFC 7323 §2.2): a number further away does not belong to the stream.
pub(crate) const MAX_WINDOW: i32 = 1 << 30;

impl SeqNumber {
    /// Bytes from `earlier` to here, negative if `earlier` is really later.
    pub const fn offset_from(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// Its position in a stream whose positions are sequence numbers continued to 64 bits, if it is
    /// no further than a window from the position `near`.
    pub(crate) fn position(self, near: u64) -> Option<u64> {
        let offset = self.offset_from(Self(near as u32));
        let is_near = (-MAX_WINDOW..MAX_WINDOW).contains(&offset);
        is_near.then(|| near.saturating_add_signed(i64::from(offset)))
    }

    /// The later of two.
    pub fn max(self, other: Self) -> Self {
        if other > self { other } else { self }
    }

    /// The earlier of two.
    pub fn min(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
}

/// Whether timestamp `a` is older than `b`, modulo 2^32 (RFC 7323 §5.2).
pub(crate) fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl PartialOrd for SeqNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.offset_from(*other).partial_cmp(&0)
    }
}

impl Add<u32> for SeqNumber {
    type Output = Self;
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for SeqNumber {
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for SeqNumber {
    type Output = Self;
    fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let before = SeqNumber(u32::MAX - 1);
        let after = before + 4;
        assert_eq!(after, SeqNumber(2));
        assert!(before < after);
        assert_eq!(after.offset_from(before), 4);
        assert_eq!(before.offset_from(after), -4);
        assert_eq!(before.max(after), after);
        assert_eq!(after - 4, before);
    }
}
