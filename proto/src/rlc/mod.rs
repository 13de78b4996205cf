//! A random linear code over a sliding window (RFC 8681; terms of RFC 8406): a repair symbol is a
//! linear combination over GF(2^8) of the source symbols of a window, and stands for any one of
//! them that is lost.
//!
//! Source symbols are numbered. They differ in length: a shorter one counts as if zeros followed.
//! Coefficients are not sent. They follow from the numbers of the source symbol and of the repair
//! symbol, so that both ends agree on them, and window and density are in the repair symbol's
//! header.

mod decoder;
mod field;
mod sum;
#[cfg(test)]
mod tests;

use crate::wire::seq::SeqNumber;
use alloc::vec::Vec;
use bytes::Bytes;
use sum::Sum;

pub(crate) use decoder::Decoder;

/// The most source symbols of a window: what its field of 12 bits can say. Of more in flight only
/// the last ones are covered: the others wait for retransmissions, and each flow for them.
pub(crate) const MAX_WINDOW: u16 = 4_095;
/// The density at which every source symbol of the window is in the combination.
pub(crate) const DENSE: u8 = 15;

/// Which source symbols a repair symbol combines, and by which coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Combination {
    /// The number of the repair symbol, from which the coefficients follow.
    pub(crate) key: u32,
    /// The window: its first source symbol, and the number of symbols, at most [`MAX_WINDOW`].
    pub(crate) first: SeqNumber,
    pub(crate) len: u16,
    /// A source symbol is in the combination with a probability of (`density` + 1) / 16, as in RFC
    /// 8681 §3.5.
    pub(crate) density: u8,
}

impl Combination {
    /// The first number above the window.
    pub(crate) fn end(&self) -> SeqNumber {
        self.first + u32::from(self.len)
    }

    /// The coefficient of a source symbol of the window; 0 if it is not in the combination.
    fn coefficient(&self, seq: SeqNumber) -> u8 {
        // The finalizer of MurmurHash3: each bit of both numbers changes half of the result's.
        let mut hash = self.key.wrapping_mul(0x9e37_79b1) ^ seq.0;
        hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
        hash ^= hash >> 16;
        let is_in = (hash >> 28) as u8 <= self.density;
        if is_in { (1 + (hash & 0xffff) % 255) as u8 } else { 0 }
    }

    /// The repair symbol of these source symbols: all of the window, in order.
    pub(crate) fn encode<'a>(&self, symbols: impl Iterator<Item = Symbol<'a>>) -> Vec<u8> {
        let mut sum = Sum::default();
        for (symbol, index) in symbols.zip(0u32..) {
            symbol.add_to(&mut sum, self.coefficient(self.first + index));
        }
        sum.total()
    }
}

/// A source symbol: a few bytes of header, and a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol<'a> {
    pub(crate) head: [u8; HEAD_LEN],
    pub(crate) body: &'a [u8],
}

/// Bytes of a source symbol's header.
pub(crate) const HEAD_LEN: usize = 5;

impl Symbol<'_> {
    /// Adds the symbol, times a coefficient, to a sum.
    fn add_to(&self, sum: &mut Sum, coefficient: u8) {
        sum.add(coefficient, 0, &self.head);
        sum.add(coefficient, HEAD_LEN, self.body);
    }
}

/// A source symbol that was lost and is known again: its number, and its bytes with zeros behind
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Recovered {
    pub(crate) seq: SeqNumber,
    pub(crate) head: [u8; HEAD_LEN],
    pub(crate) body: Bytes,
}
