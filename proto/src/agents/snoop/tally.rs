//! What share of the packets was lost.

/// The packets that show what share is lost.
const KNOWN: f32 = 80.0;
/// The packets after which older ones count half.
const MEMORY: f32 = 4_000.0;
/// The deviations from the expected number of losses that chance explains, and the losses that may
/// come in addition, for small numbers.
const CHANCE: f32 = 3.5;
const FEW: f32 = 4.0;

/// Packets and losses among them; old ones count less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    packets: f32,
    pub(super) lost: f32,
}

impl Tally {
    pub(super) fn add(&mut self, packets: f32, lost: f32) {
        self.packets += packets;
        self.lost += lost;
        if self.packets > MEMORY {
            self.packets /= 2.0;
            self.lost /= 2.0;
        }
    }

    /// Whether there are enough packets to tell the share.
    pub(super) fn is_known(&self) -> bool {
        self.packets >= KNOWN
    }

    /// The share of packets that was lost.
    pub(super) fn share(&self) -> f32 {
        self.lost / self.packets.max(KNOWN / 2.0)
    }

    /// Whether more is lost than the share of `base` and chance explain.
    pub(super) fn exceeds(&self, base: &Self) -> bool {
        let rate = (base.lost + 0.5) / (base.packets + 1.0);
        let expected = rate.min(1.0) * self.packets;
        let variance = expected * (1.0 + self.packets / (base.packets + 1.0));
        self.lost > expected + CHANCE * libm::sqrtf(variance) + FEW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(packets: f32, lost: f32) -> Tally {
        Tally { packets, lost }
    }

    #[test]
    fn chance_explains_some_losses() {
        let base = tally(1_000.0, 10.0);
        assert!(!tally(1_000.0, 20.0).exceeds(&base));
        assert!(tally(1_000.0, 40.0).exceeds(&base));
        assert!(!tally(10.0, 3.0).exceeds(&base), "few packets tell little");
        assert!(!tally(1_000.0, 40.0).exceeds(&tally(20.0, 1.0)), "and so does a small base");
    }

    #[test]
    fn old_packets_count_less() {
        let mut tally = Tally::default();
        tally.add(100.0, 100.0);
        (0..10).for_each(|_| tally.add(3_900.0, 0.0));
        assert!(tally.is_known() && tally.share() < 0.01);
        assert!(tally.packets <= MEMORY);
    }
}
