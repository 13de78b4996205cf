//! The memory limits of an agent and its queues.

use crate::forwarder::EgressLimits;
use core::fmt;

/// The limits of an agent. At a limit the agent degrades to passthrough, which is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of flows with state.
    pub flows: usize,
    /// Bytes of cached packets, all flows together.
    pub cache_bytes: usize,
    /// The limits of the egress queues.
    pub egress: EgressLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            flows: 100_000,
            cache_bytes: 256 << 20,
            egress: EgressLimits { air: 1_000, wired: 1_000 },
        }
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flows, cache_bytes, egress } = self;
        write!(
            f,
            "{flows} flows, {} MiB of cached packets, {} frames queued to the air, {} to the wire",
            cache_bytes >> 20,
            egress.air,
            egress.wired
        )
    }
}
