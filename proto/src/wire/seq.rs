//! TCP sequence numbers: 32-bit arithmetic that survives the wrap (RFC 9293 §3.4).

use core::cmp::Ordering;
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A sequence number. Comparisons are modular: `a < b` means that `b` is up to 2^31 − 1 bytes
/// ahead of `a`. The order is meaningful only between numbers of one window, as in TCP itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// Bytes from `earlier` to here, negative if `earlier` is really later.
    pub const fn offset_from(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// The later of two.
    pub fn max(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
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
