//! When the mobile host moves, and where to.

use super::plan::HandoffPlan;
use airmend_proto::Instant;

/// What happens to the mobile host's radio. Stations have numbers from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// It will be at this station soon.
    Approach(usize),
    /// It leaves the station where it is.
    Leave,
    /// It associates with this station.
    Attach(usize),
}

/// The moves of a run: the mobile host begins at station 0.
#[derive(Debug)]
pub(super) struct Schedule {
    plan: HandoffPlan,
    /// The first move is so long after this as one move after another.
    begin: Instant,
    /// How often it has moved.
    moved: u32,
    next: Move,
}

impl Schedule {
    pub(super) fn new(plan: HandoffPlan, begin: Instant) -> Self {
        let mut schedule = Self { plan, begin, moved: 0, next: Move::Leave };
        schedule.next = schedule.first();
        schedule
    }

    /// The next thing that happens.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(Instant, Move)> {
        let at = self.next_deadline();
        if now < at {
            return None;
        }
        let due = self.next;
        self.next = match due {
            Move::Approach(_) => Move::Leave,
            Move::Leave => Move::Attach(self.target()),
            Move::Attach(_) => {
                self.moved += 1;
                self.first()
            }
        };
        Some((at, due))
    }

    /// When that is.
    pub(super) fn next_deadline(&self) -> Instant {
        let leaves = self.plan.every.saturating_mul(self.moved.saturating_add(1));
        let at = match self.next {
            Move::Approach(_) => leaves.saturating_sub(self.plan.ahead),
            Move::Leave => leaves,
            Move::Attach(_) => leaves.saturating_add(self.plan.outage),
        };
        self.begin + at
    }

    /// The first thing of the next move.
    fn first(&self) -> Move {
        if self.plan.ahead.is_zero() { Move::Leave } else { Move::Approach(self.target()) }
    }

    fn target(&self) -> usize {
        (self.moved as usize + 1) % self.plan.stations.max(1) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const BEGIN: Instant = Instant::from_millis(7_000);

    fn moves(plan: HandoffPlan, until: u64) -> Vec<(u64, Move)> {
        let mut schedule = Schedule::new(plan, BEGIN);
        let next = || schedule.poll(BEGIN + Duration::from_millis(until));
        let moves = std::iter::from_fn(next);
        moves.map(|(at, what)| (at.since(BEGIN).as_millis() as u64, what)).collect()
    }

    #[test]
    fn the_stations_are_visited_in_turn() {
        let millis = Duration::from_millis;
        let plan = HandoffPlan {
            stations: 3,
            every: millis(1_000),
            outage: millis(50),
            ahead: millis(200),
            has_state: true,
            has_intruder: false,
        };
        let expected = [
            (800, Move::Approach(1)),
            (1_000, Move::Leave),
            (1_050, Move::Attach(1)),
            (1_800, Move::Approach(2)),
            (2_000, Move::Leave),
            (2_050, Move::Attach(2)),
            (2_800, Move::Approach(0)),
        ];
        assert_eq!(moves(plan, 2_800), expected);
        let plan = HandoffPlan { ahead: Duration::ZERO, outage: Duration::ZERO, ..plan };
        assert_eq!(moves(plan, 1_999), [(1_000, Move::Leave), (1_000, Move::Attach(1))]);
    }
}
