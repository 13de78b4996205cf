//! Whether losses are congestion. A link that retransmits hides its losses from the hosts, and a
//! radio loses frames that no queue has dropped; neither may be answered in the way of the other.
//!
//! The share of frames that the path loses by itself is measured where congestion cannot be the
//! cause: among frames sent below the rate of the path while its queue was short, and in rounds of
//! startup in which it was short throughout. Losses beyond that share at a standing queue are
//! congestion.

/// Frames after which older ones count half: for the control, and for people, who ask less often
/// and want a share of a percent to within a few tenths of itself.
const MEMORY: u32 = 1_024;
const TOLD_MEMORY: u32 = 8_192;
/// Frames without which nothing is known.
const LEAST: u32 = 40;
/// The largest share that is made up for, in 1024ths.
const MOST: u64 = 512;

/// The losses of the path, and those of the present round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Losses {
    slow_frames: u32,
    slow_lost: u32,
    round_frames: u32,
    round_lost: u32,
    /// All that were settled at a short queue.
    told_frames: u32,
    told_lost: u32,
}

impl Losses {
    /// Frames sent below the rate of the path were settled at a short queue.
    pub(super) fn slow(&mut self, frames: u32, lost: u32) {
        self.slow_frames = self.slow_frames.saturating_add(frames);
        self.slow_lost = self.slow_lost.saturating_add(lost);
        if self.slow_frames > MEMORY {
            (self.slow_frames, self.slow_lost) = (self.slow_frames / 2, self.slow_lost / 2);
        }
    }

    /// Startup has ended. What it showed counts for little: its bursts may have met a policer,
    /// which has no queue.
    pub(super) fn end_startup(&mut self) {
        if self.slow_frames > LEAST {
            self.slow_lost = self.slow_lost * LEAST / self.slow_frames;
            self.slow_frames = LEAST;
        }
    }

    /// A round trip begins; `is_calm` if nobody filled the path in the one before.
    pub(super) fn begin_round(&mut self, is_calm: bool) {
        if is_calm {
            self.slow(self.round_frames, self.round_lost);
        }
        (self.round_frames, self.round_lost) = (0, 0);
    }

    /// Frames were settled; `is_short` if the queue is.
    pub(super) fn settled(&mut self, frames: u32, lost: u32, is_short: bool) {
        self.round_frames += frames;
        self.round_lost += lost;
        if is_short {
            (self.told_frames, self.told_lost) = (self.told_frames + frames, self.told_lost + lost);
            if self.told_frames > TOLD_MEMORY {
                (self.told_frames, self.told_lost) = (self.told_frames / 2, self.told_lost / 2);
            }
        }
    }

    /// The share that the path loses by itself, in 1024ths.
    pub(super) fn share(&self) -> u64 {
        if self.slow_frames < LEAST {
            return 0;
        }
        (u64::from(self.slow_lost) * 1_024 / u64::from(self.slow_frames)).min(MOST)
    }

    /// The share of all frames that were lost while the queue was short, if enough are known: of a
    /// policer's path, which has no queue, more than it loses by itself.
    pub(super) fn told(&self) -> Option<f64> {
        let share = f64::from(self.told_lost) / f64::from(self.told_frames);
        (self.told_frames >= LEAST).then_some(share)
    }

    /// Whether more was lost in this round trip than the path loses by itself: more than one and a
    /// half times as much, and three standard deviations.
    pub(super) fn exceed_share(&self) -> bool {
        // In 1024ths of a frame.
        let expected = u64::from(self.round_frames) * self.share();
        let bound = expected + expected / 2 + 3 * (expected * 1_024).isqrt();
        u64::from(self.round_lost) * 1_024 > bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_too_many_where_the_path_loses_nothing() {
        let mut losses = Losses::default();
        losses.slow(500, 0);
        losses.settled(100, 0, false);
        assert!(!losses.exceed_share());
        losses.settled(100, 1, false);
        assert!(losses.exceed_share());
        losses.begin_round(false);
        assert!(!losses.exceed_share());
        assert_eq!(losses.share(), 0, "it was congestion");
        losses.settled(100, 10, false);
        losses.begin_round(true);
        assert_eq!(losses.share(), 10 * 1_024 / 600);
    }

    #[test]
    fn losses_of_the_path_are_expected() {
        let mut losses = Losses::default();
        losses.slow(1_000, 50);
        assert_eq!(losses.share(), 51);
        losses.settled(100, 12, false);
        assert!(!losses.exceed_share());
        losses.settled(0, 4, false);
        assert!(losses.exceed_share());
    }

    #[test]
    fn people_are_told_of_all_frames_at_a_short_queue() {
        let mut losses = Losses::default();
        losses.settled(100, 40, false);
        losses.settled(LEAST - 1, 1, true);
        assert_eq!(losses.told(), None);
        losses.settled(1_000 - LEAST + 1, 9, true);
        assert_eq!(losses.told(), Some(0.01));
        (0..100).for_each(|_| losses.settled(1_000, 50, true));
        assert!(losses.told().is_some_and(|share| (share - 0.05).abs() < 0.001));
    }

    #[test]
    fn what_startup_showed_is_soon_outweighed() {
        let mut losses = Losses::default();
        losses.slow(1_000, 500);
        losses.end_startup();
        assert_eq!(losses.share(), 512);
        losses.slow(400, 0);
        assert!(losses.share() < 50, "{}", losses.share());
    }

    #[test]
    fn little_is_known_of_few_frames_and_old_ones_are_forgotten() {
        let mut losses = Losses::default();
        losses.slow(30, 15);
        assert_eq!(losses.share(), 0);
        losses.slow(970, 485);
        assert_eq!(losses.share(), 512);
        (0..30).for_each(|_| losses.slow(500, 0));
        assert_eq!(losses.share(), 0);
    }
}
