//! What an observing gateway tells.

use serde::{Deserialize, Serialize};

/// What was observed since the gateway began, and what mending would make of it. Rates are in bits
/// of payload per second of the time in which any flow had something to send. Names are stable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observation {
    /// That time.
    pub busy_seconds: f64,
    /// What the mobiles acknowledged.
    pub goodput_bps: f64,
    /// What it would be with mending.
    pub estimate_bps: f64,
    /// If as much had been sent, sooner; and if more had been sent, for as long.
    pub estimate_low_bps: f64,
    /// See `estimate_low_bps`.
    pub estimate_high_bps: f64,
    /// `estimate_bps / goodput_bps`, once anything has arrived.
    pub gain: Option<f64>,
    /// The rate of the air in bits of IP per second, if it is known, and who says so.
    pub capacity_bps: Option<f64>,
    /// Where that is from.
    pub capacity_from: CapacityFrom,
    /// Frames with data that went on the air, the senders' retransmissions included.
    pub air_frames: u64,
    /// Of these, how many the air lost: each would be mended.
    pub air_losses: u64,
    /// The share.
    pub air_loss: Option<f64>,
    /// Frames that were lost before they left here: mending changes nothing about them.
    pub lost_before: u64,
    /// ACKs that told senders of losses on the air, and would be kept back or edited.
    pub hidden_acks: u64,
    /// Timeouts of senders, which they would be spared.
    pub timeouts: u64,
    /// Flows that were seen.
    pub flows_seen: u64,
    /// The flows that would gain most, in this order.
    pub flows: Vec<ObservedFlow>,
}

/// One flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObservedFlow {
    /// The fixed host: `10.0.0.1:80`.
    pub wired: String,
    /// The mobile host: `10.0.1.2:5000`.
    pub air: String,
    /// For how long it had something to send.
    pub active_seconds: f64,
    /// Bytes of payload that the mobile acknowledged.
    pub bytes: u64,
    /// Their rate in that time.
    pub goodput_bps: f64,
    /// What it would be with mending.
    pub estimate_bps: f64,
    /// What keeps it from being more.
    pub limit: Limit,
    /// The share of its frames that the air lost.
    pub air_loss: Option<f64>,
    /// Those frames.
    pub air_losses: u64,
    /// ACKs that told its sender of them.
    pub hidden_acks: u64,
    /// Its sender's timeouts.
    pub timeouts: u64,
    /// The least round trip of the air hop.
    pub air_rtt_ms: Option<f64>,
    /// The round trip between the gateway and its sender, from timestamps.
    pub wired_rtt_ms: Option<f64>,
}

/// Who tells the rate of the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapacityFrom {
    /// Nobody: nothing can be estimated.
    #[default]
    Unknown,
    /// The fastest train of frames; the air may be faster, or slower where it takes many at once.
    Measured,
    /// The interface's own queue has this rate.
    Shaper,
    /// The operator.
    Configured,
}

/// What would limit a flow whose losses on the air were mended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The rate of the air is not known.
    #[default]
    Unknown,
    /// Its share of the air.
    Air,
    /// What mending cannot hide: losses before the gateway, or an air with too long a round trip.
    ResidualLoss,
    /// The mobile's window.
    Window,
    /// The sender has not more to send.
    Application,
    /// Something else: TCP would be faster with no more loss than this.
    Elsewhere,
    /// The air lost nothing of it.
    NoLoss,
}
