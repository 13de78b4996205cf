//! CoDel (RFC 8289): drops so that packets do not wait for long.

use super::queue::{Discipline, Drops, Packets, Waiting};
use crate::time::Instant;
use core::time::Duration;

/// The two parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelParams {
    /// The waiting time that is acceptable for good (RFC 8289 §4.3: 5 ms).
    pub target: Duration,
    /// How long it may be more: about the longest usual round trip (RFC 8289 §4.3: 100 ms).
    pub interval: Duration,
}

impl Default for CoDelParams {
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100) }
    }
}

/// When the next packet of one queue is dropped (RFC 8289 §5). Where a packet understands ECN it
/// is marked instead.
pub(super) struct Control {
    params: CoDelParams,
    /// When the waiting time will have been above the target for an interval, if it is above it.
    first_above: Option<Instant>,
    drop_next: Instant,
    /// Packets dropped since the dropping began.
    count: u32,
    last_count: u32,
    dropping: bool,
    /// The largest packet so far: with no more than one packet there is nothing to drop.
    max_packet: u64,
}

impl Control {
    pub(super) fn new(params: CoDelParams) -> Self {
        Self {
            params,
            first_above: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
            max_packet: 0,
        }
    }

    /// The packet of the queue that leaves now.
    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        packets: &mut Packets,
        drops: &mut Drops,
    ) -> Option<Waiting> {
        let (mut next, may_drop) = self.pop(now, packets);
        if !self.dropping {
            if may_drop {
                next = self.begin(now, next?, packets, drops);
            }
            return next;
        }
        self.dropping = may_drop;
        while self.dropping && self.drop_next <= now {
            let mut waiting = next?;
            self.count = self.count.saturating_add(1);
            if waiting.mark() {
                self.drop_next = self.after(self.drop_next);
                return Some(waiting);
            }
            drops.add(&waiting);
            (next, self.dropping) = self.pop(now, packets);
            if self.dropping {
                self.drop_next = self.after(self.drop_next);
            }
        }
        next
    }

    /// Drops the first packet. If dropping was necessary not long ago, it goes on at about the
    /// rate that it had then.
    fn begin(
        &mut self,
        now: Instant,
        mut first: Waiting,
        packets: &mut Packets,
        drops: &mut Drops,
    ) -> Option<Waiting> {
        self.dropping = true;
        let recent = self.count - self.last_count;
        let is_recent = now.since(self.drop_next) < 16 * self.params.interval;
        self.count = if recent > 1 && is_recent { recent } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.after(now);
        if first.mark() {
            return Some(first);
        }
        drops.add(&first);
        self.pop(now, packets).0
    }

    /// The next packet, and whether the waiting time has been above the target for an interval.
    fn pop(&mut self, now: Instant, packets: &mut Packets) -> (Option<Waiting>, bool) {
        let Some(waiting) = packets.pop() else {
            self.first_above = None;
            return (None, false);
        };
        self.max_packet = self.max_packet.max(u64::from(waiting.packet.wire_len()));
        if now.since(waiting.since) < self.params.target || packets.bytes() <= self.max_packet {
            self.first_above = None;
            return (Some(waiting), false);
        }
        let first_above = *self.first_above.get_or_insert(now + self.params.interval);
        (Some(waiting), first_above <= now)
    }

    /// The control law: drops come closer with the root of their number.
    fn after(&self, at: Instant) -> Instant {
        at + self.params.interval.div_f64(libm::sqrt(f64::from(self.count.max(1))))
    }
}

/// One queue, with a limit in packets at which it refuses.
pub(super) struct CoDel {
    limit: usize,
    packets: Packets,
    control: Control,
}

impl CoDel {
    pub(super) fn new(limit: usize, params: CoDelParams) -> Self {
        Self { limit, packets: Packets::default(), control: Control::new(params) }
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
        self.control.dequeue(now, &mut self.packets, drops)
    }

    fn is_empty(&self) -> bool {
        self.packets.len() == 0
    }
}
