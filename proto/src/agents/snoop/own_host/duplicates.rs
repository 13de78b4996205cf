//! Retransmissions of the sender for what is under repair are duplicates, and are reported to it as
//! such [C-29].

use crate::agent::Verdict;
use crate::agents::flow_table::FlowRef;
use crate::agents::snoop::cache::MAX_EXAMINED;
use crate::agents::snoop::flow::Flow;
use crate::agents::snoop::own::overlaps;
use crate::agents::snoop::{Snoop, seq};
use crate::event::{Event, FlowId, OwnEvent};
use crate::packet::Packet;
use crate::ranges::Span;
use crate::wire::edit::selective_ack;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Segment;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

impl Flow {
    /// Whether this retransmission is a duplicate: a repair of all of it is queued or in flight.
    /// Each range counts once: what the sender sends yet again passes. So does what no block could
    /// report, as the connection has none (RFC 2018 §2).
    pub(in super::super) fn withhold_duplicate(&mut self, segment: &Segment) -> bool {
        if !self.uses_sack {
            return false;
        }
        let Some(span) = self.span(segment) else { return false };
        let delivered = self.outstanding.delivered.sent.order;
        let mut covered = span.start;
        for cached in self.outstanding.cache.iter_overlapping(span.start, span.end) {
            let under_way = cached.trouble.is_queued
                || cached.trouble.attempts > 0 && cached.sent.order > delivered;
            if cached.start > covered
                || !under_way
                || cached.trouble.resent
                || cached.trouble.is_congestion
                || cached.trouble.is_disputed
            {
                return false;
            }
            covered = cached.end;
        }
        let withheld = &mut self.own.withheld;
        let is_known = withheld.iter().any(|other| overlaps(other, &span));
        if covered < span.end || is_known || withheld.len() >= MAX_EXAMINED {
            return false;
        }
        withheld.push_back(span);
        true
    }

    /// Whether this duplicate has arrived, by the receiver's ACKs and this segment: with the block
    /// that contains it, if it lies above the ACK number.
    fn arrived_duplicate(&self, span: Span, segment: &Segment) -> Option<(Span, Option<Span>)> {
        if span.end <= self.acked {
            return Some((span, None));
        }
        let blocks = segment.options.sack.as_slice().iter();
        let mut blocks = blocks.filter_map(|&(left, right)| {
            Some(Span { start: self.position(left)?, end: self.position(right)? })
        });
        let within = blocks.find(|block| block.start <= span.start && span.end <= block.end)?;
        Some((span, Some(within)))
    }

    /// Whether a report of duplicates follows this segment, which therefore must not wait.
    pub(super) fn reports_duplicates(&self, segment: &Segment) -> bool {
        self.own.withheld.iter().any(|span| self.arrived_duplicate(*span, segment).is_some())
    }

    fn take_duplicates(&mut self, segment: &Segment) -> Vec<(Span, Option<Span>)> {
        let withheld = core::mem::take(&mut self.own.withheld);
        let (mut arrived, mut waiting) = (Vec::new(), VecDeque::new());
        for span in withheld {
            match self.arrived_duplicate(span, segment) {
                Some(duplicate) => arrived.push(duplicate),
                None => waiting.push_back(span),
            }
        }
        self.own.withheld = waiting;
        arrived
    }
}

impl Snoop {
    /// Reports duplicates that have arrived to the sender, each in an ACK after this one.
    pub(in super::super) fn report_duplicates(
        &mut self,
        reference: FlowRef,
        packet: &Packet,
        verdict: &Verdict,
    ) {
        let packet = match verdict {
            Verdict::Pass => packet,
            Verdict::Replace(stripped) => stripped,
            Verdict::Withhold => return,
        };
        let Some(flow) = self.flows.get_mut(reference) else { return };
        if flow.own.withheld.is_empty() {
            return;
        }
        let Ok(segment) = &Segment::parse(packet) else { return };
        let id = flow.base.id;
        for (span, within) in flow.take_duplicates(segment) {
            let pair = |span: Span| (seq(span.start), seq(span.end));
            let mut blocks = alloc::vec![pair(span)];
            blocks.extend(within.map(pair));
            let rest = segment.options.sack.as_slice().iter();
            blocks.extend(rest.filter(|block| within.map(pair) != Some(**block)));
            let Some(report) = selective_ack(packet, segment, &blocks) else { continue };
            self.flows.released.push_back(report);
            let start = u64::from(seq(span.start).0);
            self.event(own("reported_duplicates", "flow {}: duplicate of {} reported", id, start));
        }
    }
}

/// The sender's retransmission of what is under repair was withheld.
pub(in super::super) fn withheld(flow: FlowId, seq: SeqNumber) -> Event {
    own("withheld_duplicates", "flow {}: duplicate of {} withheld", flow, seq.0.into())
}

fn own(counter: &'static str, text: &'static str, flow: FlowId, seq: u64) -> Event {
    Event::Own(OwnEvent { counter, text, values: [flow.0, seq], is_retransmission: false })
}
