//! The telemetry of each flow.

use super::status::{FlowStatus, ratio};
use crate::bpf::KernelFlow;
use crate::tunnel::random::hash_seed;
use airmend_proto::Instant;
use airmend_proto::event::{Cause, FlowId};
use airmend_proto::wire::flow::FlowKey;
use foldhash::fast::FixedState;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

/// The table of the flows that the agent has.
#[derive(Debug)]
pub(super) struct TelemetryFlows {
    // The agent numbers flows itself, so that no sender can choose numbers that collide.
    flows: HashMap<FlowId, TelemetryFlow, FixedState>,
    limit: usize,
}

/// The telemetry of one flow.
#[derive(Debug)]
pub(super) struct TelemetryFlow {
    key: FlowKey,
    opened: Instant,
    repairs: u64,
    losses: u64,
    pub(super) suppressed_dupacks: u64,
    pub(super) stripped_acks: u64,
    forwarded_loss_signals: u64,
    sender_retransmits: u64,
    srtt: Option<Duration>,
    /// A timer sent something again, and neither did the sender do the same nor was anything
    /// measured since.
    probed: bool,
}

impl TelemetryFlows {
    pub(super) fn new(limit: usize) -> Self {
        // Address space, not memory: pages come with their first flow, and nothing is moved.
        let flows = HashMap::with_capacity_and_hasher(limit, FixedState::with_seed(hash_seed()));
        Self { flows, limit }
    }

    pub(super) fn open(&mut self, now: Instant, id: FlowId, key: FlowKey) {
        if self.flows.len() < self.limit {
            self.flows.insert(id, TelemetryFlow::new(now, key));
        }
    }

    /// Does something with a flow, if it is known.
    pub(super) fn get<T>(
        &mut self,
        id: FlowId,
        action: impl FnOnce(&mut TelemetryFlow) -> T,
    ) -> Option<T> {
        self.flows.get_mut(&id).map(action)
    }

    pub(super) fn end(&mut self, id: FlowId) -> Option<TelemetryFlow> {
        self.flows.remove(&id)
    }

    pub(super) fn clear(&mut self) {
        self.flows.clear();
    }

    /// The `count` flows for which most was mended; of equal ones the newest.
    pub(super) fn top(
        &self,
        count: usize,
        now: Instant,
        kernel: &dyn Fn(&FlowKey) -> Option<KernelFlow>,
    ) -> Vec<FlowStatus> {
        let mut all: Vec<_> = self.flows.iter().collect();
        let rank = |(id, flow): &(&FlowId, &TelemetryFlow)| {
            Reverse((flow.repairs, flow.suppressed_dupacks, **id))
        };
        if count < all.len() {
            all.select_nth_unstable_by_key(count, rank);
            all.truncate(count);
        }
        all.sort_unstable_by_key(rank);
        all.into_iter().map(|(id, flow)| flow.status(*id, now, kernel(&flow.key))).collect()
    }
}

impl TelemetryFlow {
    fn new(opened: Instant, key: FlowKey) -> Self {
        Self {
            key,
            opened,
            repairs: 0,
            losses: 0,
            suppressed_dupacks: 0,
            stripped_acks: 0,
            forwarded_loss_signals: 0,
            sender_retransmits: 0,
            srtt: None,
            probed: false,
        }
    }

    /// The agent sent something again.
    pub(super) fn repaired(&mut self, cause: Cause) {
        self.repairs += 1;
        if is_evidence(cause) {
            self.losses += 1;
        } else {
            self.probed = true;
        }
    }

    /// The sender sent something again: its timer, or its own probe, was not spared.
    pub(super) fn resent_by_sender(&mut self) {
        self.sender_retransmits += 1;
        self.probed = false;
    }

    /// A loss was signalled to the sender.
    pub(super) fn forwarded_loss_signal(&mut self) {
        self.forwarded_loss_signals += 1;
        self.probed = false;
    }

    /// A round trip was measured, so that packets sent since arrive; true if this ends a
    /// silence in which a timer sent something again.
    pub(super) fn measured(&mut self, srtt: Duration) -> bool {
        self.srtt = Some(srtt);
        std::mem::take(&mut self.probed)
    }

    pub(super) fn is_probed(&self) -> bool {
        self.probed
    }

    fn status(&self, id: FlowId, now: Instant, kernel: Option<KernelFlow>) -> FlowStatus {
        FlowStatus {
            flow: id.0,
            wired: self.key.wired.to_string(),
            air: self.key.air.to_string(),
            age_seconds: (now - self.opened).as_secs_f64(),
            packets: kernel.map(|kernel| kernel.packets),
            bytes: kernel.map(|kernel| kernel.bytes),
            repairs: self.repairs,
            losses: self.losses,
            loss: kernel
                .filter(|_| self.losses > 0 || self.srtt.is_some())
                .and_then(|kernel| ratio(self.losses, kernel.packets + self.repairs)),
            suppressed_dupacks: self.suppressed_dupacks,
            stripped_acks: self.stripped_acks,
            forwarded_loss_signals: self.forwarded_loss_signals,
            sender_retransmits: self.sender_retransmits,
            air_rtt_ms: self.srtt.map(|srtt| srtt.as_secs_f64() * 1e3),
        }
    }
}

/// Whether the cause is an ACK of the mobile that shows a loss, and not a timer.
pub(super) fn is_evidence(cause: Cause) -> bool {
    matches!(cause, Cause::DupAck | Cause::Rack)
}
