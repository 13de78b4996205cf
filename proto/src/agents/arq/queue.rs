//! The egress queue of a link: a normal and a priority queue that never reorder a flow.
//!
//! Reliable packets are queued in the normal queue. Unreliable packets, pure TCP ACKs among them,
//! are queued in the priority queue, so that they do not wait behind a bulk transfer. If a packet
//! of their flow waits in the normal queue, they are queued there instead.

use super::classes::{Class, FLOWS};
use crate::packet::Packet;
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// Bytes that the priority queue may send ahead of a waiting normal queue: a few small packets
/// always pass at once, and a flood shares the link.
const PRIORITY_LEAD: i64 = 3_000;

/// A queued packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Queued {
    pub(crate) packet: Packet,
    pub(crate) class: Class,
    pub(crate) flow: usize,
    /// When a packet with bounded persistence is given up, if it was sent before.
    pub(crate) expires: Option<Instant>,
    /// The identity by which a retransmission of the host is recognized; 0 for none.
    pub(crate) identity: u64,
    /// The number of priority packets that must be sent before this packet: those of its flow, and
    /// perhaps others.
    after_priority: u64,
}

impl Queued {
    pub(crate) fn new(packet: Packet, class: Class, flow: usize) -> Self {
        Self { packet, class, flow, expires: None, identity: 0, after_priority: 0 }
    }
}

/// The two queues.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Queue {
    normal: VecDeque<Queued>,
    priority: VecDeque<Queued>,
    /// Packets that were ever added to and taken from each queue.
    joined_normal: u64,
    left_normal: u64,
    joined_priority: u64,
    left_priority: u64,
    flows: Vec<LastJoined>,
    /// Bytes that the priority queue is ahead while the normal queue waits.
    lead: i64,
    limit: usize,
}

/// The position of a flow's last packet in each queue, counted from the first packet ever added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct LastJoined {
    normal: u64,
    priority: u64,
}

impl Queue {
    /// Queues of at most `limit` packets each.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            normal: VecDeque::new(),
            priority: VecDeque::new(),
            joined_normal: 0,
            left_normal: 0,
            joined_priority: 0,
            left_priority: 0,
            flows: vec![LastJoined::default(); FLOWS],
            lead: 0,
            limit,
        }
    }

    /// Adds a packet; false if its queue is full and the packet was dropped.
    #[must_use]
    pub(crate) fn push(&mut self, mut queued: Queued) -> bool {
        let last = &mut self.flows[queued.flow];
        let waits_in_normal = last.normal > self.left_normal;
        if queued.class == Class::Unreliable && !waits_in_normal {
            if self.priority.len() >= self.limit {
                return false;
            }
            self.joined_priority += 1;
            last.priority = self.joined_priority;
            self.priority.push_back(queued);
        } else {
            if self.normal.len() >= self.limit {
                return false;
            }
            self.joined_normal += 1;
            last.normal = self.joined_normal;
            queued.after_priority = last.priority;
            self.normal.push_back(queued);
        }
        true
    }

    /// Puts packets that must be sent a second time before all others, in their order. The limit is
    /// not applied: the packets were within it when they were first queued.
    pub(crate) fn put_back(&mut self, packets: impl DoubleEndedIterator<Item = Queued>) {
        for mut queued in packets.rev() {
            queued.after_priority = 0;
            self.normal.push_front(queued);
        }
        // Some of them were never in this queue: places are counted anew.
        (self.left_normal, self.joined_normal) = (0, self.normal.len() as u64);
        self.flows.iter_mut().for_each(|flow| flow.normal = 0);
        for (place, queued) in (self.left_normal + 1..).zip(&self.normal) {
            self.flows[queued.flow].normal = place;
        }
    }

    /// Puts a packet in the place of the waiting one with this identity; false if there is none.
    pub(crate) fn replace(&mut self, identity: u64, packet: &Packet) -> bool {
        let mut waiting = self.normal.iter_mut().chain(&mut self.priority);
        let waiting = waiting.find(|queued| identity != 0 && queued.identity == identity);
        waiting.map(|queued| queued.packet = packet.clone()).is_some()
    }

    /// Takes the next packet; only an unreliable one unless the window has `room` for a reliable
    /// one.
    pub(crate) fn pop(&mut self, room: bool) -> Option<Queued> {
        let queued = if self.is_priority_next(room)? {
            self.left_priority += 1;
            let queued = self.priority.pop_front()?;
            if !self.normal.is_empty() {
                self.lead += i64::from(queued.packet.wire_len());
            }
            queued
        } else {
            self.left_normal += 1;
            let queued = self.normal.pop_front()?;
            self.lead -= i64::from(queued.packet.wire_len());
            queued
        };
        if self.priority.is_empty() || self.normal.is_empty() {
            self.lead = 0;
        }
        Some(queued)
    }

    /// Whether [`Queue::pop`] would return a packet.
    pub(crate) fn has_next(&self, room: bool) -> bool {
        self.is_priority_next(room).is_some()
    }

    /// Whether both queues are empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.normal.is_empty() && self.priority.is_empty()
    }

    /// The number of queued packets.
    pub(crate) fn len(&self) -> usize {
        self.normal.len() + self.priority.len()
    }

    /// Which queue is served next; `None` if no packet may be sent.
    fn is_priority_next(&self, room: bool) -> Option<bool> {
        let normal = self.normal.front().filter(|head| room || head.class == Class::Unreliable);
        match (normal, self.priority.is_empty()) {
            (None, true) => None,
            (None, false) => Some(true),
            (Some(_), true) => Some(false),
            (Some(head), false) => {
                Some(self.lead < PRIORITY_LEAD || head.after_priority > self.left_priority)
            }
        }
    }
}
