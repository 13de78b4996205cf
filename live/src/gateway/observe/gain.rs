//! What a gateway that mends has gained: its flows' rate, and an estimate of what they would have
//! without it.

use super::estimate::{Measured, SlowStart};
use super::{Observer, Sums};
use crate::tcp_model::tcp;
use airmend_proto::Instant;
use serde::{Deserialize, Serialize};

/// Flows that are measured at a time beside the agent; those beyond are mended all the same.
pub(in crate::gateway) const MEASURED_FLOWS: usize = 4_096;

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

impl Observer {
    /// The gain until now, where the packets are those of flows that are mended, repairs among
    /// them.
    pub(in crate::gateway) fn gain(&mut self, now: Instant) -> Gain {
        self.advance(now);
        let capacity = self.capacity();
        let mut sums: Sums = self.past;
        for observed in self.flows.values() {
            sums.add(&observed.flow.counts, &observed.measured(now, self.served), capacity);
        }
        let total = self.total(now, &sums, capacity);
        let rate =
            |bits: f64| if total.busy_seconds > 0.0 { bits / total.busy_seconds } else { 0.0 };
        let (goodput_bps, without_bps) =
            (total.goodput_bps, rate(sums.without).min(total.goodput_bps));
        Gain {
            busy_seconds: total.busy_seconds,
            goodput_bps,
            without_bps,
            gain: (without_bps > 0.0).then(|| goodput_bps / without_bps),
            flows_seen: self.seen,
        }
    }
}
