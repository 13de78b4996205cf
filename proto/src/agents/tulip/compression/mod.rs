//! Header compression: between two ends that both know it, frames cross in a short form, and the
//! TCP, UDP and IP headers of the packets in them as differences.
//!
//! The agent and everything else sees the frames of [`super::frame`]. A [`Compressor`] stands
//! between the agent and what carries its frames, sees all of them in both directions, and knows
//! from them what the other end knows: its epoch, the numbers that it has acknowledged, and the
//! headers that it holds. The format is in `docs/wire-tulip.md`.

mod check;
mod contexts;
mod headers;
mod layout;
mod numbers;
mod short_frame;
#[cfg(test)]
mod tests;

use super::frame::{Frame, FrameKind};
use crate::agents::arq::Malformed;
use crate::ecn::Ecn;
use crate::packet::{LinkType, Packet};
use crate::wire::seq::SeqNumber;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use contexts::{Receiver, Sender};
use headers::Headers;
use layout::Layout;
use short_frame::{BECOMES, DIFFERENCES, ETHERNET, Head, Numbers, READS_REPAIRS, REPAIR};

/// The header compression of one end.
#[derive(Clone, Debug)]
pub struct Compressor {
    /// Whether this end sends the short form at all; it reads it always.
    is_on: bool,
    hash_seed: u64,
    /// The epochs of this end and of the other one in the last frame of the agent; 0 for unknown.
    epochs: (u32, u32),
    /// Whether this end reads reports, as its last whole frame has told.
    by_serial: bool,
    /// Whether it reads repair frames, as its last control frame has told.
    reads_repairs: bool,
    /// The last whole frame of the other end, if it reads the short form.
    heard: Option<Heard>,
    numbers: Numbers,
    sender: Sender,
    receiver: Receiver,
    /// Memory that serves again: what stands before a packet, and frames that have been expanded.
    head: Vec<u8>,
    expanded: BytesMut,
    /// The other end must learn the epochs: it has sent a frame that cannot be read.
    must_tell: bool,
}

/// The constants of a session, which frames in short form leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heard {
    from: u32,
    to: u32,
    by_serial: bool,
}

impl Compressor {
    /// Nothing is known of the other end. Without `is_on` frames are only expanded, and all leave
    /// whole. By the seed, which others do not know, flows have places for their contexts.
    pub fn new(is_on: bool, hash_seed: u64) -> Self {
        Self {
            is_on,
            hash_seed,
            epochs: (0, 0),
            by_serial: false,
            reads_repairs: false,
            heard: None,
            numbers: Numbers::default(),
            sender: Sender::new(hash_seed),
            receiver: Receiver::new(),
            head: Vec::new(),
            expanded: BytesMut::new(),
            must_tell: false,
        }
    }

    /// What crosses in the place of a frame of the agent, and whether that has the short form.
    pub fn compress(&mut self, packet: Packet) -> (Bytes, bool) {
        let Ok(frame) = Frame::parse(&packet) else { return (packet.shared_bytes(), false) };
        if (frame.from, frame.to) != self.epochs {
            self.epochs = (frame.from, frame.to);
            self.numbers = Numbers::default();
            (self.sender, self.receiver) = (Sender::new(self.hash_seed), Receiver::new());
        }
        let is_captured = packet.bytes().len() == packet.wire_len() as usize;
        let is_constant = frame.by_serial == self.by_serial && frame.reads_version_2 && !frame.more;
        let is_short = self.is_on && self.is_agreed() && is_captured && is_constant;
        self.by_serial = frame.by_serial;
        if frame.kind == FrameKind::Control {
            self.reads_repairs = frame.reads_repairs;
        }
        if !is_short {
            self.numbers.sent(&frame);
            return (packet.shared_bytes(), false);
        }
        let mut head = core::mem::take(&mut self.head);
        head.clear();
        let headers_len = self.write_short(&frame, &mut head);
        self.numbers.sent(&frame);
        let payload_len = frame.payload.as_ref().map_or(0, |payload| payload.bytes().len());
        let bytes = packet.shared_bytes();
        let behind = bytes.len() - payload_len + headers_len;
        // Nobody else may have the bytes that are written over.
        drop((frame, packet));
        let bytes = with_head(bytes, behind, &head);
        self.head = head;
        (bytes, true)
    }

    /// The frame of the other end that has crossed as `packet`.
    ///
    /// # Errors
    /// It is cut, or it cannot be read with what this end knows.
    pub fn expand(&mut self, packet: Packet) -> Result<Packet, Malformed> {
        match packet.bytes().first() {
            Some(first) if first >> 4 == short_frame::VERSION => {
                let result = self.read_short(&packet);
                self.must_tell |= result.is_err();
                result
            }
            _ => {
                self.hear(&packet);
                Ok(packet)
            }
        }
    }

    /// A frame that this end must send by itself: it tells the epochs to an other end whose frames
    /// cannot be read, since one of both has restarted.
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        let (from, to) = self.epochs;
        if !core::mem::take(&mut self.must_tell) || from == 0 {
            return None;
        }
        let frame = Frame {
            kind: FrameKind::Control,
            poll: true,
            more: false,
            by_serial: self.by_serial,
            reads_version_2: true,
            reads_repairs: self.reads_repairs,
            answers_ce: false,
            outer_ecn: Ecn::NotEct,
            from,
            to,
            serial: self.numbers.sent_serial(),
            seq: SeqNumber(0),
            after: 0,
            ack: None,
            payload: None,
        };
        Some(frame.emit())
    }

    /// Whether the other end reads the short form, and has shown that it knows both epochs.
    fn is_agreed(&self) -> bool {
        self.heard.is_some_and(|heard| (heard.to, heard.from) == self.epochs)
    }

    /// Takes note of a whole frame.
    fn hear(&mut self, packet: &Packet) {
        let Ok(frame) = Frame::parse(packet) else { return };
        let Frame { from, to, by_serial, reads_version_2, .. } = frame;
        if let Some(heard) = &mut self.heard
            && SeqNumber(from) < SeqNumber(heard.from)
        {
            // From a former run, or from a run with too low an epoch: the answer must be whole.
            heard.to = 0;
            return;
        }
        self.heard = reads_version_2.then_some(Heard { from, to, by_serial });
        if (to, from) == self.epochs {
            self.take(&frame);
        }
    }

    /// Takes note of a frame of the present session.
    fn take(&mut self, frame: &Frame) {
        self.numbers.received(frame);
        if let Some(ack) = frame.ack.as_ref().filter(|ack| ack.covered.is_some()) {
            self.sender.acknowledge(ack);
        }
    }

    /// Appends a frame in short form up to the part of its packet that crosses as it is. Returns
    /// the length of the headers before that part.
    fn write_short(&mut self, frame: &Frame, out: &mut Vec<u8>) -> usize {
        let open = short_frame::write(&self.numbers, frame, out);
        let mut flags = if frame.reads_repairs { READS_REPAIRS } else { 0 };
        let mut headers = &[][..];
        if frame.kind == FrameKind::Repair {
            flags |= REPAIR;
        } else if let Some(payload) = &frame.payload {
            let form = self.sender.write(frame.serial, payload, out);
            flags |= if payload.link_type() == LinkType::Ethernet { ETHERNET } else { 0 };
            flags |= if form.by.is_some() { DIFFERENCES } else { 0 };
            flags |= if form.becomes.is_some() { BECOMES } else { 0 };
            headers = &payload.bytes()[..form.headers_len];
        }
        open.close(frame, flags, headers, out);
        headers.len()
    }

    fn read_short(&mut self, packet: &Packet) -> Result<Packet, Malformed> {
        let (own, peer) = self.epochs;
        let heard = self.heard.filter(|heard| heard.from == peer).ok_or(Malformed::Unknown)?;
        let bytes = packet.shared_bytes();
        let mut head = short_frame::read(&self.numbers, (peer, own), &bytes)?;
        head.frame.by_serial = heard.by_serial;
        head.frame.outer_ecn = packet.outer_ecn();
        let body = match head.frame.kind {
            FrameKind::Reliable | FrameKind::Unreliable => {
                Some(self.read_payload(&mut head, packet)?)
            }
            FrameKind::Repair => {
                Some(Body { link_type: LinkType::Ip, headers: None, becomes: None })
            }
            FrameKind::Control | FrameKind::Skip => None,
        };
        if head.computed != head.check {
            return Err(Malformed::Unknown);
        }
        self.heard = Some(Heard { to: own, ..heard });
        self.take(&head.frame);
        let Some(body) = body else { return Ok(head.frame.emit()) };
        let headers = body.headers.as_ref().map_or(&[][..], Headers::bytes);
        let parts = [headers, &packet.bytes()[head.at..]];
        let whole = head.frame.emit_in_parts(body.link_type, parts, &mut self.expanded);
        if let Some((number, headers)) = body.becomes {
            self.receiver.set(number, head.frame.serial, headers);
        }
        whole.ok_or(Malformed::Unknown)
    }

    /// Reads the packet in a frame, up to the part of it that crosses as it is.
    fn read_payload(&self, head: &mut Head, packet: &Packet) -> Result<Body, Malformed> {
        let link_type = if head.flags & ETHERNET != 0 { LinkType::Ethernet } else { LinkType::Ip };
        let mut next = || {
            let byte = packet.bytes().get(head.at).copied().ok_or(Malformed::Truncated);
            head.at += 1;
            byte
        };
        let becomes = if head.flags & BECOMES != 0 { Some(next()?) } else { None };
        let by = if head.flags & DIFFERENCES != 0 { Some(next()?) } else { None };
        let rest = packet.bytes().get(head.at..).ok_or(Malformed::Truncated)?;
        let Some(number) = by else {
            let becomes = becomes.map(|number| {
                let payload = Packet::new(link_type, packet.shared_bytes().slice(head.at..));
                let layout = Layout::of(&payload).ok_or(Malformed::Unknown)?;
                Ok((number, Headers::new(&payload, layout)))
            });
            return Ok(Body { link_type, headers: None, becomes: becomes.transpose()? });
        };
        let context = self.receiver.get(number).ok_or(Malformed::Unknown)?;
        let (read, len) = context.read(rest, rest.len()).ok_or(Malformed::Unknown)?;
        if read.link_type() != link_type {
            return Err(Malformed::Unknown);
        }
        head.at += len;
        head.computed = check::more(head.computed, read.bytes());
        let becomes = becomes.map(|number| (number, read.clone()));
        Ok(Body { link_type, headers: Some(read), becomes })
    }
}

/// What is read of a packet before the part of it that crosses as it is.
#[derive(Debug)]
struct Body {
    link_type: LinkType,
    /// The headers that crossed as differences.
    headers: Option<Headers>,
    /// The context that the packet becomes.
    becomes: Option<(u8, Headers)>,
}

/// These bytes from `behind` on with `head` before them; in their place if nobody else has them.
fn with_head(bytes: Bytes, behind: usize, head: &[u8]) -> Bytes {
    let copied = |bytes: &[u8]| [head, &bytes[behind..]].concat().into();
    let Some(begin) = behind.checked_sub(head.len()) else { return copied(&bytes) };
    match bytes.try_into_mut() {
        Ok(mut bytes) => {
            bytes[begin..behind].copy_from_slice(head);
            bytes.freeze().slice(begin..)
        }
        Err(bytes) => copied(&bytes),
    }
}
