//! The forward error correction of AIRMAIL: block codes of bytes, and the choice among them.

/// Bytes of a block at most, with its parity: Reed-Solomon codes over bytes.
const BLOCK: u32 = 255;
/// Wrong bytes of a block that each code corrects, from none to many. A block has twice as many
/// bytes of parity.
const CORRECTS: [u32; 5] = [0, 2, 4, 8, 16];
/// The choice follows the fates of so many frames.
const BATCH: u32 = 32;
/// A batch with so many lost frames makes the code stronger; so many batches in a row without any
/// make it weaker.
const LOSSES: u32 = 2;
const CLEAN_BATCHES: u32 = 4;

/// A code: its place in the list of codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Code(usize);

impl Code {
    /// That of status frames, which must arrive whatever the code of data is.
    pub(super) const STATUS: Self = Self(2);

    /// The bytes of a frame with its parity.
    pub(super) fn coded(self, bytes: u32) -> u32 {
        let blocks = bytes.div_ceil(BLOCK - self.parity()).max(1);
        bytes + blocks * self.parity()
    }

    /// The probability that a frame of `bytes` cannot be corrected where bits are wrong
    /// independently of each other with probability `ber`: any of its blocks has more wrong bytes
    /// than the code corrects. Blocks are of equal length, the last one may be shorter.
    pub(super) fn failure(self, bytes: u32, ber: f64) -> f64 {
        let payload = BLOCK - self.parity();
        let whole = power(self.block_success(BLOCK, ber), bytes / payload);
        let rest = match bytes % payload {
            0 => 1.0,
            rest => self.block_success(rest + self.parity(), ber),
        };
        1.0 - whole * rest
    }

    /// The probability that at most as many of `bytes` are wrong as the code corrects.
    fn block_success(self, bytes: u32, ber: f64) -> f64 {
        let right = power(1.0 - ber, 8);
        if right <= 0.0 {
            return 0.0;
        }
        let odds = (1.0 - right) / right;
        let mut exactly = power(right, bytes);
        let mut at_most = exactly;
        for wrong in 1..=CORRECTS[self.0].min(bytes) {
            exactly *= odds * f64::from(bytes + 1 - wrong) / f64::from(wrong);
            at_most += exactly;
        }
        at_most.min(1.0)
    }

    fn parity(self) -> u32 {
        2 * CORRECTS[self.0]
    }
}

/// The share of the rate that arrives as frames of `bytes` at most, with the best code for this bit
/// error rate, or without any.
pub(super) fn best_share(bytes: u32, ber: f64, with_codes: bool) -> f64 {
    let codes = (0..if with_codes { CORRECTS.len() } else { 1 }).map(Code);
    let share = |code: Code| {
        f64::from(bytes) / f64::from(code.coded(bytes)) * (1.0 - code.failure(bytes, ber))
    };
    codes.map(share).fold(0.0, f64::max)
}

/// Multiplications only: the same on every machine.
fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |power, _| power * base)
}

/// The code that a sender uses, by the losses that it has seen recently.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Adaptive {
    code: Code,
    frames: u32,
    losses: u32,
    clean_batches: u32,
}

impl Adaptive {
    pub(super) fn code(&self) -> Code {
        self.code
    }

    /// The fate of a frame that was sent with `code` has become known.
    pub(super) fn learn(&mut self, code: Code, is_lost: bool) {
        if code != self.code {
            return;
        }
        self.frames += 1;
        self.losses += u32::from(is_lost);
        if self.losses >= LOSSES {
            let Code(level) = self.code;
            *self = Self { code: Code((level + 1).min(CORRECTS.len() - 1)), ..Self::default() };
        } else if self.frames == BATCH {
            let clean_batches = if self.losses == 0 { self.clean_batches + 1 } else { 0 };
            *self = Self { code: self.code, clean_batches, ..Self::default() };
            if clean_batches == CLEAN_BATCHES {
                let Code(level) = self.code;
                *self = Self { code: Code(level.saturating_sub(1)), ..Self::default() };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_code_every_wrong_bit_damages_the_frame() {
        let (bytes, ber) = (1500, 1e-5);
        let expected = 1.0 - power(1.0 - ber, 8 * bytes);
        assert!((Code(0).failure(bytes, ber) - expected).abs() < 1e-9);
        assert_eq!(Code(0).coded(bytes), bytes);
        assert_eq!((Code(4).failure(bytes, 0.0), Code(4).failure(bytes, 1.0)), (0.0, 1.0));
    }

    /// Against the binomial distribution in full: 10 bytes of payload, two wrong bytes corrected.
    #[test]
    fn a_block_fails_when_more_bytes_are_wrong_than_the_code_corrects() {
        let (ber, bytes) = (0.01, 14.0);
        let wrong = 1.0 - power(1.0 - ber, 8);
        let right = 1.0 - wrong;
        let at_most_two = power(right, 14)
            + bytes * wrong * power(right, 13)
            + bytes * 13.0 / 2.0 * wrong * wrong * power(right, 12);
        assert!((Code(1).failure(10, ber) - (1.0 - at_most_two)).abs() < 1e-12);
        assert_eq!(Code(1).coded(10), 14);
        // 251 bytes fill a block, one more begins another.
        assert_eq!((Code(1).coded(251), Code(1).coded(252)), (255, 260));
    }

    #[test]
    fn the_best_code_is_none_without_errors_and_a_strong_one_with_many() {
        assert_eq!(best_share(1508, 0.0, true), 1.0);
        let (without, with) = (best_share(1508, 2e-4, false), best_share(1508, 2e-4, true));
        assert!(without < 0.1 && with > 0.9, "{without} {with}");
    }

    #[test]
    fn losses_make_the_code_stronger_and_their_absence_weaker() {
        let mut adaptive = Adaptive::default();
        for _ in 0..LOSSES {
            adaptive.learn(Code(0), true);
        }
        assert_eq!(adaptive.code(), Code(1));
        // What is heard of frames of another code says nothing.
        adaptive.learn(Code(0), true);
        adaptive.learn(Code(0), true);
        assert_eq!(adaptive.code(), Code(1));
        for _ in 0..BATCH * CLEAN_BATCHES - 1 {
            adaptive.learn(Code(1), false);
        }
        assert_eq!(adaptive.code(), Code(1));
        adaptive.learn(Code(1), false);
        assert_eq!(adaptive.code(), Code(0));
    }
}
