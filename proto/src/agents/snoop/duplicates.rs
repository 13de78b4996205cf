//! What the sender has retransmitted, and what the receiver therefore reports as a duplicate [C-29,
//! C-30].

use crate::ranges::Span;
use alloc::collections::VecDeque;

/// The most duplicates of a flow that are remembered [C-26].
pub(super) const MAX_DUPLICATES: usize = 64;

/// Ranges that the sender has retransmitted while their repair was under way, and whose
/// retransmission was withheld.
#[derive(Clone, Debug, Default)]
pub(super) struct Duplicates {
    pub(super) withheld: VecDeque<Span>,
    /// Ranges that the sender has retransmitted and that have departed: the receiver may report
    /// them.
    pub(super) departed: VecDeque<Span>,
    /// Whether the agent has sent copies, which the receiver reports as duplicates [C-30].
    pub(super) has_own: bool,
}

impl Duplicates {
    /// A retransmission of the sender has departed: what the receiver gets, it reports itself.
    pub(super) fn departed(&mut self, span: Span) {
        self.withheld.retain(|other| !overlaps(other, &span));
        if self.departed.len() >= MAX_DUPLICATES {
            self.departed.pop_front();
        }
        self.departed.push_back(span);
    }
}

pub(super) fn overlaps(a: &Span, b: &Span) -> bool {
    a.start < b.end && b.start < a.end
}
