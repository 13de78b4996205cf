//! What a gateway that mends has gained: its flows' rate, and an estimate of what they would have
//! without it.

use super::estimate::{Measured, PLAUSIBLE};
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
    let segment = flow.mss * 8.0;
    // Losses before the air that allowed for this rate are its own doing, where the queue was full:
    // without mending it would be slower, and not meet them.
    let before = flow.lost_before / flow.frames.max(1.0);
    let by_those = TcpPath { loss: before, round_trip, rate: None }.by_losses() * segment;
    let before = if goodput > PLAUSIBLE * by_those { 0.0 } else { before };
    let loss = flow.loss() + before;
    let air = capacity.map_or(0.0, |capacity| capacity * flow.share * flow.payload_share);
    let path = TcpPath { loss, round_trip, rate: Some(air.max(goodput) / segment) };
    let segments = flow.bytes / flow.periods / flow.mss;
    (path.rate_of(segments) * segment).min(goodput)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mended flow of 20 Mb/s through an air of 1 % of losses, 84 ms from its sender.
    fn flow(lost_before: f64) -> Measured {
        Measured {
            active: 20.0,
            periods: 1.0,
            is_running: true,
            bytes: 50e6,
            frames: 35_000.0,
            losses: 350.0,
            lost_before,
            mss: 1_448.0,
            payload_share: 0.965,
            air_rtt: Some(0.004),
            wired_rtt: Some(0.08),
            least_wired_rtt: Some(0.08),
            window: None,
            is_application_limited: false,
            share: 1.0,
        }
    }

    #[test]
    fn what_overflows_by_a_mended_flow_would_not_be_lost_without() {
        let alone = without(&flow(0.0), None);
        // Bursts of slow start at a full queue: no path with so many losses carries 20 Mb/s.
        assert_eq!(without(&flow(2_000.0), None), alone);
        // Few enough for a rate like this one.
        let few = without(&flow(10.0), None);
        assert!(few < alone, "{few} {alone}");
    }
}
