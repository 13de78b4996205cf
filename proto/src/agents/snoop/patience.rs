//! Whether the sender waits for the repair of a hole that it is shown [C-31].
//!
//! A sender that takes a packet for lost after three others (RFC 6675 §2) retransmits at once. One
//! that has seen reordering waits for up to a round trip (RFC 8985 §6.2): a mask gives it nothing.

use crate::ranges::Span;
use crate::time::Instant;

/// What the sender did about the last hole that it was shown.
#[derive(Clone, Debug)]
pub(super) struct Patience {
    /// The position of a hole that it is shown, and when its retransmission would be here.
    asked: Option<(u64, Instant)>,
    /// The position behind all that it had sent when it last retransmitted: a hole below is one of
    /// the same recovery, in which it retransmits what its window lets it.
    recovery_end: u64,
    waits: bool,
}

impl Patience {
    pub(super) const UNKNOWN: Self = Self { asked: None, recovery_end: 0, waits: false };

    /// The sender is shown the hole at this position; by `due` its retransmission would be here.
    pub(super) fn ask(&mut self, hole: u64, due: Instant) {
        if self.asked.is_none() && hole >= self.recovery_end {
            self.asked = Some((hole, due));
        }
    }

    /// A packet of the sender came.
    pub(super) fn packet_came(&mut self, now: Instant) {
        if self.asked.take_if(|(_, due)| now > *due).is_some() {
            self.waits = true;
        }
    }

    /// The sender has retransmitted these positions, and has sent all data below `highest`.
    pub(super) fn retransmitted(&mut self, span: Span, highest: u64) {
        self.recovery_end = highest;
        if self.asked.take().is_some_and(|(hole, _)| span.start <= hole && hole < span.end) {
            self.waits = false;
        }
    }

    /// Whether it waits.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLE: Span = Span { start: 1_000, end: 2_000 };
    const DUE: Instant = Instant::from_millis(100);

    /// A sender that was shown the hole, and has retransmitted it or not.
    fn asked(mut patience: Patience, retransmits: bool) -> Patience {
        patience.ask(HOLE.start, DUE);
        patience.packet_came(DUE);
        if retransmits {
            patience.retransmitted(HOLE, HOLE.start);
        }
        patience.packet_came(Instant::from_millis(101));
        patience
    }

    #[test]
    fn the_last_hole_tells_whether_the_sender_waits() {
        let unknown = Patience::UNKNOWN;
        assert!(!unknown.waits());
        let patient = asked(unknown, false);
        assert!(patient.waits());
        assert!(!asked(patient, true).waits());
    }

    #[test]
    fn in_a_recovery_a_hole_tells_nothing() {
        let mut patience = Patience::UNKNOWN;
        patience.retransmitted(Span { start: 0, end: 1_000 }, 2_000);
        assert!(!asked(patience.clone(), false).waits());
        patience.ask(2_000, DUE);
        patience.packet_came(Instant::from_millis(101));
        assert!(patience.waits(), "the hole lies behind the recovery");
    }

    #[test]
    fn a_retransmission_of_other_data_is_no_answer() {
        let mut patience = Patience::UNKNOWN;
        patience.ask(HOLE.start, DUE);
        patience.retransmitted(Span { start: 0, end: 1_000 }, 2_000);
        patience.packet_came(Instant::from_millis(101));
        assert!(!patience.waits(), "nor has it waited");
    }
}
