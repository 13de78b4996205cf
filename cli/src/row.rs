//! The JSON lines of a run and of a summary. Names, units and order are stable.

mod setting;
mod summary;

pub(crate) use setting::{MoreSettings, Setting};
pub(crate) use summary::{PingSummary, Summary};

use crate::stats;
use airmend_live::lab::outcome::{self, LinkReport, Outcome};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// One run.
#[derive(Debug, Serialize)]
pub(crate) struct Row<'a> {
    #[serde(flatten)]
    setting: Setting,
    completed: bool,
    #[serde(serialize_with = "compact")]
    seconds: f64,
    goodput_bps: u64,
    bound_bps: u64,
    #[serde(serialize_with = "compact")]
    of_bound: f64,
    #[serde(serialize_with = "compact")]
    wire_bytes_per_byte: f64,
    sender: Sender,
    agent_counters: &'a BTreeMap<String, u64>,
    bytes_received: u64,
    /// With the warm-up, which `goodput_bps` leaves out.
    overall_goodput_bps: u64,
    /// The bound with the fades of this run; null where the air does not fade.
    #[serde(serialize_with = "whole_option")]
    realised_bound_bps: Option<f64>,
    #[serde(serialize_with = "compact_option")]
    of_realised_bound: Option<f64>,
    #[serde(flatten)]
    more: MoreSettings,
    /// Those of the unmended flows last.
    flow_goodput_bps: Vec<u64>,
    /// Jain's index.
    #[serde(serialize_with = "compact")]
    fairness: f64,
    completion_ms: Option<Times>,
    ping: Option<Ping>,
    links: BTreeMap<&'static str, Link>,
    /// Lost between a host's kernel and the emulated links; not 0 means a machine too slow.
    port_drops: u64,
    lateness_us: Lateness,
    tcp_ext: &'a BTreeMap<String, u64>,
    /// Only where the air needs an agent at each end: `agent_counters` is the base station's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    mobile_counters: &'a BTreeMap<String, u64>,
    /// Only where a gateway ran: how often it was late, and the kernel passed it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway_heartbeat_timeouts: Option<u64>,
    /// Only where a gateway observed: what it told.
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<&'a serde_json::Value>,
}

#[derive(Debug, Serialize)]
struct Sender {
    retransmits: u64,
    timeouts: u64,
    cwnd_reductions: u64,
    recoveries: u64,
    undone_recoveries: u64,
    undone_timeouts: u64,
    spurious_timeouts: u64,
    loss_probes: u64,
    loss_probe_recoveries: u64,
    reorderings: u64,
    dsacks: u64,
    reordering: u32,
}

impl Sender {
    fn new(outcome: &Outcome) -> Self {
        let sender = outcome.sender;
        Self {
            retransmits: sender.retransmits,
            timeouts: sender.timeouts,
            cwnd_reductions: sender.cwnd_reductions,
            recoveries: sender.recoveries,
            undone_recoveries: sender.undone_recoveries,
            undone_timeouts: sender.undone_timeouts,
            spurious_timeouts: sender.spurious_timeouts,
            loss_probes: sender.loss_probes,
            loss_probe_recoveries: sender.loss_probe_recoveries,
            reorderings: sender.reorderings,
            dsacks: sender.dsacks,
            reordering: outcome.reordering,
        }
    }
}

/// How long each of some things took, in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Times {
    count: usize,
    #[serde(serialize_with = "compact")]
    pub(crate) p50: f64,
    #[serde(serialize_with = "compact")]
    pub(crate) p90: f64,
    #[serde(serialize_with = "compact")]
    pub(crate) p99: f64,
    #[serde(serialize_with = "compact")]
    pub(crate) max: f64,
}

impl Times {
    /// Of times in seconds; `None` of nothing.
    pub(crate) fn of(seconds: &[f64]) -> Option<Self> {
        let millis = |share| stats::quantile(seconds, share).map(|s| rounded(s * 1e3, 3));
        Some(Self {
            count: seconds.len(),
            p50: millis(0.5)?,
            p90: millis(0.9)?,
            p99: millis(0.99)?,
            max: millis(1.0)?,
        })
    }
}

/// Round trips of the ping, in milliseconds.
#[derive(Debug, Serialize)]
struct Ping {
    sent: u64,
    received: u64,
    #[serde(serialize_with = "compact")]
    p50_ms: f64,
    #[serde(serialize_with = "compact")]
    p99_ms: f64,
    #[serde(serialize_with = "compact")]
    max_ms: f64,
}

impl Ping {
    fn new(ping: &outcome::Ping) -> Self {
        let millis = |time: Duration| rounded(time.as_secs_f64() * 1e3, 3);
        Self {
            sent: ping.sent,
            received: ping.received,
            p50_ms: millis(ping.round_trip.p50),
            p99_ms: millis(ping.round_trip.p99),
            max_ms: millis(ping.round_trip.max),
        }
    }
}

#[derive(Debug, Serialize)]
struct Link {
    frames: u64,
    lost: u64,
    dropped: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Lateness {
    p50: u64,
    p99: u64,
    max: u64,
}

impl<'a> Row<'a> {
    /// The line of one run.
    pub(crate) fn new(setting: Setting, more: MoreSettings, outcome: &'a Outcome) -> Self {
        let link = |link: &LinkReport| Link {
            frames: link.frames,
            lost: link.lost,
            dropped: link.dropped,
            bytes: link.bytes,
        };
        Self {
            setting,
            completed: outcome.completed,
            seconds: rounded(outcome.seconds, 6),
            goodput_bps: whole(outcome.goodput_bps),
            bound_bps: whole(outcome.bound_bps),
            of_bound: rounded(outcome.goodput_bps / outcome.bound_bps, 4),
            wire_bytes_per_byte: rounded(outcome.wire_bytes_per_byte, 4),
            sender: Sender::new(outcome),
            agent_counters: &outcome.agent_counters,
            bytes_received: outcome.bytes_received,
            overall_goodput_bps: whole(outcome.overall_goodput_bps),
            realised_bound_bps: outcome.realised_bound_bps,
            of_realised_bound: outcome
                .realised_bound_bps
                .map(|bound| rounded(outcome.goodput_bps / bound, 4)),
            more,
            flow_goodput_bps: outcome.flow_goodput_bps.iter().copied().map(whole).collect(),
            fairness: rounded(outcome.fairness, 4),
            completion_ms: Times::of(&outcome.completion_seconds),
            ping: outcome.ping.as_ref().map(Ping::new),
            links: outcome.links.iter().map(|(name, report)| (*name, link(report))).collect(),
            port_drops: outcome.port_drops,
            tcp_ext: &outcome.tcp_ext,
            mobile_counters: &outcome.mobile_counters,
            gateway_heartbeat_timeouts: outcome.gateway_heartbeat_timeouts,
            observation: outcome.observation.as_ref(),
            lateness_us: Lateness {
                p50: outcome.lateness_us.p50,
                p99: outcome.lateness_us.p99,
                max: outcome.lateness_us.max,
            },
        }
    }
}

/// `value` without the decimals beyond these.
pub(crate) fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}

fn millis(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64() * 1e3, 6)
}

/// Rates are whole bits per second; what is no number becomes 0.
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// A whole number without its decimal point: `2`, not `2.0`; what is no number becomes null.
fn compact<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return serializer.serialize_i64(*value as i64);
    }
    serializer.serialize_f64(*value)
}

fn compact_option<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => compact(value, serializer),
        None => serializer.serialize_none(),
    }
}

fn whole_option<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.serialize_u64(whole(*value)),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests;
