//! The next machine to act: a deadline for each machine, in a heap with the index of each entry.

use airmend_proto::Instant;

/// A deadline for each of a fixed number of machines.
///
/// A deadline is changed in place, so that a deadline which is postponed often (a retransmission
/// timer with every ACK) leaves no stale entries. A heap with four children per node has half the
/// depth of a binary heap, and the children are adjacent in memory. Machines that are due at the
/// same instant act in the order of their numbers, which makes a run repeatable.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    heap: Vec<Entry>,
    /// The index of each machine in the heap; `ABSENT` without a deadline.
    places: Vec<u32>,
}

/// A deadline, and in the lower 32 bits its machine: one comparison orders both.
type Entry = u128;

const ABSENT: u32 = u32::MAX;
const CHILDREN: usize = 4;

impl Agenda {
    /// Machines `0..machines`, none with a deadline.
    pub(crate) fn new(machines: usize) -> Self {
        Self { heap: Vec::with_capacity(machines), places: vec![ABSENT; machines] }
    }

    /// The next deadline and its machine.
    pub(crate) fn next(&self) -> Option<(Instant, u32)> {
        let first = *self.heap.first()?;
        Some((Instant::from_nanos((first >> 32) as u64), machine_of(first)))
    }

    /// Replaces a machine's deadline.
    pub(crate) fn set(&mut self, machine: u32, at: Option<Instant>) {
        let place = self.places[machine as usize];
        match at {
            Some(at) if place == ABSENT => {
                self.heap.push(entry(at, machine));
                self.rise(self.heap.len() - 1);
            }
            Some(at) => {
                let place = place as usize;
                let entry = entry(at, machine);
                let earlier = entry < self.heap[place];
                self.heap[place] = entry;
                if earlier { self.rise(place) } else { self.sink(place) }
            }
            None if place != ABSENT => self.remove(place as usize),
            None => {}
        }
    }

    /// Schedules a machine no later than `at`. An earlier deadline stays: the machine is then
    /// called early and returns its next deadline.
    pub(crate) fn schedule_no_later(&mut self, machine: u32, at: Instant) {
        let place = self.places[machine as usize];
        if place == ABSENT || entry(at, machine) < self.heap[place as usize] {
            self.set(machine, Some(at));
        }
    }

    fn remove(&mut self, place: usize) {
        self.places[machine_of(self.heap[place]) as usize] = ABSENT;
        let last = self.heap.len() - 1;
        self.heap.swap(place, last);
        self.heap.pop();
        if place < last {
            self.sink(place);
            self.rise(place);
        }
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let first = place * CHILDREN + 1;
            let children = self.heap.iter().enumerate().skip(first).take(CHILDREN);
            let Some((child, &least)) = children.min_by_key(|(_, child)| **child) else { break };
            if entry <= least {
                break;
            }
            self.put(place, least);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.places[machine_of(entry) as usize] = place as u32;
    }
}

fn entry(at: Instant, machine: u32) -> Entry {
    u128::from(at.as_nanos()) << 32 | u128::from(machine)
}

fn machine_of(entry: Entry) -> u32 {
    entry as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::random::{Purpose, Stream};

    /// Compares with a linear search: 20 machines, random changes.
    #[test]
    fn agrees_with_a_plain_list() {
        for seed in 0..20 {
            let mut random = Stream::new(seed, 0, 0, Purpose::Traffic);
            let mut below = |limit: u32| (random.uniform() * f64::from(limit)) as u32 % limit;
            let mut agenda = Agenda::new(20);
            let mut list = [None; 20];
            for step in 0..2_000 {
                let machine = below(20);
                let at = Some(Instant::from_nanos(below(50).into())).filter(|_| below(4) > 0);
                let deadline = &mut list[machine as usize];
                match at {
                    Some(at) if below(2) == 0 => {
                        agenda.schedule_no_later(machine, at);
                        *deadline = Some(deadline.map_or(at, |old: Instant| old.min(at)));
                    }
                    _ => {
                        agenda.set(machine, at);
                        *deadline = at;
                    }
                }
                let due = |(machine, at): (usize, &Option<Instant>)| Some(((*at)?, machine as u32));
                let expected = list.iter().enumerate().filter_map(due).min();
                assert_eq!(agenda.next(), expected, "seed {seed}, step {step}");
            }
        }
    }
}
