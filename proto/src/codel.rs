//! CoDel (RFC 8289): drops so that packets do not wait for long.

use crate::time::Instant;
use core::time::Duration;

/// A queue that CoDel serves.
pub(crate) trait Sojourn {
    /// What waits.
    type Packet;

    /// Takes the first packet.
    fn pop(&mut self) -> Option<Self::Packet>;

    /// Bytes that wait.
    fn bytes(&self) -> u64;

    /// When a packet came, and its length in bytes.
    fn describe(packet: &Self::Packet) -> (Instant, u64);

    /// Marks a packet "congestion experienced" (RFC 3168 §5); false if it does not understand ECN,
    /// or is marked already.
    fn mark(&mut self, packet: &mut Self::Packet) -> bool;

    /// A packet is dropped.
    fn discard(&mut self, packet: Self::Packet);
}

/// The two parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Control {
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
    /// The packet of the queue that leaves now.
    pub(crate) fn dequeue<Q: Sojourn>(
        &mut self,
        now: Instant,
        params: CoDelParams,
        queue: &mut Q,
    ) -> Option<Q::Packet> {
        let (mut next, may_drop) = self.pop(now, params, queue);
        if !self.dropping {
            if may_drop {
                next = self.begin(now, params, next?, queue);
            }
            return next;
        }
        self.dropping = may_drop;
        while self.dropping && self.drop_next <= now {
            let mut packet = next?;
            self.count = self.count.saturating_add(1);
            if queue.mark(&mut packet) {
                self.drop_next = self.after(self.drop_next, params);
                return Some(packet);
            }
            queue.discard(packet);
            (next, self.dropping) = self.pop(now, params, queue);
            if self.dropping {
                self.drop_next = self.after(self.drop_next, params);
            }
        }
        next
    }

    /// Drops the first packet. If dropping was necessary not long ago, it goes on at about the
    /// rate that it had then.
    fn begin<Q: Sojourn>(
        &mut self,
        now: Instant,
        params: CoDelParams,
        mut first: Q::Packet,
        queue: &mut Q,
    ) -> Option<Q::Packet> {
        self.dropping = true;
        let recent = self.count - self.last_count;
        let is_recent = now.since(self.drop_next) < 16 * params.interval;
        self.count = if recent > 1 && is_recent { recent } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.after(now, params);
        if queue.mark(&mut first) {
            return Some(first);
        }
        queue.discard(first);
        self.pop(now, params, queue).0
    }

    /// The next packet, and whether the waiting time has been above the target for an interval.
    fn pop<Q: Sojourn>(
        &mut self,
        now: Instant,
        params: CoDelParams,
        queue: &mut Q,
    ) -> (Option<Q::Packet>, bool) {
        let Some(packet) = queue.pop() else {
            self.first_above = None;
            return (None, false);
        };
        let (since, len) = Q::describe(&packet);
        self.max_packet = self.max_packet.max(len);
        if now.since(since) < params.target || queue.bytes() <= self.max_packet {
            self.first_above = None;
            return (Some(packet), false);
        }
        let first_above = *self.first_above.get_or_insert(now + params.interval);
        (Some(packet), first_above <= now)
    }

    /// The control law: drops come closer with the root of their number.
    fn after(&self, at: Instant, params: CoDelParams) -> Instant {
        at + params.interval.div_f64(libm::sqrt(f64::from(self.count.max(1))))
    }
}
