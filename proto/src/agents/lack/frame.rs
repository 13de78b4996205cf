//! LACK frames, as `docs/wire-lack.md` lays them out: a short header with a checksum of its own,
//! perhaps a local ACK (CACKs and EACKs), and a packet.

use crate::agents::arq::Malformed;
use crate::agents::arq::fields::{DELAY_UNIT, delay_field, half, word};
use crate::packet::{LinkType, Packet};
use crate::wire::checksum;
use crate::wire::seq::SeqNumber;
use alloc::vec::Vec;
use core::time::Duration;

/// Length of the header of a frame with a serial number, without local ACK, in bytes.
pub const HEADER_LEN: usize = 18;
/// Length of the field *After*, in bytes.
pub const AFTER_LEN: usize = 2;
/// Length of a local ACK without EACKs, and of the EACKs, in bytes.
pub const ACK_LEN: usize = 14;
/// Length of the EACKs of a local ACK, in bytes.
pub const EACK_LEN: usize = 4;
/// The transmissions that one local ACK covers: the one that it names, and those before it.
pub const COVERED: u32 = u32::BITS;

const VERSION: u8 = 1;
const HELLO_LEN: usize = 12;
/// Length of the header of a frame that carries a local ACK only, in bytes.
const BARE_LEN: usize = 8;
const LONGEST_HEADER: usize = HEADER_LEN + AFTER_LEN + ACK_LEN + EACK_LEN;

const ACK: u8 = 0x01;
const EACK: u8 = 0x02;
const AFTER: u8 = 0x04;
const ETHERNET: u8 = 0x08;

/// The kind of a frame: what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// A local ACK alone.
    Ack = 0,
    /// A packet that is retransmitted until its CACK has come.
    Packet = 1,
    /// A packet that is sent once.
    Once = 2,
    /// The sender has given up the packet with this sequence number: the receiver must not wait for
    /// it.
    Skip = 3,
    /// The epochs of both ends.
    Hello = 4,
}

/// A local ACK [lack §3.1 S1-03].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ack {
    /// The lowest sequence number that has not arrived, `p_number`: a CACK of all packets below.
    pub next: SeqNumber,
    /// The highest serial number of which the receiver knows.
    pub serial: SeqNumber,
    /// Time for which the receiver delayed this local ACK since `serial` arrived.
    pub delay: Duration,
    /// CACKs. Bit `i`, counted from the lowest: transmission `serial - i` arrived correctly.
    pub correct: u32,
    /// EACKs. Bit `i`: transmission `serial - i` did not arrive correctly.
    pub erroneous: u32,
}

/// A LACK frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The kind of the frame.
    pub kind: FrameKind,
    /// In a hello frame, the epoch of the sender, which is never 0; else 0.
    pub from: u32,
    /// In a hello frame, the epoch of the receiver, 0 if the sender does not know it; else 0.
    pub to: u32,
    /// The [`run`] of both epochs; 0 in a hello frame.
    pub run: u32,
    /// The number of this transmission; 0 in frames without one.
    pub serial: SeqNumber,
    /// The sequence number of a packet (the paper's local packet serial number), in a once frame
    /// that of the next packet; 0 in other frames.
    pub seq: SeqNumber,
    /// The packet must be released after the packet with sequence number `seq - after`; 0 for none.
    /// `None`: after all packets before it, and a once frame after none.
    pub after: Option<u16>,
    /// The local ACK, if the frame carries one.
    pub ack: Option<Ack>,
    /// The packet of the network layer, in packet and once frames.
    pub payload: Option<Packet>,
}

/// The number of a pair of epochs, in frames that do not have room for both.
pub fn run(from: u32, to: u32) -> u32 {
    from.wrapping_mul(0x9e37_79b1) ^ to
}

impl Frame {
    /// A frame of this kind and run without anything.
    pub fn bare(kind: FrameKind, run: u32) -> Self {
        let (serial, seq) = (SeqNumber(0), SeqNumber(0));
        Self { kind, from: 0, to: 0, run, serial, seq, after: None, ack: None, payload: None }
    }

    /// A hello frame.
    pub fn hello(from: u32, to: u32) -> Self {
        Self { from, to, ..Self::bare(FrameKind::Hello, 0) }
    }

    /// Parses a frame, whose payload shares the bytes of `packet`. Bytes behind the payload are
    /// padding and ignored; so are unknown flags.
    pub fn parse(packet: &Packet) -> Result<Self, Malformed> {
        let (mut frame, at, payload_len) = Self::parse_header(packet.bytes())?;
        if at + payload_len > packet.wire_len() as usize {
            return Err(Malformed::Truncated);
        }
        if frame.has_payload() {
            let is_ethernet = packet.bytes()[1] & ETHERNET != 0;
            let link_type = if is_ethernet { LinkType::Ethernet } else { LinkType::Ip };
            let end = packet.bytes().len().min(at + payload_len);
            let captured = packet.shared_bytes().slice(at..end);
            frame.payload = Some(Packet::truncated(link_type, captured, payload_len as u32));
        }
        Ok(frame)
    }

    /// Parses the header of a frame that may be damaged: without payload. The checksum of the
    /// header shows that the header is not damaged.
    pub fn parse_damaged(bytes: &[u8]) -> Result<Self, Malformed> {
        Self::parse_header(bytes).map(|(frame, ..)| frame)
    }

    /// Parses a header; returns its length and that of the payload too, in bytes.
    fn parse_header(bytes: &[u8]) -> Result<(Self, usize, usize), Malformed> {
        let &[version_kind, flags, ..] = bytes else { return Err(Malformed::Truncated) };
        if version_kind >> 4 != VERSION {
            return Err(Malformed::Version);
        }
        let kind = match version_kind & 0x0f {
            0 => FrameKind::Ack,
            1 => FrameKind::Packet,
            2 => FrameKind::Once,
            3 => FrameKind::Skip,
            4 => FrameKind::Hello,
            _ => return Err(Malformed::LackKind),
        };
        let fixed = fixed_len(kind);
        let after_len = if has_after(kind, flags) { AFTER_LEN } else { 0 };
        let len = fixed + after_len + ack_len(kind, flags);
        let header = bytes.get(..len).ok_or(Malformed::Truncated)?;
        if checksum::internet(header) != 0 {
            return Err(Malformed::Checksum);
        }
        let mut frame = Self::bare(kind, 0);
        let mut payload_len = 0;
        if kind == FrameKind::Hello {
            (frame.from, frame.to) = (word(header, 4), word(header, 8));
            return if frame.from == 0 { Err(Malformed::Epoch) } else { Ok((frame, len, 0)) };
        }
        frame.run = word(header, 4);
        if fixed == HEADER_LEN {
            payload_len = usize::from(half(header, 8));
            frame.serial = SeqNumber(word(header, 10));
            frame.seq = SeqNumber(word(header, 14));
        }
        frame.after = (after_len > 0).then(|| half(header, fixed));
        frame.ack = header.get(fixed + after_len..).filter(|ack| !ack.is_empty()).map(parse_ack);
        Ok((frame, len, payload_len))
    }

    /// Length on the wire, in bytes.
    pub fn wire_len(&self) -> u32 {
        self.header_len() as u32 + u32::from(self.payload_len())
    }

    /// The bytes of the frame. A payload of more than 65,535 bytes is truncated to that length.
    pub fn emit(&self) -> Packet {
        let payload_len = self.payload_len();
        let captured = self.payload.as_ref().map_or(&[][..], Packet::bytes);
        let captured = captured.get(..usize::from(payload_len)).unwrap_or(captured);
        let mut bytes = Vec::with_capacity(self.header_len() + captured.len());
        bytes.extend([VERSION << 4 | self.kind as u8, self.flags(), 0, 0]);
        match self.kind {
            FrameKind::Hello => {
                bytes.extend(self.from.to_be_bytes());
                bytes.extend(self.to.to_be_bytes());
            }
            FrameKind::Ack => bytes.extend(self.run.to_be_bytes()),
            FrameKind::Packet | FrameKind::Once | FrameKind::Skip => {
                bytes.extend(self.run.to_be_bytes());
                bytes.extend(payload_len.to_be_bytes());
                bytes.extend(self.serial.0.to_be_bytes());
                bytes.extend(self.seq.0.to_be_bytes());
                bytes.extend(self.after.map(u16::to_be_bytes).iter().flatten());
            }
        }
        if let Some(ack) = self.ack.as_ref().filter(|_| self.kind != FrameKind::Hello) {
            bytes.extend(ack.next.0.to_be_bytes());
            bytes.extend(ack.serial.0.to_be_bytes());
            bytes.extend(delay_field(ack.delay).to_be_bytes());
            bytes.extend(ack.correct.to_be_bytes());
            if ack.erroneous != 0 {
                bytes.extend(ack.erroneous.to_be_bytes());
            }
        }
        let checksum = checksum::internet(&bytes);
        bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
        bytes.extend(captured);
        Packet::truncated(LinkType::Frame, bytes.into(), self.wire_len())
    }

    fn has_payload(&self) -> bool {
        matches!(self.kind, FrameKind::Packet | FrameKind::Once)
    }

    fn header_len(&self) -> usize {
        let flags = self.flags();
        let after = if has_after(self.kind, flags) { AFTER_LEN } else { 0 };
        fixed_len(self.kind) + after + ack_len(self.kind, flags)
    }

    fn payload_len(&self) -> u16 {
        let payload = self.payload.as_ref().filter(|_| self.has_payload());
        payload.map_or(0, |payload| u16::try_from(payload.wire_len()).unwrap_or(u16::MAX))
    }

    fn flags(&self) -> u8 {
        let set = |flag, is_set| if is_set { flag } else { 0 };
        let is_ethernet =
            self.payload.as_ref().is_some_and(|payload| payload.link_type() == LinkType::Ethernet);
        if self.kind == FrameKind::Hello {
            return 0;
        }
        set(ACK, self.ack.is_some())
            | set(EACK, self.ack.is_some_and(|ack| ack.erroneous != 0))
            | set(AFTER, self.after.is_some() && self.kind != FrameKind::Ack)
            | set(ETHERNET, is_ethernet)
    }
}

fn fixed_len(kind: FrameKind) -> usize {
    match kind {
        FrameKind::Ack => BARE_LEN,
        FrameKind::Packet | FrameKind::Once | FrameKind::Skip => HEADER_LEN,
        FrameKind::Hello => HELLO_LEN,
    }
}

fn has_after(kind: FrameKind, flags: u8) -> bool {
    flags & AFTER != 0 && fixed_len(kind) == HEADER_LEN
}

fn ack_len(kind: FrameKind, flags: u8) -> usize {
    match flags & (ACK | EACK) {
        _ if kind == FrameKind::Hello => 0,
        0 | EACK => 0,
        ACK => ACK_LEN,
        _ => ACK_LEN + EACK_LEN,
    }
}

/// Parses a local ACK; the caller has checked the length.
fn parse_ack(bytes: &[u8]) -> Ack {
    Ack {
        next: SeqNumber(word(bytes, 0)),
        serial: SeqNumber(word(bytes, 4)),
        delay: DELAY_UNIT * u32::from(half(bytes, 8)),
        correct: word(bytes, 10),
        erroneous: if bytes.len() > ACK_LEN { word(bytes, ACK_LEN) } else { 0 },
    }
}

/// The most bytes by which a frame is longer than its packet.
pub(super) const OVERHEAD: usize = LONGEST_HEADER;

#[cfg(test)]
mod tests;
