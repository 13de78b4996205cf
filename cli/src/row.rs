//! The JSON lines of a run and of a summary. Names, units and order are stable.

use crate::text;
use airmend_live::lab::config::{Amount, LabConfig};
use airmend_live::lab::outcome::{LinkReport, Outcome};
use airmend_proto::agents::AgentConfig;
use airmend_proto::link::ErrorModel;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// What was set: the fields with which every line begins.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Setting {
    agent: &'static str,
    world: &'static str,
    cc: &'static str,
    direction: &'static str,
    rate_bps: u64,
    #[serde(serialize_with = "compact")]
    air_delay_ms: f64,
    #[serde(serialize_with = "compact")]
    wired_delay_ms: f64,
    #[serde(serialize_with = "compact_option")]
    ber: Option<f64>,
    #[serde(serialize_with = "compact_option")]
    loss: Option<f64>,
    /// Application bytes of each flow; null where the flows send for a time.
    bytes: Option<u64>,
    seed: u64,
}

impl Setting {
    /// The setting of one run.
    pub(crate) fn new(agent: &AgentConfig, config: &LabConfig) -> Self {
        let (ber, loss) = match config.errors {
            ErrorModel::Ber(ber) => (Some(ber), None),
            ErrorModel::Loss(loss) => (None, Some(loss)),
            ErrorModel::None => (None, Some(0.0)),
            ErrorModel::Burst { .. } | ErrorModel::Fading { .. } => (None, None),
        };
        Self {
            agent: agent.name(),
            world: "lab",
            cc: config.cc.name(),
            direction: text::direction(config.direction),
            rate_bps: config.air.rate_bps,
            air_delay_ms: millis(config.air.delay),
            wired_delay_ms: millis(config.wired.delay),
            ber,
            loss,
            bytes: match config.amount {
                Amount::Bytes(bytes) => Some(bytes),
                Amount::Time(_) => None,
            },
            seed: config.seed,
        }
    }
}

/// What else was set; these fields follow the measured ones.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MoreSettings {
    flows: u32,
    #[serde(serialize_with = "compact_option")]
    send_seconds: Option<f64>,
    sack: bool,
    timestamps: bool,
    ipv6: bool,
    wired_rate_bps: u64,
    queue_frames: usize,
    window_segments: Option<u32>,
    port: &'static str,
    burst: Option<Burst>,
    fading: Option<Fading>,
    settings: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Serialize)]
struct Burst {
    frames: u32,
    every_bytes: u64,
}

#[derive(Clone, Debug, Serialize)]
struct Fading {
    #[serde(serialize_with = "compact")]
    good_ms: f64,
    #[serde(serialize_with = "compact")]
    bad_ms: f64,
    #[serde(serialize_with = "compact")]
    loss: f64,
    #[serde(serialize_with = "compact")]
    good_ber: f64,
}

impl MoreSettings {
    /// The further settings of one run.
    pub(crate) fn new(config: &LabConfig, settings: &[(String, String)]) -> Self {
        let (burst, fading) = match config.errors {
            ErrorModel::Burst { frames, every_bytes } => {
                (Some(Burst { frames, every_bytes }), None)
            }
            ErrorModel::Fading { good, bad, bad_loss, good_ber } => {
                let (good_ms, bad_ms) = (millis(good), millis(bad));
                (None, Some(Fading { good_ms, bad_ms, loss: bad_loss, good_ber }))
            }
            _ => (None, None),
        };
        Self {
            flows: config.flows,
            send_seconds: match config.amount {
                Amount::Bytes(_) => None,
                Amount::Time(time) => Some(time.as_secs_f64()),
            },
            sack: config.sack,
            timestamps: config.timestamps,
            ipv6: config.ipv6,
            wired_rate_bps: config.wired.rate_bps,
            queue_frames: config.queue_frames,
            window_segments: config.window_segments,
            port: text::port(config.port),
            burst,
            fading,
            settings: settings.iter().cloned().collect(),
        }
    }
}

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
    agent_counters: &'a BTreeMap<&'static str, u64>,
    bytes_received: u64,
    #[serde(flatten)]
    more: MoreSettings,
    flow_goodput_bps: Vec<u64>,
    links: BTreeMap<&'static str, Link>,
    /// Lost between a host's kernel and the emulated links; not 0 means a machine too slow.
    port_drops: u64,
    lateness_us: Lateness,
    tcp_ext: &'a BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
struct Sender {
    retransmits: u64,
    timeouts: u64,
    cwnd_reductions: u64,
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
            sender: Sender {
                retransmits: outcome.sender.retransmits,
                timeouts: outcome.sender.timeouts,
                cwnd_reductions: outcome.sender.cwnd_reductions,
            },
            agent_counters: &outcome.agent_counters,
            bytes_received: outcome.bytes_received,
            more,
            flow_goodput_bps: outcome.flow_goodput_bps.iter().copied().map(whole).collect(),
            links: outcome.links.iter().map(|(name, report)| (*name, link(report))).collect(),
            port_drops: outcome.port_drops,
            tcp_ext: &outcome.tcp_ext,
            lateness_us: Lateness {
                p50: outcome.lateness_us.p50,
                p99: outcome.lateness_us.p99,
                max: outcome.lateness_us.max,
            },
        }
    }
}

/// All runs of one combination; `seed` is the first one's.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) summary: bool,
    #[serde(flatten)]
    pub(crate) setting: Setting,
    pub(crate) runs: usize,
    pub(crate) completed: usize,
    #[serde(serialize_with = "whole_option")]
    pub(crate) goodput_mean_bps: Option<f64>,
    #[serde(serialize_with = "whole_option")]
    pub(crate) goodput_sd_bps: Option<f64>,
    #[serde(serialize_with = "whole_option")]
    pub(crate) bound_bps: Option<f64>,
    #[serde(serialize_with = "compact_option")]
    pub(crate) of_bound: Option<f64>,
    /// Median of the paired ratios to the first agent.
    #[serde(serialize_with = "compact_option")]
    pub(crate) ratio_median: Option<f64>,
    #[serde(serialize_with = "compact_option")]
    pub(crate) timeouts_mean: Option<f64>,
    #[serde(flatten)]
    pub(crate) more: MoreSettings,
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
