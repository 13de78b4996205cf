//! One laboratory run from beginning to end.

use super::config::{Direction, LabConfig};
use super::counters;
use super::error::LabError;
use super::outcome::{Outcome, SenderCounters};
use super::session::with_station;
use super::station::StationReport;
use super::transfer::{Progress, Transfer, TransferReport};
use airmend_proto::Agent;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs the transfers of `config` through `agent` and measures them.
///
/// Needs network namespaces: as an ordinary user, call [`super::enter_user_namespace`] first.
/// `stop` ends the run early, as the time limit does: the outcome is then what was measured so
/// far, not completed. `progress` is called every 20 ms or so.
///
/// # Errors
/// What the machine lacks, a wrong byte at a receiver, or a rule that the agent broke.
pub fn run(
    config: &LabConfig,
    agent: Box<dyn Agent + Send>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Outcome, LabError> {
    let ((transfer, sender), station) = with_station(config, agent, |session| {
        let transfer = Transfer::open(config, session.sender, session.receiver, session.clock)?;
        let is_over = || stop.load(Ordering::Relaxed) || (session.is_over)();
        let report = transfer.run(&is_over, progress)?;
        let counters = session.sender.namespace.run(|| Ok(SenderReport::read()))?;
        Ok((report, counters))
    })?;
    Ok(outcome(config, transfer, station, sender))
}

/// The sending host's counters, all of which began at zero with its namespace.
struct SenderReport {
    counters: SenderCounters,
    tcp_ext: BTreeMap<String, u64>,
}

impl SenderReport {
    fn read() -> Self {
        let tcp_ext = counters::read("TcpExt");
        let count = |name| tcp_ext.get(name).copied().unwrap_or(0);
        let timeouts = count("TCPTimeouts");
        let recoveries = count("TCPRenoRecovery") + count("TCPSackRecovery");
        let retransmits = counters::read("Tcp").get("RetransSegs").copied().unwrap_or(0);
        let cwnd_reductions = recoveries + timeouts;
        Self { counters: SenderCounters { retransmits, timeouts, cwnd_reductions }, tcp_ext }
    }
}

fn outcome(
    config: &LabConfig,
    transfer: TransferReport,
    station: StationReport,
    sender: SenderReport,
) -> Outcome {
    let bytes_received = transfer.flows.iter().map(|(bytes, _)| bytes).sum::<u64>();
    let rate = |bytes: u64, seconds: f64| {
        if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
    };
    let data_link = match config.direction {
        Direction::Down => "air_down",
        Direction::Up => "air_up",
    };
    let wire_bytes = station.links.get(data_link).map_or(0, |link| link.bytes);
    Outcome {
        completed: transfer.completed,
        seconds: transfer.seconds,
        bytes_received,
        goodput_bps: rate(bytes_received, transfer.seconds),
        flow_goodput_bps: transfer.flows.iter().map(|flow| rate(flow.0, flow.1)).collect(),
        bound_bps: config.bound_bps(),
        wire_bytes_per_byte: wire_bytes as f64 / (bytes_received as f64).max(1.0),
        sender: sender.counters,
        tcp_ext: sender.tcp_ext,
        agent_counters: station.recorder.counters,
        links: station.links,
        port_drops: station.port_drops,
        lateness_us: station.lateness,
        samples: transfer.samples,
        trace: station.recorder.trace.points,
    }
}
