//! What waits for the link: two queues that never reorder a flow.
//!
//! Reliable packets wait in one line. Unreliable ones, pure TCP ACKs among them, take the express
//! line, so that they need not wait behind a bulk transfer; unless a packet of their own flow
//! waits in the other line: then they join that one.

use super::classes::{Class, FLOWS};
use crate::packet::Packet;
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// How far the express line may get ahead of a waiting line, in bytes: a few small packets always
/// pass at once, and a flood shares the link.
const EXPRESS_LEAD: i64 = 3_000;

/// A packet that waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Queued {
    pub(super) packet: Packet,
    pub(super) class: Class,
    pub(super) flow: usize,
    /// When a packet with bounded persistence that was sent before is given up.
    pub(super) expires: Option<Instant>,
    /// Express packets that must leave before this one: those of its flow, and perhaps others.
    after_express: u64,
}

impl Queued {
    pub(super) fn new(packet: Packet, class: Class, flow: usize) -> Self {
        Self { packet, class, flow, expires: None, after_express: 0 }
    }
}

/// The two lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Queue {
    line: VecDeque<Queued>,
    express: VecDeque<Queued>,
    /// Packets that ever joined and left each line.
    joined_line: u64,
    left_line: u64,
    joined_express: u64,
    left_express: u64,
    flows: Vec<LastJoined>,
    /// Bytes that the express line is ahead while the other waits.
    lead: i64,
    limit: usize,
}

/// The last packet of a flow in each line, by the count of joins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct LastJoined {
    line: u64,
    express: u64,
}

impl Queue {
    /// Lines of at most `limit` packets each.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            line: VecDeque::new(),
            express: VecDeque::new(),
            joined_line: 0,
            left_line: 0,
            joined_express: 0,
            left_express: 0,
            flows: vec![LastJoined::default(); FLOWS],
            lead: 0,
            limit,
        }
    }

    /// False if the line is full and the packet was dropped.
    #[must_use]
    pub(super) fn push(&mut self, mut queued: Queued) -> bool {
        let last = &mut self.flows[queued.flow];
        let waits_in_line = last.line > self.left_line;
        if queued.class == Class::Unreliable && !waits_in_line {
            if self.express.len() >= self.limit {
                return false;
            }
            self.joined_express += 1;
            last.express = self.joined_express;
            self.express.push_back(queued);
        } else {
            if self.line.len() >= self.limit {
                return false;
            }
            self.joined_line += 1;
            last.line = self.joined_line;
            queued.after_express = last.express;
            self.line.push_back(queued);
        }
        true
    }

    /// Puts packets back that were sent and are to be sent anew, in their order, before all others.
    /// The limit is not applied: they were within it when they came.
    pub(super) fn put_back(&mut self, packets: impl DoubleEndedIterator<Item = Queued>) {
        for mut queued in packets.rev() {
            queued.after_express = 0;
            self.left_line -= 1;
            self.line.push_front(queued);
        }
        self.flows.iter_mut().for_each(|flow| flow.line = 0);
        for (place, queued) in (self.left_line + 1..).zip(&self.line) {
            self.flows[queued.flow].line = place;
        }
    }

    /// Takes the next packet; only unreliable ones unless there is `room` for a reliable one.
    pub(super) fn pop(&mut self, room: bool) -> Option<Queued> {
        let queued = if self.is_express_next(room)? {
            self.left_express += 1;
            let queued = self.express.pop_front()?;
            if !self.line.is_empty() {
                self.lead += i64::from(queued.packet.wire_len());
            }
            queued
        } else {
            self.left_line += 1;
            let queued = self.line.pop_front()?;
            self.lead -= i64::from(queued.packet.wire_len());
            queued
        };
        if self.express.is_empty() || self.line.is_empty() {
            self.lead = 0;
        }
        Some(queued)
    }

    /// Whether [`Queue::pop`] would give a packet.
    pub(super) fn has_next(&self, room: bool) -> bool {
        self.is_express_next(room).is_some()
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty() && self.express.is_empty()
    }

    /// Packets that wait.
    pub(super) fn len(&self) -> usize {
        self.line.len() + self.express.len()
    }

    /// Which line is next; none if no packet may leave.
    fn is_express_next(&self, room: bool) -> Option<bool> {
        let line = self.line.front().filter(|head| room || head.class == Class::Unreliable);
        match (line, self.express.is_empty()) {
            (None, true) => None,
            (None, false) => Some(true),
            (Some(_), true) => Some(false),
            (Some(head), false) => {
                Some(self.lead < EXPRESS_LEAD || head.after_express > self.left_express)
            }
        }
    }
}
