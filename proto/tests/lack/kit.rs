//! What the tests of all link protocols need of this one, and how scripts write its frames.

use crate::notation::number;
use airmend_proto::Packet;
use airmend_proto::agents::lack::frame::{Ack, FrameKind, run};
use airmend_proto::wire::seq::SeqNumber;
use std::time::Duration;

pub(crate) use airmend_proto::agents::lack::frame::Frame;
pub(crate) use airmend_proto::agents::lack::{Lack as Station, Settings};

/// The queues of an end: two classes, and what its senders have sent before.
pub(crate) const QUEUES: usize = 3;

/// The folder of the scripts, which write frames so:
///
/// ```text
/// hello 1 2                       // the epochs of sender and receiver
/// packet 5 #7 after 1 ack 4 heard 9 +9 +7 -8 | udp (10)
/// ```
///
/// This is packet 5 in transmission 7, after packet 4, with a local ACK: packet 4 is expected next,
/// transmission 9 is the highest of which it knows, CACKs of 9 and 7, an EACK of 8. `of 3 2` names
/// other epochs than those of both ends.
pub(crate) const SCRIPTS: &str = "tests/lack_scripts";

const KINDS: [(&str, FrameKind); 5] = [
    ("ack", FrameKind::Ack),
    ("packet", FrameKind::Packet),
    ("once", FrameKind::Once),
    ("skip", FrameKind::Skip),
    ("hello", FrameKind::Hello),
];
/// The epochs that scripts use.
const EPOCHS: [u32; 6] = [0, 1, 2, 9, 1000, 1001];

pub(crate) fn parse_frame(packet: &Packet) -> Result<Frame, String> {
    Frame::parse(packet).map_err(|why| why.sentence().to_owned())
}

/// Reads the head of a frame.
pub(crate) fn read_frame(head: &str, payload: Option<Packet>) -> Result<Frame, String> {
    let mut words = head.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let known = KINDS.iter().find(|(name, _)| *name == kind);
    let kind = known.ok_or(format!("`{kind}` is no kind of frame"))?.1;
    let mut next = || number(words.next().ok_or("a number is missing")?);
    if kind == FrameKind::Hello {
        return Ok(Frame::hello(next()?, next()?));
    }
    let mut frame = Frame { payload, ..Frame::bare(kind, run(2, 1)) };
    if kind == FrameKind::Ack {
        frame.ack = Some(ack(next()?));
    }
    while let Some(word) = words.next() {
        let mut value = || number(words.next().ok_or(format!("`{word}` needs a number"))?);
        match word {
            "after" => frame.after = Some(value()? as u16),
            "of" => frame.run = run(value()?, value()?),
            "ack" => frame.ack = Some(ack(value()?)),
            "heard" => ack_of(&mut frame)?.serial = SeqNumber(value()?),
            _ => match word.split_at(1) {
                ("#", serial) => frame.serial = SeqNumber(number(serial)?),
                ("+", serial) => ack_of(&mut frame)?.correct |= bit(ack_of(&mut frame)?, serial)?,
                ("-", serial) => {
                    ack_of(&mut frame)?.erroneous |= bit(ack_of(&mut frame)?, serial)?;
                }
                _ => frame.seq = SeqNumber(number(word)?),
            },
        }
    }
    Ok(frame)
}

fn ack(next: u32) -> Ack {
    let (next, serial) = (SeqNumber(next), SeqNumber(0));
    Ack { next, serial, delay: Duration::ZERO, correct: 0, erroneous: 0 }
}

fn ack_of(frame: &mut Frame) -> Result<&mut Ack, String> {
    frame.ack.as_mut().ok_or("`heard`, `+N` and `-N` come after `ack N`".into())
}

fn bit(ack: &Ack, serial: &str) -> Result<u32, String> {
    let behind = ack.serial.offset_from(SeqNumber(number(serial)?));
    let behind = u32::try_from(behind).ok().filter(|behind| *behind < 32);
    behind.map(|behind| 1 << behind).ok_or("a local ACK covers 32 transmissions".into())
}

/// A frame without its packet, as the scripts write it.
pub(crate) fn show(frame: &Frame) -> String {
    let kind = KINDS.iter().find(|(_, kind)| *kind == frame.kind).map_or("", |(name, _)| name);
    if frame.kind == FrameKind::Hello {
        return format!("hello {} {}", frame.from, frame.to);
    }
    let mut words = vec![kind.to_string()];
    if frame.kind != FrameKind::Ack {
        words.extend([frame.seq.to_string(), format!("#{}", frame.serial)]);
    }
    words.extend(frame.after.map(|after| format!("after {after}")));
    if frame.run != run(1, 2) {
        let pairs = EPOCHS.iter().flat_map(|from| EPOCHS.iter().map(move |to| (*from, *to)));
        let pair = pairs.into_iter().find(|(from, to)| run(*from, *to) == frame.run);
        words.push(pair.map_or("of ? ?".into(), |(from, to)| format!("of {from} {to}")));
    }
    if let Some(ack) = &frame.ack {
        let name = if frame.kind == FrameKind::Ack { "" } else { "ack " };
        words.push(format!("{name}{} heard {}", ack.next, ack.serial));
        for (sign, bits) in [('+', ack.correct), ('-', ack.erroneous)] {
            let set = (0..32).filter(|bit| bits >> bit & 1 == 1);
            words.extend(set.map(|bit| format!("{sign}{}", ack.serial - bit)));
        }
    }
    words.join(" ")
}
