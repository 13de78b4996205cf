//! What one laboratory run measured.

use airmend_proto::Side;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Everything measured in one run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Every flow carried what it should, and every byte was right.
    pub completed: bool,
    /// From the first `connect` to the last byte read by the receiver.
    pub seconds: f64,
    /// Application bytes that the receivers read, all flows.
    pub bytes_received: u64,
    /// Application bits per second.
    pub goodput_bps: f64,
    /// The same for each flow.
    pub flow_goodput_bps: Vec<f64>,
    /// What no scheme can pass on these links: (1) of the bounds.
    pub bound_bps: f64,
    /// Bytes that data packets took on the air (IP headers included) for each useful byte.
    pub wire_bytes_per_byte: f64,
    /// What the sending hosts' TCP went through.
    pub sender: SenderCounters,
    /// What the agent did, by event counter.
    pub agent_counters: BTreeMap<&'static str, u64>,
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

/// Read from the sending namespace's SNMP counters (`TcpExt`), which start at zero in each run.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderCounters {
    /// Segments that the sending host retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Entries into recovery, and timeouts.
    pub cwnd_reductions: u64,
}

/// One direction of a link after the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkReport {
    /// Frames serialised.
    pub frames: u64,
    /// Of these, lost or damaged.
    pub lost: u64,
    /// Refused by the full queue.
    pub dropped: u64,
    /// Bytes serialised.
    pub bytes: u64,
}

/// A distribution in microseconds.
#[derive(Clone, Copy, Debug, Default)]
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
    /// Recovering from a retransmission timeout (the kernel's `TCP_CA_Loss`).
    pub after_timeout: bool,
}

/// What a point of the sequence-time plot shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// A data packet left on the air hop for the first time.
    Data,
    /// The agent's local retransmission.
    LocalRetransmit,
    /// The sender's own retransmission.
    SenderRetransmit,
    /// An ACK left for the sender.
    Ack,
}

/// One point of the sequence-time plot.
#[derive(Clone, Copy, Debug)]
pub struct TracePoint {
    /// Seconds since the run began.
    pub seconds: f64,
    /// Bytes from the initial sequence number.
    pub offset: u64,
    /// The side on which it left.
    pub side: Side,
    /// What it was.
    pub kind: TraceKind,
}
