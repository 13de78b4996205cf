//! Full duplex: each of two sides has a frequency of its own, on which it sends whenever it likes.

use super::medium::{Conditions, Medium, Output, Pair, Paths, stations};
use super::trace::VariableRate;
use super::{Link, LinkCounters, LinkParams};
use crate::packet::Packet;
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;

/// Two links in opposite directions. The stations of one side share the link that leads away from
/// them: it serves their queues in the order in which frames came.
#[derive(Debug)]
pub struct FullDuplex {
    /// Away from side 0, and away from side 1.
    ways: [Link; 2],
    /// The side of each station.
    sides: Vec<usize>,
    now: Instant,
}

impl FullDuplex {
    /// An idle medium. The first stations of all pairs are one side, the second stations the other.
    /// Delays are those of the pairs.
    pub fn new(params: [LinkParams; 2], pairs: Vec<Pair>) -> Self {
        let mut sides = vec![0; stations(&pairs)];
        let (mut down, mut up) = (Vec::with_capacity(pairs.len()), Vec::with_capacity(pairs.len()));
        for pair in pairs {
            sides[pair.stations[1]] = 1;
            let [there, back] = pair.into_paths();
            down.push(there);
            up.push(back);
        }
        let count = sides.len();
        let ways = [(params[0], down), (params[1], up)]
            .map(|(params, paths)| Link::of_paths(params, count, Paths::new(paths)));
        Self { ways, sides, now: Instant::ZERO }
    }

    /// Lets the rates of the two ways vary.
    #[must_use]
    pub fn with_rates(mut self, rates: [Option<&VariableRate>; 2]) -> Self {
        self.ways.iter_mut().zip(rates).for_each(|(way, rate)| way.vary(rate));
        self
    }

    /// The side of a station; of two stations, the second one is side 1.
    pub(super) fn side(&self, from: usize) -> usize {
        if self.sides.len() == 2 { from } else { self.sides[from] }
    }

    /// Whether frames can go from one station to another.
    pub(super) fn joins(&self, from: usize, to: usize) -> bool {
        self.way(from).find(from, to).is_some()
    }

    fn way(&self, from: usize) -> &Link {
        &self.ways[self.side(from)]
    }

    /// The link with the next arrival, if one of them has any.
    fn next(&self) -> usize {
        let [down, up] = &self.ways;
        match (down.next_delivery(), up.next_delivery()) {
            (Some(down), Some(up)) => usize::from(up < down),
            (down, _) => usize::from(down.is_none()),
        }
    }
}

impl Medium for FullDuplex {
    fn can_send(&self, now: Instant, from: usize) -> bool {
        self.way(from).free_for(from) <= now
    }

    fn free_at(&self, from: usize) -> Option<Instant> {
        Some(self.way(from).free_for(from))
    }

    fn send(&mut self, now: Instant, from: usize, to: usize, packet: Packet) -> bool {
        let side = self.side(from);
        let way = &mut self.ways[side];
        // Of two stations, each sends to the other.
        let path = if self.sides.len() == 2 { Some(0) } else { way.find(from, to) };
        path.is_some_and(|path| way.send_on(now, path, packet))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.ways[self.next()].next_delivery()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.ways[self.next()].take_arrival(self.now)
    }

    fn counters(&self, from: usize, to: usize) -> LinkCounters {
        self.way(from).counters_of(from, to)
    }
    fn change(&mut self, to: &Conditions, seed: u64, link: u32) -> bool {
        for (way, number) in self.ways.iter_mut().zip(0..) {
            way.change(to, seed, link, number);
        }
        true
    }
}
