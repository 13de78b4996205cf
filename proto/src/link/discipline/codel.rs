//! CoDel in front of a link.

use super::queue::{Discipline, Drops, Packets, Waiting};
use crate::codel::{CoDelParams, Control, Sojourn};
use crate::time::Instant;

/// A queue and the count of what is dropped of it.
pub(super) struct Dropping<'a> {
    pub(super) packets: &'a mut Packets,
    pub(super) drops: &'a mut Drops,
}

impl Sojourn for Dropping<'_> {
    type Packet = Waiting;

    fn pop(&mut self) -> Option<Waiting> {
        self.packets.pop()
    }

    fn bytes(&self) -> u64 {
        self.packets.bytes()
    }

    fn describe(packet: &Waiting) -> (Instant, u64) {
        (packet.since, u64::from(packet.packet.wire_len()))
    }

    fn mark(&mut self, packet: &mut Waiting) -> bool {
        packet.mark()
    }

    fn discard(&mut self, packet: Waiting) {
        self.drops.add(&packet);
    }
}

/// One queue, with a limit in packets at which it refuses.
pub(super) struct CoDel {
    limit: usize,
    params: CoDelParams,
    packets: Packets,
    control: Control,
}

impl CoDel {
    pub(super) fn new(limit: usize, params: CoDelParams) -> Self {
        let (packets, control) = (Packets::default(), Control::default());
        Self { limit, params, packets, control }
    }
}

impl Discipline for CoDel {
    fn enqueue(&mut self, waiting: Waiting, drops: &mut Drops) -> bool {
        if self.packets.len() >= self.limit {
            drops.add(&waiting);
            return false;
        }
        self.packets.push(waiting);
        true
    }

    fn dequeue(&mut self, now: Instant, drops: &mut Drops) -> Option<Waiting> {
        let mut queue = Dropping { packets: &mut self.packets, drops };
        self.control.dequeue(now, self.params, &mut queue)
    }

    fn is_empty(&self) -> bool {
        self.packets.len() == 0
    }
}
