//! What one gateway does, and on which interface.

use super::rules::FlowRules;
use airmend_proto::agents::{AgentConfig, Limits};
use std::path::PathBuf;

/// The mark of packets that the gateway itself made or judged ("mend"), unless told otherwise.
pub const DEFAULT_MARK: u32 = 0x6d65_6e64;

/// One gateway on one interface.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The air interface: TCP flows that leave through it are mended.
    pub interface: String,
    /// What mends them.
    pub agent: AgentConfig,
    /// What the agent may take at most.
    pub limits: Limits,
    /// Touch nothing, and only say what would have been done.
    pub observe: bool,
    /// Which flows are mended.
    pub rules: FlowRules,
    /// The mark (`SO_MARK`) that repairs bear.
    pub mark: u32,
    /// The priority (`SO_PRIORITY`) that repairs bear: 0 to 15, 256 to 263 for an access category
    /// of 802.11, or the handle of a class of the interface's queue (`1:10` is 0x0001_0010).
    /// `None` for the highest that this kind of interface honours.
    pub priority: Option<u32>,
    /// The rate of the air, in bits per second, where the interface cannot tell: only for the
    /// estimate of what mending gains.
    pub air_rate_bps: Option<u64>,
    /// Record both sides of the agent into this pcapng file.
    pub pcap: Option<PathBuf>,
}
