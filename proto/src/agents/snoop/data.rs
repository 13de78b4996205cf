//! Packets of the fixed host that have left for the air: remembered until the mobile has them.

use super::Snoop;
use super::cache::{Cached, Sent};
use super::flow::Flow;
use crate::event::{Event, Uncached};
use crate::packet::Packet;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::tcp::Segment;

/// What became of a packet of data.
#[derive(Debug, Default)]
struct Taken {
    /// The sender had sent some of it before.
    is_resent: bool,
    /// There was no memory to cache it.
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
        // A lone FIN opens no state: there is nothing of the stream left to mend.
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
    /// Takes data that has gone on the air. `None` if it is nothing that could be mended.
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
        // [C-16] Keep-alives, probes of a closed window and data that has arrived already lie below
        // the mobile's ACK: they are questions to the mobile, which it answers itself.
        if span.end <= self.acked {
            return None;
        }
        self.quiet_since = now;
        let mut taken = Taken { is_resent: span.start < self.highest, is_refused: false };
        self.highest = self.highest.max(span.end);
        if self.mark_resent(now, span) {
            // What overlaps with cached ranges is there already, however it was cut this time.
            return Some(taken);
        }
        let sent = Sent { at: now, order: self.transmissions + 1 };
        let cached = Cached {
            start: span.start.max(self.acked),
            end: span.end,
            origin: span.start,
            packet: packet.clone(),
            sent,
            first: sent,
            is_queued: false,
            attempts: 0,
            resent: taken.is_resent,
            missing_since: None,
        };
        // [C-2] What is newest is refused first: the oldest is what the mobile waits for.
        taken.is_refused = self.cache.growth(&cached) > room;
        if !taken.is_refused {
            self.transmissions += cached.segments();
            self.cache.insert(cached);
        }
        Some(taken)
    }

    /// [C-9, C-10] The sender sent this again: from now on nothing about it is masked. Says
    /// whether any of it is cached.
    fn mark_resent(&mut self, now: Instant, span: Span) -> bool {
        let mut is_cached = false;
        for cached in self.cache.overlapping(span.start, span.end) {
            cached.resent = true;
            cached.depart(now, &mut self.transmissions);
            is_cached = true;
        }
        if is_cached {
            // Its copy may reach the mobile, which then answers: probing begins with no timeouts.
            self.timeouts = 0;
        }
        is_cached
    }
}
