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

    /// The flow whose turn it is; one without packets must [`leave`](Self::leave).
    pub(crate) fn next<F>(
        &mut self,
        flows: &mut [F],
        turn: fn(&mut F) -> &mut Turn,
    ) -> Option<usize> {
        loop {
            let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let number = *list.front()?;
            let turn = turn(&mut flows[number]);
            if turn.credits > 0 {
                return Some(number);
            }
            turn.credits += QUANTUM;
            list.pop_front();
            self.old.push_back(number);
        }
    }

    /// The flow whose turn it is has no packets.
    pub(crate) fn leave(&mut self, turn: &mut Turn) {
        // A new flow that is empty has to wait for its turn among the old ones, or one that sends
        // again at once would always go first.
        match self.new.pop_front() {
            Some(number) if !self.old.is_empty() => self.old.push_back(number),
            Some(_) => turn.is_listed = false,
            None => {
                self.old.pop_front();
                turn.is_listed = false;
            }
        }
    }
}

impl Turn {
    /// The flow sends so many bytes.
    pub(crate) fn spend(&mut self, bytes: u32) {
        self.credits -= i64::from(bytes);
    }
}
