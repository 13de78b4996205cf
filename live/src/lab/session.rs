//! Two hosts with the base station between them, for as long as some work takes.

use super::config::{Direction, LabConfig};
use super::counters;
use super::error::LabError;
use super::links::Links;
use super::mobile::MobileEnd;
use super::pass_by::PassBy;
use super::record::Recorder;
use super::station::{Station, StationReport};
use super::topology::{Host, INTERFACE, Pair, Topology};
use crate::clock::Clock;
use crate::guard::Guard;
use airmend_proto::Agent;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What the work finds: the hosts in their roles, and the run's clock.
pub(crate) struct Session<'a> {
    /// Those whose flows pass the agent.
    pub(crate) mended: Roles<'a>,
    /// Those whose flows pass it by, if the run has any.
    pub(crate) unmended: Option<Roles<'a>>,
    pub(crate) clock: Clock,
    /// Whether the base station has ended early: then nothing moves any more.
    pub(crate) is_over: &'a dyn Fn() -> bool,
}

/// The hosts of one pair in their roles.
#[derive(Clone, Copy)]
pub(crate) struct Roles<'a> {
    pub(crate) sender: &'a Host,
    pub(crate) receiver: &'a Host,
}

impl<'a> Roles<'a> {
    fn new(pair: &'a Pair, direction: Direction) -> Self {
        match direction {
            Direction::Down => Self { sender: &pair.fixed, receiver: &pair.mobile },
            Direction::Up => Self { sender: &pair.mobile, receiver: &pair.fixed },
        }
    }
}

/// The agents of a run: that of the base station, and the one that the air needs at its other end
/// if it is a link that mends itself.
pub(crate) struct Agents {
    pub(crate) station: Box<dyn Agent + Send>,
    pub(crate) mobile: Option<Box<dyn Agent + Send>>,
}

impl Agents {
    /// Those whose packets pass a second pair of hosts by.
    fn passed_by(self) -> Self {
        let pass_by = |agent| Box::new(PassBy::new(agent)) as Box<dyn Agent + Send>;
        Self { station: pass_by(self.station), mobile: self.mobile.map(pass_by) }
    }
}

/// Sets the laboratory up, does `work` while the agents run, and takes it down.
pub(crate) fn with_station<T>(
    config: &LabConfig,
    agents: Agents,
    work: impl FnOnce(&Session<'_>) -> Result<T, LabError>,
) -> Result<(T, StationReport), LabError> {
    config.check()?;
    if agents.mobile.is_some() && config.pcap.is_some() {
        return Err(LabError::Config(
            "a recording is of one agent, and the air has one at each end: run it without one",
        ));
    }
    let Topology { pairs, wired, air } = Topology::create(config)?;
    let mut roles = pairs.iter().map(|pair| Roles::new(pair, config.direction));
    let mended = roles.next().ok_or(LabError::Config("a run needs two hosts"))?;
    let unmended = roles.next();
    let agents = if unmended.is_some() { agents.passed_by() } else { agents };
    let is_two_ended = agents.mobile.is_some();
    // Nothing can take the place of one end of a link: the other would not understand it.
    let agent = match is_two_ended {
        true => agents.station,
        false => Box::new(Guard::new(agents.station, config.egress_limits())),
    };
    let clock = Clock::start();
    let station = Station {
        clock,
        links: Links::new(config, is_two_ended),
        wired,
        air,
        agent,
        mobile: agents.mobile.map(MobileEnd::new),
        recorder: Recorder::new(config)?,
    };
    let is_done = AtomicBool::new(false);
    let (result, station) = thread::scope(|scope| {
        let station = thread::Builder::new()
            .name("base-station".to_owned())
            .spawn_scoped(scope, || station.run(&is_done))
            .map_err(LabError::socket("starting a thread"))?;
        let done = OnDrop(|| is_done.store(true, Ordering::Relaxed));
        let is_over = || station.is_finished();
        let result = work(&Session { mended, unmended, clock, is_over: &is_over });
        drop(done);
        let station = station.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, LabError>((result, station))
    })?;
    // Where the station failed, that is why the work did.
    let mut station = station?;
    let recorded = station.recorder.finish();
    if let Some(violation) = station.recorder.violation {
        return Err(violation.into());
    }
    let result = result?;
    recorded.map_err(|source| LabError::Recording {
        path: config.pcap.clone().unwrap_or_default(),
        source,
    })?;
    for pair in &pairs {
        station.port_drops += interface_drops(&pair.fixed)? + interface_drops(&pair.mobile)?;
    }
    Ok((result, station))
}

/// Does something at the end of a scope, also when that is left by a panic: a scope of threads
/// waits for them, and somebody has to tell them.
pub(crate) struct OnDrop<F: Fn()>(pub(crate) F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn interface_drops(host: &Host) -> Result<u64, LabError> {
    host.namespace.run(|| Ok(counters::interface_drops(INTERFACE)))
}
