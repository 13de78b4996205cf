//! What queue disciplines share: packets that wait, their drops, and the interface.

use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::edit::mark_congestion;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A queue in front of a serialiser.
pub(in crate::link) trait Discipline {
    /// Takes a packet. False: this very packet was dropped.
    fn enqueue(&mut self, waiting: Waiting, drops: &mut Drops) -> bool;

    /// The packet that leaves now; `None` if all that waited was dropped.
    fn dequeue(&mut self, now: Instant, drops: &mut Drops) -> Option<Waiting>;

    /// Whether no packet waits.
    fn is_empty(&self) -> bool;
}

/// A packet that waits.
pub(in crate::link) struct Waiting {
    /// The stations between which it goes.
    pub(in crate::link) from: usize,
    pub(in crate::link) to: usize,
    /// When it came.
    pub(in crate::link) since: Instant,
    pub(in crate::link) packet: Packet,
}

impl Waiting {
    /// Marks it "congestion experienced" (RFC 3168 §5). False: it does not understand ECN, or is
    /// marked already.
    pub(super) fn mark(&mut self) -> bool {
        if let Some(marked) = mark_congestion(&self.packet) {
            self.packet = marked;
            return true;
        }
        false
    }
}

/// The number of packets that a queue dropped, for each pair of stations.
#[derive(Debug, Default)]
pub(in crate::link) struct Drops(Vec<([usize; 2], u64)>);

impl Drops {
    pub(in crate::link) fn add(&mut self, packet: &Waiting) {
        let pair = [packet.from, packet.to];
        match self.0.iter_mut().find(|(other, _)| *other == pair) {
            Some((_, count)) => *count += 1,
            None => self.0.push((pair, 1)),
        }
    }

    pub(in crate::link) fn between(&self, from: usize, to: usize) -> u64 {
        self.0.iter().find(|(pair, _)| *pair == [from, to]).map_or(0, |(_, count)| *count)
    }
}

/// Packets in the order in which they came.
#[derive(Default)]
pub(super) struct Packets {
    packets: VecDeque<Waiting>,
    bytes: u64,
}

impl Packets {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += u64::from(waiting.packet.wire_len());
        self.packets.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.packets.pop_front()?;
        self.bytes -= u64::from(waiting.packet.wire_len());
        Some(waiting)
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}
