//! The egress queue of the papers' links: a normal and a priority FIFO that never reorder a flow.
//!
//! Reliable packets are queued in the normal queue. Urgent packets, pure TCP ACKs among them, are
//! queued in the priority queue, so that they do not wait behind a bulk transfer. If a packet of
//! their flow waits in the normal queue, they are queued there instead.

use super::classes::FLOWS;
use super::queued::Queued;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// Bytes that the priority queue may send ahead of a waiting normal queue: a few small packets
/// always pass at once, and a flood shares the link.
const PRIORITY_LEAD: i64 = 3_000;

/// The two queues.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fifo {
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

impl Fifo {
    /// Queues of at most `limit` packets each.
    pub(super) fn new(limit: usize) -> Self {
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

    /// Adds a packet; false if its queue is full, which has `more` places than its limit if it is
    /// the normal one.
    #[must_use]
    pub(super) fn push(&mut self, mut queued: Queued, more: usize) -> bool {
        let last = &mut self.flows[queued.flow];
        let waits_in_normal = last.normal > self.left_normal;
        if queued.is_urgent && !waits_in_normal {
            if self.priority.len() >= self.limit {
                return false;
            }
            self.joined_priority += 1;
            last.priority = self.joined_priority;
            self.priority.push_back(queued);
        } else {
            queued.after_priority = last.priority;
            if self.normal.len() >= self.limit + more {
                return false;
            }
            self.joined_normal += 1;
            last.normal = self.joined_normal;
            self.normal.push_back(queued);
        }
        true
    }

    /// Puts packets before all others, in their order. The limit is not applied.
    pub(super) fn put_back(&mut self, packets: impl DoubleEndedIterator<Item = Queued>) {
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

    /// All packets, in no order but that of each queue.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Queued> {
        self.normal.iter_mut().chain(&mut self.priority)
    }

    /// Takes the next packet; only an unreliable one unless the window has `room` for a reliable
    /// one.
    pub(super) fn pop(&mut self, room: bool) -> Option<Queued> {
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

    /// Whether [`Fifo::pop`] would return a packet.
    pub(super) fn has_next(&self, room: bool) -> bool {
        self.is_priority_next(room).is_some()
    }

    /// The number of queued packets.
    pub(super) fn len(&self) -> usize {
        self.normal.len() + self.priority.len()
    }

    /// Their bytes.
    pub(super) fn bytes(&self) -> usize {
        let all = self.normal.iter().chain(&self.priority);
        all.map(|queued| queued.packet.bytes().len()).sum()
    }

    /// Which queue is served next; `None` if no packet may be sent.
    fn is_priority_next(&self, room: bool) -> Option<bool> {
        let fits = |head: &&Queued| room || !head.needs_room();
        let (normal, priority) =
            (self.normal.front().filter(fits), self.priority.front().filter(fits));
        match (normal, priority) {
            (None, None) => None,
            (None, Some(_)) => Some(true),
            // It must not overtake its own flow, whose packet has no room.
            (Some(head), None) => (head.after_priority <= self.left_priority).then_some(false),
            (Some(head), Some(_)) => {
                Some(self.lead < PRIORITY_LEAD || head.after_priority > self.left_priority)
            }
        }
    }
}
