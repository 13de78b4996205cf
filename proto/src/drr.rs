//! The turns that flows take: the modified deficit round robin of FQ-CoDel (RFC 8290 §4.2).

use alloc::collections::VecDeque;

/// Bytes of a turn: a full packet (RFC 8290 §5.2.3).
const QUANTUM: i64 = 1_500;

/// The flows that are in use, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Turns {
    /// Flows that have had no turn since they began to be in use; then those that have.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

/// What the turns know of one flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Turn {
    /// Bytes that it may still send in this turn.
    credits: i64,
    is_listed: bool,
}

impl Turns {
    /// A packet of a flow has come.
    pub(crate) fn join(&mut self, number: usize, turn: &mut Turn) {
        if !turn.is_listed {
            *turn = Turn { credits: QUANTUM, is_listed: true };
            self.new.push_back(number);
        }
    }

    /// The flow whose turn it is among those that are ready; one without packets must
    /// [`leave`](Self::leave). A flow that is not ready keeps its place.
    pub(crate) fn next<F>(
        &mut self,
        flows: &mut [F],
        turn: fn(&mut F) -> &mut Turn,
        is_ready: impl Fn(&F) -> bool,
    ) -> Option<usize> {
        loop {
            let find = |list: &VecDeque<usize>| list.iter().position(|it| is_ready(&flows[*it]));
            let new = find(&self.new);
            let place = new.or_else(|| find(&self.old))?;
            let list = if new.is_some() { &mut self.new } else { &mut self.old };
            let number = list[place];
            let turn = turn(&mut flows[number]);
            if turn.credits > 0 {
                return Some(number);
            }
            turn.credits += QUANTUM;
            list.remove(place);
            self.old.push_back(number);
        }
    }

    /// The flow whose turn it is has no packets.
    pub(crate) fn leave(&mut self, number: usize, turn: &mut Turn) {
        // A new flow that is empty has to wait for its turn among the old ones, or one that sends
        // again at once would always go first.
        let was_new = take_out(&mut self.new, number);
        if was_new && !self.old.is_empty() {
            return self.old.push_back(number);
        }
        turn.is_listed = false;
        if !was_new {
            take_out(&mut self.old, number);
        }
    }
}

/// Takes a flow from a list; false if it is not there.
fn take_out(list: &mut VecDeque<usize>, number: usize) -> bool {
    let place = list.iter().position(|it| *it == number);
    place.and_then(|place| list.remove(place)).is_some()
}

impl Turn {
    /// The flow sends so many bytes.
    pub(crate) fn spend(&mut self, bytes: u32) {
        self.credits -= i64::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Flows that always have packets of 1,000 bytes; which ones are ready.
    #[derive(Default)]
    struct Flow {
        turn: Turn,
        waits: bool,
    }

    fn serve(turns: &mut Turns, flows: &mut [Flow], count: usize) -> Vec<usize> {
        let served = (0..count).map_while(|_| {
            let number = turns.next(flows, |flow| &mut flow.turn, |flow| !flow.waits)?;
            flows[number].turn.spend(1_000);
            Some(number)
        });
        served.collect()
    }

    #[test]
    fn a_flow_that_is_not_ready_keeps_its_place_and_costs_others_nothing() {
        let mut flows: [Flow; 3] = Default::default();
        let mut turns = Turns::default();
        (0..3).for_each(|number| turns.join(number, &mut flows[number].turn));
        flows[1].waits = true;
        let served = serve(&mut turns, &mut flows, 60);
        assert_eq!(served.iter().filter(|number| **number == 0).count(), 30, "{served:?}");
        assert!(!served.contains(&1));
        flows.iter_mut().for_each(|flow| flow.waits = flow.turn.credits < 0);
        flows[1].waits = false;
        assert_eq!(serve(&mut turns, &mut flows, 1), [1], "it is the first of all");
        flows.iter_mut().for_each(|flow| flow.waits = false);
        let served = serve(&mut turns, &mut flows, 90);
        for number in 0..3 {
            let count = served.iter().filter(|it| **it == number).count();
            assert!((29..=31).contains(&count), "flow {number} had {count} of 90 turns");
        }
        flows.iter_mut().for_each(|flow| flow.waits = true);
        assert!(serve(&mut turns, &mut flows, 1).is_empty());
    }
}
