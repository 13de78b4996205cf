//! The report of an observing gateway.

use serde::{Deserialize, Serialize};

/// The observation since the gateway began, and the estimated gain of mending. Rates are in bits
/// of payload per second of the time in which any flow had something to send. Names are stable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observation {
    /// Seconds in which any flow had something to send.
    pub busy_seconds: f64,
    /// The rate that the mobiles acknowledged.
    pub goodput_bps: f64,
    /// The estimated rate with mending.
    pub estimate_bps: f64,
    /// The lower estimate: the same data, sent sooner. The upper one: more data in the same time.
    pub estimate_low_bps: f64,
    /// See `estimate_low_bps`.
    pub estimate_high_bps: f64,
    /// `estimate_bps / goodput_bps`, once anything has arrived.
    pub gain: Option<f64>,
    /// The rate of the air in bits of IP per second, if it is known.
    pub capacity_bps: Option<f64>,
    /// The source of `capacity_bps`.
    pub capacity_from: CapacityFrom,
    /// Frames with data that went on the air, the senders' retransmissions included.
    pub air_frames: u64,
    /// The number of these that the air lost: each would be mended.
    pub air_losses: u64,
    /// `air_losses / air_frames`, once anything was acknowledged.
    pub air_loss: Option<f64>,
    /// Frames that were lost before they left here: mending changes nothing about them.
    pub lost_before: u64,
    /// ACKs that show losses on the air to senders: mending would suppress or edit them.
    pub hidden_acks: u64,
    /// Timeouts of senders, which mending would avoid.
    pub timeouts: u64,
    /// Flows that were seen.
    pub flows_seen: u64,
    /// Flows whose data has been passing for a second without any acknowledgment.
    pub flows_unanswered: u64,
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
    /// Seconds in which the flow had something to send.
    pub active_seconds: f64,
    /// Bytes of payload that the mobile acknowledged.
    pub bytes: u64,
    /// Their rate in that time.
    pub goodput_bps: f64,
    /// The estimated rate with mending.
    pub estimate_bps: f64,
    /// The factor that limits the estimate.
    pub limit: Limit,
    /// The share of its frames that the air lost.
    pub air_loss: Option<f64>,
    /// The number of these frames.
    pub air_losses: u64,
    /// ACKs that show these losses to the sender.
    pub hidden_acks: u64,
    /// Timeouts of the sender.
    pub timeouts: u64,
    /// The least round trip of the air hop.
    pub air_rtt_ms: Option<f64>,
    /// The round trip between the gateway and its sender, from timestamps.
    pub wired_rtt_ms: Option<f64>,
}

/// The source of the rate of the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapacityFrom {
    /// The rate is unknown: nothing can be estimated.
    #[default]
    Unknown,
    /// The fastest train of frames; the air may be faster, or slower where it takes many at once.
    Measured,
    /// The interface's own queue has this rate.
    Shaper,
    /// The operator.
    Configured,
}

/// The factor that would limit a flow whose losses on the air were mended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The rate of the air is not known.
    #[default]
    Unknown,
    /// The fair share of the air.
    Air,
    /// Losses before the gateway, or an air with too long a round trip for repairs.
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
