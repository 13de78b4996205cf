//! A link protocol has an agent at each of two ends: one alone forwards nothing.

use super::error::Fault;
use super::named::in_order;
use super::spec::ScenarioSpec;
use super::topology::{Kind, Topology};
use crate::plan::{Station, StationAgent};
use toml::Spanned;

/// The number of the station with the other end of a link.
pub(super) fn peer(topology: &Topology, name: &Spanned<String>) -> Result<u32, Fault> {
    let group = topology.group(name)?;
    match (group.kind, group.count) {
        (Kind::Station(_), 1) => Ok(group.first - topology.hosts),
        _ => {
            let message = format!("`peer` must be the name of one station, and `{name}` is not");
            Err(Fault::new(name.span(), message))
        }
    }
}

/// Refuses a station with a link protocol that the other end of its link does not have.
pub(super) fn check(
    spec: &ScenarioSpec,
    topology: &Topology,
    stations: &[Station],
) -> Result<(), Fault> {
    for (name, _) in in_order(&spec.stations) {
        for node in topology.group(name)?.nodes() {
            let station = &stations[(node - topology.hosts) as usize];
            let Some(protocol) = protocol(station) else { continue };
            let Some(other) = other_end(topology, station) else { continue };
            let number = other.checked_sub(topology.hosts);
            let theirs = number.and_then(|number| stations.get(number as usize));
            let is_ours = |station: &Station| other_end(topology, station) == Some(node);
            let has_it =
                |station: &&Station| self::protocol(station) == Some(protocol) && is_ours(station);
            if theirs.filter(has_it).is_none() {
                let message = format!(
                    "station `{name}` has the link protocol `{protocol}`, which both ends of a \
                     link must have, and `{}` at the other end has not",
                    topology.name(other)
                );
                return Err(Fault::new(name.span(), message));
            }
        }
    }
    Ok(())
}

/// The name of a station's link protocol, if it has one.
fn protocol(station: &Station) -> Option<&str> {
    match &station.agent {
        StationAgent::Everywhere(config) if config.is_link() => Some(config.name()),
        _ => None,
    }
}

/// The node at the other end of a station's link: its peer, or its neighbour by air.
fn other_end(topology: &Topology, station: &Station) -> Option<u32> {
    let by_air = || station.outbound[1].first().map(|way| topology.directions[*way as usize].to);
    station.peer.map(|peer| topology.hosts + peer).or_else(by_air)
}
