//! Repair frames, by which the other end recovers lost packets without a retransmission: the code
//! of [`crate::rlc`] over the reliable packets in flight.

use super::Tulip;
use super::frame::{Frame, FrameKind};
use super::redundancy::InFlight;
use crate::agents::arq::{Due, LinkEvent, noticed_growth};
use crate::packet::{LinkType, Packet};
use crate::rlc::{Combination, DENSE, HEAD_LEN, MAX_WINDOW, Recovered, Symbol};
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use core::time::Duration;

/// The round trip from which on losses are made up for before they are known: HyStart takes a
/// growth of 4 ms for a full path (RFC 9406 §4.2), so that a quicker retransmission harms nobody.
const LEAST_ROUND_TRIP: Duration = Duration::from_millis(8);
/// The losses that a combination has to tell apart: with more of them it has fewer packets in it,
/// so that the work for each does not grow with the path.
const MOST_IN_COMBINATION: f64 = 16.0;
/// Reply timeouts for which a packet waits for repair frames that should be enough.
const PATIENCE: u32 = 4;
/// Link ACKs of a session that travel alone: control frames tell what this end reads.
const ALONE: u32 = 3;

impl Tulip {
    /// Whether losses are made up for before they are known.
    pub(super) fn is_coding(&self) -> bool {
        let reads = self.receiver.peer_reads_repairs() && self.receiver.is_by_serial();
        let is_worth_it = self.is_path_long() == Some(true) && self.answers_for_queue();
        self.settings.reads_repairs() && reads && is_worth_it
    }

    /// Whether the other end may not know yet that this one reads repair frames, and may need to.
    pub(super) fn must_tell(&self) -> bool {
        let may_be_long = self.is_path_long() != Some(false);
        self.settings.reads_repairs() && self.alone < ALONE && may_be_long
    }

    /// Whether a retransmission takes long, if it is known.
    fn is_path_long(&self) -> Option<bool> {
        self.pace.least_round_trip().map(|least| least >= LEAST_ROUND_TRIP)
    }

    /// How long repair frames have for a loss that is known, before the packet is retransmitted:
    /// several round trips if there are enough of them, since some may depend on each other.
    pub(super) fn patience(&self) -> Duration {
        let is_enough = !self.sender.redundancy.lacks(self.sender.pool.missing());
        if self.is_coding() && is_enough { PATIENCE * self.pace.wait(0) } else { Duration::ZERO }
    }

    /// A packet leaves that repair frames cover: if no other one follows soon, a burst has ended.
    pub(super) fn await_pause(&mut self, now: Instant, seq: SeqNumber) {
        if !matches!(self.pause_due, Due::At(_)) {
            self.sender.redundancy.begin_burst(seq);
        }
        let least = self.pace.least_round_trip().filter(|_| self.is_coding());
        self.pause_due = least.map_or(Due::Never, |least| Due::At(now + noticed_growth(least)));
    }

    /// Whether a repair frame is due. A pause in which none is due is over.
    fn is_repair_due(&mut self, now: Instant, in_flight: InFlight) -> bool {
        let (pool, redundancy) = (&self.sender.pool, &self.sender.redundancy);
        let is_spare = self.has_spare_capacity(now);
        let end = pool.first() + pool.span();
        if redundancy.is_due(in_flight, is_spare) {
            return true;
        }
        let is_pause = self.pause_due == Due::Now;
        let is_due = is_pause && is_spare && redundancy.is_due_in_pause(in_flight, end);
        if is_pause && !is_due {
            self.pause_due = Due::Never;
        }
        is_due
    }

    /// The next repair frame, if one is due.
    pub(super) fn next_repair(&mut self, now: Instant) -> Option<Frame> {
        let pool = &self.sender.pool;
        let (open, missing) = (pool.outstanding(), pool.missing());
        let in_flight = InFlight { first: pool.first(), open, missing };
        if !self.is_coding() || !self.is_repair_due(now, in_flight) {
            return None;
        }
        let pool = &self.sender.pool;
        let (first, len) = pool.combinable(MAX_WINDOW);
        if len == 0 {
            return None;
        }
        let share = MOST_IN_COMBINATION / self.sender.redundancy.expected(in_flight);
        let density = ((share * f64::from(DENSE + 1)) as u8).clamp(1, DENSE + 1) - 1;
        let serial = self.sender.pool.take_serial();
        let combination = Combination { key: serial.0, first, len, density };
        let pool = &self.sender.pool;
        let packets = pool.index(first).into_iter().flat_map(|at| at..at + usize::from(len));
        let packets = packets.filter_map(|index| {
            let sent = pool.packet(index);
            Some((sent.packet.as_ref()?, sent.after()))
        });
        let wire_len = packets.clone().map(|(packet, _)| packet.wire_len()).max().unwrap_or(0);
        let sum = combination.encode(packets.map(|(packet, after)| symbol(packet, after)));
        let payload = Packet::truncated(LinkType::Ip, sum.into(), HEAD_LEN as u32 + wire_len);
        self.sender.redundancy.sent(serial, combination.end());
        self.report(LinkEvent::Repair(u32::from(len)));
        Some(Frame {
            kind: FrameKind::Repair,
            serial,
            seq: first,
            after: u16::from(density) << 12 | len,
            payload: Some(payload),
            ..self.control_frame()
        })
    }

    /// Notes a packet of a frame, from which others may be recovered.
    pub(super) fn note_symbol(&mut self, frame: &Frame) {
        if let (FrameKind::Reliable, Some(packet)) = (frame.kind, &frame.payload)
            && self.settings.reads_repairs()
        {
            self.decoder.source(frame.seq, symbol(packet, frame.after));
        }
    }

    /// Takes a repair frame.
    pub(super) fn take_repair(&mut self, frame: &Frame) {
        let (density, len) = ((frame.after >> 12) as u8, frame.after & 0x0fff);
        let combination = Combination { key: frame.serial.0, first: frame.seq, len, density };
        if let Some(payload) = frame.payload.as_ref().filter(|_| self.settings.reads_repairs()) {
            self.decoder.repair(&combination, payload.bytes());
        }
    }

    /// Passes on what was recovered.
    pub(super) fn take_recovered(&mut self, now: Instant) {
        while let Some(recovered) = self.decoder.pop() {
            let Some((after, packet)) = packet_of(&recovered) else { continue };
            let seq = recovered.seq;
            // It may have arrived by itself since.
            if self.receiver.is_missing(seq) {
                self.report(LinkEvent::Recovered(seq));
                let packet = Some(packet);
                if let Err(event) = self.receiver.reliable(now, seq, after, packet, &self.settings)
                {
                    self.report(event);
                }
            }
        }
    }
}

/// A packet as a source symbol: the order, the kind of its first header, its length on the wire.
fn symbol(packet: &Packet, after: u16) -> Symbol<'_> {
    let len = u16::try_from(packet.wire_len()).unwrap_or(u16::MAX);
    let ([a, b], [c, d]) = (after.to_be_bytes(), len.to_be_bytes());
    let is_ethernet = u8::from(packet.link_type() == LinkType::Ethernet);
    Symbol { head: [a, b, c, d, is_ethernet], body: packet.bytes() }
}

/// The packet of a source symbol that was recovered, and its order; `None` if it is none.
fn packet_of(recovered: &Recovered) -> Option<(u16, Packet)> {
    let [a, b, c, d, link_type] = recovered.head;
    let link_type = match link_type {
        0 => LinkType::Ip,
        1 => LinkType::Ethernet,
        _ => return None,
    };
    let len = u16::from_be_bytes([c, d]);
    if len == 0 {
        return None;
    }
    let captured = recovered.body.len().min(usize::from(len));
    let packet = Packet::truncated(link_type, recovered.body.slice(..captured), u32::from(len));
    Some((u16::from_be_bytes([a, b]), packet))
}
