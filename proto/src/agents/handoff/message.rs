//! The messages between base stations: versioned, and authenticated with a key that they share.
//!
//! ```text
//! 1 | kind | 0 | 0 | from (4) | to (4; 0: the group) | epoch (8) | counter (8) | body | tag
//! ```
//!
//! The first byte is the version. Numbers are big-endian. The tag is BLAKE2s with the key, of 16
//! bytes, over all that stands before it. Epoch and counter make each message unique, so that a
//! receiver can tell a replay.

use super::buffer::FlowState;
use crate::packet::{LinkType, Packet};
use crate::wire::flow::{Endpoint, FlowKey};
use crate::wire::seq::SeqNumber;
use alloc::vec::Vec;
use blake2::Blake2sMac;
use blake2::digest::Mac;
use blake2::digest::consts::U16;
use bytes::Bytes;
use core::fmt;
use core::time::Duration;

/// The version of the format.
const VERSION: u8 = 1;
const HEADER_LEN: usize = 28;
const TAG_LEN: usize = 16;
/// What a message adds to a packet that it carries, in bytes.
pub const DATA_OVERHEAD: usize = HEADER_LEN + TAG_LEN + 12;

const HELLO: u8 = 1;
const JOIN: u8 = 2;
const LEAVE: u8 = 3;
const CLAIM: u8 = 4;
const ATTACHED: u8 = 5;
const STATE: u8 = 6;
const DATA: u8 = 7;

/// The address of a mobile host, IPv6 or IPv4-mapped.
pub type Mobile = [u8; 16];

/// The number of a base station, unlike that of any other one; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u32);

/// The key that the base stations share.
#[derive(Clone)]
pub struct Key(pub [u8; 32]);

/// Without the key itself.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// The receiver of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The multicast group of all stations.
    Group,
    /// One station.
    Station(StationId),
}

/// What stands before the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) from: StationId,
    pub(super) to: To,
    /// The run of the sender: larger after each restart.
    pub(super) epoch: u64,
    /// Larger with each message of a run.
    pub(super) counter: u64,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    /// The stations that the sender has heard of, with their epochs.
    Hello(Vec<(StationId, u64)>),
    /// The sender will serve this mobile perhaps: it wants its packets.
    Join(Mobile),
    /// It wants them no longer.
    Leave(Mobile),
    /// The mobile is at the sender: its attachment of this number.
    Claim(Mobile, u32),
    /// The number of the last attachment: the answer to a station that joins, and to a claim with
    /// too low a number.
    Attached(Mobile, u32),
    /// What the claiming station must know of the mobile's flows.
    State(Mobile, u32, Vec<FlowState>),
    /// A packet for the mobile, whether its sender retransmitted it, and the mobile's last ACK.
    Data { packet: Packet, is_resent: bool, acked: Option<SeqNumber> },
}

/// Why a message is not processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is of another version.
    Version,
    /// The tag is wrong: it was made without the key, or changed.
    Forged,
    /// The tag is right and the content is not.
    Malformed,
}

fn tag(key: &Key, message: &[u8]) -> Option<Blake2sMac<U16>> {
    let mac: Blake2sMac<U16> = Mac::new_from_slice(&key.0).ok()?;
    Some(mac.chain_update(message))
}

/// The bytes of a message.
pub(super) fn seal(key: &Key, header: &Header, body: &Body) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER_LEN + TAG_LEN + 32);
    let to = match header.to {
        To::Group => 0,
        To::Station(StationId(station)) => station,
    };
    message.extend([VERSION, kind(body), 0, 0]);
    message.extend(header.from.0.to_be_bytes());
    message.extend(to.to_be_bytes());
    message.extend(header.epoch.to_be_bytes());
    message.extend(header.counter.to_be_bytes());
    write(body, &mut message);
    append_tag(key, &mut message);
    message
}

fn append_tag(key: &Key, message: &mut Vec<u8>) {
    let tag = tag(key, message).map(|mac| mac.finalize().into_bytes());
    message.extend(tag.unwrap_or_default());
}

/// Any content with the tag of this key, as a host with the key could send it.
#[cfg(feature = "fuzzing")]
pub fn authenticate(key: &Key, content: &[u8]) -> Vec<u8> {
    let mut message = content.to_vec();
    append_tag(key, &mut message);
    message
}

/// Bytes of a message on the wire, if the packet in it had been captured whole: packets of the
/// simulator have no payload.
pub fn wire_len(message: &[u8]) -> u32 {
    let len = message.len() as u32;
    let is_data = message.get(1) == Some(&DATA);
    let field = message.get(HEADER_LEN + 8..).and_then(|rest| rest.first_chunk());
    match field.filter(|_| is_data) {
        Some(wire_len) => {
            let captured = len.saturating_sub(DATA_OVERHEAD as u32);
            len.saturating_add(u32::from_be_bytes(*wire_len).saturating_sub(captured))
        }
        None => len,
    }
}

/// Reads a message and verifies its tag.
pub(super) fn open(key: &Key, message: &[u8]) -> Result<(Header, Body), Refusal> {
    if message.first().is_some_and(|version| *version != VERSION) {
        return Err(Refusal::Version);
    }
    let len = message.len().checked_sub(TAG_LEN).filter(|len| *len >= HEADER_LEN);
    let (content, expected) = message.split_at(len.ok_or(Refusal::Malformed)?);
    if tag(key, content).is_none_or(|mac| mac.verify_slice(expected).is_err()) {
        return Err(Refusal::Forged);
    }
    read(content).ok_or(Refusal::Malformed)
}

fn kind(body: &Body) -> u8 {
    match body {
        Body::Hello(_) => HELLO,
        Body::Join(_) => JOIN,
        Body::Leave(_) => LEAVE,
        Body::Claim(..) => CLAIM,
        Body::Attached(..) => ATTACHED,
        Body::State(..) => STATE,
        Body::Data { .. } => DATA,
    }
}

fn write(body: &Body, out: &mut Vec<u8>) {
    match body {
        Body::Hello(heard) => {
            for (StationId(station), epoch) in heard {
                out.extend(station.to_be_bytes());
                out.extend(epoch.to_be_bytes());
            }
        }
        Body::Join(mobile) | Body::Leave(mobile) => out.extend(mobile),
        Body::Claim(mobile, number) | Body::Attached(mobile, number) => {
            out.extend(mobile);
            out.extend(number.to_be_bytes());
        }
        Body::State(mobile, number, flows) => {
            out.extend(mobile);
            out.extend(number.to_be_bytes());
            flows.iter().for_each(|flow| write_flow(flow, out));
        }
        Body::Data { packet, is_resent, acked } => {
            let flags = u8::from(*is_resent)
                | u8::from(acked.is_some()) << 1
                | u8::from(packet.link_type() == LinkType::Ethernet) << 2;
            out.extend([flags, 0, 0, 0]);
            out.extend(acked.unwrap_or(SeqNumber(0)).0.to_be_bytes());
            out.extend(packet.wire_len().to_be_bytes());
            out.extend(packet.bytes());
        }
    }
}

fn write_flow(flow: &FlowState, out: &mut Vec<u8>) {
    let [sacked, resent] = [&flow.sacked, &flow.resent].map(|spans| spans.len().min(255) as u8);
    out.extend(flow.key.wired.address);
    out.extend(flow.key.wired.port.to_be_bytes());
    out.extend(flow.key.air.port.to_be_bytes());
    let known = u8::from(flow.acked.is_some()) | u8::from(flow.ts_recent.is_some()) << 1;
    out.extend([known, sacked, resent, 0]);
    out.extend(flow.ts_recent.unwrap_or(0).to_be_bytes());
    out.extend(flow.acked.unwrap_or(SeqNumber(0)).0.to_be_bytes());
    let round_trip = flow.air_round_trip.map_or(0, |round_trip| round_trip.as_micros());
    out.extend(u32::try_from(round_trip).unwrap_or(u32::MAX).to_be_bytes());
    for (spans, count) in [(&flow.sacked, sacked), (&flow.resent, resent)] {
        for (start, end) in spans.iter().take(count.into()) {
            out.extend(start.0.to_be_bytes());
            out.extend(end.0.to_be_bytes());
        }
    }
}

fn read(message: &[u8]) -> Option<(Header, Body)> {
    let mut bytes = Reader(message);
    let [_, kind, ..] = bytes.take::<4>()?;
    let from = StationId(bytes.word()?);
    let to = match bytes.word()? {
        0 => To::Group,
        station => To::Station(StationId(station)),
    };
    let [epoch, counter] = [bytes.long()?, bytes.long()?];
    let body = match kind {
        HELLO => {
            let mut heard = Vec::new();
            while !bytes.0.is_empty() {
                heard.push((StationId(bytes.word()?), bytes.long()?));
            }
            Body::Hello(heard)
        }
        JOIN => Body::Join(bytes.take()?),
        LEAVE => Body::Leave(bytes.take()?),
        CLAIM => Body::Claim(bytes.take()?, bytes.word()?),
        ATTACHED => Body::Attached(bytes.take()?, bytes.word()?),
        STATE => {
            let (mobile, number) = (bytes.take()?, bytes.word()?);
            let mut flows = Vec::new();
            while !bytes.0.is_empty() {
                flows.push(read_flow(&mut bytes, mobile)?);
            }
            Body::State(mobile, number, flows)
        }
        DATA => read_data(&mut bytes)?,
        _ => return None,
    };
    (from.0 != 0 && bytes.0.is_empty()).then_some((Header { from, to, epoch, counter }, body))
}

fn read_flow(bytes: &mut Reader<'_>, mobile: Mobile) -> Option<FlowState> {
    let wired = Endpoint { address: bytes.take()?, port: bytes.half()? };
    let air = Endpoint { address: mobile, port: bytes.half()? };
    let [known, sacked, resent, _] = bytes.take()?;
    let ts_recent = bytes.word()?;
    let acked = SeqNumber(bytes.word()?);
    let round_trip = bytes.word()?;
    let mut spans = |count: u8| -> Option<Vec<_>> {
        (0..count).map(|_| Some((SeqNumber(bytes.word()?), SeqNumber(bytes.word()?)))).collect()
    };
    let (sacked, resent) = (spans(sacked)?, spans(resent)?);
    Some(FlowState {
        key: FlowKey { wired, air },
        acked: (known & 1 != 0).then_some(acked),
        ts_recent: (known & 2 != 0).then_some(ts_recent),
        air_round_trip: (round_trip != 0).then(|| Duration::from_micros(round_trip.into())),
        sacked,
        resent,
    })
}

fn read_data(bytes: &mut Reader<'_>) -> Option<Body> {
    let [flags, ..] = bytes.take::<4>()?;
    let acked = SeqNumber(bytes.word()?);
    let wire_len = bytes.word()?;
    let link_type = if flags & 4 == 0 { LinkType::Ip } else { LinkType::Ethernet };
    let captured = Bytes::copy_from_slice(bytes.0);
    if (wire_len as usize) < captured.len() {
        return None;
    }
    bytes.0 = &[];
    Some(Body::Data {
        packet: Packet::truncated(link_type, captured, wire_len),
        is_resent: flags & 1 != 0,
        acked: (flags & 2 != 0).then_some(acked),
    })
}

/// The rest of a message.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn half(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const KEY: Key = Key([7; 32]);
    const HEADER: Header =
        Header { from: StationId(1), to: To::Station(StationId(2)), epoch: 3, counter: 4 };

    fn bodies() -> Vec<Body> {
        let key = FlowKey {
            wired: ([10, 0, 0, 1], 80).into(),
            air: Endpoint { address: [9; 16], port: 5 },
        };
        let spans = vec![(SeqNumber(7), SeqNumber(9)), (SeqNumber(u32::MAX), SeqNumber(2))];
        let full = FlowState {
            key,
            acked: Some(SeqNumber(6)),
            ts_recent: Some(0),
            air_round_trip: Some(Duration::from_micros(4_001)),
            sacked: spans.clone(),
            resent: spans,
        };
        let empty = FlowState {
            acked: None,
            ts_recent: None,
            air_round_trip: None,
            sacked: vec![],
            resent: vec![],
            ..full.clone()
        };
        let packet = Packet::new(LinkType::Ethernet, Bytes::from_static(b"packet"));
        vec![
            Body::Hello(vec![]),
            Body::Hello(vec![(StationId(9), u64::MAX), (StationId(1), 0)]),
            Body::Join([9; 16]),
            Body::Leave([9; 16]),
            Body::Claim([9; 16], 1),
            Body::Attached([9; 16], u32::MAX),
            Body::State([9; 16], 1, vec![]),
            Body::State([9; 16], 1, vec![full, empty]),
            Body::Data { packet, is_resent: true, acked: Some(SeqNumber(8)) },
            Body::Data {
                packet: Packet::truncated(LinkType::Ip, Bytes::from_static(b"head"), 1_500),
                is_resent: false,
                acked: None,
            },
        ]
    }

    #[test]
    fn what_is_sealed_can_be_opened() {
        for body in bodies() {
            let message = seal(&KEY, &HEADER, &body);
            let missing = match &body {
                Body::Data { packet, .. } => packet.wire_len() - packet.bytes().len() as u32,
                _ => 0,
            };
            assert_eq!(wire_len(&message), message.len() as u32 + missing);
            assert_eq!(open(&KEY, &message), Ok((HEADER, body)));
        }
    }

    #[test]
    fn a_message_that_was_changed_anywhere_is_refused() {
        for body in bodies() {
            let message = seal(&KEY, &HEADER, &body);
            for index in 0..message.len() {
                let mut changed = message.clone();
                changed[index] ^= 1;
                let refusal = if index == 0 { Refusal::Version } else { Refusal::Forged };
                assert_eq!(open(&KEY, &changed), Err(refusal));
            }
            for len in 0..message.len() {
                assert!(open(&KEY, &message[..len]).is_err());
            }
            assert_eq!(open(&Key([8; 32]), &message), Err(Refusal::Forged));
        }
    }

    #[test]
    fn a_right_tag_around_wrong_content_is_refused() {
        for body in bodies() {
            let message = seal(&KEY, &HEADER, &body);
            for len in HEADER_LEN..message.len() - TAG_LEN {
                let mut cut = message[..len].to_vec();
                let tag = tag(&KEY, &cut).unwrap().finalize().into_bytes();
                cut.extend(tag);
                // A list may end early, and a packet be shorter.
                match open(&KEY, &cut) {
                    Ok((_, Body::Hello(_) | Body::State(..) | Body::Data { .. })) => {}
                    other => assert_eq!(other, Err(Refusal::Malformed)),
                }
            }
        }
    }
}
