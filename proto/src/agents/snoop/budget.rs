//! The budget of local retransmissions: they never exceed a share of what was delivered [C-23].

/// The segments that a flow may retransmit before any of its own was delivered.
const INITIAL: u32 = 32;
/// The most segments that may be retransmitted at once: the losses of one fade.
const LIMIT: u32 = 256;
/// The most segments of credit that all flows of the agent share.
const SHARED: u32 = 4_096;

/// The segments that a flow may retransmit, in halves: each segment that arrived without a
/// retransmission earns a half.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RepairBudget {
    halves: u32,
    /// The segments that were taken from the credit.
    borrowed: u32,
}

/// The segments that flows may retransmit beyond what they have earned, all flows of the agent
/// together: each segment that arrived earns a half of one. Many flows, each with losses of its
/// first segments only, cannot cause more retransmissions than that.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedCredit {
    halves: u32,
}

impl Default for SharedCredit {
    fn default() -> Self {
        Self { halves: 2 * SHARED }
    }
}

impl SharedCredit {
    /// Adds the share of segments that arrived.
    pub(super) fn earn(&mut self, segments: u64) {
        let segments = u32::try_from(segments).unwrap_or(SHARED);
        self.halves = self.halves.saturating_add(segments).min(2 * SHARED);
    }

    fn spend(&mut self) -> bool {
        let left = self.halves.checked_sub(2);
        self.halves = left.unwrap_or(self.halves);
        left.is_some()
    }
}

impl RepairBudget {
    /// Adds the share of segments that arrived.
    pub(super) fn earn(&mut self, segments: u64) {
        let segments = u32::try_from(segments).unwrap_or(LIMIT);
        self.halves = self.halves.saturating_add(segments).min(2 * LIMIT);
    }

    /// Takes a retransmission of one segment from the budget, or from the credit at the beginning
    /// of the flow; false if nothing is left.
    pub(super) fn spend(&mut self, credit: &mut SharedCredit) -> bool {
        if let Some(left) = self.halves.checked_sub(2) {
            self.halves = left;
            return true;
        }
        let is_granted = self.borrowed < INITIAL && credit.spend();
        self.borrowed += u32::from(is_granted);
        is_granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend_all(budget: &mut RepairBudget, credit: &mut SharedCredit) -> u32 {
        (0..).take_while(|_| budget.spend(credit)).count() as u32
    }

    #[test]
    fn retransmissions_never_exceed_half_of_what_arrived_and_the_limit() {
        let (mut budget, mut credit) = (RepairBudget::default(), SharedCredit::default());
        assert_eq!(spend_all(&mut budget, &mut credit), INITIAL);
        budget.earn(101);
        assert_eq!(spend_all(&mut budget, &mut credit), 50);
        budget.earn(u64::MAX);
        assert_eq!(spend_all(&mut budget, &mut credit), LIMIT / 2, "one packet earns no more");
        (0..10).for_each(|_| budget.earn(LIMIT.into()));
        assert_eq!(spend_all(&mut budget, &mut credit), LIMIT);
    }

    #[test]
    fn many_flows_share_what_none_of_them_has_earned() {
        let mut credit = SharedCredit::default();
        let spent: u32 =
            (0..1_000).map(|_| spend_all(&mut RepairBudget::default(), &mut credit)).sum();
        assert_eq!(spent, SHARED);
        credit.earn(7);
        assert_eq!(spend_all(&mut RepairBudget::default(), &mut credit), 3);
    }
}
