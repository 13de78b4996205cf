//! Whether holes under repair are masked at all [C-31].
//!
//! A mask costs the sender its ACK clock, and ends in a burst as long as the mask. A sender with
//! RACK needs no mask: it waits for a hole that it is shown, up to a round trip once it has learned
//! that the path reorders (RFC 8985 §6.2), and undoes what it did too early. Holes are masked where
//! masks are brief, where that time is often too short for the repair, and for a sender that
//! reduces its window all the same or retransmits what it should wait for.

use super::decision::Sight;
use crate::time::Instant;
use core::time::Duration;

/// The rounds before a sender is shown a hole: one that reduces its window has filled it by then.
const FIRST_ROUNDS: u16 = 10;
/// The rounds until a sender that has reduced its window is shown a hole again: at first, and at
/// most.
const FIRST_PERIOD: u16 = 64;
const LAST_PERIOD: u16 = 1_024;
/// What the first answer without a reduction counts: RACK learns to wait while the second one is
/// measured. And the most that answers count.
const FIRST_TRUST: u8 = 2;
const MOST_TRUST: u8 = 4;
/// The part of its window that a sender keeps at most if it reduces the window: CUBIC keeps 0.7
/// (RFC 9438 §4.6), and grows until it is measured.
const REDUCED: f64 = 0.85;
/// The rounds from a retransmission, or from a sign of congestion, to the end of the two rounds
/// that are measured: a recovery ends in the second one.
const MEASURED: u8 = 4;
/// The holes that a trusted sender may retransmit in that time beyond half of them.
const FEW: u32 = 1;

/// What is known of a sender's response to holes under repair. A round is a round trip of the
/// sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masking {
    /// Whether masks are better for any sender: they are brief, or repairs often come too late.
    pub(super) is_better: bool,
    /// The begin of the round.
    round: Option<Instant>,
    /// When an ACK left, and up to where the sender then knew that data had arrived.
    told: Option<(Instant, u64)>,
    /// The largest windows of this round and of the last one, in bytes.
    windows: [u64; 2],
    answer: Option<Answer>,
    /// The patient answers, less the others.
    trust: u8,
    /// The rounds for which holes remain masked, and how many that will be after the next
    /// reduction.
    rounds_left: u16,
    period: u16,
    /// The rounds in which the sender still answers congestion.
    rounds_congested: u8,
}

/// A retransmission of what was under repair, and what followed.
#[derive(Clone, Copy, Debug)]
struct Answer {
    window_before: u64,
    /// The holes that were repaired since, and those that the sender has retransmitted.
    repaired: u32,
    retransmitted: u32,
    /// The rounds since.
    rounds: u8,
}

impl Default for Masking {
    fn default() -> Self {
        Self {
            is_better: true,
            round: None,
            told: None,
            windows: [0; 2],
            answer: None,
            trust: 0,
            rounds_left: FIRST_ROUNDS,
            period: FIRST_PERIOD,
            rounds_congested: 0,
        }
    }
}

impl Masking {
    /// What the sender sees of holes under repair. An unknown sender whose answer is being measured
    /// is shown no further hole.
    pub(super) fn policy(&self) -> Sight {
        let is_measured = self.trust == 0 && self.answer.is_some();
        if self.is_better {
            Sight::MaskedBetter
        } else if self.rounds_left > 0 || is_measured {
            Sight::MaskedUntrusted
        } else {
            Sight::ShownPatient
        }
    }

    /// The sender has retransmitted what was under repair, or what has arrived.
    pub(super) fn answered(&mut self) {
        if self.is_better || self.rounds_left > 0 || self.rounds_congested > 0 {
            return;
        }
        let window_before = self.window();
        let answer = Answer { window_before, repaired: 0, retransmitted: 0, rounds: 0 };
        self.answer.get_or_insert(answer).retransmitted += 1;
    }

    /// A hole is repaired.
    pub(super) fn repaired(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.repaired += 1;
        }
    }

    /// The sender is shown congestion: what it does now is no answer to a hole under repair.
    pub(super) fn congested(&mut self) {
        self.answer = None;
        self.rounds_congested = MEASURED;
    }

    /// Whether the next ACK to the sender begins a measurement of the window.
    pub(super) fn awaits_ack(&self) -> bool {
        self.told.is_none()
    }

    /// An ACK leaves after which the sender knows of the data up to here that it has arrived,
    /// selectively or not.
    pub(super) fn ack_left(&mut self, now: Instant, known: u64) {
        self.told = Some((now, known));
    }

    /// Data comes; the sender has sent all data below `highest` before. What it has sent one round
    /// trip of the wired side after an ACK left, beyond what that ACK told it, is its window.
    pub(super) fn data_came(&mut self, now: Instant, wired: Duration, highest: u64) {
        let Some((at, known)) = self.told else { return };
        if now >= at + wired + wired / 8 {
            let [window, _] = &mut self.windows;
            *window = highest.saturating_sub(known).max(*window);
            self.told = None;
        }
    }

    /// The window of the sender in bytes, 0 if it is not known.
    pub(super) fn window(&self) -> u64 {
        self.windows.into_iter().fold(0, u64::max)
    }

    /// Whether a round of this length ends now.
    pub(super) fn ends_round(&self, now: Instant, round_trip: Duration) -> bool {
        self.round.is_none_or(|begin| now >= begin + round_trip)
    }

    /// Ends the round.
    pub(super) fn end_round(&mut self, now: Instant) {
        if self.round.replace(now).is_none() {
            return;
        }
        let window = self.window();
        let [last, _] = self.windows;
        self.windows = [0, last];
        self.rounds_left = self.rounds_left.saturating_sub(1);
        self.rounds_congested = self.rounds_congested.saturating_sub(1);
        let Some(answer) = &mut self.answer else { return };
        answer.rounds += 1;
        if answer.rounds >= MEASURED {
            let is_patient = answer.is_patient(window, self.trust > 0);
            self.answer = None;
            self.learn(is_patient);
        }
    }

    /// Takes whether the sender has waited for repairs.
    fn learn(&mut self, is_patient: bool) {
        if is_patient {
            if self.trust > 0 {
                self.period = FIRST_PERIOD;
            }
            self.trust = (self.trust + 1).clamp(FIRST_TRUST, MOST_TRUST);
            return;
        }
        self.trust = self.trust.saturating_sub(1);
        if self.trust == 0 {
            self.rounds_left = self.period;
            self.period = (self.period * 2).min(LAST_PERIOD);
        }
    }
}

impl Answer {
    /// Whether the sender has kept its `window`, and, once it is trusted and so was shown all
    /// holes, has left most of them to the repair. A sender that is always in a recovery, which it
    /// undoes, keeps a small window.
    fn is_patient(&self, window: u64, is_trusted: bool) -> bool {
        let is_reduced = window as f64 <= REDUCED * self.window_before as f64;
        let retransmits_most = self.retransmitted > self.repaired / 2 + FEW;
        !(is_reduced || is_trusted && retransmits_most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRED: Duration = Duration::from_millis(20);
    const ROUND_TRIP: Duration = Duration::from_millis(60);
    const WINDOW: f64 = 100_000.0;

    /// A sender, and what it has sent.
    struct Sender {
        masking: Masking,
        now: Instant,
        highest: u64,
        window: f64,
    }

    impl Sender {
        fn new() -> Self {
            let masking = Masking { is_better: false, ..Masking::default() };
            Self { masking, now: Instant::ZERO, highest: 1 << 32, window: WINDOW }
        }

        /// A round in which the sender sends its window.
        fn round(&mut self) {
            self.masking.end_round(self.now);
            if self.masking.awaits_ack() {
                self.masking.ack_left(self.now, self.highest);
            }
            self.highest += self.window as u64;
            self.now += ROUND_TRIP;
            self.masking.data_came(self.now, WIRED, self.highest);
        }

        /// The rounds, of so many, in which holes are masked; the sender retransmits a hole that it
        /// is shown, multiplies its window by this factor, and has it back after 20 rounds.
        fn masked(&mut self, factor: f64, rounds: u32) -> u32 {
            let mut masked = 0;
            for _ in 0..rounds {
                self.round();
                (0..4).for_each(|_| self.masking.repaired());
                self.window = WINDOW.min(self.window + WINDOW * (1.0 - factor) / 20.0);
                if self.masking.policy().is_masked() {
                    masked += 1;
                } else {
                    self.masking.answered();
                    self.window *= factor;
                }
            }
            masked
        }
    }

    #[test]
    fn a_sender_that_undoes_its_reductions_is_shown_holes() {
        let mut sender = Sender::new();
        let first = sender.masked(1.0, 40);
        assert!((10..16).contains(&first), "{first} rounds");
        assert_eq!(sender.masked(1.0, 1_000), 0);
    }

    #[test]
    fn a_sender_that_reduces_its_window_is_shown_few_holes() {
        for factor in [0.5, 0.7] {
            let shown = 5_000 - Sender::new().masked(factor, 5_000);
            assert!((4..12).contains(&shown), "{shown} of 5000 rounds");
        }
    }

    #[test]
    fn a_sender_that_retransmits_each_hole_is_shown_few_holes() {
        let (mut sender, mut shown) = (Sender::new(), 0);
        for _ in 0..2_000 {
            sender.round();
            for _ in 0..10 {
                sender.masking.repaired();
                if !sender.masking.policy().is_masked() {
                    sender.masking.answered();
                }
            }
            shown += u32::from(!sender.masking.policy().is_masked());
        }
        assert!(shown < 200, "{shown} of 2000 rounds");
    }

    #[test]
    fn the_answer_to_congestion_is_no_answer_to_a_hole() {
        let mut sender = Sender::new();
        sender.masked(1.0, 40);
        for round in 0..200 {
            if round % 20 == 0 {
                sender.masking.congested();
                sender.window = WINDOW / 2.0;
            }
            sender.window = WINDOW.min(sender.window + WINDOW / 40.0);
            (0..4).for_each(|_| sender.masking.repaired());
            sender.masking.answered();
            sender.round();
            assert!(!sender.masking.policy().is_masked(), "round {round}");
        }
    }

    #[test]
    fn a_window_is_what_was_sent_a_wired_round_trip_after_an_ack() {
        let mut masking = Masking::default();
        let at = |millis| Instant::from_millis(millis);
        masking.ack_left(at(0), 1_000);
        masking.data_came(at(22), WIRED, 31_000);
        assert_eq!(masking.window(), 0, "too early");
        // A pause is no reduction.
        masking.data_came(at(400), WIRED, 31_000);
        assert_eq!(masking.window(), 30_000);
        assert!(masking.awaits_ack());
    }

    #[test]
    fn a_round_lasts_a_round_trip() {
        let mut masking = Masking::default();
        masking.end_round(Instant::ZERO);
        assert!(!masking.ends_round(Instant::ZERO + ROUND_TRIP / 2, ROUND_TRIP));
        assert!(masking.ends_round(Instant::ZERO + ROUND_TRIP, ROUND_TRIP));
    }

    #[test]
    fn what_is_masked_teaches_nothing() {
        let mut masking = Masking::default();
        masking.answered();
        assert!(masking.answer.is_none());
    }
}
