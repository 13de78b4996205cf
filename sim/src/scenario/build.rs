//! From a scenario to the plan that the world runs.

use super::count::{MAX_FLOWS, counted};
use super::error::{Fault, unknown};
use super::host::HostSpec;
use super::link_ends;
use super::moves::moves;
use super::named::in_order;
use super::spec::{FlowSpec, ScenarioSpec, StationSpec};
use super::topology::Topology;
use super::trace::TraceFiles;
use super::traffic::traffic;
use super::value::{Scalar, Time};
use crate::graph::Tree;
use crate::plan::{Flow, Plan, SplitSpec, Station, StationAgent, Traffic};
use airmend_proto::agents::{self, AgentConfig};
use airmend_proto::tcp::Profile;
use std::time::Duration;
use toml::Spanned;

/// The silence after which M-TCP takes a mobile for disconnected, unless a scenario sets it.
const SILENCE: Duration = Duration::from_millis(200);

/// The plan of a scenario.
pub(super) fn plan(spec: &ScenarioSpec, files: &mut TraceFiles) -> Result<Plan, Fault> {
    let mut topology = Topology::new(spec, files)?;
    let moves = moves(spec, &mut topology)?;
    let mut stations = Vec::new();
    for (name, station) in in_order(&spec.stations) {
        add_stations(&topology, name, station, &mut stations)?;
    }
    link_ends::check(spec, &topology, &stations)?;
    let hosts = in_order(&spec.hosts).into_iter();
    let profiles = hosts.map(|(name, host)| host.profile(name)).collect::<Result<Vec<_>, _>>()?;
    let mut builder = Flows { topology: &topology, profiles, flows: Vec::new() };
    for (name, flow) in in_order(&spec.flows) {
        builder.add(name, flow)?;
    }
    let flows = builder.flows;
    for station in flows.iter().flat_map(|flow| &flow.stations) {
        stations[*station as usize].flows += 1;
    }
    if !moves.is_empty() {
        stations.iter_mut().for_each(|station| station.flows = flows.len());
    }
    let Topology { hosts, directions, traces, channels, graph, tables: link_names, .. } = topology;
    Ok(Plan {
        hosts,
        stations,
        directions,
        traces,
        link_names,
        channels,
        graph,
        moves,
        flows,
        time_limit: spec.time_limit.0,
        trace: spec.trace,
        packet_delays: spec.packet_delays,
    })
}

/// A table's stations.
fn add_stations(
    topology: &Topology,
    name: &Spanned<String>,
    spec: &StationSpec,
    stations: &mut Vec<Station>,
) -> Result<(), Fault> {
    let agent = agent(name, spec)?;
    let is_router = agent.name() == "plain";
    let is_link = matches!(&agent, StationAgent::Everywhere(config) if config.is_link());
    for node in topology.group(name)?.nodes() {
        let mut outbound = [Vec::new(), Vec::new()];
        for (direction, _) in topology.graph.leaving(node) {
            let side = usize::from(topology.directions[*direction as usize].air);
            outbound[side].push(*direction);
        }
        let [wired, air] = [outbound[0].len(), outbound[1].len()];
        let needs = match (wired, air) {
            (1.., 1) => None,
            (1.., 2..) if !is_link => None,
            _ if is_router || spec.peer.is_some() => None,
            (1.., 2..) => Some("one air link"),
            _ => Some("a wired link and an air link (`air = true`)"),
        };
        if let Some(needs) = needs {
            let message = format!(
                "station `{name}` needs {needs} for its agent `{}`; it has {wired} and {air}",
                agent.name()
            );
            return Err(Fault::new(name.span(), message));
        }
        let dies = spec.dies.map(|Time(dies)| dies);
        let (handoff, fast_band) = (spec.handoff, spec.fast_band);
        let peer = match &spec.peer {
            Some(peer) if is_link => Some(link_ends::peer(topology, peer)?),
            _ => None,
        };
        let agent = agent.clone();
        stations.push(Station { agent, dies, outbound, flows: 0, handoff, fast_band, peer });
    }
    Ok(())
}

/// The station's agent with its settings; those of other agents must be right, too.
fn agent(station: &Spanned<String>, spec: &StationSpec) -> Result<StationAgent, Fault> {
    let split = [StationAgent::SPLIT, StationAgent::M_TCP];
    let known: Vec<&str> = agents::names().chain(split).collect();
    let by_name = |name: &Spanned<String>| {
        AgentConfig::by_name(name.get_ref())
            .map_err(|_| Fault::new(name.span(), unknown("agent", name.get_ref(), &known)))
    };
    let is_split = split.contains(&spec.agent.get_ref().as_str());
    let mut agent = if is_split { None } else { Some(by_name(&spec.agent)?) };
    for (owner, settings) in &spec.settings {
        let mut config = by_name(owner)?;
        // A profile sets all constants, so that it comes before the others.
        let is_profile = |(name, _): &(&Spanned<String>, _)| name.get_ref() == "profile";
        let (profile, others): (Vec<_>, Vec<_>) = settings.iter().partition(is_profile);
        for (name, value) in profile.into_iter().chain(others) {
            let Scalar(text) = value.get_ref();
            config
                .set(name.get_ref(), text)
                .map_err(|sentence| Fault::new(value.span(), sentence))?;
        }
        agent = agent.map(|agent| if agent.name() == config.name() { config } else { agent });
    }
    let split = split_connection(station, spec)?;
    Ok(agent.map_or(StationAgent::Split(Box::new(split)), StationAgent::Everywhere))
}

/// What a station has where its agent is `split` or `m-tcp`: unless it says otherwise, a TCP of the
/// time of both.
fn split_connection(station: &Spanned<String>, spec: &StationSpec) -> Result<SplitSpec, Fault> {
    let end = |end: &Option<HostSpec>| match end {
        None => Ok(Profile::bsd95()),
        Some(host) => host.profile(station),
    };
    let silence = match &spec.silence {
        Some(silence) if silence.get_ref().0.is_zero() => {
            let message = "`silence` must be more than 0, such as \"200ms\"";
            return Err(Fault::new(silence.span(), message));
        }
        Some(silence) => silence.get_ref().0,
        None => SILENCE,
    };
    let is_m_tcp = spec.agent.get_ref() == StationAgent::M_TCP;
    let profiles = [end(&spec.wired)?, end(&spec.air)?];
    Ok(SplitSpec { profiles, silence: is_m_tcp.then_some(silence) })
}

struct Flows<'a> {
    topology: &'a Topology,
    /// One for each table of hosts.
    profiles: Vec<Profile>,
    flows: Vec<Flow>,
}

impl Flows<'_> {
    /// A table's flows: each host of the larger end with one of the smaller, in equal shares.
    fn add(&mut self, name: &Spanned<String>, spec: &FlowSpec) -> Result<(), Fault> {
        let refuse = |what: String| Err(Fault::new(name.span(), format!("flow `{name}` {what}")));
        let rule = "flows are between hosts";
        let ((from, sender), (to, receiver)) =
            (self.topology.hosts(&spec.from, rule)?, self.topology.hosts(&spec.to, rule)?);
        let (most, least) = (from.count.max(to.count), from.count.min(to.count));
        if most % least != 0 {
            return refuse(format!("cannot pair {} with {} hosts", from.count, to.count));
        }
        let each = counted(spec.count.as_ref(), MAX_FLOWS)?;
        let all = most as usize * each as usize;
        if self.flows.len() + all > MAX_FLOWS as usize {
            return refuse(format!("makes more than {MAX_FLOWS} flows"));
        }
        let (traffic, profiles) =
            (traffic(name, spec)?, [self.profiles[sender], self.profiles[receiver]]);
        let until_closed = spec.until_closed;
        if spec.serial && spec.message.is_none() {
            return refuse("is `serial`, and needs `message`, the size of a message".to_owned());
        }
        if until_closed && matches!(traffic, Traffic::Datagrams { .. }) {
            return refuse("has `until_closed`, but datagrams have no connection".to_owned());
        }
        let turns = spec.serial.then_some(self.flows.len() as u32);
        let start = spec.start.map_or(Duration::ZERO, |Time(start)| start);
        let stagger = spec.stagger.map_or(Duration::ZERO, |Time(stagger)| stagger);
        let hosts = |pair: u32| {
            let of = |count: u32| if count < most { pair / (most / least) } else { pair };
            [from.first + of(from.count), to.first + of(to.count)]
        };
        // Several hosts of the larger end, one after the other, need the same routes.
        let root = |pair: u32| hosts(pair)[usize::from(from.count >= to.count)];
        let mut tree = self.topology.graph.routes_to(root(0));
        for pair in 0..most {
            if tree.root != root(pair) {
                tree = self.topology.graph.routes_to(root(pair));
            }
            let route = self.route(name, &tree, hosts(pair))?;
            let ends = route.iter().map(|way| self.topology.directions[*way as usize].to);
            let stations = ends.filter_map(|node| node.checked_sub(self.topology.hosts)).collect();
            let hosts = hosts(pair);
            let flow =
                Flow { hosts, profiles, route, stations, traffic, start, until_closed, turns };
            self.flows.extend((0..each).map(|copy| {
                let start = start + stagger * (pair * each + copy);
                Flow { start, ..flow.clone() }
            }));
        }
        Ok(())
    }

    /// The route between two hosts.
    fn route(
        &self,
        name: &Spanned<String>,
        tree: &Tree,
        hosts: [u32; 2],
    ) -> Result<Vec<u32>, Fault> {
        let [from, to] = hosts.map(|host| self.topology.name(host));
        let refuse = |what: String| Err(Fault::new(name.span(), format!("flow `{name}`: {what}")));
        match tree.route(hosts[0], hosts[1]) {
            Some(route) if !route.is_empty() => Ok(route),
            Some(_) => refuse(format!("it leads from `{from}` to itself")),
            None => refuse(format!("no links lead from `{from}` to `{to}`")),
        }
    }
}
