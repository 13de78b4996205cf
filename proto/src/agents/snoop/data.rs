//! Data of the fixed host that has departed to the air: cached until the mobile acknowledges it.

use super::Snoop;
use super::cache::{Cached, Sent};
use super::flow::Flow;
use crate::event::{Event, Uncached};
use crate::packet::Packet;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::tcp::Segment;

/// The result of taking a data packet into the cache.
#[derive(Debug, Default)]
struct Taken {
    /// Whether the sender had sent some of it before.
    is_resent: bool,
    /// Whether it was not cached for lack of memory.
    is_refused: bool,
}

impl Snoop {
    pub(super) fn handle_data(
        &mut self,
        now: Instant,
        key: FlowKey,
        segment: &Segment,
        packet: &Packet,
    ) {
        // A lone FIN opens no state: no data is left to repair.
        let settings = &self.settings;
        let known = match segment.payload_len {
            0 => self.flows.find(&key),
            _ => self.flows.find_or_open(now, key, |base| Flow::new(base, segment.seq, settings)),
        };
        let Some(reference) = known else { return };
        let room = self.flows.room();
        let taken = self
            .flows
            .update(reference, |flow| (flow.base.id, flow.take_data(now, segment, packet, room)));
        let Some((id, Some(taken))) = taken else { return };
        if taken.is_resent {
            self.event(Event::SenderRetransmit(id, segment.seq));
        }
        if taken.is_refused {
            self.event(Event::Uncached(id, segment.seq, Uncached::MemoryLimit));
        }
        self.schedule(now, reference);
    }
}

impl Flow {
    /// Takes data that has departed to the air; `None` if the data cannot need repair.
    fn take_data(
        &mut self,
        now: Instant,
        segment: &Segment,
        packet: &Packet,
        room: usize,
    ) -> Option<Taken> {
        self.base.active_at = now;
        if let Some(timestamps) = segment.options.timestamps {
            self.wired.data_came(now, timestamps.echo);
        }
        let start = self.position(segment.seq)?;
        let span = Span { start, end: start + u64::from(segment.seq_len()) };
        // [C-16] Keep-alives, window probes and data that has arrived already lie below the
        // mobile's ACK. The mobile answers them itself.
        if span.end <= self.acked {
            return None;
        }
        self.quiet_since = now;
        let mut taken = Taken { is_resent: span.start < self.highest, is_refused: false };
        self.highest = self.highest.max(span.end);
        if self.mark_resent(now, span) {
            // Data that overlaps with cached ranges is cached already, with whatever segment
            // boundaries.
            return Some(taken);
        }
        let sent = Sent { at: now, order: self.transmissions + 1 };
        let cached = Cached {
            start: span.start.max(self.acked),
            end: span.end,
            origin: span.start,
            packet: packet.clone(),
            sent,
            earliest: sent,
            is_queued: false,
            attempts: 0,
            resent: taken.is_resent,
            is_congestion: false,
            missing_since: None,
        };
        // [C-2] The newest data is refused first, since the mobile waits for the oldest.
        taken.is_refused = self.cache.growth(&cached) > room;
        if !taken.is_refused {
            self.transmissions += cached.segments();
            self.cache.insert(cached);
        }
        Some(taken)
    }

    /// [C-9, C-10] The sender retransmitted `span`: its loss is no longer masked. Returns whether
    /// any of `span` is cached.
    fn mark_resent(&mut self, now: Instant, span: Span) -> bool {
        let mut is_cached = false;
        for cached in self.cache.overlapping(span.start, span.end) {
            cached.resent = true;
            cached.depart(now, self.delivered.sent.order, &mut self.transmissions);
            is_cached = true;
        }
        if is_cached {
            // The sender's copy may arrive and be acknowledged: probing begins without backoff.
            self.timeouts = 0;
        }
        is_cached
    }
}
