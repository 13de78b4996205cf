//! Retransmissions of the sender.

use super::cache::MAX_EXAMINED;
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
    /// Ranges that the sender has retransmitted and that have departed: the receiver may report
    /// them.
    pub(super) departed: VecDeque<Span>,
    /// The newest of them, and the lowest.
    pub(super) resent: Option<Resent>,
    /// Whether a base station reports what the air loses [S0-40].
    pub(super) is_reported: bool,
}

impl Empty for Own {
    const EMPTY: &'static Self = &Self {
        withheld: VecDeque::new(),
        departed: VecDeque::new(),
        resent: None,
        is_reported: false,
    };
}

impl Own {
    /// A retransmission of the sender has departed: what the receiver gets, it reports itself.
    pub(super) fn departed(&mut self, span: Span) {
        self.withheld.retain(|other| !overlaps(other, &span));
        if self.departed.len() >= MAX_EXAMINED {
            self.departed.pop_front();
        }
        self.departed.push_back(span);
    }
}

pub(super) fn overlaps(a: &Span, b: &Span) -> bool {
    a.start < b.end && b.start < a.end
}
