//! What was set: the fields that every line has.

use super::{compact, compact_option, millis};
use crate::text;
use airmend_live::lab::config::{Amount, LabConfig, Path};
use airmend_proto::agents::AgentConfig;
use airmend_proto::link::ErrorModel;
use serde::Serialize;
use std::collections::BTreeMap;

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
            _ => (None, None),
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
    unmended_flows: u32,
    sequential: u32,
    #[serde(serialize_with = "compact_option")]
    send_seconds: Option<f64>,
    #[serde(serialize_with = "compact")]
    warmup_seconds: f64,
    sack: bool,
    timestamps: bool,
    ipv6: bool,
    wired_rate_bps: u64,
    queue_frames: usize,
    wired_queue_frames: usize,
    window_segments: Option<u32>,
    port: &'static str,
    burst: Option<Burst>,
    fading: Option<Fading>,
    settings: BTreeMap<String, String>,
    /// Of half-duplex radios; only where the air has them.
    #[serde(serialize_with = "compact_option", skip_serializing_if = "Option::is_none")]
    turnaround_ms: Option<f64>,
    /// What the base station forwards with; only where that is not an agent in the loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'static str>,
    /// What queues towards the air there.
    #[serde(skip_serializing_if = "Option::is_none")]
    air_queue: Option<&'static str>,
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
            unmended_flows: config.unmended_flows,
            sequential: config.sequential,
            warmup_seconds: config.warmup.as_secs_f64(),
            send_seconds: match config.amount {
                Amount::Bytes(_) => None,
                Amount::Time(time) => Some(time.as_secs_f64()),
            },
            sack: config.sack,
            timestamps: config.timestamps,
            ipv6: config.ipv6,
            wired_rate_bps: config.wired.rate_bps,
            queue_frames: config.queue_frames,
            wired_queue_frames: config.wired_queue_frames,
            window_segments: config.window_segments,
            port: text::port(config.port),
            burst,
            fading,
            settings: settings.iter().cloned().collect(),
            turnaround_ms: config.turnaround.map(millis),
            path: (config.path != Path::Inline).then(|| config.path.name()),
            air_queue: (config.path != Path::Inline).then(|| config.air_queue.name()),
        }
    }
}
