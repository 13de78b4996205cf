//! Negative acknowledgments to the mobile: SACK information about its data, from the base station
//! [snoop95 §3.2; S0-40].

use super::flow::UplinkFlow;
use super::nack::Nack;
use crate::packet::Packet;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::edit::{selective_ack, with_codepoint};
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Segment;
use alloc::vec::Vec;
use core::time::Duration;

/// The packets above a hole after which it is reported [S0-41]. Not stated: 3.
const THRESHOLD: u32 = 3;
/// The bounds of the time without new packets after which a hole is reported, which is twice the
/// local round trip [S0-41]. Not stated.
const LEAST_SILENCE: Duration = Duration::from_millis(4);
const LONGEST_SILENCE: Duration = Duration::from_millis(100);
/// The differentiated services codepoint of negative acknowledgments, one for local use (RFC 2474
/// §6): an agent in the mobile host knows them by it. Any other host ignores it.
pub(in crate::agents::snoop) const CODEPOINT: u8 = 0b10_1011;

impl UplinkFlow {
    /// Data of the mobile has passed as `packet`; returns the negative acknowledgment that is due,
    /// if one is [S0-41].
    pub(super) fn passed(
        &mut self,
        now: Instant,
        segment: &Segment,
        packet: &Packet,
        room: usize,
    ) -> Option<Packet> {
        let hole = self.lowest_hole().filter(|_| !self.is_in_host())?;
        let start = self.position(segment.seq)?;
        let span = Span { start, end: start + u64::from(segment.seq_len()) };
        if self.nack.is_permitted && start > hole {
            self.nack.kept.keep(now, span, packet, room);
        }
        if self.highest_hole() <= self.nack.reported {
            return None;
        }
        self.nack.above += 1;
        if self.nack.above >= THRESHOLD {
            return self.report();
        }
        let silence = (self.air_sample() * 2).clamp(LEAST_SILENCE, LONGEST_SILENCE);
        self.nack.due = Some(now + silence);
        None
    }

    /// The silence is over: the negative acknowledgment, if a hole is not reported.
    pub(super) fn end_silence(&mut self, now: Instant) -> Option<Packet> {
        self.nack.due.take_if(|due| *due <= now)?;
        self.report()
    }

    /// A report of all that has passed above the holes, from what is kept. It repeats the fixed
    /// host's last ACK, and so never acknowledges anything.
    fn report(&mut self) -> Option<Packet> {
        self.nack.above = 0;
        self.nack.due = None;
        let hole = self.lowest_hole()?;
        self.nack.reported = self.highest_hole();
        let ack = self.nack.last_ack.as_ref()?;
        let segment = Segment::parse(ack).ok()?;
        let blocks: Vec<(SeqNumber, SeqNumber)> = self
            .nack
            .kept
            .blocks(hole)
            .into_iter()
            .map(|span| (SeqNumber(span.start as u32), SeqNumber(span.end as u32)))
            .collect();
        with_codepoint(&selective_ack(ack, &segment, &blocks)?, CODEPOINT)
    }

    /// When the silence ends.
    pub(super) fn silence_due(&self) -> Option<Instant> {
        self.nack.due
    }

    /// A packet that was reported to the mobile and lost on the wire.
    pub(super) fn take_lost(&mut self, now: Instant) -> Option<Packet> {
        let (patience, acked) = (self.wired_round_trip() * 2, self.acked());
        let Nack { kept, sacked, .. } = &mut self.nack;
        kept.lost_on_the_wire(now, acked, sacked, patience)
    }
}
