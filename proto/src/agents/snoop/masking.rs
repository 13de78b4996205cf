//! Whether holes under repair are masked at all [C-31].
//!
//! A mask costs the sender its ACK clock, and ends in a burst as long as the mask. A sender with
//! RACK needs no mask: it waits for a hole that it is shown, up to a round trip once it has learned
//! that the path reorders (RFC 8985 §6.2), and undoes what it did too early. Holes are masked where
//! masks are brief, where that time is often too short for the repair, and for a sender that
//! reduces its window all the same.

use crate::time::Instant;
use core::time::Duration;

/// The rounds before a sender is shown a hole: one that reduces its window has filled it by then.
const FIRST_ROUNDS: u16 = 10;
/// The rounds until a sender that has reduced its window is shown a hole again: at first, and at
/// most.
const FIRST_PERIOD: u16 = 64;
const LAST_PERIOD: u16 = 1_024;
/// The most responses that count.
const MOST_TRUST: u8 = 4;
/// The part of its window that a sender keeps at most if it reduces the window: CUBIC keeps 0.7
/// (RFC 9438 §4.6), and grows until it is measured.
const REDUCED: f64 = 0.85;
/// The rounds from a retransmission to the end of the two rounds that are measured: a recovery ends
/// in the second one.
const MEASURED: u8 = 4;

/// What is known of a sender's response to holes under repair. A round is a round trip of the
/// sender, and its window is the new data that the sender sends in a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masking {
    /// Whether masks are better for any sender: they are brief, or repairs often come too late.
    pub(super) is_better: bool,
    /// The begin of the round, and the end of the data that the sender had sent by then.
    round: Option<(Instant, u64)>,
    /// The windows of the last two rounds, in bytes; the last one first.
    windows: [u64; 2],
    answer: Option<Answer>,
    /// The answers without a reduction, less those with one.
    trust: u8,
    /// The rounds for which holes remain masked, and how many that will be after the next
    /// reduction.
    rounds_left: u16,
    period: u16,
}

/// A retransmission of what was under repair.
#[derive(Clone, Copy, Debug)]
struct Answer {
    window_before: u64,
    /// The rounds since.
    rounds: u8,
}

impl Default for Masking {
    fn default() -> Self {
        Self {
            is_better: true,
            round: None,
            windows: [0; 2],
            answer: None,
            trust: 0,
            rounds_left: FIRST_ROUNDS,
            period: FIRST_PERIOD,
        }
    }
}

impl Masking {
    /// Whether holes are masked. An unknown sender whose answer is being measured is shown no
    /// further hole.
    pub(super) fn is_needed(&self) -> bool {
        self.is_better || self.rounds_left > 0 || self.trust == 0 && self.answer.is_some()
    }

    /// The sender has retransmitted what was under repair, or what has arrived.
    pub(super) fn answered(&mut self) {
        if !self.is_better && self.rounds_left == 0 {
            let window_before = self.windows[0].max(self.windows[1]);
            self.answer.get_or_insert(Answer { window_before, rounds: 0 });
        }
    }

    /// Whether a round of this length ends now.
    pub(super) fn ends_round(&self, now: Instant, round_trip: Duration) -> bool {
        self.round.is_none_or(|(begin, _)| now >= begin + round_trip)
    }

    /// Ends the round; the sender has sent all data below `highest`.
    pub(super) fn end_round(&mut self, now: Instant, round_trip: Duration, highest: u64) {
        let Some((begin, sent)) = self.round.replace((now, highest)) else { return };
        let share = round_trip.div_duration_f64(now.since(begin).max(round_trip));
        let window = (highest.saturating_sub(sent) as f64 * share) as u64;
        self.windows = [window, self.windows[0]];
        self.rounds_left = self.rounds_left.saturating_sub(1);
        let Some(answer) = &mut self.answer else { return };
        answer.rounds += 1;
        if answer.rounds < MEASURED {
            return;
        }
        let window_after = self.windows[0].max(self.windows[1]);
        let is_reduced = window_after as f64 <= REDUCED * answer.window_before as f64;
        self.answer = None;
        if !is_reduced {
            self.trust = (self.trust + 1).min(MOST_TRUST);
            self.period = FIRST_PERIOD;
        } else if self.trust > 0 {
            self.trust -= 1;
        } else {
            self.rounds_left = self.period;
            self.period = (self.period * 2).min(LAST_PERIOD);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(60);
    const WINDOW: f64 = 100_000.0;

    /// The rounds, of so many, in which holes are masked; the sender retransmits each hole that it
    /// is shown, multiplies its window by this factor, and has it back after 20 rounds.
    fn masked(factor: f64, rounds: u32) -> u32 {
        let mut masking = Masking { is_better: false, ..Masking::default() };
        let (mut window, mut highest, mut masked) = (WINDOW, 1 << 32, 0);
        for round in 0..rounds {
            let now = Instant::ZERO + ROUND_TRIP * round;
            assert!(masking.ends_round(now, ROUND_TRIP));
            masking.end_round(now, ROUND_TRIP, highest);
            window = WINDOW.min(window + WINDOW * (1.0 - factor) / 20.0);
            if masking.is_needed() {
                masked += 1;
            } else {
                masking.answered();
                window *= factor;
            }
            highest += window as u64;
        }
        masked
    }

    #[test]
    fn a_sender_that_undoes_its_reductions_is_shown_holes() {
        let first = u32::from(FIRST_ROUNDS) + u32::from(MEASURED);
        assert!(masked(1.0, 1_000) <= first + 1);
    }

    #[test]
    fn a_sender_that_reduces_its_window_is_shown_few_holes() {
        for factor in [0.5, 0.7] {
            let shown = 5_000 - masked(factor, 5_000);
            assert!((4..12).contains(&shown), "{shown} of 5000 rounds");
        }
    }

    #[test]
    fn a_round_lasts_a_round_trip_and_a_pause_is_no_reduction() {
        let mut masking = Masking::default();
        masking.end_round(Instant::ZERO, ROUND_TRIP, 0);
        assert!(!masking.ends_round(Instant::ZERO + ROUND_TRIP / 2, ROUND_TRIP));
        masking.end_round(Instant::ZERO + ROUND_TRIP * 4, ROUND_TRIP, 40_000);
        assert_eq!(masking.windows[0], 10_000, "the window of a round trip");
    }

    #[test]
    fn what_is_masked_teaches_nothing() {
        let mut masking = Masking::default();
        masking.answered();
        assert!(masking.answer.is_none());
    }
}
