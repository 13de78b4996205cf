//! The telemetry of a gateway: counters, flows, a server for both, and a log.
//!
//! The gateway's loop adds to plain integers here. Whatever costs more (text, sorting, sockets)
//! happens on request, and mostly on another thread. `docs/gateway-metrics.md` lists what
//! can be seen under which name.

mod about;
mod flows;
mod histogram;
pub mod log;
mod metrics;
pub mod server;
mod status;
mod tally;

pub use about::About;
pub use histogram::Histogram;
pub use status::{
    Counters, FlowStatus, Goodput, HandoffStatus, ShapeStatus, Status, StatusLimits, TimeoutsSaved,
};
pub use tally::Path;

use crate::bpf::KernelFlow;
use airmend_proto::event::{Cause, FlowEnd, FlowId};
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::{Event, Instant, Load, Port};
use flows::{TelemetryFlows, is_evidence};
use std::collections::BTreeMap;
use std::time::Duration;
use tally::Tallies;

/// Flows that a status names at most: those for which most was mended.
pub const TOP: usize = 50;

/// The counters of the kernel's side of the data path, since the gateway began.
pub struct KernelView<'a> {
    /// Times that the daemon's heartbeat timed out.
    pub heartbeat_timeouts: u64,
    /// Packets that passed unseen in the meantime.
    pub passed_unseen: u64,
    /// Copies of packets that were lost because the daemon did not take them in time.
    pub copies_lost: u64,
    /// Packets of the daemon that the interface or the reinjection device refused.
    pub refused: u64,
    /// The counters of a flow.
    pub flow: &'a dyn Fn(&FlowKey) -> Option<KernelFlow>,
}

/// The telemetry of one gateway.
#[derive(Debug)]
pub struct Telemetry {
    about: About,
    tallies: Tallies,
    counters: Counters,
    timeouts_saved: TimeoutsSaved,
    decisions: BTreeMap<&'static str, u64>,
    losses: u64,
    air_rtt: Histogram,
    ack_wait: Histogram,
    flows: TelemetryFlows,
    table_full: log::TableFull,
}

impl Telemetry {
    /// Telemetry without any event.
    pub fn new(about: About) -> Self {
        Self {
            tallies: Tallies::default(),
            counters: Counters::default(),
            timeouts_saved: TimeoutsSaved::default(),
            decisions: BTreeMap::new(),
            losses: 0,
            air_rtt: Histogram::default(),
            ack_wait: Histogram::default(),
            flows: TelemetryFlows::new(about.limits.flows),
            table_full: log::TableFull::default(),
            about,
        }
    }

    /// The properties that do not change.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The interface has another name from now on.
    pub fn rename(&mut self, interface: String) {
        self.about.interface = interface;
    }

    /// Names the flow that [`Event::FlowOpened`] is about; call it before [`Telemetry::event`].
    pub fn flow_opened(&mut self, now: Instant, flow: FlowId, key: FlowKey) {
        self.flows.open(now, flow, key);
    }

    /// Counts what the agent did or noticed.
    pub fn event(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::LocalRetransmit { flow, cause, .. } => self.repaired(flow, cause),
            Event::Decided { decision, .. } => {
                *self.decisions.entry(decision.counter).or_default() += 1;
            }
            Event::AirRtt { flow, sample, srtt } => {
                self.air_rtt.add(sample);
                let saved = self.flows.get(flow, |flow| flow.measured(srtt));
                self.timeouts_saved.tail += u64::from(saved == Some(true));
            }
            Event::FlowEnded(flow, end) => self.flow_ended(flow, end),
            Event::RuleBroken(violation) => log::rule_broken(&self.about.agent, violation),
            Event::FlowTableFull => self.table_full.happened(now, self.about.limits.flows),
            Event::AgentReplaced(_) => {
                // What takes its place keeps no flows.
                self.flows.clear();
                log::agent_panicked(&self.about.agent);
            }
            Event::Bypassed(reason) => self.tallies.bypasses.add(reason, 1),
            Event::Uncached(_, _, reason) => self.tallies.uncached.add(reason, 1),
            Event::HandshakeRepeated { attempt: 1 } => self.timeouts_saved.handshake += 1,
            Event::SenderRetransmit(flow, _) => {
                self.flows.get(flow, flows::TelemetryFlow::resent_by_sender);
            }
            Event::LossSignalForwarded(flow, _) => {
                self.flows.get(flow, flows::TelemetryFlow::forwarded_loss_signal);
            }
            Event::DupAckSuppressed(flow, _) => {
                self.flows.get(flow, |flow| flow.suppressed_dupacks += 1);
            }
            Event::SackStripped(flow, _) => {
                self.flows.get(flow, |flow| flow.stripped_acks += 1);
            }
            _ => {}
        }
        self.counters.count(event);
    }

    /// Counts packets by the path that they took, those of a super-packet one by one, and their
    /// bytes of IP.
    pub fn packets(&mut self, path: Path, count: u64, bytes: u64) {
        self.tallies.packets.add(path, count);
        self.tallies.bytes.add(path, bytes);
    }

    /// An ACK has waited so long before the agent judged it.
    pub fn ack_waited(&mut self, wait: Duration) {
        self.ack_wait.add(wait);
    }

    /// The status now; `load` is the agent's.
    pub fn status(&self, now: Instant, load: Load, kernel: &KernelView<'_>) -> Status {
        let packets = &self.tallies.packets;
        let data = packets.get(Path::DataCopied);
        Status {
            interface: self.about.interface.clone(),
            agent: self.about.agent.clone(),
            version: self.about.version.clone(),
            observe: self.about.observe,
            started_unix_seconds: status::unix_seconds(self.about.started),
            uptime_seconds: now.as_secs_f64(),
            cpu_seconds: status::cpu_seconds(),
            limits: StatusLimits {
                flows: self.about.limits.flows as u64,
                cache_bytes: self.about.limits.cache_bytes as u64,
            },
            flows: load.flows as u64,
            flows_unanswered: 0,
            cache_bytes: load.cache_bytes as u64,
            heartbeat_timeouts: kernel.heartbeat_timeouts,
            copies_lost: kernel.copies_lost,
            packets: packets.with([("unseen", kernel.passed_unseen), ("refused", kernel.refused)]),
            bytes: self.tallies.bytes.named(),
            goodput: Goodput::default(),
            air_packets: data + packets.get(Path::Repairs),
            air_losses: self.losses,
            repairs: self.tallies.repairs.named(),
            timeouts_saved: self.timeouts_saved,
            decisions: named(&self.decisions),
            bypasses: self.tallies.bypasses.named(),
            uncached: self.tallies.uncached.named(),
            flows_ended: self.tallies.ends.named(),
            counters: self.counters.clone(),
            air_rtt_seconds: self.air_rtt.clone(),
            ack_wait_seconds: self.ack_wait.clone(),
            top: self.flows.top(TOP, now, kernel.flow),
            observation: None,
            gain: None,
            shape: None,
            handoff: None,
        }
    }

    fn repaired(&mut self, flow: FlowId, cause: Cause) {
        self.tallies.repairs.add(cause, 1);
        self.losses += u64::from(is_evidence(cause));
        self.flows.get(flow, |flow| flow.repaired(cause));
    }

    fn flow_ended(&mut self, flow: FlowId, end: FlowEnd) {
        self.tallies.ends.add(end, 1);
        let saved = self.flows.end(flow).is_some_and(|flow| flow.is_probed());
        self.timeouts_saved.tail += u64::from(saved && end == FlowEnd::Closed);
    }
}

fn named(counts: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

impl Counters {
    fn count(&mut self, event: &Event) {
        let counter = match event {
            Event::FlowOpened(_) => &mut self.flows_opened,
            Event::FlowTableFull => &mut self.flow_table_full,
            Event::ConnectionChange(_) => &mut self.syns_and_rsts,
            Event::SenderRetransmit(..) => &mut self.sender_retransmits,
            Event::DupAckSuppressed(..) => &mut self.suppressed_dupacks,
            Event::DupAckForwarded(..) => &mut self.forwarded_dupacks,
            Event::SpuriousAckDropped(..) => &mut self.spurious_acks,
            Event::AckRepeated(..) => &mut self.repeated_acks,
            Event::SackStripped(..) => &mut self.stripped_acks,
            Event::LossSignalForwarded(..) => &mut self.forwarded_loss_signals,
            Event::Reneged(..) => &mut self.reneged,
            Event::TimestampRenewed(..) => &mut self.renewed_timestamps,
            Event::Own(own) if own.counter == "restored_timestamps" => {
                &mut self.restored_timestamps
            }
            Event::HandshakeRepeated { .. } => &mut self.repeated_handshakes,
            Event::CongestionMarked => &mut self.congestion_marks,
            Event::EgressDropped(Port::Air) => &mut self.egress_drops_air,
            Event::EgressDropped(Port::Wired) => &mut self.egress_drops_wired,
            Event::RuleBroken(_) => &mut self.broken_rules,
            Event::AgentReplaced(_) => &mut self.agent_panics,
            _ => return,
        };
        *counter += 1;
    }
}

#[cfg(test)]
mod tests;
