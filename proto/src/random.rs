//! Random streams: one per link, direction and purpose, all from one seed.
//!
//! Separate streams make runs comparable: switching the agent does not reshuffle the channel.

use rand_core::Rng;
use rand_pcg::Pcg64;

/// The purpose of a stream, which with link and direction identifies the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Whether a frame is lost.
    Loss = 1,
    /// When the channel fades and recovers.
    Fading = 2,
    /// Where a periodic burst begins.
    Phase = 3,
    /// Which bits are hit.
    BitError = 4,
    /// When an application sends; the stream is then of a flow and not of a link.
    Traffic = 5,
    /// The backoff of an end before it contends for a shared channel.
    Backoff = 6,
    /// Which packets a queue drops or marks.
    Queue = 7,
    /// Which packets a packet error generator drops.
    Generator = 8,
    /// By how much the delay of a path changes.
    DelayStep = 9,
    /// By how much each frame is late.
    Jitter = 10,
    /// Which frames take the longer way.
    Detour = 11,
    /// When the turns of a path are.
    Turn = 12,
}

/// A uniform random stream that is the same on every machine.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

impl Stream {
    /// The stream of `seed` for one `link`, `direction` and `purpose`.
    pub fn new(seed: u64, link: u32, direction: u8, purpose: Purpose) -> Self {
        let number = u128::from(link) << 16 | u128::from(direction) << 8 | purpose as u128;
        let mut generator = Pcg64::new(u128::from(seed), number);
        // Neighbouring seeds start close together in state: step away from the start.
        for _ in 0..8 {
            generator.next_u64();
        }
        Self(generator)
    }

    /// Uniform in `(0, 1]`, with 53 random bits: never zero, so that its logarithm is finite.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.uniform() <= probability
    }

    /// Exponentially distributed with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_replays_and_streams_differ() {
        let mut a = Stream::new(7, 0, 0, Purpose::Loss);
        let mut b = Stream::new(7, 0, 0, Purpose::Loss);
        let mut c = Stream::new(7, 0, 1, Purpose::Loss);
        let first = [a.uniform(), a.uniform()];
        assert_eq!(first, [b.uniform(), b.uniform()]);
        assert_ne!(first, [c.uniform(), c.uniform()]);
    }

    #[test]
    fn probabilities_zero_and_one_are_exact() {
        let mut stream = Stream::new(1, 0, 0, Purpose::Loss);
        assert!((0..1_000).all(|_| stream.happens(1.0)));
        assert!((0..1_000).all(|_| !stream.happens(0.0)));
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut stream = Stream::new(3, 0, 0, Purpose::Fading);
        let mean = (0..100_000).map(|_| stream.exponential(2.0)).sum::<f64>() / 100_000.0;
        assert!((mean - 2.0).abs() < 0.03, "{mean}");
    }
}
