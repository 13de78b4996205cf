//! Whether holes under repair are masked at all [C-31].
//!
//! A mask costs the sender its ACK clock, and ends in a burst as long as the mask. A sender with
//! RACK needs no mask: it waits for a hole that it is shown, up to a round trip once it has learned
//! that the path reorders (RFC 8985 §6.2). Holes are masked where that time is often too short for
//! the repair, and for a sender that does not wait.

/// The rounds with holes over which the share of answered ones is smoothed.
const SMOOTHED_ROUNDS: f32 = 8.0;
/// The share of answered rounds above which a sender counts as one that does not wait.
const MOST_ANSWERED: f32 = 0.5;
/// The rounds for which its holes are masked before it is shown some again: at first, and at most.
const FIRST_PERIOD: u16 = 64;
const LAST_PERIOD: u16 = 1_024;

/// What a sender does with holes under repair that it is shown. A round is the time in which all
/// data that was in flight is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masking {
    /// The position whose acknowledgment ends the round.
    pub(super) round_end: u64,
    /// Whether a hole was repaired in this round.
    pub(super) has_hole: bool,
    /// Whether the sender retransmitted data under repair in this round.
    is_answered: bool,
    /// The share of the rounds with holes in which the sender did.
    answered: f32,
    /// Whether repairs often come too late for the sender.
    is_late: bool,
    /// The rounds for which holes of this sender remain masked, and how many that will be the next
    /// time.
    rounds_left: u16,
    period: u16,
}

/// What a sender did in a round with a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Waited,
    Retransmitted,
}

impl Default for Masking {
    fn default() -> Self {
        Self {
            round_end: 0,
            has_hole: false,
            is_answered: false,
            answered: 0.0,
            is_late: true,
            rounds_left: 0,
            period: FIRST_PERIOD,
        }
    }
}

impl Masking {
    /// Whether holes are masked.
    pub(super) fn is_needed(&self) -> bool {
        self.is_late || self.rounds_left > 0
    }

    /// The sender has retransmitted data under repair.
    pub(super) fn answered(&mut self) {
        self.is_answered = true;
    }

    /// Ends the round; the next one ends when all data below `highest` is acknowledged. Returns
    /// what the sender did with holes that it was shown, if there were any.
    pub(super) fn end_round(&mut self, highest: u64) -> Option<Answer> {
        self.round_end = highest;
        let has_hole = core::mem::take(&mut self.has_hole);
        let is_answered = core::mem::take(&mut self.is_answered);
        let answer = if is_answered { Answer::Retransmitted } else { Answer::Waited };
        Some(answer).filter(|_| (has_hole || is_answered) && !self.is_needed())
    }

    /// Learns from a round, and whether repairs of the next one will often come too late.
    pub(super) fn learn(&mut self, answer: Option<Answer>, is_late: bool) {
        self.is_late = is_late;
        self.rounds_left = self.rounds_left.saturating_sub(1);
        let Some(answer) = answer else { return };
        let retransmitted = f32::from(u8::from(answer == Answer::Retransmitted));
        self.answered += (retransmitted - self.answered) / SMOOTHED_ROUNDS;
        if self.answered > MOST_ANSWERED {
            self.answered = 0.0;
            self.rounds_left = self.period;
            self.period = (self.period * 2).min(LAST_PERIOD);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rounds, of so many with a hole, in which the holes are masked.
    fn masked(answer: Answer, rounds: u32) -> u32 {
        let mut masking = Masking::default();
        masking.learn(None, false);
        let mut round = |position| {
            masking.has_hole = true;
            if answer == Answer::Retransmitted {
                masking.answered();
            }
            let answer = masking.end_round(position);
            masking.learn(answer, false);
            masking.is_needed()
        };
        (0..rounds).map(|position| u32::from(round(position.into()))).sum()
    }

    #[test]
    fn a_sender_that_waits_is_shown_all_holes() {
        assert_eq!(masked(Answer::Waited, 1_000), 0);
    }

    #[test]
    fn a_sender_that_does_not_wait_is_shown_few_and_ever_fewer() {
        assert_eq!(masked(Answer::Retransmitted, 5), 0);
        assert_eq!(masked(Answer::Retransmitted, 6), 1);
        let shown = 10_000 - masked(Answer::Retransmitted, 10_000);
        assert!((50..100).contains(&shown), "{shown} of 10,000 rounds");
    }

    #[test]
    fn late_repairs_are_masked_and_teach_nothing() {
        let mut masking = Masking::default();
        assert!(masking.is_needed(), "before the first round");
        for position in 0..100 {
            masking.answered();
            assert_eq!(masking.end_round(position), None);
            masking.learn(None, true);
        }
        masking.learn(None, false);
        assert!(!masking.is_needed());
    }

    #[test]
    fn a_round_without_holes_teaches_nothing() {
        let mut masking = Masking::default();
        masking.learn(None, false);
        assert_eq!(masking.end_round(1), None);
    }
}
