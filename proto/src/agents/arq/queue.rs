//! The egress queue of a link: a normal and a priority queue that never reorder a flow.
//!
//! Reliable packets are queued in the normal queue. Urgent packets, pure TCP ACKs among them, are
//! queued in the priority queue, so that they do not wait behind a bulk transfer. If a packet of
//! their flow waits in the normal queue, they are queued there instead.

use super::classes::FLOWS;
use super::fair_queue::FairQueue;
use super::queued::Queued;
use crate::codel::CoDelParams;
use crate::packet::Packet;
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// Bytes that the priority queue may send ahead of a waiting normal queue: a few small packets
/// always pass at once, and a flood shares the link.
const PRIORITY_LEAD: i64 = 3_000;

/// The two queues.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Queue {
    normal: VecDeque<Queued>,
    /// In place of `normal`, if the flows are to have turns.
    fair: Option<FairQueue>,
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
            fair: None,
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

    /// The same with FQ-CoDel (RFC 8290) in the normal class.
    pub(crate) fn fair(limit: usize) -> Self {
        Self { fair: Some(FairQueue::new(FLOWS)), ..Self::new(limit) }
    }

    /// Adds a packet; false if its queue is full, which has `more` places than its limit, and a
    /// packet was dropped.
    #[must_use]
    pub(crate) fn push(&mut self, now: Instant, mut queued: Queued, more: usize) -> bool {
        queued.since = now;
        let last = &mut self.flows[queued.flow];
        let waits_in_normal = match &self.fair {
            Some(fair) => fair.has(queued.flow),
            None => last.normal > self.left_normal,
        };
        if queued.is_urgent && !waits_in_normal {
            if self.priority.len() >= self.limit {
                return false;
            }
            self.joined_priority += 1;
            last.priority = self.joined_priority;
            self.priority.push_back(queued);
        } else {
            queued.after_priority = last.priority;
            let limit = self.limit + more;
            if let Some(fair) = &mut self.fair {
                fair.push(queued);
                let is_full = fair.len() > limit;
                if is_full {
                    fair.drop_from_fattest();
                }
                return !is_full;
            }
            if self.normal.len() >= limit {
                return false;
            }
            self.joined_normal += 1;
            last.normal = self.joined_normal;
            self.normal.push_back(queued);
        }
        true
    }

    /// Puts packets that must be sent a second time before all others, in their order. The limit is
    /// not applied: the packets were within it when they were first queued.
    pub(crate) fn put_back(
        &mut self,
        now: Instant,
        packets: impl DoubleEndedIterator<Item = Queued>,
    ) {
        for mut queued in packets.rev() {
            (queued.since, queued.after_priority) = (now, 0);
            match &mut self.fair {
                Some(fair) => fair.push_front(queued),
                None => self.normal.push_front(queued),
            }
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
        let fair = self.fair.iter_mut().flat_map(FairQueue::iter_mut);
        let mut waiting = self.normal.iter_mut().chain(fair).chain(&mut self.priority);
        let waiting = waiting.find(|queued| identity != 0 && queued.identity == identity);
        waiting.map(|queued| queued.packet = packet.clone()).is_some()
    }

    /// Takes the next packet; only an unreliable one unless the window has `room` for a reliable
    /// one.
    pub(crate) fn pop(&mut self, now: Instant, room: bool) -> Option<Queued> {
        let queued = if self.is_priority_next(room)? {
            self.left_priority += 1;
            let queued = self.priority.pop_front()?;
            if self.normal_len() > 0 {
                self.lead += i64::from(queued.packet.wire_len());
            }
            queued
        } else {
            self.left_normal += 1;
            let queued = match &mut self.fair {
                Some(fair) => fair.pop(now)?,
                None => self.normal.pop_front()?,
            };
            self.lead -= i64::from(queued.packet.wire_len());
            queued
        };
        if self.priority.is_empty() || self.normal_len() == 0 {
            self.lead = 0;
        }
        Some(queued)
    }

    /// Whether [`Queue::pop`] would return a packet.
    pub(crate) fn has_next(&mut self, room: bool) -> bool {
        self.is_priority_next(room).is_some()
    }

    /// Whether both queues are empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of queued packets.
    pub(crate) fn len(&self) -> usize {
        self.normal_len() + self.priority.len()
    }

    /// Sets the parameters of CoDel.
    pub(crate) fn set_codel(&mut self, params: CoDelParams) {
        self.fair.iter_mut().for_each(|fair| fair.params = params);
    }

    /// Packets that CoDel marked and dropped since the last call.
    pub(crate) fn take_counts(&mut self) -> (u32, u32) {
        self.fair.as_mut().map_or((0, 0), FairQueue::take_counts)
    }

    fn normal_len(&self) -> usize {
        self.fair.as_ref().map_or(self.normal.len(), FairQueue::len)
    }

    /// Which queue is served next; `None` if no packet may be sent.
    fn is_priority_next(&mut self, room: bool) -> Option<bool> {
        let normal = match &mut self.fair {
            Some(fair) => fair.head(),
            None => self.normal.front(),
        };
        let fits = |head: &&Queued| room || !head.needs_room();
        let (normal, priority) = (normal.filter(fits), self.priority.front().filter(fits));
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
