//! One laboratory run from beginning to end.

use super::config::{Direction, LabConfig};
use super::counters;
use super::error::LabError;
use super::links::Links;
use super::outcome::{Outcome, SenderCounters};
use super::record::Recorder;
use super::station::{Station, StationReport};
use super::topology::{Host, INTERFACE, Topology};
use super::transfer::{Progress, Transfer, TransferReport};
use crate::clock::Clock;
use crate::guard::Guard;
use airmend_proto::Agent;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

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
    config.check()?;
    let Topology { fixed, mobile, wired, air } = Topology::create(config)?;
    let (sender, receiver) = match config.direction {
        Direction::Down => (&fixed, &mobile),
        Direction::Up => (&mobile, &fixed),
    };
    let clock = Clock::start();
    let transfer = Transfer::open(config, sender, receiver, clock)?;
    let station = Station {
        clock,
        links: Links::new(config),
        wired,
        air,
        agent: Guard::new(agent, config.egress_limits()),
        recorder: Recorder::new(config)?,
    };
    let is_done = AtomicBool::new(false);
    let (transferred, (station, sender, host_drops)) = thread::scope(|scope| {
        let station = thread::Builder::new()
            .name("base-station".to_owned())
            .spawn_scoped(scope, || station.run(&is_done))
            .map_err(LabError::socket("starting a thread"))?;
        let is_over = || stop.load(Ordering::Relaxed) || station.is_finished();
        let transferred = transfer.run(&is_over, progress);
        let sender_counters = sender.namespace.run(|| Ok(SenderReport::read()));
        let host_drops = interface_drops(&fixed).and_then(|a| Ok(a + interface_drops(&mobile)?));
        is_done.store(true, Ordering::Relaxed);
        let station = station.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // A station that failed is why the transfer did.
        Ok::<_, LabError>((transferred, (station?, sender_counters?, host_drops?)))
    })?;
    let mut station = station;
    let recorded = station.recorder.finish();
    if let Some(violation) = station.recorder.violation {
        return Err(violation.into());
    }
    let path = || config.pcap.clone().unwrap_or_default();
    recorded.map_err(|source| LabError::Recording { path: path(), source })?;
    let mut outcome = outcome(config, transferred?, station, sender);
    outcome.port_drops += host_drops;
    Ok(outcome)
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

fn interface_drops(host: &Host) -> Result<u64, LabError> {
    host.namespace.run(|| Ok(counters::interface_drops(INTERFACE)))
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
