//! TULIP frames, as `docs/wire-tulip.md` lays them out: a fixed header, perhaps a link ACK with the
//! bit vector of the receiver's complete state [tulip99 §III S2-03], and a packet.

use crate::named;
use crate::packet::{LinkType, Packet};
use crate::wire::seq::SeqNumber;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// Length of the fixed header, in bytes.
pub const HEADER_LEN: usize = 22;
/// Length of a link ACK before its bit vector, in bytes.
pub const ACK_LEN: usize = 12;
/// The longest bit vector, in bytes. It limits the window to one frame more than its bits.
pub const MAX_VECTOR_LEN: usize = 512;
/// The widest window of any end, in frames.
pub const MAX_WINDOW: u32 = MAX_VECTOR_LEN as u32 * 8;

const VERSION: u8 = 1;
/// The delay of a link ACK counts in these.
const DELAY_UNIT: Duration = Duration::from_micros(16);

const ACK: u8 = 0x01;
const POLL: u8 = 0x02;
const MORE: u8 = 0x04;
const ETHERNET: u8 = 0x08;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing but what the header and the link ACK say.
    Control = 0,
    /// A packet that is sent again until it has arrived.
    Reliable = 1,
    /// A packet that is sent once.
    Unreliable = 2,
    /// The sender has given up the packet with this number: the receiver shall not wait for it.
    Skip = 3,
}

/// The state of a receiver, complete [tulip99 §III S2-03].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ack {
    /// The lowest sequence number that has not arrived.
    pub next: SeqNumber,
    /// The highest serial number heard of: what was transmitted no later and is not acknowledged
    /// here is lost, unless the link reorders.
    pub heard: SeqNumber,
    /// How long the receiver has held this back since it heard of `heard`.
    pub delay: Duration,
    /// Bit `i` of byte `j`, counted from the lowest: `next + 1 + 8 j + i` has arrived.
    pub vector: Bytes,
}

impl Ack {
    /// The numbers above `next` that have arrived.
    pub fn arrived(&self) -> impl Iterator<Item = SeqNumber> + '_ {
        let bits = self.vector.iter().zip(0u32..).filter(|(byte, _)| **byte != 0);
        let first = self.next + 1;
        bits.flat_map(move |(byte, j)| {
            (0..8).filter(move |i| byte >> i & 1 == 1).map(move |i| first + (8 * j + i))
        })
    }
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// What it is for.
    pub kind: Kind,
    /// A link ACK is wanted at once. On a half-duplex link whoever sent this listens for it, so
    /// that it may come back without a new acquisition of the channel [tulip99 §III S2-06].
    pub poll: bool,
    /// Half duplex: another frame of the same turn follows [tulip99 §III S2-05].
    pub more: bool,
    /// Epoch of the end that sent this.
    pub from: u32,
    /// Epoch of the end that this is for; 0 if the sender has not heard of it.
    pub to: u32,
    /// Counts transmissions of frames that are not control frames. A control frame repeats the
    /// serial number of the last one that was not.
    pub serial: SeqNumber,
    /// The number of a reliable packet; in other frames that of the next one.
    pub seq: SeqNumber,
    /// The packet may not overtake the reliable one whose number is so much lower; 0 for none.
    pub after: u16,
    /// The state of the sender's own receiver.
    pub ack: Option<Ack>,
    /// The packet; reliable and unreliable frames have one.
    pub payload: Option<Packet>,
}

/// A frame cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// Its version is not known here.
    Version,
    /// Its kind is not known here.
    Kind,
    /// It is shorter than its header says, or not captured up to the packet.
    Truncated,
    /// The epoch of its sender is 0.
    Epoch,
    /// Its bit vector is longer than the widest window.
    Vector,
}

named! { Malformed:
Version = "a version other than 1", Kind = "a kind other than 0 to 3",
Truncated = "shorter than its header says", Epoch = "a sender's epoch of 0",
Vector = "a bit vector of more than 512 bytes" }

impl Frame {
    /// Reads a frame; it shares the packet's bytes. What follows the payload pads a link's
    /// shortest frame and is left out. Unknown flags are ignored.
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
            0 => Kind::Control,
            1 => Kind::Reliable,
            2 => Kind::Unreliable,
            3 => Kind::Skip,
            _ => return Err(Malformed::Kind),
        };
        let (numbers, after) = numbers.split_at(16);
        let ack = if flags & ACK == 0 { None } else { Some(parse_ack(packet)?) };
        let at = HEADER_LEN + ack.as_ref().map_or(0, |ack| ACK_LEN + ack.vector.len());
        let payload_len = usize::from(u16::from_be_bytes([l0, l1]));
        if at + payload_len > packet.wire_len() as usize {
            return Err(Malformed::Truncated);
        }
        let has_payload = matches!(kind, Kind::Reliable | Kind::Unreliable);
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
            from,
            to: word(numbers, 4),
            serial: SeqNumber(word(numbers, 8)),
            seq: SeqNumber(word(numbers, 12)),
            after: half(after, 0),
            ack,
            payload,
        })
    }

    /// Length on the wire, in bytes.
    pub fn wire_len(&self) -> u32 {
        let payload_len = self.payload.as_ref().map_or(0, |payload| self.payload_len(payload));
        self.header_len() as u32 + u32::from(payload_len)
    }

    /// The frame as the link carries it. Of a payload longer than 65,535 bytes it carries so much.
    pub fn emit(&self) -> Packet {
        let captured = self.payload.as_ref().map_or(&[][..], Packet::bytes);
        let payload_len = self.payload.as_ref().map_or(0, |payload| self.payload_len(payload));
        let captured = captured.get(..usize::from(payload_len)).unwrap_or(captured);
        // Not a byte more: shared bytes of just this length need no allocation beside them.
        let mut bytes = Vec::with_capacity(self.header_len() + captured.len());
        bytes.extend([VERSION << 4 | self.kind as u8, self.flags()]);
        bytes.extend(payload_len.to_be_bytes());
        for number in [self.from, self.to, self.serial.0, self.seq.0] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(self.after.to_be_bytes());
        if let Some(ack) = &self.ack {
            bytes.extend(ack.next.0.to_be_bytes());
            bytes.extend(ack.heard.0.to_be_bytes());
            let delay = ack.delay.as_nanos() / DELAY_UNIT.as_nanos();
            bytes.extend(u16::try_from(delay).unwrap_or(u16::MAX).to_be_bytes());
            let vector = ack.vector.get(..MAX_VECTOR_LEN).unwrap_or(&ack.vector);
            bytes.extend((vector.len() as u16).to_be_bytes());
            bytes.extend(vector);
        }
        bytes.extend(captured);
        Packet::truncated(LinkType::Tulip, bytes.into(), self.wire_len())
    }

    fn header_len(&self) -> usize {
        let ack = self.ack.as_ref();
        HEADER_LEN + ack.map_or(0, |ack| ACK_LEN + ack.vector.len().min(MAX_VECTOR_LEN))
    }

    fn payload_len(&self, payload: &Packet) -> u16 {
        u16::try_from(payload.wire_len()).unwrap_or(u16::MAX)
    }

    fn flags(&self) -> u8 {
        let is_ethernet =
            self.payload.as_ref().is_some_and(|payload| payload.link_type() == LinkType::Ethernet);
        let set = |flag, is_set| if is_set { flag } else { 0 };
        set(ACK, self.ack.is_some())
            | set(POLL, self.poll)
            | set(MORE, self.more)
            | set(ETHERNET, is_ethernet)
    }
}

fn parse_ack(packet: &Packet) -> Result<Ack, Malformed> {
    let fixed = packet.bytes().get(HEADER_LEN..HEADER_LEN + ACK_LEN);
    let fixed = fixed.ok_or(Malformed::Truncated)?;
    let vector_len = usize::from(half(fixed, 10));
    if vector_len > MAX_VECTOR_LEN {
        return Err(Malformed::Vector);
    }
    let at = HEADER_LEN + ACK_LEN;
    if at + vector_len > packet.bytes().len() {
        return Err(Malformed::Truncated);
    }
    Ok(Ack {
        next: SeqNumber(word(fixed, 0)),
        heard: SeqNumber(word(fixed, 4)),
        delay: DELAY_UNIT * u32::from(half(fixed, 8)),
        vector: packet.shared_bytes().slice(at..at + vector_len),
    })
}

/// The 32-bit number at `at`, which the caller knows to be there.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from(half(bytes, at)) << 16 | u32::from(half(bytes, at + 2))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ack() -> impl Strategy<Value = Ack> {
        let vector = prop::collection::vec(any::<u8>(), 0..=MAX_VECTOR_LEN);
        (any::<u32>(), any::<u32>(), any::<u16>(), vector).prop_map(
            |(next, heard, delay, vector)| Ack {
                next: SeqNumber(next),
                heard: SeqNumber(heard),
                delay: DELAY_UNIT * u32::from(delay),
                vector: vector.into(),
            },
        )
    }

    fn frame() -> impl Strategy<Value = Frame> {
        let payload = (prop::collection::vec(any::<u8>(), 0..100), 0u32..65_000, any::<bool>());
        let numbers = any::<([u32; 4], u16, bool, bool)>();
        (0u8..4, numbers, prop::option::of(ack()), payload).prop_map(
            |(kind, ([from, to, serial, seq], after, poll, more), ack, payload)| {
                let (bytes, uncaptured, is_ethernet) = payload;
                let link_type = if is_ethernet { LinkType::Ethernet } else { LinkType::Ip };
                let wire_len = bytes.len() as u32 + uncaptured;
                let payload = Packet::truncated(link_type, bytes.into(), wire_len);
                let kinds = [Kind::Control, Kind::Reliable, Kind::Unreliable, Kind::Skip];
                let kind = kinds[usize::from(kind)];
                let has_payload = matches!(kind, Kind::Reliable | Kind::Unreliable);
                Frame {
                    kind,
                    poll,
                    more,
                    from: from.max(1),
                    to,
                    serial: SeqNumber(serial),
                    seq: SeqNumber(seq),
                    after,
                    ack,
                    payload: has_payload.then_some(payload),
                }
            },
        )
    }

    proptest! {
        #[test]
        fn a_frame_is_read_as_it_was_written(frame in frame(), padding in 0usize..50) {
            let packet = frame.emit();
            prop_assert_eq!(packet.wire_len(), frame.wire_len());
            prop_assert_eq!(Frame::parse(&packet), Ok(frame.clone()));
            if packet.bytes().len() == packet.wire_len() as usize {
                let mut bytes = packet.bytes().to_vec();
                bytes.resize(bytes.len() + padding, 0);
                let padded = Packet::new(LinkType::Tulip, bytes.into());
                prop_assert_eq!(Frame::parse(&padded), Ok(frame));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, version: bool, wire_len: u32) {
            let mut bytes = bytes;
            if let (true, Some(first)) = (version, bytes.first_mut()) {
                *first = VERSION << 4 | *first & 3;
            }
            let packet = Packet::truncated(LinkType::Tulip, bytes.into(), wire_len);
            let _ = Frame::parse(&packet);
        }
    }

    #[test]
    fn bytes_lie_as_the_document_says() {
        // [S2-03] docs/wire-tulip.md has this very frame as its example.
        let frame = Frame {
            kind: Kind::Reliable,
            poll: true,
            more: false,
            from: 0x0a0b_0c0d,
            to: 0x0102_0304,
            serial: SeqNumber(7),
            seq: SeqNumber(5),
            after: 1,
            ack: Some(Ack {
                next: SeqNumber(16),
                heard: SeqNumber(33),
                delay: Duration::from_micros(32),
                vector: Bytes::from_static(&[0b0000_0101]),
            }),
            payload: Some(Packet::new(LinkType::Ip, Bytes::from_static(b"IP"))),
        };
        let bytes = [
            0x11, 0x03, 0, 2, 10, 11, 12, 13, 1, 2, 3, 4, 0, 0, 0, 7, 0, 0, 0, 5, 0,
            1, // header
            0, 0, 0, 16, 0, 0, 0, 33, 0, 2, 0, 1, 5, // link ACK
            b'I', b'P',
        ];
        assert_eq!(frame.emit().bytes(), bytes);
        let arrived: Vec<_> = frame.ack.unwrap().arrived().collect();
        assert_eq!(arrived, [SeqNumber(17), SeqNumber(19)]);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let refused = |at: usize, byte: u8, len: usize| {
            let mut bytes = [0u8; HEADER_LEN + ACK_LEN];
            bytes[0] = 0x10;
            bytes[1] = ACK;
            bytes[7] = 1;
            bytes[at] = byte;
            let bytes = Bytes::copy_from_slice(&bytes[..len]);
            Frame::parse(&Packet::new(LinkType::Tulip, bytes)).err()
        };
        let whole = HEADER_LEN + ACK_LEN;
        assert_eq!(refused(1, ACK, whole), None);
        assert_eq!(refused(0, 0x20, whole), Some(Malformed::Version));
        assert_eq!(refused(0, 0x14, whole), Some(Malformed::Kind));
        assert_eq!(refused(7, 0, whole), Some(Malformed::Epoch));
        assert_eq!(refused(3, 1, whole), Some(Malformed::Truncated), "payload");
        assert_eq!(refused(HEADER_LEN + 11, 1, whole), Some(Malformed::Truncated), "vector");
        assert_eq!(refused(HEADER_LEN + 10, 3, whole), Some(Malformed::Vector));
        for len in 0..whole {
            assert_eq!(refused(1, ACK, len), Some(Malformed::Truncated), "{len} bytes");
        }
    }
}
