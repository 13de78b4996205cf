//! Flows that take turns: a host that writes one message at a time, whichever flow it is for.

use crate::plan;
use std::collections::{BTreeMap, VecDeque};

/// The groups of flows that take turns.
pub(crate) struct Turns {
    /// For each flow its group.
    groups: Vec<Option<u32>>,
    queues: BTreeMap<u32, Queue>,
}

#[derive(Default)]
struct Queue {
    /// The flows that have messages left, the one that writes next first.
    flows: VecDeque<u32>,
    /// The flow whose message is not acknowledged yet.
    outstanding: Option<u32>,
}

impl Turns {
    pub(crate) fn new(flows: &[plan::Flow]) -> Self {
        Self::of(flows.iter().map(|flow| flow.turns).collect())
    }

    fn of(groups: Vec<Option<u32>>) -> Self {
        let mut queues: BTreeMap<u32, Queue> = BTreeMap::new();
        for (number, group) in (0..).zip(&groups) {
            if let Some(group) = group {
                queues.entry(*group).or_default().flows.push_back(number);
            }
        }
        Self { groups, queues }
    }

    /// Whether a flow may write; one without a group always may.
    pub(crate) fn may_write(&self, flow: u32) -> bool {
        let queue = self.groups[flow as usize].and_then(|group| self.queues.get(&group));
        queue.is_none_or(|queue| queue.outstanding.is_none() && queue.flows.front() == Some(&flow))
    }

    /// The flow that had its turn has written a message.
    pub(crate) fn wrote(&mut self, flow: u32, has_more: bool) {
        if let Some(queue) = self.queue(flow) {
            queue.outstanding = Some(flow);
            queue.flows.pop_front();
            queue.flows.extend(has_more.then_some(flow));
        }
    }

    /// All messages of a flow have been acknowledged. Returns the flow that may write now.
    pub(crate) fn acknowledged(&mut self, flow: u32) -> Option<u32> {
        let queue = self.queue(flow)?;
        queue.outstanding.take_if(|outstanding| *outstanding == flow)?;
        queue.flows.front().copied()
    }

    fn queue(&mut self, flow: u32) -> Option<&mut Queue> {
        self.queues.get_mut(&self.groups[flow as usize]?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turn_goes_round_among_those_that_have_more() {
        let mut turns = Turns::of(vec![None, Some(1), Some(1), Some(1)]);
        let may = |turns: &Turns| (0..4).filter(|flow| turns.may_write(*flow)).collect::<Vec<_>>();
        assert_eq!(may(&turns), [0, 1]);
        turns.wrote(1, true);
        assert_eq!(may(&turns), [0]);
        assert_eq!((turns.acknowledged(2), turns.acknowledged(1)), (None, Some(2)));
        assert_eq!(may(&turns), [0, 2]);
        turns.wrote(2, false);
        assert_eq!(turns.acknowledged(2), Some(3));
        turns.wrote(3, true);
        assert_eq!(turns.acknowledged(3), Some(1));
        turns.wrote(1, false);
        assert_eq!(turns.acknowledged(1), Some(3));
        turns.wrote(3, false);
        assert_eq!((turns.acknowledged(3), may(&turns)), (None, vec![0]));
    }
}
