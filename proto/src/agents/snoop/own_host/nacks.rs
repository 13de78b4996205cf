//! The negative acknowledgments of an agent at the base station show what the air lost, one round
//! trip of the air after it was sent [S0-40]. They end here: the sender would take their round trip
//! for that of its path.

use crate::agents::negative_ack::CODEPOINT;
use crate::agents::snoop::Snoop;
use crate::agents::snoop::cache::Cached;
use crate::agents::snoop::decision::Left;
use crate::agents::snoop::flow::Flow;
use crate::agents::snoop::outstanding::Outstanding;
use crate::event::{Cause, Event, OwnEvent};
use crate::packet::Packet;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::edit::codepoint;
use crate::wire::flow::FlowKey;
use crate::wire::tcp::Segment;
use alloc::vec::Vec;

impl Snoop {
    /// Takes a negative acknowledgment of the base station; whether it was one.
    pub(in super::super) fn take_nack(
        &mut self,
        now: Instant,
        key: &FlowKey,
        segment: &Segment,
        packet: &Packet,
    ) -> bool {
        let is_nack = segment.is_pure_ack()
            && !segment.options.sack.is_empty()
            && codepoint(packet, segment) == Some(CODEPOINT);
        let Some(reference) = self.flows.find(key).filter(|_| is_nack) else { return false };
        let mut id = 0;
        let lost = self.flows.update(reference, |flow| {
            flow.own.is_reported = true;
            id = flow.base.id.0;
            flow.lost_on_the_air(now, segment)
        });
        self.event(Event::Own(OwnEvent {
            counter: "consumed_negative_acks",
            text: "flow {}: negative acknowledgment with ACK {} consumed",
            values: [id, segment.ack.0.into()],
            is_retransmission: false,
        }));
        for span in lost.unwrap_or_default() {
            let Some(flow) = self.flows.get_mut(reference) else { break };
            match flow.repair_budget.spend(&mut self.shared.credit) {
                true => self.retransmit(now, reference, span.start, Cause::Nack),
                false => self.decided(reference, span, Left::Budget),
            }
        }
        true
    }
}

impl Flow {
    /// The segments between and directly below the blocks, if something that was sent later is in a
    /// block.
    fn lost_on_the_air(&mut self, now: Instant, segment: &Segment) -> Vec<Span> {
        let mut blocks: Vec<Span> = Vec::new();
        for &(left, right) in segment.options.sack.as_slice() {
            let (Some(start), Some(end)) = (self.position(left), self.position(right)) else {
                continue;
            };
            if self.acked < start && start < end && end <= self.highest {
                blocks.push(Span { start, end });
            }
        }
        blocks.sort_by_key(|block| block.start);
        let newest = blocks.iter().filter_map(|block| {
            let last = self.outstanding.cache.iter_overlapping(block.end - 1, block.end).next()?;
            Some(last.order_at(block.end - 1))
        });
        let Some(newest) = newest.max() else { return Vec::new() };
        let mut lost = Vec::new();
        let mut from = None;
        for block in blocks {
            // Below the lowest block the agent knows of the hole, but not where it begins.
            self.outstanding.cache.split(block.start);
            let below =
                self.outstanding.cache.iter_overlapping(block.start - 1, block.start).next();
            let below = below.map_or(block.start, Cached::last_segment);
            let from = from.replace(block.end).unwrap_or(below);
            self.outstanding.cache.split(from);
            let Outstanding { cache, sacked, .. } = &mut *self.outstanding;
            for cached in cache.overlapping(from, block.start) {
                let is_late = cached.order_at(cached.start) < newest;
                if is_late && cached.is_open() && sacked.span_at(cached.start).is_none() {
                    cached.trouble.missing_since.get_or_insert(now);
                    lost.push(cached.span());
                }
            }
        }
        lost
    }
}
