//! Numbers in few bytes: the lowest bytes of sequence and serial numbers, as of packet numbers of
//! QUIC (RFC 9000 §17.1, appendix A), and integers of variable length (RFC 9000 §16).

use crate::wire::seq::SeqNumber;
use alloc::vec::Vec;

/// The number nearest to `expected` that ends in the `len` bytes of `sent`.
pub(super) fn nearest(expected: SeqNumber, sent: u32, len: usize) -> SeqNumber {
    let Some(half) = half(len) else { return SeqNumber(sent) };
    let ahead = sent.wrapping_sub(expected.0).wrapping_add(half) & (2 * half - 1);
    SeqNumber(expected.0.wrapping_add(ahead).wrapping_sub(half))
}

/// The highest number up to `highest` that ends in the three bytes of `sent`.
pub(super) fn highest(highest: SeqNumber, sent: u32) -> SeqNumber {
    highest - (highest.0.wrapping_sub(sent) & 0x00ff_ffff)
}

/// Whether two bytes suffice for a number that is so far from the last acknowledged one. The other
/// end expects one between both, or somewhat below if it has not seen the first frames.
pub(super) fn suffice(distance: i32) -> bool {
    distance.unsigned_abs() < 1 << 14
}

fn half(len: usize) -> Option<u32> {
    (len < 4).then(|| 1 << (8 * len - 1))
}

/// Appends an integer below 2^30 in one, two or four bytes.
pub(super) fn write_integer(out: &mut Vec<u8>, value: u32) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend((value as u16 | 0x4000).to_be_bytes()),
        _ => out.extend((value & 0x3fff_ffff | 0x8000_0000).to_be_bytes()),
    }
}

/// Reads such an integer, and what is behind it. `None` if it is cut or above 2^30.
pub(super) fn read_integer(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let first = u32::from(*bytes.first()?);
    let (len, mask) = match first >> 6 {
        0 => (1, 0x3f),
        1 => (2, 0x3fff),
        2 => (4, 0x3fff_ffff),
        _ => return None,
    };
    let (taken, rest) = bytes.split_at_checked(len)?;
    let value = taken.iter().fold(0u32, |value, byte| value << 8 | u32::from(*byte));
    Some((value & mask, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_near_what_is_expected_are_found(expected: u32, distance in -32_767i32..32_768) {
            let number = SeqNumber(expected.wrapping_add_signed(distance));
            prop_assert_eq!(nearest(SeqNumber(expected), number.0 & 0xffff, 2), number);
            prop_assert_eq!(nearest(SeqNumber(expected), number.0, 4), number);
        }

        #[test]
        fn numbers_below_the_highest_are_found(top: u32, below in 0u32..1 << 24) {
            let number = SeqNumber(top) - below;
            prop_assert_eq!(highest(SeqNumber(top), number.0 & 0x00ff_ffff), number);
        }

        #[test]
        fn integers_are_read_as_they_were_written(value in 0u32..1 << 30, small in 0u32..20_000) {
            for value in [value, small] {
                let mut bytes = Vec::new();
                write_integer(&mut bytes, value);
                prop_assert_eq!(read_integer(&bytes), Some((value, &[][..])));
                prop_assert_eq!(read_integer(&bytes[..bytes.len() - 1]), None);
            }
        }
    }
}
