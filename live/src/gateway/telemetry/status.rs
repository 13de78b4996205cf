//! A gateway's state at one moment, as its clients get it.

use super::super::observe::{Gain, Observation};
use super::histogram::Histogram;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// Everything that can be seen of a gateway; counters are since it began. Names are stable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The air interface.
    pub interface: String,
    /// The agent's name.
    pub agent: String,
    /// The program's version.
    pub version: String,
    /// Whether no packet is changed; `observation` has the estimated gain of mending.
    pub observe: bool,
    /// The start of the gateway, in seconds since 1970.
    pub started_unix_seconds: f64,
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// Time on a CPU, in user space and in the kernel, of all its threads.
    pub cpu_seconds: f64,
    /// The limits of the agent.
    pub limits: StatusLimits,
    /// Flows that the agent keeps state for.
    pub flows: u64,
    /// Of these, flows whose data has been passing for a second without any acknowledgment: it
    /// takes another way, or the mobile host is gone. Nothing is known of their losses.
    pub flows_unanswered: u64,
    /// Memory that its caches hold.
    pub cache_bytes: u64,
    /// Times that the daemon's heartbeat timed out.
    pub heartbeat_timeouts: u64,
    /// Copies of packets that the daemon was too slow to take.
    pub copies_lost: u64,
    /// Packets by path.
    pub packets: BTreeMap<String, u64>,
    /// Their bytes of IP.
    pub bytes: BTreeMap<String, u64>,
    /// Payload of TCP by direction.
    pub goodput: Goodput,
    /// Packets with data that went on the air, as far as the daemon knows, repairs included.
    pub air_packets: u64,
    /// The number of these that the mobile's ACKs proved lost.
    pub air_losses: u64,
    /// Local retransmissions by cause.
    pub repairs: BTreeMap<String, u64>,
    /// What the agent decided on losses, by decision and cause: left to the sender (`left_budget`),
    /// or repaired while the sender did not see it (`masked_...`) or did (`shown_...`).
    pub decisions: BTreeMap<String, u64>,
    /// Timeouts of the senders that did not come; an estimate from above.
    pub timeouts_saved: TimeoutsSaved,
    /// Packets that passed untouched, by reason.
    pub bypasses: BTreeMap<String, u64>,
    /// Packets that were not cached, by reason.
    pub uncached: BTreeMap<String, u64>,
    /// Flows that ended, by reason.
    pub flows_ended: BTreeMap<String, u64>,
    /// Everything else that is counted.
    pub counters: Counters,
    /// The air hop's round trip, in seconds.
    pub air_rtt_seconds: Histogram,
    /// From the arrival of an ACK that was diverted to its verdict, in seconds.
    pub ack_wait_seconds: Histogram,
    /// The flows for which most was mended, in this order.
    pub top: Vec<FlowStatus>,
    /// Only with `--observe`: what mending would gain. No agent runs, and what it counts is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
    /// Not with `--observe`: what mending has gained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
    /// Only with `--shape`: the gateway's own queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<ShapeStatus>,
    /// Only with `--handoff`: what is shared with other stations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffStatus>,
}

impl Status {
    /// The share of packets that the air lost since the gateway began; `None` if no acknowledgment
    /// has measured anything.
    pub fn air_loss(&self) -> Option<f64> {
        let is_measured = self.air_losses > 0 || self.air_rtt_seconds.count > 0;
        ratio(self.air_losses, self.air_packets)
            .filter(|_| is_measured || self.observation.is_some())
    }

    /// With what was observed of so many flows in an agent's place.
    pub(in crate::gateway) fn observed(self, observation: Observation, flows: usize) -> Self {
        Self {
            flows: flows as u64,
            flows_unanswered: observation.flows_unanswered,
            air_packets: observation.air_frames,
            air_losses: observation.air_losses,
            counters: Counters { flows_opened: observation.flows_seen, ..self.counters },
            observation: Some(observation),
            ..self
        }
    }
}

/// The payload of TCP that reached mobiles, and that came from them. Rates are in bits per second,
/// over the last five seconds; bytes since the gateway began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Goodput {
    /// What mobiles acknowledge, of the measured flows.
    pub to_mobiles_bps: f64,
    /// What comes from them, of all flows.
    pub from_mobiles_bps: f64,
    /// See `to_mobiles_bps`.
    pub to_mobiles_bytes: u64,
    /// See `from_mobiles_bps`.
    pub from_mobiles_bytes: u64,
}

/// The gateway among other stations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffStatus {
    /// The address by which the others know this station.
    pub station: String,
    /// The number of the others that are known.
    pub stations_known: u64,
    /// Mobile hosts that are here.
    pub mobiles: u64,
    /// Handoffs, packets and messages, by what happened to them.
    pub counters: BTreeMap<String, u64>,
}

/// The gateway's own queue at the interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShapeStatus {
    /// Whether the rate follows what is measured.
    pub is_auto: bool,
    /// The kind of queue below HTB: `cake`, `fq_codel` or `pfifo`.
    pub queue: String,
    /// The present rate, in bits per second; `None` while there is no limit.
    pub rate_bps: Option<u64>,
}

/// The limits of the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusLimits {
    /// Flows with state.
    pub flows: u64,
    /// Bytes of cached packets.
    pub cache_bytes: u64,
}

/// Timeouts of the senders that did not come; see `docs/gateway-metrics.md` for what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeoutsSaved {
    /// The tail of a flow was mended by a timer before the sender resent anything.
    pub tail: u64,
    /// A SYN or SYN-ACK was repeated.
    pub handshake: u64,
}

/// Counters under the names that every airmend run uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Flows whose state was created.
    pub flows_opened: u64,
    /// Packets that passed unmended because the flow table was full.
    pub flow_table_full: u64,
    /// SYNs and RSTs.
    pub syns_and_rsts: u64,
    /// Packets that senders sent again.
    pub sender_retransmits: u64,
    /// Duplicate ACKs kept from senders.
    pub suppressed_dupacks: u64,
    /// Duplicate ACKs left to senders.
    pub forwarded_dupacks: u64,
    /// ACKs below the highest one that were discarded.
    pub spurious_acks: u64,
    /// ACKs repeated to senders that resent what had arrived.
    pub repeated_acks: u64,
    /// ACKs from which SACK blocks were taken.
    pub stripped_acks: u64,
    /// Suppressed loss signals that were forwarded: the loss was not repaired in time.
    pub forwarded_loss_signals: u64,
    /// Times that a mobile discarded what it had acknowledged selectively.
    pub reneged: u64,
    /// Retransmissions with a newer timestamp.
    pub renewed_timestamps: u64,
    /// Retransmissions of senders that left with the timestamp of the lost original.
    #[serde(default)]
    pub restored_timestamps: u64,
    /// SYNs and SYN-ACKs that were repeated.
    pub repeated_handshakes: u64,
    /// Packets marked "congestion experienced".
    pub congestion_marks: u64,
    /// Packets that the queue towards the air refused.
    pub egress_drops_air: u64,
    /// Packets that the queue towards the wire refused.
    pub egress_drops_wired: u64,
    /// Panics of the agent: passthrough took its place.
    pub agent_panics: u64,
    /// Rules of every agent that the agent broke; debug builds only check them.
    #[serde(default)]
    pub broken_rules: u64,
}

/// One flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowStatus {
    /// The number of the flow, never reused while the gateway runs.
    pub flow: u64,
    /// The fixed host: `10.0.0.1:80`.
    pub wired: String,
    /// The mobile host: `10.0.1.2:5000`.
    pub air: String,
    /// For how long it has been known.
    pub age_seconds: f64,
    /// Packets of wire size that the kernel sent towards the mobile, if the kernel has an entry.
    pub packets: Option<u64>,
    /// Their bytes.
    pub bytes: Option<u64>,
    /// Local retransmissions.
    pub repairs: u64,
    /// The number of these whose loss the mobile's ACKs proved.
    pub losses: u64,
    /// The share of its packets that the air lost, if an acknowledgment has measured anything.
    pub loss: Option<f64>,
    /// Duplicate ACKs kept from the sender.
    pub suppressed_dupacks: u64,
    /// ACKs from which SACK blocks were taken.
    pub stripped_acks: u64,
    /// Suppressed loss signals that were forwarded: the loss was not repaired in time.
    pub forwarded_loss_signals: u64,
    /// Packets that the sender sent again.
    pub sender_retransmits: u64,
    /// The smoothed round trip of the air hop.
    pub air_rtt_ms: Option<f64>,
}

/// `part / whole`, unless there is nothing to divide by.
pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

pub(super) fn unix_seconds(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Time that this process has spent on a CPU.
pub(super) fn cpu_seconds() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return 0.0 };
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    micros as f64 / 1e6
}
