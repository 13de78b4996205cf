//! The outcome of one laboratory run.

use airmend_proto::Port;
pub use airmend_proto::outcome::{LinkReport, SenderCounters, TraceKind};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

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
    /// The goodput of each flow; the unmended flows are last.
    pub flow_goodput_bps: Vec<f64>,
    /// Application bits per second of the whole run, warm-up and all.
    pub overall_goodput_bps: f64,
    /// Jain's index of the flows' goodputs: 1 if all are equal, 1/n if one has everything.
    pub fairness: f64,
    /// The time of each flow from its `connect` to its last byte, in seconds, in the order of
    /// their beginning; those that did not complete are left out.
    pub completion_seconds: Vec<f64>,
    /// The short flows beside the others, if there were any.
    pub short: Option<ShortFlows>,
    /// The ping's round trips, if it was enabled.
    pub ping: Option<Ping>,
    /// The upper bound of goodput on these links in what was measured: (1) of the bounds.
    pub bound_bps: f64,
    /// The bound with the fades of this run instead of the long-run mean, where the air fades.
    pub realised_bound_bps: Option<f64>,
    /// Bytes that data packets took on the air (IP headers included) for each useful byte; with a
    /// modem, on the hop to it, since its queue may drop some of them.
    pub wire_bytes_per_byte: f64,
    /// The counters of the sending hosts' TCPs, of the flows that the agent mends only, short ones
    /// included.
    pub sender: SenderCounters,
    /// The degree of reordering that the senders' TCPs assumed at the end (`tcpi_reordering`), the
    /// largest of all flows; it begins at 3.
    pub reordering: u32,
    /// The counters of the agent, by event; of a link, of its end at the base station.
    pub agent_counters: BTreeMap<String, u64>,
    /// Times that the heartbeat of a gateway timed out; `None` without a gateway.
    pub gateway_heartbeat_timeouts: Option<u64>,
    /// The observation of a gateway that only observes.
    pub observation: Option<serde_json::Value>,
    /// The counters of the agent at the mobile, where the air needs an agent at each end.
    pub mobile_counters: BTreeMap<String, u64>,
    /// The moves of the mobile host between several base stations.
    pub handoffs: Option<Handoffs>,
    /// The counters of each of several base stations; `agent_counters` has their sums.
    pub station_counters: Vec<BTreeMap<String, u64>>,
    /// The counters of the links, by name (`air_down`, …), those of all stations together.
    pub links: BTreeMap<&'static str, LinkReport>,
    /// All nonzero `TcpExt` counters of the sending hosts.
    pub tcp_ext: BTreeMap<String, u64>,
    /// Packets lost between a host's kernel and the emulated links: must be 0, or the machine was
    /// too slow for this run.
    pub port_drops: u64,
    /// The lateness of frames that left the emulated links, in microseconds.
    pub lateness_us: Lateness,
    /// The senders' state over time.
    pub samples: Vec<TcpSample>,
    /// Data and ACKs as they left the agent, first flow only.
    pub trace: Vec<TracePoint>,
}

/// The short flows of all pairs of hosts that began after the warm-up.
#[derive(Clone, Debug, Default)]
pub struct ShortFlows {
    /// The time of each one from its `connect` to its last byte, in seconds.
    pub completion_seconds: Vec<f64>,
    /// Those that were cut off by the end of the run and had by then taken longer than any that
    /// completed; the others that were cut off are not counted.
    pub overdue: u64,
}

/// The moves of a mobile host between base stations.
#[derive(Clone, Debug, Default)]
pub struct Handoffs {
    /// How often it left a station.
    pub moves: u64,
    /// From there to the first new data in order that came over the air of the next station; of
    /// moves after which none came before the next one or the end of the run, nothing.
    pub gaps: Vec<Duration>,
    /// Messages that an intruder has repeated; as many were forged.
    pub intruded: Option<u64>,
}

/// Round trips of a small packet between the hosts of the mended flows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ping {
    /// Packets sent after the warm-up.
    pub sent: u64,
    /// The number of answers.
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

/// From the sender's call to the receiver's return; of a ping, to the sender's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delay {
    /// The smallest.
    pub min: Duration,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The largest.
    pub max: Duration,
}

impl Delay {
    pub(crate) fn of(nanos: &Histogram<u64>) -> Self {
        let quantile = |quantile| Duration::from_nanos(nanos.value_at_quantile(quantile));
        let (min, max) = (Duration::from_nanos(nanos.min()), Duration::from_nanos(nanos.max()));
        Self { min, p50: quantile(0.5), p99: quantile(0.99), max }
    }
}

/// From a nanosecond to a minute, to three digits.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(60_000_000_000, 3).expect("these bounds are valid")
}

impl Lateness {
    /// The distribution of values recorded in nanoseconds, rounded up.
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
    /// The side of the agent on which it left.
    pub side: Port,
    /// The kind of the packet.
    pub kind: TraceKind,
}
