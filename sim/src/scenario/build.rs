//! From a scenario to the plan that the world runs.

use super::error::{Fault, unknown};
use super::spec::{FlowSpec, ScenarioSpec, StationSpec};
use super::topology::{Kind, Topology, counted, first_stations, in_order};
use super::tree::Rooted;
use super::value::{Scalar, Size, Time};
use crate::plan::{Flow, Plan, Station, StationAgent, Traffic, opposite};
use crate::world::MAX_FLOWS;
use airmend_proto::agents::{AgentConfig, registry};
use airmend_proto::tcp::Profile;
use std::time::Duration;
use toml::Spanned;

/// The plan of a scenario.
pub(super) fn plan(spec: &ScenarioSpec) -> Result<Plan, Fault> {
    let topology = Topology::new(spec)?;
    let mut stations = Vec::new();
    for (table, (name, station)) in in_order(&spec.stations).into_iter().enumerate() {
        add_stations(&topology, table, name, station, &mut stations)?;
    }
    let hosts = in_order(&spec.hosts).into_iter();
    let profiles = hosts.map(|(name, host)| host.profile(name)).collect::<Result<Vec<_>, _>>()?;
    let builder = Flows {
        topology: &topology,
        profiles,
        rooted: topology.forest.rooted(),
        first_stations: first_stations(spec),
    };
    let mut flows = Vec::new();
    for (name, flow) in in_order(&spec.flows) {
        builder.add(name, flow, &mut flows)?;
    }
    for flow in &flows {
        for station in &flow.stations {
            stations[*station as usize].flows += 1;
        }
    }
    let time_limit = spec.time_limit.0;
    let (trace, packet_delays) = (spec.trace, spec.packet_delays);
    let directions = topology.directions;
    Ok(Plan { stations, directions, flows, time_limit, trace, packet_delays })
}

/// A table's stations: each has one wired and one air link.
fn add_stations(
    topology: &Topology,
    table: usize,
    name: &Spanned<String>,
    spec: &StationSpec,
    stations: &mut Vec<Station>,
) -> Result<(), Fault> {
    let agent = agent(spec)?;
    let group = topology.group(name)?;
    debug_assert_eq!(topology.kind(group.first), (Kind::Station(table), 0));
    for node in group.first..group.first + group.count {
        let mut inbound = [Vec::new(), Vec::new()];
        for (direction, _) in topology.forest.ways(node) {
            let side = usize::from(topology.directions[*direction as usize].air);
            if !inbound[side].contains(&opposite(*direction)) {
                inbound[side].push(opposite(*direction));
            }
        }
        let [[wired], [air]] = [&inbound[0][..], &inbound[1][..]] else {
            let message = format!(
                "station `{name}` needs one wired link and one air link (`air = true`, and \
                 `shared = true` where it serves several hosts); it has {} and {}",
                inbound[0].len(),
                inbound[1].len()
            );
            return Err(Fault::new(name.span(), message));
        };
        let dies = spec.dies.map(|Time(dies)| dies);
        stations.push(Station { agent: agent.clone(), dies, inbound: [*wired, *air], flows: 0 });
    }
    Ok(())
}

/// The station's agent with its settings; those of other agents must be right, too.
fn agent(spec: &StationSpec) -> Result<StationAgent, Fault> {
    let known: Vec<&str> = registry::names().chain([StationAgent::SPLIT]).collect();
    let by_name = |name: &Spanned<String>| {
        AgentConfig::by_name(name.get_ref())
            .map_err(|_| Fault::new(name.span(), unknown("agent", name.get_ref(), &known)))
    };
    let is_split = spec.agent.get_ref() == StationAgent::SPLIT;
    let mut agent = if is_split { None } else { Some(by_name(&spec.agent)?) };
    for (owner, settings) in &spec.settings {
        let mut config = by_name(owner)?;
        for (name, value) in settings {
            let Scalar(text) = value.get_ref();
            config
                .set(name.get_ref(), text)
                .map_err(|sentence| Fault::new(value.span(), sentence))?;
        }
        agent = agent.map(|agent| if agent.name() == config.name() { config } else { agent });
    }
    Ok(agent.map_or(StationAgent::Split, StationAgent::Everywhere))
}

struct Flows<'a> {
    topology: &'a Topology,
    /// One for each table of hosts.
    profiles: Vec<Profile>,
    rooted: Rooted,
    first_stations: Vec<u32>,
}

impl Flows<'_> {
    /// A table's flows: each host of the larger end with one of the smaller, in equal shares.
    fn add(
        &self,
        name: &Spanned<String>,
        spec: &FlowSpec,
        flows: &mut Vec<Flow>,
    ) -> Result<(), Fault> {
        let refuse = |what: String| Err(Fault::new(name.span(), format!("flow `{name}` {what}")));
        let ((from, sender), (to, receiver)) =
            (self.topology.hosts(&spec.from)?, self.topology.hosts(&spec.to)?);
        let (most, least) = (from.count.max(to.count), from.count.min(to.count));
        if most % least != 0 {
            return refuse(format!("cannot pair {} with {} hosts", from.count, to.count));
        }
        let each = counted(spec.count.as_ref(), MAX_FLOWS as u32)?;
        let all = most as usize * each as usize;
        if flows.len() + all > MAX_FLOWS {
            return refuse(format!("makes more than {MAX_FLOWS} flows"));
        }
        let (traffic, profiles) =
            (traffic(name, spec)?, [self.profiles[sender], self.profiles[receiver]]);
        let start = spec.start.map_or(Duration::ZERO, |Time(start)| start);
        let stagger = spec.stagger.map_or(Duration::ZERO, |Time(stagger)| stagger);
        for pair in 0..most {
            let host = |count: u32| if count < most { pair / (most / least) } else { pair };
            let hosts = [from.first + host(from.count), to.first + host(to.count)];
            let route = self.route(name, hosts)?;
            let on_route = route.iter().filter_map(|(_, node)| self.station(*node)).collect();
            let flow = Flow {
                hosts,
                profiles,
                route: route.into_iter().map(|(direction, _)| direction).collect(),
                stations: on_route,
                traffic,
                start,
            };
            flows.extend((0..each).map(|copy| {
                let start = start + stagger * (pair * each + copy);
                Flow { start, ..flow.clone() }
            }));
        }
        Ok(())
    }

    /// The way between two hosts, which crosses each station from one side to the other.
    fn route(&self, name: &Spanned<String>, hosts: [u32; 2]) -> Result<Vec<(u32, u32)>, Fault> {
        let [from, to] = hosts.map(|host| self.topology.name(host));
        let refuse = |what: String| Err(Fault::new(name.span(), format!("flow `{name}`: {what}")));
        let route = match self.rooted.route(hosts[0], hosts[1]) {
            Some(route) if !route.is_empty() => route,
            Some(_) => return refuse(format!("it leads from `{from}` to itself")),
            None => return refuse(format!("no links lead from `{from}` to `{to}`")),
        };
        for hop in route.windows(2) {
            let [(inbound, node), (outbound, _)] = [hop[0], hop[1]];
            let name = self.topology.name(node);
            if self.station(node).is_none() {
                return refuse(format!("it would pass the host `{name}`, which forwards nothing"));
            }
            if inbound == opposite(outbound) {
                return refuse(format!("it would leave station `{name}` on the side it came from"));
            }
        }
        Ok(route)
    }

    fn station(&self, node: u32) -> Option<u32> {
        match self.topology.kind(node) {
            (Kind::Station(table), index) => Some(self.first_stations[table] + index),
            (Kind::Host(_), _) => None,
        }
    }
}

fn traffic(name: &Spanned<String>, spec: &FlowSpec) -> Result<Traffic, Fault> {
    let no_time = "`interval` must be more than 0, such as \"10ms\"";
    match (&spec.bytes, &spec.packets, &spec.exchange) {
        (Some(bytes), None, None) if bytes.get_ref().0 == 0 => {
            Err(Fault::new(bytes.span(), "`bytes` must be more than 0, such as \"10MB\""))
        }
        (bytes, None, None) => Ok(Traffic::Bulk(bytes.as_ref().map(|bytes| bytes.get_ref().0))),
        (None, Some(packets), None) => match packets.interval.get_ref().0 {
            Duration::ZERO => Err(Fault::new(packets.interval.span(), no_time)),
            interval => {
                let Size(size) = packets.size;
                Ok(Traffic::Poisson { size: size.max(1), interval, count: packets.count })
            }
        },
        (None, None, Some(exchange)) => Ok(Traffic::Exchange {
            request: exchange.request.get_ref().0.max(1),
            response: exchange.response.get_ref().0.max(1),
            think: exchange.think.map_or(Duration::ZERO, |Time(think)| think),
            count: exchange.count,
        }),
        _ => {
            let message = "has several of bytes, packets and exchange; give one, or none to send \
                           without end";
            Err(Fault::new(name.span(), format!("flow `{name}` {message}")))
        }
    }
}
