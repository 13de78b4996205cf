//! The packets that wait to be retransmitted.

use crate::agents::flow_table::FlowRef;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;

/// Packets that wait to be retransmitted, at most so many.
#[derive(Debug)]
pub(super) struct Repairs {
    pub(super) waiting: VecDeque<(FlowRef, SeqNumber)>,
    pub(super) limit: usize,
}

impl Repairs {
    pub(super) fn new(limit: usize) -> Self {
        Self { waiting: VecDeque::new(), limit }
    }
}
