//! The budget of local retransmissions: they never exceed a share of what was delivered [C-23].

/// The segments that may be retransmitted before any was delivered.
const INITIAL: u32 = 32;
/// The most segments that may be retransmitted at once: the losses of one fade.
const LIMIT: u32 = 256;

/// The segments that may be retransmitted, in halves: each segment that arrived without a
/// retransmission earns a half.
#[derive(Clone, Copy, Debug)]
pub(super) struct RepairBudget {
    halves: u32,
}

impl Default for RepairBudget {
    fn default() -> Self {
        Self { halves: 2 * INITIAL }
    }
}

impl RepairBudget {
    /// Adds the share of segments that arrived.
    pub(super) fn earn(&mut self, segments: u64) {
        let segments = u32::try_from(segments).unwrap_or(LIMIT);
        self.halves = self.halves.saturating_add(segments).min(2 * LIMIT);
    }

    /// Takes a retransmission of one segment from the budget; false if nothing is left.
    pub(super) fn spend(&mut self) -> bool {
        let left = self.halves.checked_sub(2);
        self.halves = left.unwrap_or(self.halves);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retransmissions_never_exceed_half_of_what_arrived_and_the_limit() {
        let mut budget = RepairBudget::default();
        let spend = |budget: &mut RepairBudget| (0..).take_while(|_| budget.spend()).count();
        assert_eq!(spend(&mut budget), INITIAL as usize);
        budget.earn(101);
        assert_eq!(spend(&mut budget), 50);
        budget.earn(u64::MAX);
        assert_eq!(spend(&mut budget), LIMIT as usize / 2, "one super-packet earns no more");
        (0..10).for_each(|_| budget.earn(LIMIT.into()));
        assert_eq!(spend(&mut budget), LIMIT as usize);
    }
}
