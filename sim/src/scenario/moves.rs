//! The hosts that move, from the tables `moves` and `roaming` to a plan.

use super::error::Fault;
use super::named::in_order;
use super::roaming::{Handoff, RoamingTable};
use super::spec::{MoveSpec, ScenarioSpec};
use super::topology::Topology;
use super::value::Time;
use crate::plan::{Move, MoveEvent};
use std::time::Duration;
use toml::Spanned;

/// The moves in the order of time. A host that moves begins at its first link.
pub(super) fn moves(spec: &ScenarioSpec, topology: &mut Topology) -> Result<Vec<Move>, Fault> {
    let mut moves = Vec::new();
    for MoveSpec { at: Time(at), host: name, to } in &spec.moves {
        let (hosts, _) = topology.hosts(name, "hosts move")?;
        for host in hosts.nodes() {
            let (outbound, _) = link(topology, name, host, to)?;
            moves.push(Move { at: *at, host, event: MoveEvent::Attaches { outbound, acks: 0 } });
        }
    }
    for (name, table) in in_order(&spec.roaming) {
        roam(table, name, topology, spec.time_limit.0, &mut moves)?;
    }
    for Move { host, .. } in &moves {
        if let Some(&(first, _)) = topology.graph.leaving(*host).first() {
            topology.graph.attach(*host, Some(first));
        }
    }
    moves.sort_by_key(|step| step.at);
    Ok(moves)
}

/// The moves of a host that roams until the end of the run.
fn roam(
    table: &RoamingTable,
    name: &Spanned<String>,
    topology: &Topology,
    end: Duration,
    moves: &mut Vec<Move>,
) -> Result<(), Fault> {
    let handoffs = table.handoffs(name, end)?;
    let (hosts, _) = topology.hosts(name, "hosts roam")?;
    for host in hosts.nodes() {
        let links = table.stations.iter().map(|to| link(topology, name, host, to));
        let links = links.collect::<Result<Vec<_>, _>>()?;
        let mut at = |at: Duration, event| moves.push(Move { at, host, event });
        at(Duration::ZERO, MoveEvent::Attaches { outbound: links[0].0, acks: 0 });
        for Handoff { from, until, to } in &handoffs {
            let (outbound, station) = links[*to];
            if let Some(Time(ahead)) = table.ahead {
                let event = MoveEvent::Approaches(station - topology.hosts);
                at(from.saturating_sub(ahead), event);
            }
            if until > from {
                at(*from, MoveEvent::Detaches);
            }
            at(*until, MoveEvent::Attaches { outbound, acks: table.acks });
        }
    }
    Ok(())
}

/// The direction from a host to a station, and that station's node.
fn link(
    topology: &Topology,
    name: &Spanned<String>,
    host: u32,
    to: &Spanned<String>,
) -> Result<(u32, u32), Fault> {
    let stations = topology.group(to)?;
    let is_there = |node: u32| node >= topology.hosts && stations.nodes().contains(&node);
    let mut links = topology.graph.leaving(host).iter();
    links.find(|(_, node)| is_there(*node)).copied().ok_or_else(|| {
        let message = format!("host `{name}` has no link to a station `{to}`");
        Fault::new(to.span(), message)
    })
}
