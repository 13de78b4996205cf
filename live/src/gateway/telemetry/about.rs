//! The gateway's identity.

use airmend_proto::agents::Limits;
use std::time::SystemTime;

/// The properties of a gateway that do not change while it runs.
#[derive(Clone, Debug)]
pub struct About {
    /// The air interface.
    pub interface: String,
    /// The agent's name.
    pub agent: String,
    /// The program's version.
    pub version: String,
    /// Whether the gateway observes only: no packet is touched.
    pub observe: bool,
    /// The limits of the agent.
    pub limits: Limits,
    /// The start of the gateway.
    pub started: SystemTime,
}
