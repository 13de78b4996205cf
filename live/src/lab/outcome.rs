//! What one laboratory run measured.

use super::probe::Delay;
use airmend_proto::Port;
pub use airmend_proto::outcome::{LinkReport, SenderCounters, TraceKind};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything measured in one run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Every flow carried what it should, and every byte was right.
    pub completed: bool,
    /// From the first `connect` to the last byte read by the receiver; of flows one after
    /// another, the sum of each one's.
    pub seconds: f64,
    /// Application bytes that the receivers read, all flows.
    pub bytes_received: u64,
    /// Application bits per second, from the end of the warm-up on.
    pub goodput_bps: f64,
    /// The same for each flow, those that the agent did not see last.
    pub flow_goodput_bps: Vec<f64>,
    /// Application bits per second of the whole run, warm-up and all.
    pub overall_goodput_bps: f64,
    /// Jain's index of the flows' goodputs: 1 if all are equal, 1/n if one has everything.
    pub fairness: f64,
    /// How long each flow took from its `connect` to its last byte, in seconds, in the order of
    /// their beginning; those that did not complete are left out.
    pub completion_seconds: Vec<f64>,
    /// The ping's round trips, if one was asked for.
    pub ping: Option<Ping>,
    /// What no scheme can pass on these links: (1) of the bounds.
    pub bound_bps: f64,
    /// The same with the fades of this run instead of the long-run mean, where the air fades.
    pub realised_bound_bps: Option<f64>,
    /// Bytes that data packets took on the air (IP headers included) for each useful byte.
    pub wire_bytes_per_byte: f64,
    /// What the sending host's TCP went through, from its kernel's counters; of the flows that the
    /// agent mends only.
    pub sender: SenderCounters,
    /// The degree of reordering that the senders' TCPs assumed at the end (`tcpi_reordering`), the
    /// largest of all flows; it begins at 3.
    pub reordering: u32,
    /// What the agent at the base station did, by event counter.
    pub agent_counters: BTreeMap<String, u64>,
    /// How often the kernel found a gateway too late and passed it by; `None` without one.
    pub gateway_lapses: Option<u64>,
    /// What a gateway told that only observes.
    pub observation: Option<serde_json::Value>,
    /// What the one at the mobile did, where the air needs an agent at each end.
    pub mobile_counters: BTreeMap<String, u64>,
    /// What the links did, by name (`air_down`, …).
    pub links: BTreeMap<&'static str, LinkReport>,
    /// All nonzero `TcpExt` counters of the sending host.
    pub tcp_ext: BTreeMap<String, u64>,
    /// Packets lost between a host's kernel and the emulated links: must be 0, or the machine was
    /// too slow for this run.
    pub port_drops: u64,
    /// How late frames left the emulated links, in microseconds.
    pub lateness_us: Lateness,
    /// The senders' state over time.
    pub samples: Vec<TcpSample>,
    /// Data and ACKs as the base station saw them, first flow only.
    pub trace: Vec<TracePoint>,
}

/// Round trips of a small packet between the hosts of the mended flows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ping {
    /// Packets sent after the warm-up.
    pub sent: u64,
    /// Of these, those that came back.
    pub received: u64,
    /// Their round trips.
    pub round_trip: Delay,
}

/// A distribution in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Lateness {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

/// From a nanosecond to a minute, to three digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(60_000_000_000, 3).expect("these bounds are valid")
}

impl Lateness {
    /// Of values recorded in nanoseconds, rounded up.
    pub(crate) fn of_nanos(histogram: &Histogram<u64>) -> Self {
        let micros = |nanos: u64| nanos.div_ceil(1_000);
        Self {
            p50: micros(histogram.value_at_quantile(0.5)),
            p99: micros(histogram.value_at_quantile(0.99)),
            max: micros(histogram.max()),
        }
    }
}

/// A sender's state at one time, from `TCP_INFO`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpSample {
    /// Seconds since the run began.
    pub seconds: f64,
    /// Which flow, from 0.
    pub flow: u32,
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow start threshold, in segments.
    pub ssthresh: u32,
    /// Smoothed round trip, in microseconds.
    pub srtt_us: u32,
    /// Retransmission timeout, in microseconds.
    pub rto_us: u32,
    /// Segments retransmitted so far.
    pub retransmits: u32,
    /// The degree of reordering that it assumes, in segments.
    pub reordering: u32,
    /// Recovering from a retransmission timeout (the kernel's `TCP_CA_Loss`).
    pub after_timeout: bool,
}

/// One point of the sequence-time plot.
#[derive(Clone, Copy, Debug)]
pub struct TracePoint {
    /// Seconds since the run began.
    pub seconds: f64,
    /// Bytes from the initial sequence number.
    pub offset: u64,
    /// The side on which it left.
    pub side: Port,
    /// What it was.
    pub kind: TraceKind,
}
