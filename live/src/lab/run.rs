//! One laboratory run from beginning to end.

use super::config::{Direction, LabConfig, Place};
use super::error::LabError;
use super::gateway::GatewayReport;
use super::handoff::report::CellsReport;
use super::measure::ping::with_ping;
use super::measure::rounds;
use super::measure::sender::SenderReport;
use super::measure::short::with_short_flows;
use super::measure::transfer::{Carried, Progress, TransferReport};
use super::outcome::{Handoffs, Outcome, Ping, ShortFlows};
use super::record::Recorder;
use super::session::{Forwarding, with_station};
use super::station::StationReport;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs the transfers of `config` through what forwards at the base station, and measures them.
///
/// Needs network namespaces: as an ordinary user, call [`super::enter_user_namespace`] first.
/// `stop` ends the run early, as the time limit does: the outcome is then what was measured so
/// far, not completed. `progress` is called every 20 ms or so.
///
/// # Errors
/// A resource that the machine lacks, a wrong byte at a receiver, a rule that an agent broke, a
/// gateway that ended early, or what cannot forward in this set-up.
pub fn run<'a>(
    config: &LabConfig,
    forwarding: impl Into<Forwarding<'a>>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, LabError> {
    let ((measured, sender), station) = with_station(config, forwarding.into(), None, |session| {
        let is_over = || stop.load(Ordering::Relaxed) || (session.is_over)();
        let bulk = || rounds::run(config, session, &is_over, progress);
        let both = || with_short_flows(config, session, bulk);
        let ((transfer, short), ping) = with_ping(config, session, both)?;
        let sender = SenderReport::read(session.mended.iter().map(|pair| pair.sender))?;
        Ok((Measured { transfer, short, ping }, sender))
    })?;
    Ok(outcome(config, measured, station, sender))
}

/// What the hosts measured.
struct Measured {
    transfer: TransferReport,
    short: Option<ShortFlows>,
    ping: Option<Ping>,
}

fn outcome(
    config: &LabConfig,
    Measured { transfer, short, ping }: Measured,
    mut station: StationReport,
    sender: SenderReport,
) -> Outcome {
    let bytes_received = sum_bytes(&transfer.flows);
    // In front of a modem's queue: what that drops has been sent.
    let data_link = match config.direction {
        Direction::Down if config.far_queue.is_some() => "modem_down",
        Direction::Down => "air_down",
        Direction::Up => "air_up",
    };
    let wire_bytes = station.links.get(data_link).map_or(0, |link| link.bytes);
    let (from, to) = transfer.measured;
    let rates = transfer.warm_flows.iter().map(|flow| rate(flow.bytes, flow.seconds));
    let flow_goodput_bps: Vec<f64> = rates.collect();
    let trace = station.recorders().flat_map(Recorder::take_points).collect();
    let agents = of_agents(config, &mut station);
    let mended = transfer.samples.iter().filter(|sample| sample.flow < config.flows);
    Outcome {
        completed: transfer.completed,
        seconds: transfer.seconds,
        bytes_received,
        goodput_bps: rate(sum_bytes(&transfer.warm_flows), transfer.warm_seconds),
        overall_goodput_bps: rate(bytes_received, transfer.seconds),
        fairness: jain_index(&flow_goodput_bps),
        flow_goodput_bps,
        completion_seconds: transfer.completions,
        short,
        ping,
        bound_bps: config.bound_between_bps(from, to),
        realised_bound_bps: config.realised_bound_bps(from, to),
        wire_bytes_per_byte: wire_bytes as f64 / (bytes_received as f64).max(1.0),
        sender: sender.counters,
        reordering: mended.map(|sample| sample.reordering).max().unwrap_or(0),
        tcp_ext: sender.tcp_ext,
        agent_counters: agents.agent_counters,
        gateway_heartbeat_timeouts: agents.gateway_heartbeat_timeouts,
        observation: agents.observation,
        mobile_counters: agents.mobile_counters,
        handoffs: agents.handoffs,
        station_counters: agents.station_counters,
        links: station.links,
        port_drops: station.port_drops,
        lateness_us: station.lateness,
        samples: transfer.samples,
        trace,
    }
}

/// What the agents of a run have counted, and a gateway.
#[derive(Clone, Debug, Default)]
pub struct AgentReport {
    /// The counters of the agent; the sums of several base stations.
    pub agent_counters: BTreeMap<String, u64>,
    /// The counters of the agent at the other end of the air.
    pub mobile_counters: BTreeMap<String, u64>,
    /// The counters of each of several base stations.
    pub station_counters: Vec<BTreeMap<String, u64>>,
    /// The moves between base stations.
    pub handoffs: Option<Handoffs>,
    /// Of a gateway: how often its heartbeat timed out.
    pub gateway_heartbeat_timeouts: Option<u64>,
    /// Of a gateway that only observed.
    pub observation: Option<serde_json::Value>,
}

/// Takes what the agents have counted out of a report.
pub(super) fn of_agents(config: &LabConfig, station: &mut StationReport) -> AgentReport {
    let (handoffs, station_counters) = station.cells.take().map(of_cells).unzip();
    let station_counters: Vec<_> = station_counters.unwrap_or_default();
    let (agent, other) = match config.place {
        Place::Base => (station.station.take(), station.mobile.take()),
        // The passthrough of the base station has only drops to count, which `links` has.
        Place::Mobile => (station.mobile.take(), None),
        Place::Both => (station.mobile.take(), station.station.take()),
    };
    let counters = |recorder: Option<Recorder>| {
        recorder.map(|recorder| owned(recorder.counters)).unwrap_or_default()
    };
    let (agent_counters, gateway_heartbeat_timeouts, observation) = match station.gateway.take() {
        None if handoffs.is_some() => (sum(&station_counters), None, None),
        None => (counters(agent), None, None),
        Some(GatewayReport { agent_counters, heartbeat_timeouts, observation }) => {
            (agent_counters, Some(heartbeat_timeouts), observation)
        }
    };
    AgentReport {
        agent_counters,
        mobile_counters: counters(other),
        station_counters,
        handoffs,
        gateway_heartbeat_timeouts,
        observation,
    }
}

/// The handoffs, and the counters of each base station.
fn of_cells(report: CellsReport) -> (Handoffs, Vec<BTreeMap<String, u64>>) {
    let counters = report.recorders.into_iter().map(|recorder| owned(recorder.counters));
    (report.handoffs, counters.collect())
}

/// The counters' names in a gateway's report are no literals of this program.
fn owned(counters: BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    counters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The sums of the counters of several stations.
fn sum(stations: &[BTreeMap<String, u64>]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (name, value) in stations.iter().flatten() {
        *sums.entry(name.clone()).or_default() += value;
    }
    sums
}

fn sum_bytes(flows: &[Carried]) -> u64 {
    flows.iter().map(|flow| flow.bytes).sum()
}

/// In bits per second.
fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

/// (Σx)² / (n Σx²) [Jain, Chiu and Hawe 1984]; 1 where nothing at all was carried.
fn jain_index(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    if squares > 0.0 { sum * sum / (rates.len() as f64 * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_for_equals_and_one_nth_for_a_single_winner() {
        assert_eq!(jain_index(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain_index(&[8.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain_index(&[1.0, 3.0]), 0.8);
        assert_eq!(jain_index(&[0.0, 0.0]), 1.0);
    }
}
