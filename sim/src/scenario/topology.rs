//! From names to numbers: groups of nodes, and links between them.

use super::error::{Fault, unknown};
use super::radio;
use super::spec::{ArqTable, ErrorsSpec, HandoffTable, LinkSpec, Named, ScenarioSpec, WaySpec};
use super::tree::Forest;
use super::value::Time;
use crate::plan::{ArqSpec, Direction, Handoff, To};
use airmend_proto::link::ErrorModel;
use toml::Spanned;

/// Nodes of a run at most.
pub(super) const MAX_NODES: u32 = 1_000_000;

/// A number of like nodes.
pub(super) struct Group {
    name: String,
    pub(super) kind: Kind,
    /// The number of its first node among all nodes.
    pub(super) first: u32,
    pub(super) count: u32,
}

/// What a node is: the number of its table in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Host(usize),
    Station(usize),
}

/// Nodes and the directions between them.
pub(super) struct Topology {
    groups: Vec<Group>,
    pub(super) directions: Vec<Direction>,
    pub(super) forest: Forest,
}

/// Tables in the order of the file.
pub(super) fn in_order<T>(tables: &Named<T>) -> Vec<(&Spanned<String>, &T)> {
    let mut tables: Vec<_> = tables.iter().collect();
    tables.sort_by_key(|(name, _)| name.span().start);
    tables
}

/// A number of nodes or flows, at least one.
pub(super) fn counted(count: Option<&Spanned<u32>>, most: u32) -> Result<u32, Fault> {
    match count {
        None => Ok(1),
        Some(count) if (1..=most).contains(count.get_ref()) => Ok(*count.get_ref()),
        Some(count) => {
            let message = format!("`count` must be from 1 to {most}, not {}", count.get_ref());
            Err(Fault::new(count.span(), message))
        }
    }
}

impl Topology {
    /// All nodes and links of a scenario.
    pub(super) fn new(spec: &ScenarioSpec) -> Result<Self, Fault> {
        let mut tables = Vec::new();
        for (at, (name, host)) in in_order(&spec.hosts).into_iter().enumerate() {
            tables.push((name, Kind::Host(at), host.count()?));
        }
        for (at, (name, station)) in in_order(&spec.stations).into_iter().enumerate() {
            let count = counted(station.count.as_ref(), MAX_NODES)?;
            tables.push((name, Kind::Station(at), count));
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut first = 0;
        for (name, kind, count) in tables {
            if groups.iter().any(|group| group.name == *name.get_ref()) {
                let message = format!("`{}` is the name of a host already", name.get_ref());
                return Err(Fault::new(name.span(), message));
            }
            groups.push(Group { name: name.get_ref().clone(), kind, first, count });
            first += count;
        }
        let mut topology = Self { groups, directions: Vec::new(), forest: Forest::new(first) };
        for (name, link) in in_order(&spec.links) {
            topology.add_link(name, link)?;
        }
        topology.find_receivers(spec)?;
        Ok(topology)
    }

    /// The group with this name.
    pub(super) fn group(&self, name: &Spanned<String>) -> Result<&Group, Fault> {
        let found = self.groups.iter().find(|group| group.name == *name.get_ref());
        found.ok_or_else(|| {
            let known: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
            Fault::new(name.span(), unknown("host or station", name.get_ref(), &known))
        })
    }

    /// A host's group.
    pub(super) fn hosts(&self, name: &Spanned<String>) -> Result<(&Group, usize), Fault> {
        let group = self.group(name)?;
        match group.kind {
            Kind::Host(table) => Ok((group, table)),
            Kind::Station(_) => {
                let message = format!("`{}` is a station; flows are between hosts", group.name);
                Err(Fault::new(name.span(), message))
            }
        }
    }

    /// What a node is, and which of its group.
    pub(super) fn kind(&self, node: u32) -> (Kind, u32) {
        let group = self.group_of(node);
        (group.kind, node - group.first)
    }

    /// The name of a node's group.
    pub(super) fn name(&self, node: u32) -> &str {
        &self.group_of(node).name
    }

    /// Groups follow each other without gaps, so every node is in one.
    fn group_of(&self, node: u32) -> &Group {
        let after = self.groups.partition_point(|group| group.first <= node);
        &self.groups[after - 1]
    }

    /// Links every node of the larger end to one of the smaller, in equal shares.
    fn add_link(&mut self, name: &Spanned<String>, link: &LinkSpec) -> Result<(), Fault> {
        let refuse = |what: &str| Err(Fault::new(name.span(), format!("link `{name}` {what}")));
        let [first, second] = [self.group(&link.between[0])?, self.group(&link.between[1])?];
        let (counts, firsts) = ([first.count, second.count], [first.first, second.first]);
        let share = counts[0].max(counts[1]) / counts[0].min(counts[1]);
        if firsts[0] == firsts[1] {
            return refuse(&format!("leads from `{}` to itself", first.name));
        }
        if counts[0].max(counts[1]) != share * counts[0].min(counts[1]) {
            let [first, second] = counts;
            return refuse(&format!("cannot join {first} to {second} nodes in equal shares"));
        }
        let mut ways = [way(link, &link.down)?, way(link, &link.up)?];
        radio::share(name, link, [first, second], &mut ways)?;
        for index in 0..counts[0].max(counts[1]) {
            let place = |end: usize| {
                firsts[end] + if counts[end] < counts[1 - end] { index / share } else { index }
            };
            if !link.shared || index % share == 0 {
                self.directions.extend(ways);
            }
            let pair = [place(0), place(1)];
            if !self.forest.join(pair, self.directions.len() as u32 - 2) {
                let [first, second] = pair.map(|node| self.name(node));
                return refuse(&format!(
                    "closes a loop: there is another way from `{first}` to `{second}`"
                ));
            }
        }
        Ok(())
    }

    /// Finds out who takes what comes out of each direction.
    fn find_receivers(&mut self, spec: &ScenarioSpec) -> Result<(), Fault> {
        let mut receivers: Vec<Option<To>> = vec![None; self.directions.len()];
        let first_station = first_stations(spec);
        let nodes = self.groups.last().map_or(0, |group| group.first + group.count);
        for node in 0..nodes {
            for &(direction, to) in self.forest.ways(node) {
                let to = match self.kind(to) {
                    (Kind::Host(_), _) => To::Host,
                    (Kind::Station(table), index) => To::Station(first_station[table] + index),
                };
                let known = &mut receivers[direction as usize];
                *known = match (*known, to) {
                    (None, to) => Some(to),
                    (Some(known), to) if known == to => Some(to),
                    (Some(To::Station(_) | To::StationOfFlow), To::Station(_)) => {
                        Some(To::StationOfFlow)
                    }
                    // Groups are of one kind, and a link has one group at each end.
                    (known, _) => known,
                };
            }
        }
        for (direction, to) in self.directions.iter_mut().zip(receivers) {
            direction.to = to.unwrap_or(To::Host);
        }
        Ok(())
    }
}

/// For each table of stations the number of its first one.
pub(super) fn first_stations(spec: &ScenarioSpec) -> Vec<u32> {
    let mut first = 0;
    let counts = in_order(&spec.stations).into_iter().map(|(_, station)| &station.count);
    counts
        .map(|count| {
            let this = first;
            first += count.as_ref().map_or(1, |count| *count.get_ref());
            this
        })
        .collect()
}

/// One direction: what the link says, unless the direction says otherwise.
fn way(link: &LinkSpec, way: &WaySpec) -> Result<Direction, Fault> {
    let errors = way.errors.as_ref().or(link.errors.as_ref());
    Ok(Direction {
        rate_bps: way.rate.unwrap_or(link.rate).0,
        delay: way.delay.unwrap_or(link.delay).0,
        queue_frames: way.queue.unwrap_or(link.queue),
        errors: errors.map_or(Ok(ErrorModel::None), model)?,
        arq: link.arq.map(|ArqTable { retries, ordered }| ArqSpec { retries, ordered }),
        handoff: link.handoff.as_ref().map(handoff).transpose()?,
        mac: None,
        air: link.air,
        to: To::Host,
    })
}

fn handoff(table: &Spanned<HandoffTable>) -> Result<Handoff, Fault> {
    let HandoffTable { every: Time(every), lasts: Time(lasts), acks } = *table.get_ref();
    if lasts >= every || acks > 1_000 {
        let message = "a handoff `lasts` less than `every`, the time from one to the next, and \
                       makes at most 1000 `acks`";
        return Err(Fault::new(table.span(), message));
    }
    Ok(Handoff { every, lasts, acks })
}

fn model(errors: &Spanned<ErrorsSpec>) -> Result<ErrorModel, Fault> {
    let message = "`errors` must be one of loss, ber, burst and fading, not several";
    errors.get_ref().model().ok_or_else(|| Fault::new(errors.span(), message))
}
