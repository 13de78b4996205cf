//! By how many others frames are overtaken on the path.

use crate::wire::seq::SeqNumber;

/// Transmissions for which what was seen counts, and at most as many more.
const MEMORY: u32 = 4_096;

/// The reordering of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reordering {
    /// The most transmissions that overtook one, in this span of transmissions and in the one
    /// before.
    now: u32,
    before: u32,
    /// The serial number at which this span began.
    since: SeqNumber,
}

impl Reordering {
    /// A frame was overtaken by the last of `by` others that left later, at least.
    pub(super) fn note(&mut self, by: u32) {
        self.now = self.now.max(by + 1);
    }

    /// Forgets what was seen too long before the transmission `serial`.
    pub(super) fn age(&mut self, serial: SeqNumber) {
        if serial > self.since + MEMORY {
            *self = Self { now: 0, before: self.now, since: serial };
        }
    }

    /// How many later transmissions may arrive before one that is not lost.
    pub(super) fn window(&self) -> u32 {
        self.now.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_the_widest_of_two_spans() {
        let mut seen = Reordering::default();
        assert_eq!(seen.window(), 0);
        let seen_at =
            [(1, Some(19)), (2, Some(5)), (5_000, None), (5_001, Some(6)), (10_000, None)];
        let windows = seen_at.map(|(serial, by)| {
            seen.age(SeqNumber(serial));
            by.into_iter().for_each(|by| seen.note(by));
            seen.window()
        });
        assert_eq!(windows, [20, 20, 20, 20, 7]);
        seen.age(SeqNumber(15_000));
        assert_eq!(seen.window(), 0);
    }
}
