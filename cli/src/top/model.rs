//! What `airmend top` shows: the last status, and how it changed from one to the next.

use airmend_live::gateway::observe::ObservedFlow;
use airmend_live::gateway::telemetry::{FlowStatus, Status};
use airmend_proto::named;
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

/// Intervals that are remembered: ten minutes of seconds, more than a terminal is wide.
const HISTORY: usize = 600;

/// The sort key of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Mended,
    Rate,
    Loss,
    AirRtt,
}

named! { Order: Mended = "repairs", Rate = "rate", Loss = "loss", AirRtt = "air RTT" }

impl Order {
    /// What flows are sorted by; a gateway that only observes has repaired nothing.
    pub(super) fn words(self, is_observing: bool) -> &'static str {
        if is_observing && self == Self::Mended { "gain" } else { self.name() }
    }

    fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()]
    }
}

/// The changes from one status to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Interval {
    /// The share of packets that the air lost; `None` if none was sent.
    pub(super) loss: Option<f64>,
    /// The mean round trip of the air, in milliseconds; `None` if none was measured.
    pub(super) rtt_ms: Option<f64>,
    /// Repairs a second.
    pub(super) repairs: f64,
    /// The share of a core.
    pub(super) cpu: f64,
    /// Bits of payload per second that reached mobiles.
    pub(super) to_mobiles_bps: f64,
}

/// Everything on the screen.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) status: Status,
    /// The newest last.
    pub(super) history: VecDeque<Interval>,
    pub(super) order: Order,
    /// Why there was no status the last time.
    pub(super) trouble: Option<String>,
    /// Bits per second by flow, if both statuses have the flow and its bytes.
    rates: BTreeMap<u64, f64>,
    /// The same of flows that are only observed, which have no number: by their ends.
    observed_rates: BTreeMap<(String, String), f64>,
    paused: bool,
}

impl Model {
    /// Takes a new status.
    pub(super) fn update(&mut self, new: Status) {
        let old = std::mem::replace(&mut self.status, new);
        self.trouble = None;
        let new = &self.status;
        let is_same_run = old.started_unix_seconds == new.started_unix_seconds;
        let seconds = new.uptime_seconds - old.uptime_seconds;
        if !is_same_run {
            self.history.clear();
            self.rates.clear();
            self.observed_rates.clear();
        } else if seconds > 0.0 {
            self.rates = rates(&old, new, seconds);
            self.observed_rates = observed_rates(&old, new, seconds);
            self.history.push_back(interval(&old, new, seconds));
            if self.history.len() > HISTORY {
                self.history.pop_front();
            }
        }
    }

    /// The gateway did not answer: what was seen last stays.
    pub(super) fn lost(&mut self, why: String) {
        self.trouble = Some(why);
    }

    pub(super) fn sort_by_next(&mut self) {
        self.order = self.order.next();
    }

    pub(super) fn pause_or_go_on(&mut self) {
        self.paused = !self.paused;
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Bits per second towards the mobile.
    pub(super) fn rate(&self, flow: &FlowStatus) -> Option<f64> {
        self.rates.get(&flow.flow).copied()
    }

    /// Bits per second that the mobile acknowledged.
    pub(super) fn observed_rate(&self, flow: &ObservedFlow) -> Option<f64> {
        self.observed_rates.get(&ends(flow)).copied()
    }

    /// What is only observed, as it is sorted now; first what would gain most.
    pub(super) fn observed(&self) -> Vec<&ObservedFlow> {
        let flows = self.status.observation.iter().flat_map(|observed| &observed.flows);
        let mut flows: Vec<_> = flows.collect();
        match self.order {
            Order::Mended => {}
            Order::Rate => {
                flows.sort_by(|a, b| descending(self.observed_rate(a), self.observed_rate(b)));
            }
            Order::Loss => flows.sort_by(|a, b| descending(a.air_loss, b.air_loss)),
            Order::AirRtt => flows.sort_by(|a, b| descending(a.air_rtt_ms, b.air_rtt_ms)),
        }
        flows
    }

    /// The flows as they are sorted now; equal ones stay in the gateway's order.
    pub(super) fn flows(&self) -> Vec<&FlowStatus> {
        let mut flows: Vec<_> = self.status.top.iter().collect();
        match self.order {
            Order::Mended => {}
            Order::Rate => flows.sort_by(|a, b| descending(self.rate(a), self.rate(b))),
            Order::Loss => flows.sort_by(|a, b| descending(a.loss, b.loss)),
            Order::AirRtt => flows.sort_by(|a, b| descending(a.air_rtt_ms, b.air_rtt_ms)),
        }
        flows
    }
}

/// Compares two values; an unknown value is last.
fn descending(a: Option<f64>, b: Option<f64>) -> Ordering {
    let value = |known: Option<f64>| known.unwrap_or(f64::NEG_INFINITY);
    value(b).total_cmp(&value(a))
}

fn rates(old: &Status, new: &Status, seconds: f64) -> BTreeMap<u64, f64> {
    let before: BTreeMap<_, _> = old.top.iter().map(|flow| (flow.flow, flow.bytes)).collect();
    let rate = |flow: &FlowStatus| {
        let bytes = flow.bytes?.saturating_sub((*before.get(&flow.flow)?)?);
        Some((flow.flow, bytes as f64 * 8.0 / seconds))
    };
    new.top.iter().filter_map(rate).collect()
}

fn observed_rates(old: &Status, new: &Status, seconds: f64) -> BTreeMap<(String, String), f64> {
    let flows = |status: &Status| {
        let observed = status.observation.iter().flat_map(|observed| &observed.flows);
        observed.map(|flow| (ends(flow), flow.bytes)).collect::<BTreeMap<_, _>>()
    };
    let before = flows(old);
    let rate = |(ends, bytes): ((String, String), u64)| {
        let bytes = bytes.checked_sub(*before.get(&ends)?)?;
        Some((ends, bytes as f64 * 8.0 / seconds))
    };
    flows(new).into_iter().filter_map(rate).collect()
}

fn ends(flow: &ObservedFlow) -> (String, String) {
    (flow.wired.clone(), flow.air.clone())
}

fn interval(old: &Status, new: &Status, seconds: f64) -> Interval {
    let total = |status: &Status| status.repairs.values().sum::<u64>();
    let more = |new: u64, old: u64| new.saturating_sub(old) as f64;
    let mean = |sum: f64, count: f64| (count > 0.0).then(|| sum / count);
    let (rtt, past) = (&new.air_rtt_seconds, &old.air_rtt_seconds);
    let loss = mean(more(new.air_losses, old.air_losses), more(new.air_packets, old.air_packets));
    Interval {
        loss: loss.filter(|_| new.air_loss().is_some()),
        rtt_ms: mean((rtt.sum - past.sum) * 1e3, more(rtt.count, past.count)),
        repairs: more(total(new), total(old)) / seconds,
        cpu: (new.cpu_seconds - old.cpu_seconds) / seconds,
        to_mobiles_bps: new.goodput.to_mobiles_bps,
    }
}
