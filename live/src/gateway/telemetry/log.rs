//! The gateway's log: the messages and their fields.

use super::about::About;
use super::status::Status;
use crate::bpf::Attach;
use airmend_proto::Instant;
use airmend_proto::invariants::Violation;
use std::time::Duration;
use tracing::{error, info, warn};

/// The gateway has attached itself.
pub(crate) fn started(about: &About, attached: Attach) {
    info!(
        interface = about.interface,
        agent = about.agent,
        version = about.version,
        observe = about.observe,
        attach = attached.name(),
        limit_flows = about.limits.flows,
        limit_cache_bytes = about.limits.cache_bytes,
        "started"
    );
}

/// The gateway has detached itself; `status` is its last one.
pub fn stopped(status: &Status) {
    info!(
        interface = status.interface,
        uptime_seconds = status.uptime_seconds,
        cpu_seconds = status.cpu_seconds,
        flows_opened = status.counters.flows_opened,
        repairs = status.repairs.values().sum::<u64>(),
        repair_bytes = status.bytes.get("repairs"),
        goodput_bps = status.gain.as_ref().map(|gain| gain.goodput_bps),
        without_bps = status.gain.as_ref().map(|gain| gain.without_bps),
        air_losses = status.air_losses,
        air_packets = status.air_packets,
        suppressed_dupacks = status.counters.suppressed_dupacks,
        timeouts_saved = status.timeouts_saved.tail + status.timeouts_saved.handshake,
        heartbeat_timeouts = status.heartbeat_timeouts,
        agent_panics = status.counters.agent_panics,
        "stopped"
    );
}

/// The interface is gone or down.
pub fn interface_down(about: &About) {
    warn!(interface = about.interface, "interface down");
}

/// The interface is there and up again.
pub fn interface_up(about: &About) {
    info!(interface = about.interface, "interface up");
}

/// The interface has no queue, since it is of this kind.
pub(crate) fn queue_below(about: &About, kind: &str) {
    warn!(
        interface = about.interface,
        kind,
        "the queue is in the interface below this one, and what it drops is taken for losses of \
         the air: name that interface instead"
    );
}

/// Where the queue of the interface stands, as far as the system tells.
pub(crate) fn queue_place(about: &About, place: &str) {
    info!(interface = about.interface, "the queue is {place}");
}

/// The interface has another name now.
pub(crate) fn renamed(about: &About, from: &str) {
    info!(interface = about.interface, from, "interface renamed");
}

/// Somebody had taken the gateway's programs from clsact, or clsact itself.
pub(crate) fn attached_again(about: &About) {
    let interface = &about.interface;
    warn!(interface, "another program took the gateway's filters from clsact, attached again");
}

/// The kernel forwarded `packets` without the daemon, since the last heartbeat was too old; one
/// that only observes has not seen them.
pub fn heartbeat_timeout(about: &About, packets: u64) {
    let passed =
        if about.observe { "packets passed unobserved" } else { "the kernel forwarded alone" };
    warn!(interface = about.interface, packets, "heartbeat timeout, {passed}");
}

pub(super) fn agent_panicked(agent: &str) {
    error!(agent, "the agent panicked, packets pass unmended from here");
}

/// A debug build has seen the agent break a rule of every agent.
pub(super) fn rule_broken(agent: &str, violation: Violation) {
    error!(agent, %violation, "the agent broke a rule");
}

/// Between two messages about a full flow table.
const TABLE_FULL_INTERVAL: Duration = Duration::from_secs(10);

/// Says seldom what may happen with every packet.
#[derive(Debug, Default)]
pub(super) struct TableFull {
    said: Option<Instant>,
    packets: u64,
}

impl TableFull {
    /// A packet passed unmended because the table was full.
    pub(super) fn happened(&mut self, now: Instant, limit: usize) {
        self.packets += 1;
        if self.said.is_none_or(|said| now - said >= TABLE_FULL_INTERVAL) {
            self.said = Some(now);
            let packets = std::mem::take(&mut self.packets);
            warn!(limit_flows = limit, packets, "flow table full, new flows pass unmended");
        }
    }
}
