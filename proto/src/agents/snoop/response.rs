//! Whether the sender answers congestion: one that does not, such as BBR, gains nothing from a loss
//! that is hidden, and a queue that it fills only grows by repairs [C-22].

/// Of what was in flight before a loss, the part that a sender keeps at most if it answers: CUBIC
/// keeps 0.7 (RFC 9438 §4.6) and grows until it is measured.
const ANSWERED: f64 = 0.85;
/// From which on the sender counts as one that ignores losses: a loss without an answer counts 2,
/// one with an answer -1. BBR often has less in flight for reasons of its own; a sender that
/// answers seldom has as much as before. With a single loss, senders that do answer lost up to a
/// tenth of their goodput on fast air hops.
const IGNORED: u8 = 4;
const NO_ANSWER: u8 = 2;
const MOST_IGNORED: u8 = 6;

/// The rounds after a loss that are measured, as many as before it: senders that probe vary what is
/// in flight.
const MEASURED: u8 = 2;

/// What is in flight, round by round, and what became of it after losses that were left to the
/// sender. In bytes that the mobile has not acknowledged, selectively or not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossResponse {
    /// The most that was in flight in this round and in the last one.
    peak: u64,
    last_peak: u64,
    /// The position whose acknowledgment ends the round.
    round_end: u64,
    episode: Option<Episode>,
    /// The losses that the sender did not answer, weighted, less those that it answered.
    ignored: u8,
}

/// A loss that the sender was shown.
#[derive(Clone, Copy, Debug)]
struct Episode {
    before: u64,
    /// The position whose acknowledgment ends the recovery.
    end: u64,
    /// The rounds since the recovery.
    rounds: u8,
}

impl LossResponse {
    /// Notes that so much is in flight.
    pub(super) fn in_flight(&mut self, bytes: u64) {
        self.peak = self.peak.max(bytes);
    }

    /// The sender has retransmitted a range that was left to it; `highest` is the position behind
    /// all that it has sent.
    pub(super) fn retransmitted(&mut self, highest: u64) {
        let before = self.peak.max(self.last_peak);
        self.episode.get_or_insert(Episode { before, end: highest, rounds: 0 });
    }

    /// Data up to `acked` was acknowledged, of that up to `highest`; so much is in flight.
    pub(super) fn acknowledged(&mut self, acked: u64, highest: u64, in_flight: u64) {
        if acked < self.round_end {
            return;
        }
        let older = self.last_peak;
        self.last_peak = core::mem::replace(&mut self.peak, in_flight);
        self.round_end = highest;
        let Some(episode) = &mut self.episode else { return };
        if acked >= episode.end {
            episode.rounds += 1;
        }
        // The round in which the recovery ended began before its end.
        if episode.rounds <= MEASURED {
            return;
        }
        let after = self.last_peak.max(older);
        self.ignored = match after as f64 <= ANSWERED * episode.before as f64 {
            true => self.ignored.saturating_sub(1),
            false => (self.ignored + NO_ANSWER).min(MOST_IGNORED),
        };
        self.episode = None;
    }

    /// Whether the sender ignores losses.
    pub(super) fn ignores_losses(&self) -> bool {
        self.ignored >= IGNORED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of a sender with a window of 100,000 bytes, which it multiplies at each loss; a loss
    /// in each sixth round.
    fn feed(response: &mut LossResponse, factor: f64, rounds: u64) {
        let mut at = response.round_end;
        let mut window = 100_000.0;
        for round in 0..rounds {
            let flight = window as u64;
            at += flight;
            response.in_flight(flight);
            if round % 6 == 0 {
                response.retransmitted(at);
                window *= factor;
            } else {
                window = 100_000_f64.min(window * 1.02);
            }
            response.acknowledged(at, at + flight, window as u64);
        }
    }

    #[test]
    fn a_sender_that_keeps_its_window_ignores_losses_until_it_answers_one() {
        let mut response = LossResponse::default();
        feed(&mut response, 1.0, 30);
        assert!(response.ignores_losses());
        feed(&mut response, 0.7, 30);
        assert!(!response.ignores_losses());
    }

    #[test]
    fn a_sender_that_reduces_its_window_answers() {
        for factor in [0.5, 0.7] {
            let mut response = LossResponse::default();
            feed(&mut response, factor, 100);
            assert!(!response.ignores_losses());
        }
    }
}
