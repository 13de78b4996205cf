//! A range that waits to be retransmitted: in the agent, then in a queue of the runner.

use crate::agents::flow_table::FlowRef;
use crate::event::Cause;
use crate::ranges::Span;
use crate::time::Instant;

#[derive(Clone, Copy, Debug)]
pub(super) struct Repair {
    pub(super) flow: FlowRef,
    pub(super) span: Span,
    pub(super) cause: Cause,
    /// Since when it waits there.
    pub(super) since: Instant,
}
