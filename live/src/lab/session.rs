//! Two hosts with the base station between them, for as long as some work takes.

use super::config::{Direction, HandoffPlan, LabConfig, Place};
use super::control::{Requests, Served};
use super::data_path::{DataPath, KernelPorts};
use super::error::LabError;
use super::gateway::{Gateway, GatewayCommand};
use super::handoff::Cells;
use super::inline_agent::InlineAgent;
use super::links::Links;
use super::mobile::MobileAgent;
use super::modem::Modem;
use super::network::counters;
use super::network::host::{Host, Pair};
use super::network::interface::INTERFACE;
use super::network::kernel::{Kernel, air_queue_drops};
use super::network::namespace::Namespace;
use super::network::topology::Topology;
use super::record::Recorder;
use super::station::{Station, StationReport};
use crate::clock::Clock;
use crate::device::Device;
use crate::guard::Guard;
use airmend_proto::agents::plain::Plain;
use airmend_proto::{Agent, EgressLimits, Forwarder};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The endpoints of a run, and its clock.
pub(crate) struct Session<'a> {
    /// The pairs of hosts whose flows pass the agent, at least one.
    pub(crate) mended: &'a [Endpoints<'a>],
    /// The hosts whose flows bypass the agent, if the run has any.
    pub(crate) unmended: Option<Endpoints<'a>>,
    pub(crate) clock: Clock,
    /// Whether the base station has ended early: then nothing moves any more.
    pub(crate) is_over: &'a dyn Fn() -> bool,
}

impl<'a> Session<'a> {
    /// The first pair of hosts whose flows pass the agent.
    pub(crate) fn first(&self) -> Endpoints<'a> {
        self.mended[0]
    }
}

/// The hosts of one pair in their endpoints.
#[derive(Clone, Copy)]
pub(crate) struct Endpoints<'a> {
    pub(crate) sender: &'a Host,
    pub(crate) receiver: &'a Host,
}

impl<'a> Endpoints<'a> {
    fn new(pair: &'a Pair, direction: Direction) -> Self {
        match direction {
            Direction::Down => Self { sender: &pair.fixed, receiver: &pair.mobile },
            Direction::Up => Self { sender: &pair.mobile, receiver: &pair.fixed },
        }
    }
}

/// The agents of a run.
pub enum Agents {
    /// One at the place of the configuration. If it panics, passthrough takes its place.
    One(Box<dyn Agent + Send>),
    /// The ends of the air: that of the base station, and that of the mobile. A link protocol's end
    /// that panics ends the run, since no passthrough can talk to the other.
    Both([Box<dyn Agent + Send>; 2]),
    /// One at each of several base stations.
    Stations(Vec<Box<dyn Agent + Send>>),
}

/// What forwards at the base station.
pub enum Forwarding<'a> {
    /// Agents in the loop: one of them, or a passthrough.
    Agents(Agents),
    /// A kernel, with a gateway on its air interface or without: the path of the configuration must
    /// be that one. Nothing checks the rules of agents there, and there is no sequence-time plot.
    Kernel(Option<&'a GatewayCommand>),
}

impl From<Box<dyn Agent + Send>> for Forwarding<'_> {
    fn from(agent: Box<dyn Agent + Send>) -> Self {
        Self::Agents(Agents::One(agent))
    }
}

impl<A: Agent + Send + 'static> From<Box<A>> for Forwarding<'_> {
    fn from(agent: Box<A>) -> Self {
        Self::Agents(Agents::One(agent))
    }
}

impl From<[Box<dyn Agent + Send>; 2]> for Forwarding<'_> {
    fn from(ends: [Box<dyn Agent + Send>; 2]) -> Self {
        Self::Agents(Agents::Both(ends))
    }
}

impl From<Vec<Box<dyn Agent + Send>>> for Forwarding<'_> {
    fn from(stations: Vec<Box<dyn Agent + Send>>) -> Self {
        Self::Agents(Agents::Stations(stations))
    }
}

impl<'a> From<Option<&'a GatewayCommand>> for Forwarding<'a> {
    fn from(gateway: Option<&'a GatewayCommand>) -> Self {
        Self::Kernel(gateway)
    }
}

/// Sets the laboratory up, does `work` while the base station forwards, and takes it down.
pub(crate) fn with_station<T>(
    config: &LabConfig,
    forwarding: Forwarding<'_>,
    requests: Option<Requests>,
    work: impl FnOnce(&Session<'_>) -> Result<T, LabError>,
) -> Result<(T, StationReport), LabError> {
    config.check()?;
    let Topology { station: _interfaces, pairs, wired, air, kernel, modem } =
        Topology::create(config)?;
    let endpoints = pairs.iter().map(|pair| Endpoints::new(pair, config.direction));
    let endpoints: Vec<_> = endpoints.collect();
    let (mended, unmended) = endpoints
        .split_at_checked(config.pairs as usize)
        .ok_or(LabError::Config("a run needs two hosts of each pair"))?;
    let unmended = unmended.first().copied();
    let clock = Clock::start();
    let ports = HostPorts { wired, air, modem, mobile: pairs[0].mobile.address };
    let Setup { forwarder, kernel, gateway } =
        Setup::new(config, forwarding, kernel, ports, clock)?;
    let forwarder = forwarder.with_requests(config, requests);
    let is_done = AtomicBool::new(false);
    let (result, station) = thread::scope(|scope| {
        let station = thread::Builder::new()
            .name("base-station".to_owned())
            .spawn_scoped(scope, || forwarder.run(&is_done))
            .map_err(LabError::socket("starting a thread"))?;
        let done = OnDrop(|| is_done.store(true, Ordering::Relaxed));
        let is_over = || station.is_finished() || gateway.as_ref().is_some_and(Gateway::has_ended);
        let result = work(&Session { mended, unmended, clock, is_over: &is_over });
        drop(done);
        let station = station.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, LabError>((result, station))
    })?;
    // Where the station or the gateway failed, that is why the work did.
    let mut station = station?;
    station.gateway = gateway.map(Gateway::finish).transpose()?;
    let recorded = station.recorders().try_for_each(Recorder::finish);
    if let Some(violation) = station.recorders().find_map(|recorder| recorder.violation.take()) {
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
    if config.place.is_in_mobile() {
        station.count_drops_with_links();
    }
    let egress = if config.far_queue.is_some() { "modem_down" } else { "air_down" };
    if let (Some(kernel), Some(link)) = (&kernel, station.links.get_mut(egress)) {
        link.dropped += kernel.run(air_queue_drops)?;
    }
    Ok((result, station))
}

/// The loop of a run.
enum Loop {
    /// One base station.
    Station(Box<Station>),
    /// Several of them.
    Cells(Box<Cells>),
}

impl Loop {
    /// Lets one base station serve requests; several ones leave them unanswered.
    fn with_requests(mut self, config: &LabConfig, requests: Option<Requests>) -> Self {
        if let Self::Station(station) = &mut self {
            station.served = requests.map(|Requests(requests)| Served::new(config, requests));
        }
        self
    }

    fn run(self, stop: &AtomicBool) -> Result<StationReport, LabError> {
        match self {
            Self::Station(station) => station.run(stop),
            Self::Cells(cells) => cells.run(stop),
        }
    }
}

/// The ports to the hosts, and to a modem.
struct HostPorts {
    wired: Vec<Box<dyn Device>>,
    air: Vec<Box<dyn Device>>,
    modem: Option<Kernel>,
    /// The address of the first mobile host.
    mobile: IpAddr,
}

/// The loop, and what is beside it.
struct Setup {
    forwarder: Loop,
    /// The namespace of a kernel that forwards.
    kernel: Option<Namespace>,
    gateway: Option<Gateway>,
}

impl Setup {
    fn new(
        config: &LabConfig,
        forwarding: Forwarding<'_>,
        kernel: Option<Kernel>,
        ports: HostPorts,
        clock: Clock,
    ) -> Result<Self, LabError> {
        match (forwarding, kernel, config.handoff) {
            (Forwarding::Agents(Agents::Stations(agents)), None, Some(plan)) => {
                Self::of_cells(config, plan, agents, ports, clock)
            }
            (Forwarding::Agents(agents), None, None) => {
                let (station, mobile) = of_agents(config, agents)?;
                let data_path = DataPath::Agent(Box::new(station));
                let mobile = mobile.map(MobileAgent::new);
                let forwarder = one_station(config, data_path, mobile, ports, clock);
                Ok(Self { forwarder, kernel: None, gateway: None })
            }
            (Forwarding::Kernel(command), Some(Kernel { namespace, wired, air }), None) => {
                let gateway = command
                    .map(|command| Gateway::start(command, &namespace, config.station_queue()));
                let data_path = DataPath::Kernel(KernelPorts { wired, air });
                Ok(Self {
                    forwarder: one_station(config, data_path, None, ports, clock),
                    gateway: gateway.transpose()?,
                    kernel: Some(namespace),
                })
            }
            (_, _, Some(_)) => Err(LabError::Config(
                "moves between base stations need an agent of one end at each of them",
            )),
            _ => Err(LabError::Config("agents in the loop need the in-line path, and no other")),
        }
    }

    fn of_cells(
        config: &LabConfig,
        plan: HandoffPlan,
        agents: Vec<Box<dyn Agent + Send>>,
        ports: HostPorts,
        clock: Clock,
    ) -> Result<Self, LabError> {
        if agents.len() != plan.stations as usize {
            return Err(LabError::Config("each base station needs one agent"));
        }
        let agents = agents.into_iter().map(|agent| {
            let agent = Box::new(Guard::new(agent));
            in_loop(config, agent, config.egress_limits(), Recorder::default())
        });
        let HostPorts { wired, air, mobile, .. } = ports;
        let cells = Cells::new(config, plan, agents.collect(), clock, [wired, air], mobile)?;
        Ok(Self { forwarder: Loop::Cells(Box::new(cells)), kernel: None, gateway: None })
    }
}

fn one_station(
    config: &LabConfig,
    data_path: DataPath,
    mobile: Option<MobileAgent>,
    HostPorts { wired, air, modem, .. }: HostPorts,
    clock: Clock,
) -> Loop {
    let modem = modem.map(|kernel| Modem::new(config, kernel));
    let links = Links::new(config, mobile.is_some(), modem);
    let mended_pairs = config.pairs as usize;
    let served = None;
    let station = Station { clock, links, wired, air, mended_pairs, data_path, mobile, served };
    Loop::Station(Box::new(station))
}

/// The agent of the base station, and that of the mobile host if there is one.
fn of_agents(
    config: &LabConfig,
    agents: Agents,
) -> Result<(InlineAgent, Option<InlineAgent>), LabError> {
    Ok(match (agents, config.place) {
        (Agents::One(agent), Place::Base) => (guarded(config, agent)?, None),
        (Agents::One(agent), Place::Mobile) => {
            let limits = config.station_limits();
            let passthrough = in_loop(config, Box::new(Plain), limits, Recorder::default());
            (passthrough, Some(guarded(config, agent)?))
        }
        (Agents::Both(_), Place::Mobile) => {
            return Err(LabError::Config(
                "a link has an agent at each end of the air: it has no other place",
            ));
        }
        (Agents::Both(_), _) if config.pcap.is_some() => {
            return Err(LabError::Config(
                "a recording is of one agent, and the air has one at each end: run it without one",
            ));
        }
        // Nothing can replace one end of a link: the other end would not understand it.
        (Agents::Both([station, mobile]), Place::Base) => {
            let limits = config.egress_limits();
            let station = in_loop(config, station, limits, Recorder::new(config)?);
            (station, Some(in_loop(config, mobile, limits, Recorder::default())))
        }
        (Agents::Both([station, mobile]), Place::Both) => {
            let limits = config.station_limits();
            let station = in_loop(config, station, limits, Recorder::default());
            (station, Some(guarded(config, mobile)?))
        }
        (Agents::One(_), Place::Both) => {
            return Err(LabError::Config("one agent cannot be at both ends of the air"));
        }
        (Agents::Stations(_), _) => {
            return Err(LabError::Config("agents at several base stations need their moves"));
        }
    })
}

/// The only agent of a run; if it panics, passthrough takes its place.
fn guarded(config: &LabConfig, agent: Box<dyn Agent + Send>) -> Result<InlineAgent, LabError> {
    let agent = Box::new(Guard::new(agent));
    Ok(in_loop(config, agent, config.egress_limits(), Recorder::new(config)?))
}

/// An agent with queues of these limits.
fn in_loop(
    config: &LabConfig,
    agent: Box<dyn Agent + Send>,
    limits: EgressLimits,
    recorder: Recorder,
) -> InlineAgent {
    let link = config.recorded_agent.as_ref().and_then(|agent| agent.config.link());
    InlineAgent::new(Forwarder::checked(agent, limits, link), recorder)
}

/// Does something at the end of a scope, also when that is left by a panic: a scope of threads
/// waits for them, and they must be signalled.
pub(crate) struct OnDrop<F: Fn()>(pub(crate) F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn interface_drops(host: &Host) -> Result<u64, LabError> {
    host.namespace.run(|| Ok(counters::interface_drops(INTERFACE)))
}
