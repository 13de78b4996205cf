//! All channels, and the agenda of their events.

use super::airmail::Airmail;
use super::arq::Repeating;
use super::handoff::WithHandoffs;
use crate::agenda::Agenda;
use crate::graph::opposite;
use crate::plan::{Access, Direction, Plan, StationAgent};
use airmend_proto::agent::LinkSignal;
use airmend_proto::link::mac::{Dcf, FamaNcs};
use airmend_proto::link::{
    self, DelayProcess, DelayVariation, DropRates, FullDuplex, LinkCounters, LinkParams, Managed,
    Output, PacketErrorGenerator, Pair, QueueDiscipline, Way as GeneratorWay,
};
use airmend_proto::{Instant, Packet};
use std::collections::HashMap;
use std::time::Duration;

/// Channels are the machines `0..channels.len()` of the agenda.
pub(crate) struct Medium {
    pub(crate) agenda: Agenda,
    channels: Vec<Channel>,
    /// For each direction its channel, and who sends and who receives there.
    ways: Vec<Way>,
}

struct Channel {
    medium: Box<dyn link::Medium + Send>,
    /// The node of each of its stations.
    nodes: Vec<u32>,
    /// Its directions with who sends and who receives, in the order of these.
    ways: Vec<([u32; 2], u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Way {
    channel: u32,
    from: u32,
    to: u32,
}

/// An event on a channel.
pub(crate) enum Happening {
    /// A packet comes out of a direction.
    Arrival(u32, Packet),
    /// A frame has arrived damaged at a node.
    Damaged(u32, Packet),
    /// A signal of the channel to a node, or its readiness to take a packet.
    Signal(u32, Option<LinkSignal>),
}

impl Medium {
    pub(crate) fn new(plan: &Plan, machines: usize, seed: u64) -> Self {
        let mut ways = vec![Way::default(); plan.directions.len()];
        let mut channels = Vec::with_capacity(plan.channels.len());
        for (number, links) in (0..).zip(&plan.channels) {
            channels.push(Channel::new(plan, links, seed));
            for &([from, to], direction) in &channels[number as usize].ways {
                ways[direction as usize] = Way { channel: number, from, to };
            }
        }
        Self { agenda: Agenda::new(machines), channels, ways }
    }

    /// Whether a direction can take a frame at once.
    pub(crate) fn can_send(&self, now: Instant, direction: u32) -> bool {
        let Way { channel, from, .. } = self.ways[direction as usize];
        self.channels[channel as usize].medium.can_send(now, from as usize)
    }

    /// The time at which it can; `None` if a signal will report it.
    pub(crate) fn free_at(&self, direction: u32) -> Option<Instant> {
        let Way { channel, from, .. } = self.ways[direction as usize];
        self.channels[channel as usize].medium.free_at(from as usize)
    }

    /// Puts a packet into a direction; a full queue drops it.
    pub(crate) fn send(&mut self, now: Instant, direction: u32, packet: Packet) {
        let Way { channel, from, to } = self.ways[direction as usize];
        let medium = &mut self.channels[channel as usize].medium;
        medium.send(now, from as usize, to as usize, packet);
        if let Some(at) = medium.poll_timeout() {
            self.agenda.schedule_no_later(channel, at);
        }
    }

    /// The next event that is due on a channel.
    pub(crate) fn poll(&mut self, now: Instant, number: u32) -> Option<Happening> {
        let channel = &mut self.channels[number as usize];
        let output = channel.medium.poll(now);
        self.agenda.set(number, channel.medium.poll_timeout());
        Some(match output? {
            Output::Delivery { from, to, packet } => {
                Happening::Arrival(channel.direction(from as u32, to as u32), packet)
            }
            Output::Damaged { to, packet } => Happening::Damaged(channel.nodes[to], packet),
            Output::Signal(station, signal) => {
                Happening::Signal(channel.nodes[station], Some(signal))
            }
            Output::Ready(station) => Happening::Signal(channel.nodes[station], None),
        })
    }

    /// The counters of each direction.
    pub(crate) fn counters(&self) -> impl Iterator<Item = LinkCounters> {
        self.ways.iter().map(|way| {
            let medium = &self.channels[way.channel as usize].medium;
            medium.counters(way.from as usize, way.to as usize)
        })
    }
}

impl Channel {
    /// The channel that these links share.
    fn new(plan: &Plan, links: &[u32], seed: u64) -> Self {
        let (mut nodes, mut ways, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
        let mut generators = Vec::new();
        let mut stations = HashMap::new();
        for &link in links {
            let directions = [2 * link, 2 * link + 1];
            let ends = [directions[1], directions[0]].map(|direction| {
                let node = plan.directions[direction as usize].to;
                *stations.entry(node).or_insert_with(|| {
                    nodes.push(node);
                    nodes.len() - 1
                })
            });
            let [first, second] = ends.map(|end| end as u32);
            ways.extend([([first, second], directions[0]), ([second, first], directions[1])]);
            for (way, direction) in directions.into_iter().enumerate() {
                let rates = plan.directions[direction as usize].generator;
                if rates != DropRates::default() {
                    let stations = [ends[way], ends[1 - way]];
                    generators.push(GeneratorWay::new(stations, rates, seed, link, way as u8));
                }
            }
            let mut pair =
                pair(plan, directions.map(|way| plan.directions[way as usize]), ends, seed, link);
            pair.tells_damage = ends.iter().any(|end| takes_damaged(plan, nodes[*end]));
            pairs.push(pair);
        }
        ways.sort_unstable();
        let first = links.first().map_or(0, |link| 2 * link);
        let both = [first, opposite(first)].map(|way| plan.directions[way as usize]);
        let mut medium = medium(plan, both, pairs, seed, first / 2);
        if !generators.is_empty() {
            medium = Box::new(PacketErrorGenerator::new(medium, generators));
        }
        Self { medium, nodes, ways }
    }

    fn direction(&self, from: u32, to: u32) -> u32 {
        // The usual case: two stations.
        if let [there, back] = self.ways[..] {
            return if from == 0 { there.1 } else { back.1 };
        }
        let place = self.ways.binary_search_by_key(&[from, to], |(ends, _)| *ends);
        // A medium delivers between its pairs only.
        place.map_or(0, |place| self.ways[place].1)
    }
}

/// Whether the agent at a node makes use of damaged frames.
fn takes_damaged(plan: &Plan, node: u32) -> bool {
    let station = plan.station(node).and_then(|number| plan.stations.get(number as usize));
    station.is_some_and(|station| match &station.agent {
        StationAgent::Everywhere(config) => config.link().is_some_and(|link| link.takes_damaged),
        StationAgent::Split(_) => false,
    })
}

fn pair(plan: &Plan, ways: [Direction; 2], stations: [usize; 2], seed: u64, link: u32) -> Pair {
    let (delay, models) = (ways.map(|way| way.delay), ways.map(|way| way.errors));
    let mut pair = Pair::new(stations, delay, models, seed, link);
    if ways[0].variation != DelayVariation::default() {
        pair.variation = [0, 1].map(|way| {
            let delays: Box<dyn DelayProcess + Send> =
                Box::new(ways[0].variation.process(seed, link, way));
            Some(delays)
        });
    }
    let varies = plan.varies(&ways[0]).into_iter().flatten();
    varies.enumerate().for_each(|(way, trace)| trace.apply(&mut pair, way, seed, link));
    let mut handoffs = ways.into_iter().map(|way| way.handoff);
    pair.errors = pair.errors.map(|errors| match handoffs.next().flatten() {
        Some(handoff) => Box::new(WithHandoffs { handoff, errors }),
        None => errors,
    });
    pair
}

/// The medium of a channel on which all links are like this one, its first, but for delays and
/// errors.
fn medium(
    plan: &Plan,
    ways: [Direction; 2],
    pairs: Vec<Pair>,
    seed: u64,
    link: u32,
) -> Box<dyn link::Medium + Send> {
    match ways[0].access {
        Some(Access::FamaNcs(params)) => return Box::new(FamaNcs::new(params, pairs)),
        Some(Access::Dcf(params)) => return Box::new(Dcf::new(params, pairs)),
        None => {}
    }
    let params = ways.map(|way| LinkParams {
        rate_bps: way.rate_bps,
        delay: way.delay,
        queue_frames: way.queue_frames,
        lookahead: Duration::ZERO,
    });
    let varies = plan.varies(&ways[0]);
    let rates = [0, 1].map(|way| varies.and_then(|both| both[way].rate.as_ref()));
    let disciplines = ways.map(|way| way.discipline);
    if disciplines.iter().any(|(discipline, _)| *discipline != QueueDiscipline::Fifo) {
        return Box::new(Managed::new(params, disciplines, pairs, seed, link).with_rates(rates));
    }
    if let (Some(spec), Some(pair)) = (ways[0].airmail, pairs.first()) {
        return Box::new(Airmail::new(spec, ways, pair.stations, seed, link));
    }
    match ways[0].arq {
        Some(spec) => Box::new(Repeating::new(spec, params, pairs)),
        None => Box::new(FullDuplex::new(params, pairs).with_rates(rates)),
    }
}
