//! The field GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (RFC 8681 §3.7.1).

const POLYNOMIAL: u16 = 0x11d;

/// The products of all pairs.
static PRODUCTS: [[u8; 256]; 256] = products();

const fn products() -> [[u8; 256]; 256] {
    let mut table = [[0; 256]; 256];
    let mut a = 0;
    while a < 256 {
        let mut b = 0;
        while b < 256 {
            table[a][b] = slow_product(a as u16, b as u16);
            b += 1;
        }
        a += 1;
    }
    table
}

const fn slow_product(mut a: u16, mut b: u16) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        a <<= 1;
        if a & 0x100 != 0 {
            a ^= POLYNOMIAL;
        }
        b >>= 1;
    }
    product as u8
}

pub(super) fn product(a: u8, b: u8) -> u8 {
    PRODUCTS[usize::from(a)][usize::from(b)]
}

/// The inverse of a number; of 0, which has none, 0.
pub(super) fn inverse(a: u8) -> u8 {
    // a^254: every number but 0 to the power of 255 is 1.
    let mut power = 1;
    for _ in 0..254 {
        power = product(power, a);
    }
    power
}

/// Adds a row to the first bytes of `sum`, which is at least as long.
pub(super) fn add(sum: &mut [u8], row: &[u8]) {
    sum.iter_mut().zip(row).for_each(|(sum, byte)| *sum ^= byte);
}

/// Multiplies a row by x, which is 2.
pub(super) fn double(row: &mut [u8]) {
    row.iter_mut().for_each(|byte| {
        let carry = (*byte as i8 >> 7) as u8;
        *byte = *byte << 1 ^ (carry & POLYNOMIAL as u8);
    });
}

/// Adds `row` times `by` to the first bytes of `sum`, which is at least as long.
pub(super) fn add_scaled(sum: &mut [u8], by: u8, row: &[u8]) {
    let products = &PRODUCTS[usize::from(by)];
    for (sum, byte) in sum.iter_mut().zip(row) {
        *sum ^= products[usize::from(*byte)];
    }
}

/// Multiplies a row.
pub(super) fn scale(row: &mut [u8], by: u8) {
    let products = &PRODUCTS[usize::from(by)];
    row.iter_mut().for_each(|byte| *byte = products[usize::from(*byte)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_but_0_has_an_inverse() {
        assert!((1..=255).all(|a| product(a, inverse(a)) == 1));
        // Products of the field of RFC 5510 §8.1, which is the same.
        assert_eq!((product(2, 128), product(3, 7), product(0x53, 0)), (0x1d, 9, 0));
    }

    #[test]
    fn products_are_distributive() {
        for a in 0..=255 {
            for b in (0..=255).step_by(7) {
                assert_eq!(product(a, b), product(b, a));
                assert_eq!(product(a, b ^ 0x35), product(a, b) ^ product(a, 0x35));
            }
        }
    }
}
