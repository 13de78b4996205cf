//! Agents whose state can be looked at.

use airmend_proto::Agent;
use airmend_proto::agents::plain::Plain;
use airmend_proto::agents::snoop::Snoop;
use airmend_proto::agents::snoop95::Snoop95;

/// An agent whose state can be looked at.
pub(crate) trait Observed: Agent {
    /// Memory that its caches hold.
    fn cached_bytes(&self) -> usize;
    /// Flows that it keeps state for.
    fn flow_count(&self) -> usize;
}

impl Observed for Plain {
    fn cached_bytes(&self) -> usize {
        0
    }
    fn flow_count(&self) -> usize {
        0
    }
}

impl Observed for Snoop95 {
    fn cached_bytes(&self) -> usize {
        self.cache_bytes()
    }
    fn flow_count(&self) -> usize {
        self.flows()
    }
}

impl Observed for Snoop {
    fn cached_bytes(&self) -> usize {
        self.cache_bytes()
    }
    fn flow_count(&self) -> usize {
        self.flows()
    }
}
