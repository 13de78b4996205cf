//! TULIP frames, as `docs/wire-tulip.md` lays them out: a fixed header, perhaps a link ACK with the
//! bit vector of the receiver's complete state [tulip99 §III S2-03], and a packet.

use crate::agents::arq::fields::{CLOCK_BITS, DELAY_UNIT, delay_field, half, word};
pub use crate::agents::arq::{MAX_WINDOW, Malformed};
use crate::ecn::Ecn;
use crate::packet::{LinkType, Packet};
use crate::wire::seq::SeqNumber;
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use core::time::Duration;

/// Length of the fixed header, in bytes.
pub const HEADER_LEN: usize = 22;
/// Length of a link ACK before its bit vector, in bytes.
pub const ACK_LEN: usize = 12;
/// The longest bit vector, in bytes: a bit for each frame of the widest window.
pub const MAX_VECTOR_LEN: usize = MAX_WINDOW as usize / 8;

const VERSION: u8 = 1;
/// Bytes of memory that frames of one batch share.
const BUFFER: usize = 1 << 16;

const ACK: u8 = 0x01;
const POLL: u8 = 0x02;
const MORE: u8 = 0x04;
const ETHERNET: u8 = 0x08;
/// In control frames, which carry no packet.
const READS_REPAIRS: u8 = ETHERNET;
const BY_SERIAL: u8 = 0x10;
const REPORT: u8 = 0x20;
const READS_VERSION_2: u8 = 0x40;
const ANSWERS_CE: u8 = 0x80;
/// In the field with the number of transmissions that a report covers: the number of marks follows.
const MARKS: u16 = 0x8000;
/// And the clock.
const CLOCK: u16 = 0x4000;
/// In *After* of control frames, which carry no packet.
pub(super) const READS_CLOCK: u16 = 0x0001;

/// The kind of a frame: what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// No packet: header and link ACK only.
    Control = 0,
    /// A packet that is retransmitted until it has arrived.
    Reliable = 1,
    /// A packet that is sent once.
    Unreliable = 2,
    /// The sender has given up the packet with this sequence number: the receiver must not wait for
    /// it.
    Skip = 3,
    /// A combination of reliable packets, from which a lost one of them is recovered.
    Repair = 4,
}

impl FrameKind {
    /// Whether frames of this kind carry bytes.
    pub(super) fn has_payload(self) -> bool {
        matches!(self, Self::Reliable | Self::Unreliable | Self::Repair)
    }
}

/// The length of the number of transmissions that a report covers, in bytes.
pub const COVERED_LEN: usize = 2;
/// The length of the number of marks, in bytes.
pub const MARKS_LEN: usize = 2;
/// The length of the clock, in bytes.
pub const CLOCK_LEN: usize = 2;

/// A link ACK: the complete state of a receiver [tulip99 §III S2-03], or a report on the last
/// transmissions, whose length does not grow with the window.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ack {
    /// The lowest sequence number that has not arrived.
    pub next: SeqNumber,
    /// The highest serial number received. A packet whose last transmission has no higher serial
    /// number, and which is not acknowledged here, is lost, unless the link reorders.
    pub highest_serial: SeqNumber,
    /// Time for which the receiver delayed this link ACK since `highest_serial` arrived.
    pub delay: Duration,
    /// `None` of the complete state. Of a report, the number of serial numbers that it covers:
    /// `highest_serial` and those before it; at most 16,383.
    pub covered: Option<u16>,
    /// Of a report: the number of frames that have arrived with "congestion experienced", modulo
    /// 2^16, and whose sender answers for it; `None` before the first one.
    pub marks: Option<u16>,
    /// Of a report to an end that reads it: when this link ACK left, in units of 128 µs of the
    /// receiver's own clock, modulo 2^14.
    pub clock: Option<u16>,
    /// Of the complete state: bit `i` of byte `j`, counted from the lowest, says that
    /// `next + 1 + 8 j + i` has arrived. Of a report: that the transmission with serial number
    /// `highest_serial - 8 j - i` has not; bits that are not there are 0.
    pub vector: Bytes,
}

impl Ack {
    /// The numbers above `next` that have arrived; none of a report.
    pub fn arrived(&self) -> impl Iterator<Item = SeqNumber> + '_ {
        let first = self.next + 1;
        self.bits().filter(|_| self.covered.is_none()).map(move |bit| first + bit)
    }

    /// Of a report, the serial numbers of the transmissions that have not arrived, downwards.
    pub fn missing(&self) -> impl Iterator<Item = SeqNumber> + '_ {
        let bits = self.bits().filter(|_| self.covered.is_some());
        bits.map(|bit| self.highest_serial - bit)
    }

    /// Whether a report shows that the transmission with this serial number has arrived; `None` if
    /// it does not cover it.
    pub fn has_arrived(&self, serial: SeqNumber) -> Option<bool> {
        let bit = u32::try_from(self.highest_serial.offset_from(serial)).ok()?;
        if bit >= u32::from(self.covered?) {
            return None;
        }
        let byte = self.vector.get(bit as usize / 8).copied().unwrap_or(0);
        Some(byte >> (bit % 8) & 1 == 0)
    }

    /// The places of the bits that are set.
    fn bits(&self) -> impl Iterator<Item = u32> + '_ {
        let bytes = self.vector.iter().zip(0u32..).filter(|(byte, _)| **byte != 0);
        bytes.flat_map(|(byte, j)| {
            (0..8).filter(move |i| byte >> i & 1 == 1).map(move |i| 8 * j + i)
        })
    }

    fn wire_len(&self) -> usize {
        ACK_LEN + self.report_fields().count() + self.vector.len().min(MAX_VECTOR_LEN)
    }

    /// The fields that only a report has.
    fn report_fields(&self) -> impl Iterator<Item = u8> {
        let flag = |flag, is_there| if is_there { flag } else { 0 };
        let flags = flag(MARKS, self.marks.is_some()) | flag(CLOCK, self.clock.is_some());
        let covered = self.covered.map(|covered| covered & !(MARKS | CLOCK) | flags);
        let others = [self.marks, self.clock].map(|field| field.filter(|_| covered.is_some()));
        [covered].into_iter().chain(others).flatten().flat_map(u16::to_be_bytes)
    }
}

/// A TULIP frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The kind of the frame.
    pub kind: FrameKind,
    /// The receiver must answer with a link ACK at once. On a half-duplex link the sender listens
    /// for the answer, which needs no new acquisition of the channel [tulip99 §III S2-06].
    pub poll: bool,
    /// Half duplex: another frame of the same turn follows [tulip99 §III S2-05].
    pub more: bool,
    /// The sender reads reports: link ACKs to it should be such, and packets may be as far above
    /// the next expected one as a report allows.
    pub by_serial: bool,
    /// The sender reads version 2, as this end does: the ECN field of the IP packets that carry
    /// frames, and the short form where the carrier sends it.
    pub reads_version_2: bool,
    /// In a control frame: the sender reads repair frames.
    pub reads_repairs: bool,
    /// The sender answers for "congestion experienced" on this frame, which is therefore not passed
    /// on to the packet, but counted.
    pub answers_ce: bool,
    /// The ECN field of the IP packet that carries the frame.
    pub outer_ecn: Ecn,
    /// Epoch of the sender; never 0.
    pub from: u32,
    /// Epoch of the receiver; 0 if the sender does not know it.
    pub to: u32,
    /// The number of this transmission. Control frames are not counted: a control frame repeats the
    /// serial number of the last frame of another kind.
    pub serial: SeqNumber,
    /// The sequence number of a reliable packet; of a repair frame, that of the first packet in the
    /// combination; in other frames, of the next reliable packet.
    pub seq: SeqNumber,
    /// Ordering constraint: the packet must be released after the reliable packet with sequence
    /// number `seq - after`; 0 for none. Of a repair frame, the number of packets in the
    /// combination, and in the four highest bits its density (RFC 8681 §3.5). Of a control frame, 1
    /// if the sender reads the clock of reports.
    pub after: u16,
    /// The link ACK, if the frame carries one.
    pub ack: Option<Ack>,
    /// The packet of the network layer, in reliable and unreliable frames; the combination, in a
    /// repair frame.
    pub payload: Option<Packet>,
}

impl Frame {
    /// Parses a frame, whose payload shares the bytes of `packet`. Bytes behind the payload are
    /// padding and ignored; so are unknown flags.
    pub fn parse(packet: &Packet) -> Result<Self, Malformed> {
        let bytes = packet.bytes();
        let Some(&[version_kind, flags, l0, l1, ref numbers @ ..]) =
            bytes.first_chunk::<HEADER_LEN>()
        else {
            return Err(Malformed::Truncated);
        };
        if version_kind >> 4 != VERSION {
            return Err(Malformed::Version);
        }
        let kind = match version_kind & 0x0f {
            0 => FrameKind::Control,
            1 => FrameKind::Reliable,
            2 => FrameKind::Unreliable,
            3 => FrameKind::Skip,
            4 => FrameKind::Repair,
            _ => return Err(Malformed::Kind),
        };
        let (numbers, after) = numbers.split_at(16);
        let ack = if flags & ACK == 0 { None } else { Some(parse_ack(packet, flags)?) };
        let at = HEADER_LEN + ack.as_ref().map_or(0, Ack::wire_len);
        let payload_len = usize::from(u16::from_be_bytes([l0, l1]));
        if at + payload_len > packet.wire_len() as usize {
            return Err(Malformed::Truncated);
        }
        let has_payload = kind.has_payload();
        let payload = has_payload.then(|| {
            let end = bytes.len().min(at + payload_len);
            let link_type = if flags & ETHERNET == 0 { LinkType::Ip } else { LinkType::Ethernet };
            let captured = packet.shared_bytes().slice(at..end);
            Packet::truncated(link_type, captured, payload_len as u32)
        });
        let from = word(numbers, 0);
        if from == 0 {
            return Err(Malformed::Epoch);
        }
        Ok(Self {
            kind,
            poll: flags & POLL != 0,
            more: flags & MORE != 0,
            by_serial: flags & BY_SERIAL != 0,
            reads_version_2: flags & READS_VERSION_2 != 0,
            reads_repairs: kind == FrameKind::Control && flags & READS_REPAIRS != 0,
            answers_ce: flags & ANSWERS_CE != 0,
            outer_ecn: packet.outer_ecn(),
            from,
            to: word(numbers, 4),
            serial: SeqNumber(word(numbers, 8)),
            seq: SeqNumber(word(numbers, 12)),
            after: half(after, 0),
            ack,
            payload,
        })
    }

    /// Whether the sender reads the clock of reports: a control frame says so.
    pub(super) fn reads_clock(&self) -> bool {
        self.kind == FrameKind::Control && self.after & READS_CLOCK != 0
    }

    /// The packet that the frame carries.
    pub(super) fn packet(&self) -> Option<&Packet> {
        self.payload.as_ref().filter(|_| self.kind != FrameKind::Repair)
    }

    /// Length on the wire, in bytes.
    pub fn wire_len(&self) -> u32 {
        let payload_len = self.payload.as_ref().map_or(0, |payload| self.payload_len(payload));
        self.header_len() as u32 + u32::from(payload_len)
    }

    /// The bytes of the frame. A payload of more than 65,535 bytes is truncated to that length.
    pub fn emit(&self) -> Packet {
        let captured = self.payload.as_ref().map_or(&[][..], Packet::bytes);
        let payload_len = self.payload.as_ref().map_or(0, |payload| self.payload_len(payload));
        let captured = captured.get(..usize::from(payload_len)).unwrap_or(captured);
        // Exact capacity: the conversion to shared bytes then needs no further allocation.
        let mut bytes = Vec::with_capacity(self.header_len() + captured.len());
        let link_type = self.payload.as_ref().map(Packet::link_type);
        self.put_header(link_type, payload_len, &mut bytes);
        bytes.extend(captured);
        let packet = Packet::truncated(LinkType::Frame, bytes.into(), self.wire_len());
        packet.with_outer_ecn(self.outer_ecn)
    }

    /// The same of a frame whose payload has these parts and no other, in memory of `buffer`.
    /// `None` if they are too long.
    pub(super) fn emit_in_parts(
        &self,
        link_type: LinkType,
        parts: [&[u8]; 2],
        buffer: &mut BytesMut,
    ) -> Option<Packet> {
        let payload_len = parts[0].len() + parts[1].len();
        let len = self.header_len() + payload_len;
        if buffer.capacity() < len {
            // Frames of one batch share their buffers.
            *buffer = BytesMut::with_capacity(len.max(BUFFER));
        }
        self.put_header(Some(link_type), u16::try_from(payload_len).ok()?, buffer);
        parts.into_iter().for_each(|part| buffer.put_slice(part));
        let packet = Packet::new(LinkType::Frame, buffer.split().freeze());
        Some(packet.with_outer_ecn(self.outer_ecn))
    }

    fn put_header(&self, link_type: Option<LinkType>, payload_len: u16, out: &mut impl BufMut) {
        out.put_u8(VERSION << 4 | self.kind as u8);
        out.put_u8(self.flags(link_type));
        out.put_u16(payload_len);
        for number in [self.from, self.to, self.serial.0, self.seq.0] {
            out.put_u32(number);
        }
        out.put_u16(self.after);
        if let Some(ack) = &self.ack {
            out.put_u32(ack.next.0);
            out.put_u32(ack.highest_serial.0);
            out.put_u16(delay_field(ack.delay));
            let vector = ack.vector.get(..MAX_VECTOR_LEN).unwrap_or(&ack.vector);
            out.put_u16(vector.len() as u16);
            ack.report_fields().for_each(|byte| out.put_u8(byte));
            out.put_slice(vector);
        }
    }

    fn header_len(&self) -> usize {
        HEADER_LEN + self.ack.as_ref().map_or(0, Ack::wire_len)
    }

    fn payload_len(&self, payload: &Packet) -> u16 {
        u16::try_from(payload.wire_len()).unwrap_or(u16::MAX)
    }

    fn flags(&self, link_type: Option<LinkType>) -> u8 {
        let is_ethernet = link_type == Some(LinkType::Ethernet);
        let set = |flag, is_set| if is_set { flag } else { 0 };
        set(ACK, self.ack.is_some())
            | set(POLL, self.poll)
            | set(MORE, self.more)
            | set(ETHERNET, is_ethernet)
            | set(READS_REPAIRS, self.kind == FrameKind::Control && self.reads_repairs)
            | set(BY_SERIAL, self.by_serial)
            | set(READS_VERSION_2, self.reads_version_2)
            | set(ANSWERS_CE, self.answers_ce)
            | set(REPORT, self.ack.as_ref().is_some_and(|ack| ack.covered.is_some()))
    }
}

fn parse_ack(packet: &Packet, flags: u8) -> Result<Ack, Malformed> {
    let fixed = packet.bytes().get(HEADER_LEN..HEADER_LEN + ACK_LEN);
    let fixed = fixed.ok_or(Malformed::Truncated)?;
    let vector_len = usize::from(half(fixed, 10));
    if vector_len > MAX_VECTOR_LEN {
        return Err(Malformed::Vector);
    }
    let mut at = HEADER_LEN + ACK_LEN;
    let (mut covered, mut marks, mut clock) = (None, None, None);
    let mut next = || {
        let field = packet.bytes().get(at..at + 2).ok_or(Malformed::Truncated)?;
        at += 2;
        Ok(half(field, 0))
    };
    if flags & REPORT != 0 {
        let field = next()?;
        covered = Some(field & !(MARKS | CLOCK));
        marks = if field & MARKS != 0 { Some(next()?) } else { None };
        clock = if field & CLOCK != 0 { Some(next()? & ((1 << CLOCK_BITS) - 1)) } else { None };
    }
    if at + vector_len > packet.bytes().len() {
        return Err(Malformed::Truncated);
    }
    Ok(Ack {
        next: SeqNumber(word(fixed, 0)),
        highest_serial: SeqNumber(word(fixed, 4)),
        delay: DELAY_UNIT * u32::from(half(fixed, 8)),
        covered,
        marks,
        clock,
        vector: packet.shared_bytes().slice(at..at + vector_len),
    })
}

#[cfg(test)]
mod tests;
