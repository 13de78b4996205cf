//! Programs of the user on the hosts of the laboratory.

use super::config::{Direction, LabConfig};
use super::control::{Control, Watched};
use super::error::LabError;
use super::measure::sender::SenderReport;
use super::network::host::Host;
use super::network::host_namespaces::{HostNames, HostNamespaces};
use super::network::host_process::HostProcess;
use super::network::outside::Outside;
use super::outcome::{Lateness, LinkReport, SenderCounters};
use super::run::{AgentReport, of_agents};
use super::session::{Endpoints, Forwarding, OnDrop, with_station};
use airmend_proto::named;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The command begins when the server listens. One that has been idle for so long is no server of
/// TCP; one that works still starts, on a slow machine for as long as this at most.
const IDLE_SERVER: Duration = Duration::from_secs(3);
const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// What was interrupted has so long to end.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(2);

/// One of the two hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// The mobile host.
    #[default]
    Mobile,
    /// The fixed host.
    Fixed,
}

named! { At, "is no host of the laboratory": Mobile = "mh", Fixed = "fh" }

impl At {
    fn opposite(self) -> Self {
        match self {
            Self::Mobile => Self::Fixed,
            Self::Fixed => Self::Mobile,
        }
    }
}

/// What runs on the hosts.
#[derive(Clone, Debug)]
pub struct Programs {
    /// Where the command runs.
    pub at: At,
    /// The command: a program and its arguments.
    pub command: Vec<OsString>,
    /// Runs on the other host meanwhile, by a shell.
    pub server: Option<String>,
    /// Joins the fixed host to the machine's own network, by NAT; needs root.
    pub outside: bool,
}

/// What was seen of the programs.
#[derive(Clone, Debug)]
pub struct Executed {
    /// How the command ended.
    pub status: ExitStatus,
    /// How long it took.
    pub seconds: f64,
    /// The setting of the machine that keeps the hosts from other networks than its own.
    pub unforwarded: Option<&'static str>,
    /// What the fixed host's TCP went through as a sender, then the mobile host's.
    pub senders: [SenderCounters; 2],
    /// The counters of agents and of a gateway.
    pub agents: AgentReport,
    /// The links, by name.
    pub links: BTreeMap<&'static str, LinkReport>,
    /// Packets lost between a host's kernel and the emulated links.
    pub port_drops: u64,
    /// How late frames left the emulated links.
    pub lateness_us: Lateness,
}

/// Runs programs on the hosts, until the command ends or `stop` ends it.
///
/// The hosts know each other as `fh` and `mh`. Standard input, output and errors are those of this
/// process.
///
/// # Errors
/// A resource that the machine lacks, a program that does not start, or a rule that the agent
/// broke.
pub fn exec(
    config: &LabConfig,
    forwarding: Forwarding<'_>,
    programs: &Programs,
    control: Option<Control>,
    stop: &AtomicBool,
) -> Result<Executed, LabError> {
    let (requests, watched) = match control {
        None => (None, None),
        Some(Control { requests, watched }) => (Some(requests), Some(watched)),
    };
    let ((ran, senders), mut station) = with_station(config, forwarding, requests, |session| {
        // Data flows both ways: the direction of transfers says only which host is which.
        let Endpoints { sender, receiver } = session.first();
        let [fixed, mobile] = match config.direction {
            Direction::Down => [sender, receiver],
            Direction::Up => [receiver, sender],
        };
        let is_over = || stop.load(Ordering::Relaxed) || (session.is_over)();
        let outside = programs.outside.then(|| Outside::open(config, fixed, mobile)).transpose()?;
        let ran = run_on([fixed, mobile], outside.as_ref(), programs, watched.as_ref(), &is_over)?;
        let read = |host| SenderReport::read([host].into_iter()).map(|report| report.counters);
        let unforwarded = outside.and_then(|outside| outside.unforwarded());
        Ok(((ran, unforwarded), [read(fixed)?, read(mobile)?]))
    })?;
    let (ran, unforwarded) = ran;
    Ok(Executed {
        unforwarded,
        status: ran.0,
        seconds: ran.1.as_secs_f64(),
        senders,
        agents: of_agents(config, &mut station),
        links: station.links,
        port_drops: station.port_drops,
        lateness_us: station.lateness,
    })
}

fn run_on(
    [fixed, mobile]: [&Host; 2],
    outside: Option<&Outside>,
    programs: &Programs,
    watched: Option<&Watched>,
    is_over: &dyn Fn() -> bool,
) -> Result<(ExitStatus, Duration), LabError> {
    let mut names = vec![("fh", fixed.address), ("mh", mobile.address)];
    names.extend(outside.map(|outside| ("machine", outside.machine())));
    let names = HostNames::new(&names, outside.is_some());
    let inside = |host| HostNamespaces::new(host, &names).map(Arc::new);
    let [fixed_inside, mobile_inside] = [inside(fixed)?, inside(mobile)?];
    let at = |at| if at == At::Fixed { &fixed_inside } else { &mobile_inside };
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let _done = OnDrop(|| is_done.store(true, Ordering::Relaxed));
        if let Some(watched) = watched {
            let inside = [&fixed_inside, &mobile_inside];
            watched.begin(scope, [fixed, mobile], inside, &is_done)?;
        }
        run_with(at(programs.at), at(programs.at.opposite()), programs, is_over)
    })
}

/// Runs the command on one host, and the server on the other.
fn run_with(
    host: &Arc<HostNamespaces>,
    opposite: &Arc<HostNamespaces>,
    programs: &Programs,
    is_over: &dyn Fn() -> bool,
) -> Result<(ExitStatus, Duration), LabError> {
    let server = match &programs.server {
        None => None,
        Some(line) => {
            let server = HostProcess::start_shell(opposite, line)?;
            server.wait_for_listener(IDLE_SERVER, STARTS_WITHIN)?;
            Some(server)
        }
    };
    let begin = Instant::now();
    let mut command = HostProcess::start(host, &programs.command)?;
    let mut interrupted: Option<Instant> = None;
    let status = loop {
        if let Some(status) = command.poll()? {
            break status;
        }
        if is_over() {
            let since = *interrupted.get_or_insert_with(Instant::now);
            if since.elapsed() > GRACE {
                command.kill();
            }
        }
        thread::sleep(POLL);
    };
    let took = begin.elapsed();
    drop(server);
    Ok((status, took))
}
