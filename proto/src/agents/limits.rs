//! What an agent and its queues may take.

use crate::forwarder::EgressLimits;
use core::fmt;

/// What an agent may take at most. Hitting a limit degrades to passthrough, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Flows with state.
    pub flows: usize,
    /// Bytes of cached packets, all flows together.
    pub cache_bytes: usize,
    /// Packets that wait in front of each port.
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
