//! Data of the fixed host that has departed to the air: cached until the mobile acknowledges it.

use super::cache::{Cached, Sent};
use super::decision::Left;
use super::flow::Flow;
use super::outstanding::Outstanding;
use super::ts_recent::Resent;
use super::uplink::timestamp_restored;
use super::{Snoop, seq};
use crate::agent::UNANSWERED;
use crate::agents::flow_table::FlowRef;
use crate::event::{Event, Uncached};
use crate::packet::Packet;
use crate::ranges::Span;
use crate::rare::Rare;
use crate::time::Instant;
use crate::wire::checksum::has_right_checksum;
use crate::wire::flow::FlowKey;
use crate::wire::tcp::Segment;

/// The result of taking a data packet into the cache.
#[derive(Debug, Default)]
struct Taken {
    /// Whether the sender had sent some of it before.
    is_resent: bool,
    /// Whether that has the timestamp of the lost original.
    is_restored: bool,
    /// The reason why it was not cached.
    refused: Option<Uncached>,
    /// A range for which the sender had sent other bytes before.
    disputed: Option<Span>,
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
        self.make_room(reference);
        let room = self.flows.room();
        let spare = &mut self.shared.spare;
        let taken = self.flows.update(reference, |flow| {
            let before = flow.outstanding.cache.memory();
            flow.outstanding.lend(|| spare.take(room));
            let room = room - (flow.outstanding.cache.memory() - before);
            (flow.base.id, flow.take_data(now, segment, packet, room))
        });
        let Some((id, Some(taken))) = taken else { return };
        if taken.is_resent {
            self.event(Event::SenderRetransmit(id, segment.seq));
        }
        if taken.is_restored {
            self.event(timestamp_restored(id.0, segment.seq.0));
        }
        if let Some(reason) = taken.refused {
            self.event(Event::Uncached(id, segment.seq, reason));
        }
        if let Some(span) = taken.disputed {
            self.decided(reference, span, Left::OtherBytes);
        }
        self.schedule(now, reference);
    }

    /// [C-26] Under memory pressure takes the cache of a flow that holds much more than this one.
    fn make_room(&mut self, flow: FlowRef) {
        let Some(holder) = self.flows.larger_holder(flow) else { return };
        self.flows.release(holder);
        let lost = self.flows.update(holder, |flow| {
            flow.forget_sent();
            (flow.base.id, seq(flow.acked))
        });
        if let Some((id, acked)) = lost {
            self.event(Event::Uncached(id, acked, Uncached::Reclaimed));
        }
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
        let span = self.span(segment)?;
        self.is_unanswered = self.is_silent(now);
        if !self.is_acceptable(now, segment, span) {
            return Some(Taken { refused: Some(Uncached::Unacceptable), ..Taken::default() });
        }
        let is_restored = self.is_restored(segment, span);
        self.note_sent(now, segment, span);
        // [C-16] Keep-alives, window probes and data that has arrived already lie below the
        // mobile's ACK. The mobile answers them itself.
        if span.end <= self.acked {
            return None;
        }
        self.outstanding.probe.restart(now);
        let is_resent = span.start < self.highest;
        let mut taken = Taken { is_resent, is_restored, ..Taken::default() };
        if span.end > self.highest {
            self.highest = span.end;
            self.outstanding.new_data_at = now;
        }
        self.sender.sent(now, self.air.srtt(), self.highest, self.acked, self.in_flight());
        // Data that overlaps with cached ranges is cached already, with whatever segment
        // boundaries, up to the end of these ranges.
        let known = self.mark_resent(now, &Copy { packet, segment, span }, &mut taken);
        let mut cached = Cached {
            start: known.unwrap_or(span.start).max(self.acked),
            end: span.end,
            origin: span.start,
            packet: packet.clone(),
            sent: Sent::NONE,
            trouble: Rare::default(),
        };
        if taken.is_resent {
            cached.trouble.resent = true;
            cached.trouble.is_sent_again = true;
        }
        if cached.start >= cached.end {
            return Some(taken);
        }
        // [C-2] The newest data is refused first, since the mobile waits for the oldest.
        if self.outstanding.cache.growth(&cached) > room
            || !self.outstanding.cache.has_place(&cached)
        {
            taken.refused = Some(Uncached::MemoryLimit);
            return Some(taken);
        }
        let Outstanding { cache, flight, .. } = &mut *self.outstanding;
        cached.depart_first(now, flight);
        cache.insert(cached);
        self.outstanding.compact_flight();
        Some(taken)
    }

    /// Notes what data shows of its sender.
    fn note_sent(&mut self, now: Instant, segment: &Segment, span: Span) {
        self.base.active_at = now;
        self.sender.packet_came(now, segment);
        if span.start < self.highest {
            self.note_resent(segment, span);
        }
    }

    /// Notes data that the sender has sent before, and its timestamp [C-12].
    fn note_resent(&mut self, segment: &Segment, span: Span) {
        self.own.departed(span);
        self.sender.retransmitted(span, self.highest);
        if let Some(timestamps) = segment.options.timestamps {
            let after = Resent::after(self.own.resent, span.start, self.acked, timestamps.value);
            self.own.resent = Some(after);
        }
    }

    /// Whether the mobile has not answered within [`UNANSWERED`].
    fn is_silent(&self, now: Instant) -> bool {
        !self.is_answered && now >= self.base.opened_at + UNANSWERED
    }

    /// [C-24] Whether the mobile would take the data: it lies within the window, and is not older
    /// than what the mobile has received (PAWS, RFC 7323 §5.3). A silent mobile takes nothing.
    fn is_acceptable(&self, now: Instant, segment: &Segment, span: Span) -> bool {
        let timestamps = segment.options.timestamps;
        let is_old = timestamps.is_some_and(|stamp| self.ts_recent.refuses(stamp.value));
        !self.is_silent(now) && self.window.holds(span.end) && !is_old
    }

    /// [C-9, C-10] The sender retransmitted a range: its loss is no longer masked. Returns the end
    /// of the last cached range that overlaps, if there is one.
    fn mark_resent(&mut self, now: Instant, copy: &Copy<'_>, taken: &mut Taken) -> Option<u64> {
        let mut end = None;
        let Outstanding { cache, flight, delivered, .. } = &mut *self.outstanding;
        for cached in cache.overlapping(copy.span.start, copy.span.end) {
            let was_disputed = cached.trouble.is_disputed;
            copy.replace(cached);
            if cached.trouble.is_disputed && !was_disputed {
                taken.disputed = Some(cached.span());
            }
            if cached.trouble.is_congestion {
                self.sender.began_recovery(self.highest);
            }
            cached.trouble.resent = true;
            cached.depart(now, delivered.sent.order, flight);
            end = Some(cached.end);
        }
        if end.is_some() {
            // The sender's copy may arrive and be acknowledged: probing begins without backoff.
            self.outstanding.probe.answered();
            self.outstanding.compact_flight();
        }
        end
    }
}

/// Data that the sender has sent again.
struct Copy<'a> {
    packet: &'a Packet,
    segment: &'a Segment,
    span: Span,
}

impl Copy<'_> {
    /// [C-24] Compares the copy with a cached range that it overlaps. A damaged packet is replaced.
    /// If the bytes differ, nobody knows which ones the mobile takes: the range is left to the
    /// sender.
    fn replace(&self, cached: &mut Cached) {
        let (start, end) = (cached.start.max(self.span.start), cached.end.min(self.span.end));
        let Ok(segment) = Segment::parse(&cached.packet) else { return };
        let old = payload(&cached.packet, &segment, cached.origin, start, end);
        let new = payload(self.packet, self.segment, self.span.start, start, end);
        if old.is_none() || new.is_none() || old == new {
            return;
        }
        let covers = self.span.start <= cached.start && cached.end <= self.span.end;
        if covers && cached.packet.segment_size().is_none() && !has_right_checksum(&cached.packet) {
            cached.packet = self.packet.clone();
            cached.origin = self.span.start;
        } else {
            cached.trouble.is_disputed = true;
        }
    }
}

/// The captured payload of the positions `start..end` of a packet whose first byte has the position
/// `origin`; `None` if not all of it was captured, as in the simulator.
fn payload<'a>(
    packet: &'a Packet,
    segment: &Segment,
    origin: u64,
    start: u64,
    end: u64,
) -> Option<&'a [u8]> {
    // A FIN takes a position and no byte.
    let end = end.min(origin + u64::from(segment.payload_len));
    let at = |position: u64| usize::try_from(position.checked_sub(origin)?).ok();
    let payload = packet.bytes().get(usize::from(segment.payload_offset)..)?;
    payload.get(at(start)?..at(end)?)
}
