//! What the tests of all link protocols need of this one, and how scripts write its frames.

use crate::notation::number;
use airmend_proto::agents::tulip::frame::{Ack, FrameKind};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{Ecn, Packet};
use std::time::Duration;

pub(crate) use airmend_proto::agents::tulip::frame::Frame;
pub(crate) use airmend_proto::agents::tulip::{Settings, Tulip as Station};

/// The queues of an end: two classes.
pub(crate) const QUEUES: usize = 2;

/// The folder of the scripts, which write frames so:
///
/// ```text
/// control #0 poll to 0            // kind, number, #serial, then what it has
/// unreliable 5 #1 after 2 poll more from 3 to 7 ack 0 +2 +3 highest 4 | udp (10)
/// control #0 serials ack 5 highest 9 covers 8 -7 -4   // serial numbers 7 and 4 have not arrived
/// ```
///
/// A number, serial number, epoch or ACK that is not written is 0, 1 and 2, or not there.
/// `serials`, `reads-version-2` and `reads-repairs` are read only. `ect0`, `ect1` and `ce` are the
/// ECN field of what carries the frame, for which its sender `answers` or not; `marks 3` of a
/// report tells of three marked ones.
pub(crate) const SCRIPTS: &str = "tests/tulip_scripts";

const FIELDS: [(&str, Ecn); 3] = [("ect0", Ecn::Ect0), ("ect1", Ecn::Ect1), ("ce", Ecn::Ce)];
const KINDS: [(&str, FrameKind); 5] = [
    ("control", FrameKind::Control),
    ("reliable", FrameKind::Reliable),
    ("unreliable", FrameKind::Unreliable),
    ("skip", FrameKind::Skip),
    ("repair", FrameKind::Repair),
];

pub(crate) fn parse_frame(packet: &Packet) -> Result<Frame, String> {
    Frame::parse(packet).map_err(|why| why.sentence().to_owned())
}

/// Reads the head of a frame.
pub(crate) fn read_frame(head: &str, payload: Option<Packet>) -> Result<Frame, String> {
    let mut words = head.split_whitespace().peekable();
    let kind = words.next().unwrap_or_default();
    let known = KINDS.iter().find(|(name, _)| *name == kind);
    let kind = known.ok_or(format!("`{kind}` is no kind of frame"))?.1;
    let mut frame = Frame {
        kind,
        poll: false,
        more: false,
        by_serial: false,
        reads_version_2: false,
        reads_repairs: false,
        answers_ce: false,
        outer_ecn: Ecn::NotEct,
        from: 2,
        to: 1,
        serial: SeqNumber(0),
        seq: SeqNumber(0),
        after: 0,
        ack: None,
        payload,
    };
    while let Some(word) = words.next() {
        let mut value = || number(words.next().ok_or(format!("`{word}` needs a number"))?);
        match word {
            "poll" => frame.poll = true,
            "more" => frame.more = true,
            "serials" => frame.by_serial = true,
            "reads-version-2" => frame.reads_version_2 = true,
            "reads-repairs" => frame.reads_repairs = true,
            "answers" => frame.answers_ce = true,
            "ect0" | "ect1" | "ce" => {
                let field = FIELDS.iter().find(|(name, _)| *name == word);
                frame.outer_ecn = field.map_or(Ecn::NotEct, |(_, field)| *field);
            }
            "marks" => ack_of(&mut frame)?.marks = Some(value()? as u16),
            "covers" => ack_of(&mut frame)?.covered = Some(value()? as u16),
            "after" => frame.after = value()? as u16,
            "from" => frame.from = value()?,
            "to" => frame.to = value()?,
            "ack" => frame.ack = Some(ack(value()?)),
            "highest" => ack_of(&mut frame)?.highest_serial = SeqNumber(value()?),
            _ => match word.split_at(1) {
                ("#", serial) => frame.serial = SeqNumber(number(serial)?),
                ("+", seq) => {
                    let ack = ack_of(&mut frame)?;
                    let bit = SeqNumber(number(seq)?).offset_from(ack.next + 1);
                    set_bit(ack, bit)?;
                }
                ("-", serial) => {
                    let ack = ack_of(&mut frame)?;
                    let bit = ack.highest_serial.offset_from(SeqNumber(number(serial)?));
                    set_bit(ack, bit)?;
                }
                _ => frame.seq = SeqNumber(number(word)?),
            },
        }
    }
    Ok(frame)
}

fn ack(next: u32) -> Ack {
    let (next, highest_serial) = (SeqNumber(next), SeqNumber(0));
    let (delay, vector) = (Duration::ZERO, Vec::new().into());
    Ack { next, highest_serial, delay, covered: None, marks: None, clock: None, vector }
}

fn ack_of(frame: &mut Frame) -> Result<&mut Ack, String> {
    frame.ack.as_mut().ok_or("`+N` and `highest` come after `ack N`".into())
}

fn set_bit(ack: &mut Ack, bit: i32) -> Result<(), String> {
    let bit = usize::try_from(bit).map_err(|_| "`+N` is above `ack`, `-N` below `highest`")?;
    let mut vector = ack.vector.to_vec();
    vector.resize(vector.len().max(bit / 8 + 1), 0);
    vector[bit / 8] |= 1 << (bit % 8);
    ack.vector = vector.into();
    Ok(())
}

/// A frame without its packet, as the scripts write it.
pub(crate) fn show(frame: &Frame) -> String {
    let kind = KINDS.iter().find(|(_, kind)| *kind == frame.kind).map_or("", |(name, _)| name);
    let mut words = vec![kind.to_string()];
    if frame.kind != FrameKind::Control {
        words.push(frame.seq.to_string());
    }
    words.push(format!("#{}", frame.serial));
    if frame.after != 0 {
        words.push(format!("after {}", frame.after));
    }
    let flags = [(frame.poll, "poll"), (frame.more, "more"), (frame.answers_ce, "answers")];
    words.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name.to_string()));
    let field = FIELDS.iter().find(|(_, field)| *field == frame.outer_ecn);
    words.extend(field.map(|(name, _)| name.to_string()));
    if frame.from != 1 {
        words.push(format!("from {}", frame.from));
    }
    if frame.to != 2 {
        words.push(format!("to {}", frame.to));
    }
    if let Some(ack) = &frame.ack {
        words.push(format!("ack {}", ack.next));
        words.extend(ack.arrived().map(|seq| format!("+{seq}")));
        words.push(format!("highest {}", ack.highest_serial));
        words.extend(ack.covered.map(|covered| format!("covers {covered}")));
        words.extend(ack.marks.map(|marks| format!("marks {marks}")));
        words.extend(ack.missing().map(|serial| format!("-{serial}")));
    }
    words.join(" ")
}
