//! Packets from the fixed host: forwarded at once, remembered until the mobile has them.

use super::cache::{Cached, Sent};
use super::flow::Flow;
use super::{Departure, Snoop};
use crate::agent::Port;
use crate::agents::flow_table::FlowRef;
use crate::event::{Event, Uncached};
use crate::packet::Packet;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::edit::mark_congestion;
use crate::wire::flow::FlowKey;
use crate::wire::tcp::Segment;

impl Snoop {
    pub(super) fn handle_data(
        &mut self,
        now: Instant,
        key: FlowKey,
        segment: &Segment,
        packet: Packet,
    ) {
        // A lone FIN opens no state: there is nothing of the stream left to mend.
        let known = match segment.payload_len {
            0 => self.flows.find(&key),
            _ => self.find_or_open(now, key, segment.seq),
        };
        let Some((reference, flow)) =
            known.and_then(|reference| Some((reference, self.flows.get_mut(reference)?)))
        else {
            self.forward(Port::Air, packet, None);
            return;
        };
        flow.active_at = now;
        if let Some(timestamps) = segment.options.timestamps {
            flow.wired.data_came(now, timestamps.echo);
        }
        let span = flow
            .position(segment.seq)
            .map(|start| Span { start, end: start + u64::from(segment.seq_len()) });
        // [C-16] Keep-alives, probes of a closed window and data that has arrived already lie below
        // the mobile's ACK: they are questions to the mobile, which it answers itself.
        let Some(span) = span.filter(|span| span.end > flow.acked) else {
            self.forward(Port::Air, packet, None);
            return;
        };
        self.forward_and_cache(now, reference, span, packet);
    }

    fn forward_and_cache(&mut self, now: Instant, reference: FlowRef, span: Span, packet: Packet) {
        let departure = Departure::Range { flow: reference, span, repair: None };
        // [C-14] The cache keeps the codepoint that came.
        let crowded = self.egress.len(Port::Air) >= self.limits.egress.air.div_ceil(2);
        let marked = if crowded { mark_congestion(&packet) } else { None };
        if marked.is_some() {
            self.event(Event::CongestionMarked);
        }
        // [C-3] The queue decides first: what it refuses is congestion, which TCP must see.
        let accepted =
            self.forward(Port::Air, marked.unwrap_or_else(|| packet.clone()), Some(departure));
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let id = flow.id;
        let seq = super::seq(span.start);
        let again = span.start < flow.highest;
        flow.highest = flow.highest.max(span.end);
        let known = flow.mark_resent(span);
        if again {
            self.event(Event::SenderRetransmit(id, seq));
        }
        let room = self.limits.cache_bytes.saturating_sub(self.cache_bytes);
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let cached = Cached {
            start: span.start.max(flow.acked),
            end: span.end,
            origin: span.start,
            packet,
            sent: Sent::default(),
            first: Sent::default(),
            queued: true,
            attempts: 0,
            resent: again,
            missing_since: None,
        };
        let refusal = match accepted {
            false => Some(Uncached::Congestion),
            // What overlaps with cached ranges is there already, however it was cut this time.
            true if known => return self.schedule(now, reference),
            // [C-2] What is newest is refused first: the oldest is what the mobile waits for.
            true if flow.cache.growth(&cached) > room => Some(Uncached::MemoryLimit),
            true => None,
        };
        if let Some(reason) = refusal {
            self.event(Event::Uncached(id, seq, reason));
            return;
        }
        let before = flow.cache.memory();
        flow.cache.insert(cached);
        self.cache_bytes += flow.cache.memory() - before;
        self.schedule(now, reference);
    }
}

impl Flow {
    /// [C-9, C-10] The sender sent this again: from now on it is told everything about it. Says
    /// whether any of it is cached.
    fn mark_resent(&mut self, span: Span) -> bool {
        let mut known = false;
        for cached in self.cache.overlapping(span.start, span.end) {
            cached.resent = true;
            known = true;
        }
        if known {
            // Its copy may reach the mobile, which then answers: probing begins anew.
            self.timeouts = 0;
        }
        known
    }
}
