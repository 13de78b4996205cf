//! What a gateway that mends has gained: its flows' rate, and an estimate of what they would have
//! without it.

use super::estimate::Measured;
use crate::tcp_model::TcpPath;
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

/// The rate of a flow if its sender had met each loss and had sent the same data, in bits per
/// second, through an air of this rate (bits of IP per second); what it has if the losses, or its
/// round trip, are not known.
pub(super) fn without(flow: &Measured, capacity: Option<f64>) -> f64 {
    let goodput = flow.goodput();
    // A sender that meets its losses fills no queue, as one that is mended does.
    let least = flow.air_rtt.zip(flow.least_wired_rtt).map(|(air, wired)| air + wired);
    let (Some(round_trip), true) = (least.filter(|rtt| *rtt > 0.0), flow.losses > 0.0) else {
        return goodput;
    };
    let loss = flow.loss() + flow.lost_before / flow.frames.max(1.0);
    let air = capacity.map_or(0.0, |capacity| capacity * flow.share * flow.payload_share);
    let segment = flow.mss * 8.0;
    let path = TcpPath { loss, round_trip, rate: Some(air.max(goodput) / segment) };
    let segments = flow.bytes / flow.periods / flow.mss;
    (path.rate_of(segments) * segment).min(goodput)
}
