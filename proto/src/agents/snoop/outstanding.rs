//! What a flow has in flight: an idle flow has none of it.

use super::cache::{Cache, Sent};
use super::flight::{Flight, Transmission};
use super::probe::TailProbe;
use crate::ranges::{Ranges, Span};
use crate::rare::{Empty, Rare};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

/// The most places that wait for another flow.
const MAX_SPARE: usize = 64;

/// The data that the mobile has not acknowledged, and what is known of its transmissions.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    pub(super) cache: Cache,
    /// The transmissions of this flow in their order.
    pub(super) flight: Flight,
    /// [C-1] The ranges that the mobile has acknowledged selectively.
    pub(super) sacked: Rare<Ranges>,
    /// [C-23] The end of the data that the mobile had acknowledged selectively when it last
    /// discarded some: what lies below was counted when it arrived first.
    pub(super) counted: u64,
    /// [C-4] The newest transmission that is known to have arrived.
    pub(super) delivered: Delivered,
    pub(super) probe: TailProbe,
    /// What the last repair waited in the queue of the interface.
    pub(super) repair_wait: Duration,
    /// When new data last came.
    pub(super) new_data_at: Instant,
    /// The end of the reordering window of a missing range.
    pub(super) reordering_due: Option<Instant>,
}

/// The newest transmission that is known to have arrived, and its round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub(super) sent: Sent,
    pub(super) round_trip: Duration,
}

impl Empty for Outstanding {
    const EMPTY: &'static Self = &Self {
        cache: Cache::EMPTY,
        flight: Flight::EMPTY,
        sacked: Rare::NONE,
        counted: 0,
        delivered: Delivered { sent: Sent::NONE, round_trip: Duration::ZERO },
        probe: TailProbe::EMPTY,
        repair_wait: Duration::ZERO,
        new_data_at: Instant::ZERO,
        reordering_due: None,
    };
}

impl Outstanding {
    /// Whether nothing is left of which a later ACK could tell.
    pub(super) fn is_done(&self) -> bool {
        self.cache.is_empty() && self.sacked.is_empty()
    }

    /// The holes between the highest ACK, `acked`, and the highest SACK.
    pub(super) fn holes(&self, acked: u64) -> impl Iterator<Item = Span> {
        let starts = core::iter::once(acked).chain(self.sacked.iter().map(|span| span.end));
        starts.zip(self.sacked.iter()).filter_map(|(start, next)| {
            (start < next.start).then_some(Span { start, end: next.start })
        })
    }

    /// Whether exactly one range is in flight: its ACK may be delayed.
    pub(super) fn has_lone_segment(&self) -> bool {
        self.cache.len() == 1
    }

    /// Notes that these positions depart, as one transmission of each range.
    pub(super) fn depart(&mut self, now: Instant, span: Span) {
        let delivered = self.delivered.sent.order;
        for cached in self.cache.overlapping(span.start, span.end) {
            cached.depart(now, delivered, &mut self.flight);
        }
        self.compact_flight();
    }

    /// Drops void transmissions before they are many [C-26].
    pub(super) fn compact_flight(&mut self) {
        let cache = &self.cache;
        self.flight.compact(cache.segments(), |&Transmission { order, span }| {
            cache.iter_overlapping(span.start, span.end).any(|cached| {
                let start = cached.start.max(span.start);
                let before = cached.segments_from(span.start) - cached.segments_from(start);
                cached.order_at(start) == order + before
            })
        });
    }
}

/// Memory of flows that have nothing in flight, for those that send next: a flow that sends one
/// packet at a time needs no allocation for each.
#[expect(clippy::vec_box, reason = "flows keep the boxes")]
#[derive(Debug, Default)]
pub(super) struct Spare(Vec<Box<Outstanding>>);

impl Spare {
    /// Memory that counts for at most `room` bytes.
    pub(super) fn take(&mut self, room: usize) -> Option<Box<Outstanding>> {
        self.0.pop_if(|part| part.cache.memory() <= room)
    }

    /// Keeps the memory of this part, which begins anew.
    pub(super) fn keep(&mut self, mut part: Box<Outstanding>) {
        if self.0.len() >= MAX_SPARE {
            return;
        }
        let Outstanding { cache, .. } = *part;
        *part = Outstanding { cache, ..Outstanding::EMPTY.clone() };
        self.0.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_back_and_begins_anew() {
        let (mut spare, mut part) = (Spare::default(), Rare::<Outstanding>::default());
        assert!(part.is_done() && part.there().is_none(), "to read it makes nothing");
        part.probe.timed_out();
        part.flight.depart(Span { start: 0, end: 10 }, 3);
        part.take().into_iter().for_each(|place| spare.keep(place));
        part.lend(|| spare.take(0));
        assert!(part.there().is_some() && part.is_done() && part.probe.is_first());
        assert_eq!(part.flight.depart(Span { start: 10, end: 20 }, 1), 1);
        (0..2 * MAX_SPARE).for_each(|_| spare.keep(Box::new(Outstanding::EMPTY.clone())));
        assert_eq!(spare.0.len(), MAX_SPARE);
    }
}
