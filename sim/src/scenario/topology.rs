//! From names to numbers: groups of nodes, and links between them.

use super::count::{MAX_NODES, counted};
use super::error::{Fault, unknown};
use super::named::in_order;
use super::spec::{
    ArqTable, CoDelTable, ErrorsSpec, HandoffTable, LinkSpec, ScenarioSpec, WaySpec,
};
use super::trace::TraceFiles;
use super::value::{Rate, Time};
use super::{airmail, radio, variation};
use crate::graph::{Graph, opposite};
use crate::plan::{ArqSpec, Direction, Handoff};
use airmend_proto::link::trace::WayTrace;
use airmend_proto::link::{CoDelParams, DelayVariation, DropRates, ErrorModel, QueueDiscipline};
use std::ops::Range;
use toml::Spanned;

/// A number of like nodes.
pub(super) struct Group {
    name: String,
    pub(super) kind: Kind,
    /// The number of its first node among all nodes.
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Group {
    /// The numbers of its nodes.
    pub(super) fn nodes(&self) -> Range<u32> {
        self.first..self.first + self.count
    }
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
    /// Hosts are the first nodes.
    pub(super) hosts: u32,
    pub(super) directions: Vec<Direction>,
    /// What varies of links, both ways.
    pub(super) traces: Vec<[WayTrace; 2]>,
    pub(super) channels: Vec<Vec<u32>>,
    pub(super) graph: Graph,
    /// The first direction of each table of links, in the order of the file.
    pub(super) tables: Vec<(String, u32)>,
}

impl Topology {
    /// All nodes and links of a scenario.
    pub(super) fn new(spec: &ScenarioSpec, files: &mut TraceFiles) -> Result<Self, Fault> {
        let mut tables = Vec::new();
        for (at, (name, host)) in in_order(&spec.hosts).into_iter().enumerate() {
            tables.push((name, Kind::Host(at), host.count()?));
        }
        for (at, (name, station)) in in_order(&spec.stations).into_iter().enumerate() {
            let count = counted(station.count.as_ref(), MAX_NODES)?;
            tables.push((name, Kind::Station(at), count));
        }
        let mut groups: Vec<Group> = Vec::new();
        let (mut first, mut hosts) = (0, 0);
        for (name, kind, count) in tables {
            if groups.iter().any(|group| group.name == *name.get_ref()) {
                let message = format!("`{}` is the name of a host already", name.get_ref());
                return Err(Fault::new(name.span(), message));
            }
            groups.push(Group { name: name.get_ref().clone(), kind, first, count });
            first += count;
            if let Kind::Host(_) = kind {
                hosts = first;
            }
        }
        let mut topology = Self {
            groups,
            hosts,
            directions: Vec::new(),
            traces: Vec::new(),
            channels: Vec::new(),
            graph: Graph::new(hosts, first - hosts),
            tables: Vec::new(),
        };
        for (name, link) in in_order(&spec.links) {
            let varies = files.of_link(link)?;
            topology.add_link(name, link, varies)?;
        }
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

    /// A host's group; `rule` says why it must be one.
    pub(super) fn hosts(
        &self,
        name: &Spanned<String>,
        rule: &str,
    ) -> Result<(&Group, usize), Fault> {
        let group = self.group(name)?;
        match group.kind {
            Kind::Host(table) => Ok((group, table)),
            Kind::Station(_) => {
                let message = format!("`{}` is a station; {rule}", group.name);
                Err(Fault::new(name.span(), message))
            }
        }
    }

    /// The name of a node's group. Groups follow each other without gaps, so every node is in one.
    pub(super) fn name(&self, node: u32) -> &str {
        let after = self.groups.partition_point(|group| group.first <= node);
        &self.groups[after - 1].name
    }

    /// Links every node of the larger end to one of the smaller, in equal shares.
    fn add_link(
        &mut self,
        name: &Spanned<String>,
        link: &LinkSpec,
        varies: [WayTrace; 2],
    ) -> Result<(), Fault> {
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
        let mut ways =
            [way(name, link, &link.down, &varies[0])?, way(name, link, &link.up, &varies[1])?];
        radio::share(name, link.mac.as_ref(), link.wifi.as_ref(), &mut ways)?;
        if let Some(generator) = &link.generator {
            let at = self.end(name, link, &generator.at)?;
            [ways[0].generator, ways[1].generator] = generator.rates(at)?;
        }
        let is_alone = !link.shared && link.channel.is_none();
        airmail::add(link.airmail.as_ref(), is_alone, &mut ways)?;
        variation::add(link.variation.as_ref(), &mut ways)?;
        let trace = self.number_of(varies);
        ways.iter_mut().for_each(|way| way.trace = trace);
        let joined = link.channel.as_ref().map(|other| self.joined(other, &ways)).transpose()?;
        self.tables.push((name.get_ref().clone(), self.directions.len() as u32));
        for index in 0..counts[0].max(counts[1]) {
            let place = |end: usize| {
                firsts[end] + if counts[end] < counts[1 - end] { index / share } else { index }
            };
            let pair = [place(0), place(1)];
            let channel = match joined {
                Some(channel) => channel,
                None if link.shared && index % share > 0 => self.channels.len() as u32 - 1,
                None => {
                    self.channels.push(Vec::new());
                    self.channels.len() as u32 - 1
                }
            };
            if joined.is_some() && !self.fits(channel, pair) {
                return refuse(
                    "must join two nodes that its `channel` does not join yet, with `between` the \
                     same way round",
                );
            }
            self.channels[channel as usize].push(self.directions.len() as u32 / 2);
            self.graph.join(pair);
            let [down, up] = ways;
            let [down, up] = [Direction { to: pair[1], ..down }, Direction { to: pair[0], ..up }];
            self.directions.extend([down, up].map(|way| Direction { channel, ..way }));
        }
        Ok(())
    }

    /// The number of what varies of a link, if anything does.
    fn number_of(&mut self, varies: [WayTrace; 2]) -> Option<u32> {
        if varies.iter().all(WayTrace::is_empty) {
            return None;
        }
        let known = self.traces.iter().position(|known| *known == varies);
        Some(known.unwrap_or_else(|| {
            self.traces.push(varies);
            self.traces.len() - 1
        }) as u32)
    }

    /// Which end of a link a group is.
    fn end(
        &self,
        link: &Spanned<String>,
        spec: &LinkSpec,
        at: &Spanned<String>,
    ) -> Result<usize, Fault> {
        let place = spec.between.iter().position(|end| end.get_ref() == at.get_ref());
        place.ok_or_else(|| {
            let [first, second] = &spec.between;
            let message = format!("link `{link}` ends at `{first}` and `{second}`, not at `{at}`");
            Fault::new(at.span(), message)
        })
    }

    /// The channel of the link `other`, for another link with these directions.
    fn joined(&self, other: &Spanned<String>, ways: &[Direction; 2]) -> Result<u32, Fault> {
        let refuse = |what| Err(Fault::new(other.span(), format!("link `{other}` {what}")));
        let mut tables = self.tables.iter();
        let Some(&(_, down)) = tables.find(|(name, _)| name == other.get_ref()) else {
            return refuse("must stand before the links on its channel");
        };
        let key = |way: Direction| {
            (
                way.rate_bps,
                way.queue_frames,
                way.discipline,
                way.arq,
                way.airmail,
                way.access,
                way.air,
                way.trace,
            )
        };
        let theirs = [down, opposite(down)].map(|way| self.directions[way as usize]);
        if theirs.map(key) != ways.map(key) {
            return refuse(
                "and the links on its channel may differ in `errors`, `generator`, `handoff` and, \
                 without `mac` and `wifi`, `delay` and `variation` only",
            );
        }
        Ok(theirs[0].channel)
    }

    /// Whether a pair can be added to a channel: it is new there, and no node sends in both
    /// directions.
    fn fits(&self, channel: u32, [first, second]: [u32; 2]) -> bool {
        self.channels[channel as usize].iter().all(|link| {
            let [above, below] =
                [2 * link + 1, 2 * link].map(|way| self.directions[way as usize].to);
            above != second && below != first && (above, below) != (first, second)
        })
    }
}

/// One direction: what the link says, unless the direction says otherwise.
fn way(
    name: &Spanned<String>,
    link: &LinkSpec,
    way: &WaySpec,
    varies: &WayTrace,
) -> Result<Direction, Fault> {
    let missing = |key| Fault::new(name.span(), format!("the key `{key}` is missing"));
    let errors = way.errors.as_ref().or(link.errors.as_ref());
    let rate = way.rate.or(link.rate).map(|Rate(rate)| rate);
    let delay = way.delay.or(link.delay).map(|Time(delay)| delay);
    // Of what varies, the mean.
    let rate_bps = varies.mean_rate_bps().or(rate).ok_or_else(|| missing("rate"))?;
    let errors = match varies.mean_loss() {
        Some(loss) => ErrorModel::Loss(loss),
        None => errors.map_or(Ok(ErrorModel::None), ErrorsSpec::model)?,
    };
    Ok(Direction {
        rate_bps,
        delay: varies.mean_delay().or(delay).ok_or_else(|| missing("delay"))?,
        variation: DelayVariation::default(),
        queue_frames: way.queue.unwrap_or(link.queue).frames(rate_bps),
        discipline: (discipline(link, way)?, codel(link)),
        errors,
        arq: link.arq.map(|ArqTable { retries, ordered }| ArqSpec { retries, ordered }),
        trace: None,
        airmail: None,
        handoff: link.handoff.as_ref().map(handoff).transpose()?,
        access: None,
        generator: DropRates::default(),
        air: link.air,
        channel: 0,
        to: 0,
    })
}

fn discipline(link: &LinkSpec, way: &WaySpec) -> Result<QueueDiscipline, Fault> {
    let Some(name) = way.discipline.as_ref().or(link.discipline.as_ref()) else {
        return Ok(QueueDiscipline::Fifo);
    };
    let discipline = name.get_ref().parse().map_err(|why| Fault::new(name.span(), why))?;
    let has_own_queue =
        [link.mac.is_some(), link.wifi.is_some(), link.arq.is_some(), link.airmail.is_some()]
            .contains(&true);
    if discipline != QueueDiscipline::Fifo && has_own_queue {
        let message =
            format!("a link with `mac`, `wifi`, `arq` or `airmail` has a fifo, not `{name}`");
        return Err(Fault::new(name.span(), message));
    }
    Ok(discipline)
}

fn codel(link: &LinkSpec) -> CoDelParams {
    let CoDelParams { target, interval } = CoDelParams::default();
    let table = link.codel.unwrap_or(CoDelTable { target: None, interval: None });
    CoDelParams {
        target: table.target.map_or(target, |Time(target)| target),
        interval: table.interval.map_or(interval, |Time(interval)| interval),
    }
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
