//! The one bounded two-class egress queue of every agent, passthrough included.
//!
//! All agents share it, so that a comparison measures the protocol and not the buffer. A frame
//! that the queue refuses is congestion: it is not cached and stays visible to TCP.

use crate::agent::Port;
use crate::packet::Packet;
use alloc::collections::VecDeque;

/// The class of a frame in the queue [snoop95 §3.1.2: two link-layer queues].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Forwarded packets, in the order of arrival.
    Normal,
    /// Local retransmissions: the fast queue, served first.
    Urgent,
}

/// How many frames wait at most, for each side and class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EgressLimits {
    /// Frames that wait for the air.
    pub air: usize,
    /// Frames that wait for the wired side.
    pub wired: usize,
}

/// Both sides' queues; `T` is what the agent wants to know of a packet when it leaves.
#[derive(Clone, Debug)]
pub struct Egress<T> {
    air: Queues<T>,
    wired: Queues<T>,
}

#[derive(Clone, Debug)]
struct Queues<T> {
    urgent: VecDeque<(Packet, T)>,
    normal: VecDeque<(Packet, T)>,
    limit: usize,
}

impl<T> Egress<T> {
    /// Empty queues with these limits.
    pub fn new(limits: EgressLimits) -> Self {
        Self { air: Queues::new(limits.air), wired: Queues::new(limits.wired) }
    }

    /// Queues a packet; false if the queue is full and the packet was dropped.
    #[must_use]
    pub fn push(&mut self, to: Port, class: Class, packet: Packet, tag: T) -> bool {
        let queues = self.side_mut(to);
        let limit = queues.limit;
        let queue = match class {
            Class::Normal => &mut queues.normal,
            Class::Urgent => &mut queues.urgent,
        };
        if queue.len() >= limit {
            return false;
        }
        queue.push_back((packet, tag));
        true
    }

    /// Takes the most urgent packet for `to`.
    pub fn pop(&mut self, to: Port) -> Option<(Packet, T)> {
        let queues = self.side_mut(to);
        queues.urgent.pop_front().or_else(|| queues.normal.pop_front())
    }

    /// Packets that wait for `to`.
    pub fn len(&self, to: Port) -> usize {
        let queues = match to {
            Port::Air => &self.air,
            Port::Wired => &self.wired,
        };
        queues.urgent.len() + queues.normal.len()
    }

    fn side_mut(&mut self, side: Port) -> &mut Queues<T> {
        match side {
            Port::Air => &mut self.air,
            Port::Wired => &mut self.wired,
        }
    }
}

impl<T> Queues<T> {
    fn new(limit: usize) -> Self {
        Self { urgent: VecDeque::new(), normal: VecDeque::new(), limit }
    }
}
