//! Which holes are masked, and for how long [C-7, C-10, C-13, C-31].

use super::cache::Cached;
use super::decision::Sight;
use super::flow::Flow;
use super::settings::Settings;
use crate::time::Instant;
use core::time::Duration;

/// The share of the sender's round trip up to which a mask is brief: it costs less than it avoids
/// [C-31].
const BRIEF: f32 = 0.2;

/// The most holes and ranges that one ACK examines [C-26].
const MAX_EXAMINED: u32 = 256;

impl Flow {
    /// [C-13] The longest time for which a hole may be masked: that of two repairs, or the limit
    /// for a sender whose round trip is unknown, and which without timestamps cannot undo what it
    /// does too early. [C-28] In the sending host, for which a loss signal may be withheld.
    pub(super) fn hold_budget(&self, settings: &Settings) -> Duration {
        if self.is_at_sender() {
            return self.air.min().mul_f64(settings.hold_own).min(settings.hold_limit);
        }
        match self.wired.round_trip() {
            Some(_) => (self.air.min() * 2).min(settings.hold_limit),
            None => settings.hold_limit,
        }
    }

    /// What the sender sees of holes under repair as such, if a mask takes this time [C-31].
    fn policy(&self, budget: Duration) -> Sight {
        if !self.uses_sack {
            return Sight::MaskedNoSack;
        }
        let Some(round_trip) = self.round_trip() else { return Sight::MaskedNoRoundTrip };
        if budget < round_trip.mul_f32(BRIEF) { Sight::MaskedBrief } else { Sight::ShownPatient }
    }

    /// What the sender sees of a cached range that is under repair.
    pub(super) fn sight(&self, cached: &Cached, now: Instant, settings: &Settings) -> Sight {
        if self.is_at_sender() || !settings.suppress {
            return Sight::ShownAlways;
        }
        self.hole(cached, now, self.hold_budget(settings))
    }

    /// What the sender sees of a hole: it is masked if it was found missing, the sender has not
    /// retransmitted it, and the hold budget is not spent [C-7, C-10]. In a recovery the sender
    /// sees all losses: without the SACK blocks above a masked hole it would take its window for
    /// lost [C-22].
    fn hole(&self, cached: &Cached, now: Instant, budget: Duration) -> Sight {
        if cached.start < self.recovery_point {
            Sight::ShownRecovery
        } else if cached.resent {
            Sight::ShownResent
        } else if cached.missing_since.is_none_or(|since| now >= since + budget) {
            Sight::ShownLate
        } else {
            self.policy(budget)
        }
    }

    /// Whether the loss of a cached range is masked.
    fn is_masked(&self, cached: &Cached, now: Instant, budget: Duration) -> bool {
        let is_left = cached.is_congestion || cached.is_disputed;
        !is_left && self.hole(cached, now, budget).is_masked()
    }

    /// The lowest masked hole: loss signals above it are suppressed.
    ///
    /// The sender must see loss signals below it: for holes that are not cached, that the sender
    /// has retransmitted, or whose hold budget is spent. The search ends after [`MAX_EXAMINED`]
    /// ranges: the loss signals are then forwarded.
    pub(super) fn lowest_masked(&self, now: Instant, budget: Duration) -> Option<&Cached> {
        if !self.policy(budget).is_masked() {
            return None;
        }
        if self.sacked.is_empty() {
            // Without SACK, duplicate ACKs signal the loss of the first range only.
            let is_first = |first: &&Cached| !self.uses_sack && first.start == self.acked;
            let first = self.cache.get(0).filter(is_first)?;
            return Some(first).filter(|first| self.is_masked(first, now, budget));
        }
        let mut examined = 0;
        for hole in self.holes() {
            let mut index = self.cache.first_beyond(hole.start);
            examined += 1;
            while let Some(cached) = self.cache.get(index).filter(|c| c.start < hole.end) {
                if self.is_masked(cached, now, budget) {
                    return Some(cached);
                }
                index += 1;
                examined += 1;
                if examined >= MAX_EXAMINED {
                    return None;
                }
            }
            if examined >= MAX_EXAMINED {
                return None;
            }
        }
        None
    }

    /// The time at which the suppressed ACK must be forwarded.
    pub(super) fn suppression_due(&self, now: Instant, settings: &Settings) -> Option<Instant> {
        let suppressed = self.suppressed.as_ref()?;
        if self.is_at_sender() {
            return Some(suppressed.deadline);
        }
        let budget = self.hold_budget(settings);
        // A higher hole does not prolong the suppression of an ACK whose own hole is no longer
        // masked.
        let hole = self.lowest_masked(now, budget).filter(|hole| hole.start <= suppressed.hole);
        let due = hole.map_or(now, |hole| hole.missing_since.unwrap_or(now) + budget);
        Some(due.min(suppressed.deadline))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::snoop::flow::tests::flow;

    #[test]
    fn the_budget_is_the_time_of_two_repairs() {
        let settings = Settings::default();
        for (air, budget) in [(30, 60), (100, 150)] {
            let mut flow = flow(0);
            flow.air.sample(Instant::ZERO, Duration::from_millis(air));
            assert_eq!(flow.hold_budget(&settings), settings.hold_limit, "an unknown sender");
            flow.wired.ack_left(Instant::ZERO, 7);
            flow.wired.data_came(Instant::from_millis(80), 7);
            assert_eq!(flow.hold_budget(&settings), Duration::from_millis(budget));
        }
    }
}
