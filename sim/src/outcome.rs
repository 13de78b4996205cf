//! The measurements of one run.

pub use airmend_proto::outcome::{LinkReport, SenderCounters, TraceKind};
use std::collections::BTreeMap;

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

impl Outcome {
    /// The names that [`Outcome::measure`] accepts, besides those of [`Outcome::is_measure`].
    pub const MEASURES: [&str; 30] = [
        "acked_undelivered",
        "retransmits",
        "fast_retransmits",
        "timeouts",
        "undone_recoveries",
        "loss_probes",
        "loss_probe_recoveries",
        "reorderings",
        "frames_lost",
        "frames_collided",
        "packets_given_up",
        "response_s",
        "max_cached",
        "stall_ms",
        "handoff_p50_ms",
        "handoff_p99_ms",
        "handoff_packets_primed",
        "handoff_packets_released",
        "handoff_packets_relayed",
        "wire_bytes_per_byte",
        "delay_sd_ms",
        "delay_p50_ms",
        "delay_p99_ms",
        "local_retransmits",
        "sender_retransmits",
        "resent_by_both",
        "suppressed_dupacks",
        "forwarded_dupacks",
        "repeated_acks",
        "egress_drops_air",
    ];

    /// Whether this is the name of a measure, in a scenario with these tables of links: one of
    /// [`Outcome::MEASURES`], `flow_N_s`, the seconds of flow N, `airtime_LINK_down` or `_up`, the
    /// share of the run in which frames were sent in this direction, or how often an agent decided
    /// so on a loss: `left_CAUSE`, `masked_CAUSE` or `shown_CAUSE`.
    pub fn is_measure(name: &str, links: &[&str]) -> bool {
        let is_airtime = |name: &str| {
            let link = name.strip_suffix("_down").or_else(|| name.strip_suffix("_up"));
            link.is_some_and(|link| links.contains(&link))
        };
        Self::MEASURES.contains(&name)
            || flow_of(name).is_some()
            || DECISIONS.iter().any(|decision| name.starts_with(decision))
            || name.strip_prefix(AIRTIME).is_some_and(is_airtime)
    }

    /// A measure by its name; 0 for a counter that no agent incremented.
    pub fn measure(&self, name: &str) -> f64 {
        if let Some(flow) = flow_of(name) {
            return self.flow_seconds.get(flow).copied().unwrap_or(0.0);
        }
        if let Some(link) = name.strip_prefix(AIRTIME) {
            let airtime_us = self.each_link.get(link).map_or(0, |link| link.airtime_us);
            return airtime_us as f64 / 1e6 / self.seconds.max(1e-6);
        }
        let flows = self.flow_seconds.len().max(1) as f64;
        match name {
            "frames_collided" => self.links.collided as f64,
            "packets_given_up" => self.links.given_up as f64,
            "response_s" => self.flow_seconds.iter().sum::<f64>() / flows,
            "max_cached" => self.max_cached as f64,
            "stall_ms" => self.stall_ms,
            "handoff_p50_ms" => self.handoff.map_or(0.0, |handoff| handoff.p50_ms),
            "handoff_p99_ms" => self.handoff.map_or(0.0, |handoff| handoff.p99_ms),
            "acked_undelivered" => self.acked_undelivered as f64,
            "retransmits" => self.sender.retransmits as f64,
            "fast_retransmits" => self.sender.recoveries as f64,
            "timeouts" => self.sender.timeouts as f64,
            "undone_recoveries" => self.sender.undone_recoveries as f64,
            "loss_probes" => self.sender.loss_probes as f64,
            "loss_probe_recoveries" => self.sender.loss_probe_recoveries as f64,
            "reorderings" => self.sender.reorderings as f64,
            "frames_lost" => self.links.lost as f64,
            "wire_bytes_per_byte" => self.wire_bytes_per_byte.unwrap_or(0.0),
            "delay_p50_ms" => self.delay.map_or(0.0, |delay| delay.p50_ms),
            "delay_p99_ms" => self.delay.map_or(0.0, |delay| delay.p99_ms),
            "delay_sd_ms" => self.delay.map_or(0.0, |delay| delay.sd_ms),
            counter => self.agent_counters.get(counter).copied().unwrap_or(0) as f64,
        }
    }
}

/// Before the cause of a decision.
const DECISIONS: [&str; 3] = ["left_", "masked_", "shown_"];

/// Before the name of a direction of a link.
const AIRTIME: &str = "airtime_";

/// The index of the flow in `flow_1_s`.
fn flow_of(measure: &str) -> Option<usize> {
    let number = measure.strip_prefix("flow_")?.strip_suffix("_s")?;
    number.parse::<usize>().ok()?.checked_sub(1)
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
