//! The data of both reports of a replay.

use super::args::ReplayArgs;
use airmend_proto::agents::AgentConfig;
use airmend_sim::replay::{Capture, Check, Encapsulation, LeftOut, Report, Sides};
use std::collections::BTreeMap;

/// A replay and its results.
pub(super) struct Replayed<'a> {
    pub(super) args: &'a ReplayArgs,
    pub(super) capture: &'a Capture,
    /// The packets that were not replayed.
    pub(super) left_out: &'a LeftOut,
    /// The packets that were read in another protocol.
    pub(super) within: &'a BTreeMap<Encapsulation, u64>,
    /// The segments whose checksum the network card had not filled in.
    pub(super) open_checksums: u64,
    pub(super) agent: &'a AgentConfig,
    pub(super) sides: &'a Sides,
    pub(super) report: &'a Report,
    /// The check; only for the recorded agent.
    pub(super) check: Option<&'a Check>,
}
