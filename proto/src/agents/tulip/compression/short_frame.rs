//! The short form of a frame, as `docs/wire-tulip.md` lays it out: what both ends know is not sent.

use super::check;
use super::numbers::{highest, nearest, read_integer, suffice, write_integer};
use crate::agents::arq::Malformed;
use crate::agents::arq::fields::{DELAY_UNIT, delay_field};
use crate::agents::tulip::frame::{Ack, Frame, FrameKind, MAX_VECTOR_LEN};
use crate::ecn::Ecn;
use crate::wire::seq::SeqNumber;
use alloc::vec::Vec;
use bytes::Bytes;

/// The version of the short form.
pub(super) const VERSION: u8 = 2;

const KINDS: [FrameKind; 4] =
    [FrameKind::Control, FrameKind::Reliable, FrameKind::Unreliable, FrameKind::Skip];

/// Of the first byte, behind version and kind.
const POLL: u8 = 0x02;
const ACK: u8 = 0x01;
/// Of the second byte: the numbers have four bytes, the sender answers for marks; two bits say how
/// *After* is written.
const LONG: u8 = 0x80;
const ANSWERS_CE: u8 = 0x40;
const AFTER: u8 = 4;
pub(super) const ETHERNET: u8 = 0x08;
/// Of a control frame, which carries no packet; the second one makes it a repair frame.
pub(super) const READS_REPAIRS: u8 = ETHERNET;
pub(super) const REPAIR: u8 = DIFFERENCES;
const REPORT: u8 = 0x04;
/// Of the integer with *Covered*: the clock stands above it.
const CLOCK: u32 = 0x8000;
/// The headers of the packet are differences; the packet becomes a context.
pub(super) const DIFFERENCES: u8 = 0x02;
pub(super) const BECOMES: u8 = 0x01;

/// What both ends know of a stream, each as far as it can: the numbers near which others are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    /// The last serial number sent, and the sequence number behind the last one sent.
    sent_serial: SeqNumber,
    sent_next: SeqNumber,
    /// The highest ones that link ACKs of the other end have told.
    acked_serial: SeqNumber,
    acked_next: SeqNumber,
    /// The highest serial number received, and the highest *Next expected* sent.
    received_serial: SeqNumber,
    told_next: SeqNumber,
}

impl Numbers {
    /// A frame leaves.
    pub(super) fn sent(&mut self, frame: &Frame) {
        self.sent_serial = self.sent_serial.max(frame.serial);
        if matches!(frame.kind, FrameKind::Reliable | FrameKind::Skip) {
            self.sent_next = self.sent_next.max(frame.seq + 1);
        }
        if let Some(ack) = &frame.ack {
            self.told_next = self.told_next.max(ack.next);
        }
    }

    /// A frame has arrived.
    pub(super) fn received(&mut self, frame: &Frame) {
        self.received_serial = self.received_serial.max(frame.serial);
        if let Some(ack) = &frame.ack {
            self.acked_serial = self.acked_serial.max(ack.highest_serial);
            self.acked_next = self.acked_next.max(ack.next);
        }
    }

    /// The serial number of the last frame that left.
    pub(super) fn sent_serial(&self) -> SeqNumber {
        self.sent_serial
    }
}

/// A frame whose payload has yet to be read.
#[derive(Debug)]
pub(super) struct Head {
    /// The frame without its payload.
    pub(super) frame: Frame,
    pub(super) flags: u8,
    /// The check that its sender has computed, and that of what was read so far.
    pub(super) check: u16,
    pub(super) computed: u16,
    /// The place of the payload.
    pub(super) at: usize,
}

/// Appends all before the payload; the check stands at the place that is returned, once `close` has
/// written it.
pub(super) fn write(numbers: &Numbers, frame: &Frame, out: &mut Vec<u8>) -> Open {
    let begin = out.len();
    let is_repair = frame.kind == FrameKind::Repair;
    let kind = if is_repair { 0 } else { (frame.kind as u8) << 2 };
    let poll = if frame.poll { POLL } else { 0 };
    let has_seq = has_seq(frame.kind, frame.after);
    let is_long = !suffice(frame.serial.offset_from(numbers.acked_serial))
        || (has_seq && !suffice(frame.seq.offset_from(numbers.acked_next)));
    let mut flags = if is_long { LONG } else { 0 };
    flags |= if frame.answers_ce { ANSWERS_CE } else { 0 };
    out.extend([VERSION << 4 | kind | poll | u8::from(frame.ack.is_some()), 0]);
    let begin_of_number = if is_long { 0 } else { 2 };
    out.extend(&frame.serial.0.to_be_bytes()[begin_of_number..]);
    if has_seq {
        out.extend(&frame.seq.0.to_be_bytes()[begin_of_number..]);
    }
    flags |= match frame.after {
        0 | 1 => frame.after as u8,
        2..0x100 => {
            out.push(frame.after as u8);
            2
        }
        _ => {
            out.extend(frame.after.to_be_bytes());
            3
        }
    } << AFTER;
    let check = out.len();
    out.extend([0, 0]);
    if let Some(ack) = &frame.ack {
        flags |= if ack.covered.is_some() { REPORT } else { 0 };
        out.extend(&ack.next.0.to_be_bytes()[1..]);
        out.extend(&ack.highest_serial.0.to_be_bytes()[1..]);
        write_integer(out, u32::from(delay_field(ack.delay)));
        if let Some(covered) = ack.covered {
            let clock = ack.clock.map_or(0, |clock| u32::from(clock) << 16 | CLOCK);
            let covered = u32::from(covered) << 1 & (CLOCK - 1);
            write_integer(out, clock | covered | u32::from(ack.marks.is_some()));
            out.extend(ack.marks.into_iter().flat_map(u16::to_be_bytes));
        }
        let vector = ack.vector.get(..MAX_VECTOR_LEN).unwrap_or(&ack.vector);
        write_integer(out, vector.len() as u32);
        out.extend(vector);
    }
    Open { begin, check, flags }
}

/// A frame whose flags and check are not yet known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    begin: usize,
    check: usize,
    flags: u8,
}

impl Open {
    /// Writes the flags, with these `more`, and the check, which also covers these headers.
    pub(super) fn close(self, frame: &Frame, more: u8, headers: &[u8], out: &mut [u8]) {
        out[self.begin + 1] = self.flags | more;
        let head = [out[self.begin], self.flags | more];
        let check = check::more(check_of(frame, head), headers).to_be_bytes();
        out[self.check..self.check + 2].copy_from_slice(&check);
    }
}

/// Reads all before the payload of a frame from the end with the epoch `from`, for `to`.
pub(super) fn read(
    numbers: &Numbers,
    (from, to): (u32, u32),
    bytes: &Bytes,
) -> Result<Head, Malformed> {
    let mut rest = Rest(bytes);
    let [first, flags] = rest.take()?;
    let kind = match KINDS[usize::from(first >> 2 & 3)] {
        FrameKind::Control if flags & REPAIR != 0 => FrameKind::Repair,
        kind => kind,
    };
    let is_long = flags & LONG != 0;
    let serial = rest.number(is_long, numbers.received_serial + 1)?;
    // Whether there is a sequence number follows from what comes behind it.
    let code = flags >> AFTER & 3;
    let has_seq = has_seq(kind, u16::from(code));
    let seq = match has_seq {
        true => rest.number(is_long, numbers.told_next)?,
        false => SeqNumber(0),
    };
    let after = match code {
        2 => u16::from(rest.take::<1>()?[0]),
        3 => u16::from_be_bytes(rest.take()?),
        after => u16::from(after),
    };
    let check = u16::from_be_bytes(rest.take()?);
    let mut frame = Frame {
        kind,
        poll: first & POLL != 0,
        more: false,
        by_serial: false,
        reads_version_2: true,
        reads_repairs: kind == FrameKind::Control && flags & READS_REPAIRS != 0,
        answers_ce: flags & ANSWERS_CE != 0,
        outer_ecn: Ecn::NotEct,
        from,
        to,
        serial,
        seq,
        after,
        ack: None,
        payload: None,
    };
    if first & ACK != 0 {
        frame.ack = Some(rest.ack(numbers, flags & REPORT != 0, bytes)?);
    }
    let at = bytes.len() - rest.0.len();
    Ok(Head { check, computed: check_of(&frame, [first, flags]), frame, flags, at })
}

/// Whether the sequence number of such a frame matters.
fn has_seq(kind: FrameKind, after: u16) -> bool {
    match kind {
        FrameKind::Reliable | FrameKind::Skip | FrameKind::Repair => true,
        FrameKind::Unreliable => after != 0,
        FrameKind::Control => false,
    }
}

/// The check of the numbers of a frame, and of its first bytes.
fn check_of(frame: &Frame, [first, flags]: [u8; 2]) -> u16 {
    let Frame { from, to, serial, seq, after, .. } = frame;
    let seq = if has_seq(frame.kind, *after) { seq.0 } else { 0 };
    let ack = frame.ack.as_ref().map_or([0; 2], |ack| [ack.next.0, ack.highest_serial.0]);
    let head = u32::from(first) << 24 | u32::from(flags) << 16 | u32::from(*after);
    check::of([*from, *to, serial.0, seq, head, ack[0], ack[1], 0])
}

struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn number(&mut self, is_long: bool, expected: SeqNumber) -> Result<SeqNumber, Malformed> {
        Ok(match is_long {
            true => SeqNumber(u32::from_be_bytes(self.take()?)),
            false => nearest(expected, u32::from(u16::from_be_bytes(self.take()?)), 2),
        })
    }

    fn integer(&mut self) -> Result<u32, Malformed> {
        let (value, rest) = read_integer(self.0).ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(value)
    }

    fn ack(&mut self, numbers: &Numbers, report: bool, bytes: &Bytes) -> Result<Ack, Malformed> {
        let [a, b, c, d, e, f] = self.take()?;
        let next = highest(numbers.sent_next, u32::from_be_bytes([0, a, b, c]));
        let highest_serial = highest(numbers.sent_serial, u32::from_be_bytes([0, d, e, f]));
        let delay = DELAY_UNIT * self.integer()?.min(u32::from(u16::MAX));
        let (mut covered, mut marks, mut clock) = (None, None, None);
        if report {
            let field = self.integer()?;
            covered = Some((field % CLOCK / 2) as u16);
            clock = Some((field >> 16) as u16).filter(|_| field & CLOCK != 0);
            marks = if field % 2 == 1 { Some(u16::from_be_bytes(self.take()?)) } else { None };
        }
        let len = self.integer()? as usize;
        if len > MAX_VECTOR_LEN {
            return Err(Malformed::Vector);
        }
        let (vector, rest) = self.0.split_at_checked(len).ok_or(Malformed::Truncated)?;
        self.0 = rest;
        let vector = bytes.slice_ref(vector);
        Ok(Ack { next, highest_serial, delay, covered, marks, clock, vector })
    }
}
