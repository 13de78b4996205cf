//! What has passed of the data of one mobile host, and the report of it [S0-40].

use crate::agents::flows::{FlowBase, FlowState};
use crate::agents::negative_ack::CODEPOINT;
use crate::agents::snoop95::flow::SmallPacket;
use crate::event::FlowId;
use crate::packet::Packet;
use crate::ranges::{Ranges, Span};
use crate::time::Instant;
use crate::wire::edit::{bare_ack, selective_ack, with_codepoint};
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use alloc::vec::Vec;
use core::time::Duration;

/// The most spans of a flow: more than the 45 segments in a window of 1995, of which every second
/// one is lost. What would be a further one is not noted, and the mobile may send it again.
const MAX_SPANS: usize = 32;

/// The state of one flow of data from a mobile to a fixed host.
#[derive(Clone, Debug)]
pub(super) struct UplinkFlow {
    base: FlowBase,
    /// What has passed and the fixed host has not acknowledged, by position: a sequence number
    /// continued to 64 bits.
    passed: Ranges,
    /// The position up to which all has passed.
    next: u64,
    /// The position behind the highest byte that has passed.
    highest: u64,
    /// The span of the newest packet, which a report names first (RFC 2018 §4).
    newest: Span,
    /// The fixed host's last ACK, which a report repeats.
    last_ack: Option<SmallPacket>,
    /// The packets that have passed since the last report while something was missing.
    with_hole: u32,
    /// The end of the silence after which the hole is reported.
    due: Option<Instant>,
}

impl UplinkFlow {
    pub(super) fn new(base: FlowBase, first: SeqNumber) -> Self {
        let first = (1 << 32) | u64::from(first.0);
        Self {
            base,
            passed: Ranges::default(),
            next: first,
            highest: first,
            newest: Span { start: first, end: first },
            last_ack: None,
            with_hole: 0,
            due: None,
        }
    }

    pub(super) fn id(&self) -> FlowId {
        self.base.id
    }

    /// The packets that have passed since the last report while something was missing [S0-41].
    pub(super) fn packets_with_hole(&self) -> u32 {
        self.with_hole
    }

    pub(super) fn take_data(&mut self, now: Instant, segment: &Segment, silence: Duration) {
        self.base.active_at = now;
        let Some(start) = self.position(segment.seq) else { return };
        let span = Span { start, end: start + u64::from(segment.seq_len()) };
        let is_next = span.start <= self.next;
        if !is_next && self.passed.len() >= MAX_SPANS {
            return;
        }
        self.newest = span;
        self.highest = self.highest.max(span.end);
        self.passed.insert(span);
        if is_next {
            self.advance(self.next.max(span.end));
        }
        let is_missing = !self.passed.is_empty();
        self.with_hole = if is_missing { self.with_hole + 1 } else { 0 };
        self.due = is_missing.then(|| now + silence);
    }

    /// Takes an ACK of the fixed host that has departed to the mobile.
    pub(super) fn ack_departed(&mut self, now: Instant, segment: &Segment, packet: &Packet) {
        let ack = self.position(segment.ack).filter(|ack| *ack <= self.highest);
        let Some(ack) = ack.filter(|_| segment.flags.intersects(Flags::ACK)) else { return };
        self.base.active_at = now;
        self.last_ack = SmallPacket::of(&bare_ack(packet, segment));
        // What another path has carried is not missing.
        self.advance(self.next.max(ack));
    }

    /// All has passed up to `next`, and what lies directly above it.
    fn advance(&mut self, next: u64) {
        let next = self.passed.span_at(next.saturating_sub(1)).map_or(next, |span| span.end);
        let next = self.passed.span_at(next).map_or(next, |span| span.end);
        self.passed.remove_below(next);
        self.next = next;
    }

    /// Whether the silence is over; it ends once.
    pub(super) fn ends_silence(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    /// When the silence ends.
    pub(super) fn silence_due(&self) -> Option<Instant> {
        self.due
    }

    /// A report of what has passed above the lowest hole: the newest packet's span first, then the
    /// highest. It repeats the fixed host's last ACK, and so never acknowledges anything.
    pub(super) fn report(&mut self) -> Option<Packet> {
        self.with_hole = 0;
        let newest = self.passed.span_at(self.newest.start);
        let others = self.passed.iter().rev().filter(|span| Some(*span) != newest);
        let numbers = |span: Span| (SeqNumber(span.start as u32), SeqNumber(span.end as u32));
        let blocks: Vec<_> = newest.into_iter().chain(others).map(numbers).collect();
        let ack = self.last_ack.as_ref()?.packet();
        let segment = Segment::parse(&ack).ok()?;
        with_codepoint(&selective_ack(&ack, &segment, &blocks)?, CODEPOINT)
    }

    fn position(&self, seq: SeqNumber) -> Option<u64> {
        seq.position(self.highest)
    }
}

impl FlowState for UplinkFlow {
    fn base(&self) -> &FlowBase {
        &self.base
    }

    fn base_mut(&mut self) -> &mut FlowBase {
        &mut self.base
    }

    fn is_answered(&self) -> bool {
        self.last_ack.is_some()
    }
}
