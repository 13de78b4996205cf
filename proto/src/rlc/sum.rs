//! Sums of rows, each times a coefficient.
//!
//! A coefficient is a polynomial of eight terms over GF(2). So a sum of products is eight plain
//! sums, one for each power of x, which are multiplied only when all rows are in. A row costs four
//! exclusive ors for each byte in the mean, and processors do these for many bytes at once; a
//! product from a table costs a load for each byte.

use super::field;
use alloc::vec::Vec;

/// The terms of a coefficient.
const POWERS: usize = 8;

/// A sum of rows. A shorter one counts as if zeros followed.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    /// For each power of x the rows whose coefficients have it.
    powers: [Vec<u8>; POWERS],
}

impl Sum {
    /// A row by itself.
    pub(super) fn of(row: Vec<u8>) -> Self {
        let mut sum = Self::default();
        sum.powers[0] = row;
        sum
    }

    /// Adds a row times a coefficient, behind so many zeros.
    pub(super) fn add(&mut self, coefficient: u8, zeros: usize, row: &[u8]) {
        let end = zeros + row.len();
        for (power, bit) in self.powers.iter_mut().zip(0..) {
            if coefficient >> bit & 1 == 1 {
                if power.len() < end {
                    power.resize(end, 0);
                }
                field::add(&mut power[zeros..], row);
            }
        }
    }

    /// The sum, as long as the longest row.
    pub(super) fn total(self) -> Vec<u8> {
        let mut total = Vec::new();
        for power in self.powers.iter().rev() {
            field::double(&mut total);
            if total.len() < power.len() {
                total.resize(power.len(), 0);
            }
            field::add(&mut total, power);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The same as the products of all bytes, one by one.
        #[test]
        fn is_the_sum_of_the_products(
            first in proptest::collection::vec(any::<u8>(), 0..70),
            rows in proptest::collection::vec(
                (any::<u8>(), 0..9usize, proptest::collection::vec(any::<u8>(), 0..90)),
                0..9,
            ),
        ) {
            let (mut sum, mut wanted) = (Sum::of(first.clone()), first);
            for (coefficient, zeros, row) in &rows {
                sum.add(*coefficient, *zeros, row);
                let end = if *coefficient == 0 { 0 } else { zeros + row.len() };
                wanted.resize(wanted.len().max(end), 0);
                for (byte, at) in row.iter().zip(*zeros..end) {
                    wanted[at] ^= field::product(*coefficient, *byte);
                }
            }
            prop_assert_eq!(sum.total(), wanted);
        }
    }
}
