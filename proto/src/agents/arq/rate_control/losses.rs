//! Whether losses are congestion. A link that retransmits hides its losses from the hosts, and a
//! radio loses frames that no queue has dropped; neither may be answered in the way of the other.
//!
//! The share of frames that the path loses by itself is measured where congestion cannot be the
//! cause: among frames sent below the rate of the path while its queue was short, and in rounds of
//! startup in which it was short throughout. It is no more than is lost in all. Losses beyond that
//! share at a standing queue are congestion. A share that has not been measured for ten seconds is
//! forgotten.

use super::min_round_trip::WINDOW;
use crate::time::Instant;

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
    /// Of frames sent below the rate of the path at a short queue, and when the last one was.
    slow: Settled,
    measured: Instant,
    all: Settled,
    round: Settled,
    /// All that were settled at a short queue.
    told: Settled,
}

/// Frames whose outcome is known, and those of them that were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Settled {
    frames: u32,
    lost: u32,
}

impl Settled {
    /// Adds others; of more than `memory` in all, each counts half.
    fn add(&mut self, others: Self, memory: u32) {
        self.frames = self.frames.saturating_add(others.frames);
        self.lost = self.lost.saturating_add(others.lost);
        if self.frames > memory {
            (self.frames, self.lost) = (self.frames / 2, self.lost / 2);
        }
    }

    /// The share that was lost, in 1024ths, of one frame at least.
    fn share(self) -> u64 {
        u64::from(self.lost) * 1_024 / u64::from(self.frames.max(1))
    }
}

impl Losses {
    /// Frames sent below the rate of the path were settled at a short queue.
    pub(super) fn slow(&mut self, now: Instant, frames: u32, lost: u32) {
        self.slow.add(Settled { frames, lost }, MEMORY);
        if frames > 0 {
            self.measured = now;
        }
    }

    /// Startup has ended. What it showed counts for little: its bursts may have met a policer,
    /// which has no queue.
    pub(super) fn end_startup(&mut self) {
        let Settled { frames, lost } = self.slow;
        if frames > LEAST {
            self.slow = Settled { frames: LEAST, lost: lost * LEAST / frames };
        }
    }

    /// A round trip begins; `is_calm` if nobody filled the path in the one before. Where the queue
    /// is never short, what was known of the path is forgotten: senders that all make up for the
    /// same drops repeat them for ever.
    pub(super) fn begin_round(&mut self, now: Instant, is_calm: bool) {
        if is_calm {
            self.slow(now, self.round.frames, self.round.lost);
        }
        if now.since(self.measured) > WINDOW {
            self.slow = Settled::default();
        }
        self.round = Settled::default();
    }

    /// Frames were settled; `is_short` if the queue is.
    pub(super) fn settled(&mut self, frames: u32, lost: u32, is_short: bool) {
        let settled = Settled { frames, lost };
        self.round.add(settled, u32::MAX);
        self.all.add(settled, MEMORY);
        if is_short {
            self.told.add(settled, TOLD_MEMORY);
        }
    }

    /// The share that the path loses by itself, in 1024ths: no more than is lost in all. A share
    /// that is too large keeps the queue full, and where it is never short none is measured.
    pub(super) fn share(&self) -> u64 {
        let is_known = self.slow.frames >= LEAST;
        if is_known { self.slow.share().min(self.all.share()).min(MOST) } else { 0 }
    }

    /// The share of all frames that were lost while the queue was short, if enough are known: of a
    /// policer's path, which has no queue, more than it loses by itself.
    pub(super) fn told(&self) -> Option<f64> {
        let share = f64::from(self.told.lost) / f64::from(self.told.frames);
        (self.told.frames >= LEAST).then_some(share)
    }

    /// Frames that were lost in this round trip.
    pub(super) fn in_round(&self) -> u32 {
        self.round.lost
    }

    /// Whether more was lost in this round trip than the path loses by itself: more than one and a
    /// half times as much, and three standard deviations.
    pub(super) fn exceed_share(&self) -> bool {
        // In 1024ths of a frame.
        let expected = u64::from(self.round.frames) * self.share();
        let bound = expected + expected / 2 + 3 * (expected * 1_024).isqrt();
        u64::from(self.round.lost) * 1_024 > bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames sent below the rate of the path are settled at a short queue.
    fn slow(losses: &mut Losses, frames: u32, lost: u32) {
        losses.slow(Instant::ZERO, frames, lost);
        losses.settled(frames, lost, true);
        losses.begin_round(Instant::ZERO, false);
    }

    #[test]
    fn a_loss_is_too_many_where_the_path_loses_nothing() {
        let mut losses = Losses::default();
        slow(&mut losses, 500, 0);
        losses.settled(100, 0, false);
        assert!(!losses.exceed_share());
        losses.settled(100, 1, false);
        assert!(losses.exceed_share());
        losses.begin_round(Instant::ZERO, false);
        assert!(!losses.exceed_share());
        assert_eq!(losses.share(), 0, "it was congestion");
        losses.settled(100, 10, false);
        losses.begin_round(Instant::ZERO, true);
        assert_eq!(losses.share(), 11 * 1_024 / 800, "10 of 600 would be more than in all");
    }

    #[test]
    fn losses_of_the_path_are_expected() {
        let mut losses = Losses::default();
        slow(&mut losses, 1_000, 50);
        assert_eq!(losses.share(), 51);
        losses.settled(100, 12, false);
        assert!(!losses.exceed_share());
        losses.settled(0, 4, false);
        assert!(losses.exceed_share());
    }

    #[test]
    fn a_path_loses_no_more_by_itself_than_is_lost_in_all() {
        // Startup of two links at once, at a shallow queue; then the other one keeps it full.
        let mut losses = Losses::default();
        slow(&mut losses, 80, 40);
        assert_eq!(losses.share(), 512);
        (0..40).for_each(|_| losses.settled(100, 1, false));
        assert!((10..=15).contains(&losses.share()), "{}", losses.share());
        losses.settled(100, 4, false);
        assert!(!losses.exceed_share());
        losses.begin_round(Instant::ZERO, false);
        losses.settled(100, 10, false);
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
        slow(&mut losses, 1_000, 500);
        losses.end_startup();
        assert_eq!(losses.share(), 512);
        slow(&mut losses, 400, 0);
        assert!(losses.share() < 50, "{}", losses.share());
    }

    #[test]
    fn little_is_known_of_few_frames_and_old_ones_are_forgotten() {
        let mut losses = Losses::default();
        slow(&mut losses, 30, 15);
        assert_eq!(losses.share(), 0);
        slow(&mut losses, 970, 485);
        assert_eq!(losses.share(), 512);
        (0..30).for_each(|_| slow(&mut losses, 500, 0));
        assert_eq!(losses.share(), 0);
    }

    #[test]
    fn what_is_not_measured_again_is_forgotten() {
        let mut losses = Losses::default();
        slow(&mut losses, 400, 40);
        losses.settled(100, 10, false);
        losses.begin_round(Instant::ZERO + WINDOW, false);
        assert_eq!(losses.share(), 102);
        losses.settled(100, 10, false);
        assert!(!losses.exceed_share());
        losses.begin_round(Instant::ZERO + WINDOW + WINDOW, false);
        assert_eq!(losses.share(), 0);
        losses.settled(100, 10, false);
        assert!(losses.exceed_share());
    }
}
