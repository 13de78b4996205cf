//! The measurements of one run.

pub use airmend_proto::outcome::{LinkReport, SenderCounters, TraceKind};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// The measurements of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Whether every flow carried all of its data.
    pub completed: bool,
    /// From the first flow's start to the last byte that a receiver got in order; without
    /// completion, to the end of the run.
    pub seconds: f64,
    /// Application bytes that arrived in order, all flows, both ways.
    pub bytes_received: u64,
    /// Bytes that were acknowledged to senders and had not arrived when the run ended: 0 but for
    /// split connections.
    pub acked_undelivered: u64,
    /// Application bits per second of `seconds`.
    pub goodput_bps: f64,
    /// For each flow the bits per second from its own start to its own end.
    pub flow_goodput_bps: Vec<f64>,
    /// Whether each flow began: the run may end before, with its last finite flow.
    pub flow_begun: Vec<bool>,
    /// For each flow the seconds from its own start to its own end; of a flow that was not done, to
    /// the end of the run.
    pub flow_seconds: Vec<f64>,
    /// The delays of each flow, as in `delay`.
    pub flow_delay: Vec<Option<Delay>>,
    /// Bytes that the data direction took on the air (IP headers included) for each useful byte;
    /// none if no flow crosses the air or nothing arrived.
    pub wire_bytes_per_byte: Option<f64>,
    /// The counters of the sending ends.
    pub sender: SenderCounters,
    /// The datagrams of all flows that have no connection.
    pub datagrams: DatagramCounters,
    /// The counters of the agents, by name.
    pub agent_counters: BTreeMap<&'static str, u64>,
    /// All directions of all links together; `dropped` is of the hosts' queues, since drops of a
    /// station's egress queue are among the agent's counters.
    pub links: LinkReport,
    /// The two directions of each table of links, by its name: `air_down`, `air_up`.
    pub each_link: BTreeMap<String, LinkReport>,
    /// The delay from the write of a packet or a request until all of it, or of the response, has
    /// arrived; none of bulk transfers. With `packet_delays`: from a packet's first transmission
    /// until it has arrived in order.
    pub delay: Option<Delay>,
    /// The packets that left the first flow's first station, if the scenario asks for a trace.
    pub trace: Vec<TracePoint>,
    /// The most packets that the cache of an agent has held.
    pub max_cached: usize,
    /// The longest time in which nothing of a flow arrived in order, in milliseconds, counted from
    /// its start.
    pub stall_ms: f64,
    /// From the times at which a receiving host got another link to the first data that then
    /// arrived in order.
    pub handoff: Option<Delay>,
    /// The number of events that the simulator processed.
    pub steps: u64,
}

/// UDP datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DatagramCounters {
    /// Sent by their hosts.
    pub sent: u64,
    /// Arrived.
    pub received: u64,
}

impl AddAssign for DatagramCounters {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
    }
}

/// Delays of packets or exchanges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// The number of samples.
    pub count: usize,
    /// Mean, in milliseconds.
    pub mean_ms: f64,
    /// Sample standard deviation; 0 of a single one.
    pub sd_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
}

/// One point of the sequence-time plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracePoint {
    /// Seconds since the run began.
    pub seconds: f64,
    /// The offset from the initial sequence number, in bytes.
    pub offset: u64,
    /// The kind of the packet.
    pub kind: TraceKind,
}

impl Delay {
    /// The summary of delays in milliseconds, in any order; `None` without delays.
    pub(crate) fn of(mut millis: Vec<f64>) -> Option<Self> {
        millis.sort_by(f64::total_cmp);
        let count = millis.len();
        let rank = |percent: usize| (count * percent).div_ceil(100).max(1) - 1;
        let percentile = |percent| millis.get(rank(percent)).copied();
        let [p50_ms, p95_ms, p99_ms] = [percentile(50)?, percentile(95)?, percentile(99)?];
        let mean_ms = millis.iter().sum::<f64>() / count as f64;
        let squares: f64 = millis.iter().map(|value| (value - mean_ms).powi(2)).sum();
        let sd_ms = (squares / (count - 1).max(1) as f64).sqrt();
        Some(Self { count, mean_ms, sd_ms, p50_ms, p95_ms, p99_ms })
    }
}
