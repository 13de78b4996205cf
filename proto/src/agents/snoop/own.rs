//! Retransmissions of the sender.

use super::ts_recent::Resent;
use crate::ranges::Span;
use crate::rare::Empty;
use alloc::collections::VecDeque;

/// Retransmissions of the sender. Few flows have any.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// Ranges that the sender has retransmitted while their repair was under way, and whose
    /// retransmission was withheld.
    pub(super) withheld: VecDeque<Span>,
    /// How many more retransmissions of the sender have departed than DSACK blocks have passed.
    pub(super) unreported: u32,
    /// The newest retransmission, and the lowest.
    pub(super) resent: Option<Resent>,
    /// Whether a base station reports what the air loses [S0-40].
    pub(super) is_reported: bool,
}

impl Empty for Own {
    const EMPTY: &'static Self =
        &Self { withheld: VecDeque::new(), unreported: 0, resent: None, is_reported: false };
}

impl Own {
    /// A retransmission of the sender has departed: what the receiver gets, it reports itself.
    pub(super) fn departed(&mut self, span: Span) {
        self.withheld.retain(|other| !overlaps(other, &span));
        self.unreported = self.unreported.saturating_add(1);
    }
}

pub(super) fn overlaps(a: &Span, b: &Span) -> bool {
    a.start < b.end && b.start < a.end
}
