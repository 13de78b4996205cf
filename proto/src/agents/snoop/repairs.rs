//! The ranges that wait to be retransmitted.

use crate::agents::flow_table::FlowRef;
use crate::event::Cause;
use crate::ranges::Span;
use crate::time::Instant;
use alloc::collections::VecDeque;

/// Ranges that wait to be retransmitted, at most so many.
#[derive(Debug)]
pub(super) struct Repairs {
    pub(super) waiting: VecDeque<Repair>,
    pub(super) limit: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Repair {
    pub(super) flow: FlowRef,
    pub(super) span: Span,
    pub(super) cause: Cause,
    /// Since when it waits.
    pub(super) since: Instant,
}

impl Repairs {
    pub(super) fn new(limit: usize) -> Self {
        Self { waiting: VecDeque::new(), limit }
    }
}
