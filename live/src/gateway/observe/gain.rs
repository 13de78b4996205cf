//! What a gateway that mends has gained: its flows' rate, and an estimate of what they would have
//! without it.

use super::estimate::{Measured, SlowStart};
use crate::tcp_model::tcp;
use serde::{Deserialize, Serialize};

/// Flows that are measured at a time beside the agent; those beyond are mended all the same.
pub(in crate::gateway) const MEASURED_FLOWS: usize = 512;

/// Since the gateway began. Rates are in bits of payload per second of the time in which any flow
/// had something to send. Names are stable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gain {
    /// Seconds in which any flow had something to send.
    pub busy_seconds: f64,
    /// The rate that the mobiles acknowledged.
    pub goodput_bps: f64,
    /// An estimate of that rate without mending: TCP's model with the losses that were repaired.
    pub without_bps: f64,
    /// `goodput_bps / without_bps`, once anything has arrived.
    pub gain: Option<f64>,
    /// Flows that were seen.
    pub flows_seen: u64,
}

/// The rate of a flow if its sender had met each loss, in bits per second; what it has if that, or
/// its round trip, is not known.
pub(super) fn without(flow: &Measured) -> f64 {
    let goodput = flow.goodput();
    // A sender that meets its losses fills no queue, as one that is mended does.
    let least = flow.air_rtt.zip(flow.least_wired_rtt).map(|(air, wired)| air + wired);
    let (Some(rtt), true) = (least.filter(|rtt| *rtt > 0.0), flow.losses > 0.0) else {
        return goodput;
    };
    let loss = flow.loss() + flow.lost_before / flow.frames.max(1.0);
    let steady = goodput.min(tcp(loss, rtt) * flow.mss * 8.0);
    // The same data in the time that the model needs for it.
    let start = SlowStart::to(steady, flow);
    start.rate_of(flow.bytes / flow.periods * 8.0).min(goodput)
}
