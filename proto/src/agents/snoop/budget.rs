//! The budget of local retransmissions: they never exceed a share of what was delivered [C-23].

/// The segments that a flow may retransmit before any of its own was delivered.
const INITIAL: u16 = 32;
/// The most segments that may be retransmitted at once: the losses of one fade.
const LIMIT: u16 = 256;
/// The most segments of credit that all flows of the agent share.
pub(super) const SHARED: u16 = 4_096;

/// The segments that a flow may retransmit: each segment that arrived earns one, which suffices as
/// long as half of all transmissions arrive and are acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RepairBudget {
    segments: u16,
    /// The segments that were taken from the credit.
    borrowed: u16,
}

/// The segments that flows may retransmit beyond what they have earned, all flows of the agent
/// together: each segment that arrived earns one. Many flows, each with losses of its first
/// segments only, cannot cause more retransmissions than that.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedCredit {
    segments: u16,
}

impl Default for SharedCredit {
    fn default() -> Self {
        Self { segments: SHARED }
    }
}

impl SharedCredit {
    /// Adds the segments that arrived.
    pub(super) fn earn(&mut self, segments: u64) {
        self.segments = add(self.segments, segments, SHARED);
    }
}

impl RepairBudget {
    /// Adds the segments that arrived.
    pub(super) fn earn(&mut self, segments: u64) {
        self.segments = add(self.segments, segments, LIMIT);
    }

    /// Takes a retransmission of one segment from the budget, or from the credit at the beginning
    /// of the flow; false if nothing is left.
    pub(super) fn spend(&mut self, credit: &mut SharedCredit) -> bool {
        let is_earned = take(&mut self.segments);
        let is_granted = !is_earned && self.borrowed < INITIAL && take(&mut credit.segments);
        self.borrowed += u16::from(is_granted);
        is_earned || is_granted
    }
}

fn add(left: u16, segments: u64, limit: u16) -> u16 {
    left.saturating_add(u16::try_from(segments).unwrap_or(limit)).min(limit)
}

fn take(left: &mut u16) -> bool {
    let is_left = *left > 0;
    *left -= u16::from(is_left);
    is_left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend_all(budget: &mut RepairBudget, credit: &mut SharedCredit) -> u16 {
        (0..).take_while(|_| budget.spend(credit)).count() as u16
    }

    #[test]
    fn retransmissions_never_exceed_what_arrived_and_the_limit() {
        let (mut budget, mut credit) = (RepairBudget::default(), SharedCredit::default());
        assert_eq!(spend_all(&mut budget, &mut credit), INITIAL);
        budget.earn(101);
        assert_eq!(spend_all(&mut budget, &mut credit), 101);
        (0..10).for_each(|_| budget.earn(LIMIT.into()));
        assert_eq!(spend_all(&mut budget, &mut credit), LIMIT);
    }

    #[test]
    fn many_flows_share_what_none_of_them_has_earned() {
        let mut credit = SharedCredit::default();
        let spent: u16 =
            (0..1_000).map(|_| spend_all(&mut RepairBudget::default(), &mut credit)).sum();
        assert_eq!(spent, SHARED);
        credit.earn(7);
        assert_eq!(spend_all(&mut RepairBudget::default(), &mut credit), 7);
    }
}
