//! The headers of one packet, written as their differences from the headers of another.
//!
//! As in RFC 1144 and ROHC (RFC 6846) static fields are not sent, and what changes is sent in as
//! few bytes as its difference needs. The reference is a packet that the other end is known to
//! hold, and not the packet before: so each packet is read without the others.

use super::layout::{LONGEST, Layout};
use crate::packet::{LinkType, Packet};
use alloc::vec::Vec;

/// The options of a segment with nothing but timestamps begin with these four bytes (RFC 7323
/// appendix A).
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
const TIMESTAMPS_LEN: usize = 12;
const FIXED_TCP: usize = 20;

/// The mask before the fields: two bits for the length of each number, one for each other field.
const SEQ: u32 = 0;
const ACK: u32 = 2;
const TS_VALUE: u32 = 4;
const TS_ECHO: u32 = 6;
const IP_ID: u32 = 8;
const WINDOW: u16 = 1 << 10;
const FLAGS: u16 = 1 << 11;
const CLASS: u16 = 1 << 12;
const OPTIONS: u16 = 1 << 13;
const URGENT: u16 = 1 << 14;
/// The reserved bits and AE of TCP, beside its flags.
const RESERVED: u16 = 1 << 15;

/// The lengths in bytes that the two bits of a number stand for.
const OF_STREAM: [usize; 4] = [0, 2, 3, 4];
const OF_CLOCK: [usize; 4] = [0, 1, 2, 4];
/// Of the identification of IPv4; the last one is not used.
const OF_ID: [usize; 3] = [0, 1, 2];

/// The headers of a packet that both ends hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Headers {
    bytes: [u8; LONGEST],
    layout: Layout,
    link_type: LinkType,
}

/// The fields that change from packet to packet; those of TCP are 0 for UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fields<'a> {
    seq: u32,
    ack: u32,
    timestamps: Option<[u32; 2]>,
    ip_id: u32,
    window: [u8; 2],
    flags: [u8; 1],
    reserved: [u8; 1],
    class: [u8; 5],
    /// Options but for the timestamps before them.
    options: &'a [u8],
    urgent: [u8; 2],
    checksum: [u8; 2],
}

impl Headers {
    /// The headers of a packet with this layout.
    pub(super) fn new(packet: &Packet, layout: Layout) -> Self {
        let mut bytes = [0; LONGEST];
        bytes[..layout.len].copy_from_slice(&packet.bytes()[..layout.len]);
        Self { bytes, layout, link_type: packet.link_type() }
    }

    /// The headers as they are.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.layout.len]
    }

    /// The header with which they begin.
    pub(super) fn link_type(&self) -> LinkType {
        self.link_type
    }

    /// Appends the differences of `other`, of a packet of `wire_len` bytes, to `out`. False, and
    /// nothing is appended, if the packet could not be read again to the byte.
    ///
    /// A packet without payload is made as short as possible. Others get lengths that seldom vary:
    /// a batch of datagrams that leaves in one call is of one length.
    pub(super) fn write(&self, other: &Self, wire_len: usize, out: &mut Vec<u8>) -> bool {
        let (Some(old), Some(new)) = (self.fields(), other.fields()) else { return false };
        let has_payload = wire_len > other.layout.len;
        // Whether there are timestamps is a property of the context.
        let has_timestamps = new.timestamps.is_some() == old.timestamps.is_some();
        if !has_timestamps || self.with(&new, wire_len).as_ref() != Some(other) {
            return false;
        }
        let begin = out.len();
        out.extend([0, 0]);
        let mut writer = Writer { out, mask: 0 };
        let (of_stream, of_clock) = if has_payload { (2, 2) } else { (1, 1) };
        writer.number(SEQ, old.seq, new.seq, &OF_STREAM, of_stream);
        writer.number(ACK, old.ack, new.ack, &OF_STREAM, of_stream);
        if let (Some(old), Some(new)) = (old.timestamps, new.timestamps) {
            // Within a batch the clock may have gone on since the context, or not.
            writer.clock(TS_VALUE, old[0], new[0], of_clock);
            writer.clock(TS_ECHO, old[1], new[1], of_clock);
        }
        writer.id(old.ip_id as u16, new.ip_id as u16, of_clock);
        writer.literal(WINDOW, &old.window, &new.window);
        if has_payload && self.layout.is_tcp {
            // The last segment of a batch has PSH.
            writer.literal(FLAGS, &[], &new.flags);
        } else {
            writer.literal(FLAGS, &old.flags, &new.flags);
        }
        writer.literal(CLASS, &old.class, &new.class);
        writer.literal(URGENT, &old.urgent, &new.urgent);
        writer.literal(RESERVED, &old.reserved, &new.reserved);
        if old.options != new.options {
            writer.mask |= OPTIONS;
            writer.out.push(new.options.len() as u8);
            writer.out.extend(new.options);
        }
        writer.out.extend(new.checksum);
        let mask = writer.mask.to_be_bytes();
        out[begin..begin + 2].copy_from_slice(&mask);
        true
    }

    /// Reads headers whose differences `bytes` begins with; the rest of the packet has the wire
    /// length `wire_len` less what is read. Returns the headers, and the bytes read. `None` if they
    /// are cut, or are no differences.
    pub(super) fn read(&self, bytes: &[u8], wire_len: usize) -> Option<(Self, usize)> {
        let old = self.fields()?;
        let mut reader = Reader { bytes, mask: 0 };
        reader.mask = u16::from_be_bytes(reader.take()?);
        let mut new = old;
        new.seq = reader.number(SEQ, old.seq, &OF_STREAM)?;
        new.ack = reader.number(ACK, old.ack, &OF_STREAM)?;
        let old_timestamps = old.timestamps.unwrap_or_default();
        let timestamps = [
            reader.number(TS_VALUE, old_timestamps[0], &OF_CLOCK)?,
            reader.number(TS_ECHO, old_timestamps[1], &OF_CLOCK)?,
        ];
        new.timestamps = old.timestamps.map(|_| timestamps);
        new.ip_id = reader.number(IP_ID, old.ip_id, &OF_ID)? & 0xffff;
        new.window = reader.literal(WINDOW, old.window)?;
        new.flags = reader.literal(FLAGS, old.flags)?;
        new.class = reader.literal(CLASS, old.class)?;
        new.urgent = reader.literal(URGENT, old.urgent)?;
        new.reserved = reader.literal(RESERVED, old.reserved)?;
        if reader.mask & OPTIONS != 0 {
            let [len] = reader.take()?;
            new.options = reader.slice(usize::from(len))?;
        }
        new.checksum = reader.take()?;
        let rest = reader.bytes.len();
        let read = bytes.len() - rest;
        let headers_len = self.len_with(&new)?;
        Some((self.with(&new, headers_len + wire_len.checked_sub(read)?)?, read))
    }

    /// Whether exactly these headers are read from `bytes`, before a payload of this length.
    pub(super) fn reads(&self, bytes: &[u8], payload_len: usize, other: &Self) -> bool {
        self.read(bytes, bytes.len() + payload_len) == Some((other.clone(), bytes.len()))
    }

    /// The length of the headers with these options.
    fn len_with(&self, fields: &Fields<'_>) -> Option<usize> {
        let Layout { transport, is_tcp, len, .. } = self.layout;
        if !is_tcp {
            return fields.options.is_empty().then_some(len);
        }
        let timestamps = fields.timestamps.map_or(0, |_| TIMESTAMPS_LEN);
        let options = timestamps + fields.options.len();
        (options <= 40 && options.is_multiple_of(4)).then_some(transport + FIXED_TCP + options)
    }

    fn fields(&self) -> Option<Fields<'_>> {
        let Layout { ip, is_ipv6, transport, is_tcp, len } = self.layout;
        let bytes = self.bytes();
        let mut fields = Fields {
            class: match is_ipv6 {
                true => [bytes[ip], bytes[ip + 1], bytes[ip + 2], bytes[ip + 3], bytes[ip + 7]],
                false => [0x45, bytes[ip + 1], bytes[ip + 6], 0, bytes[ip + 8]],
            },
            ip_id: if is_ipv6 {
                0
            } else {
                u32::from(bytes[ip + 4]) << 8 | u32::from(bytes[ip + 5])
            },
            ..Fields::default()
        };
        let tcp = bytes.get(transport..)?;
        if !is_tcp {
            fields.checksum = *tcp.get(6..)?.first_chunk()?;
            return Some(fields);
        }
        let word = |at: usize| Some(u32::from_be_bytes(*tcp.get(at..)?.first_chunk()?));
        (fields.seq, fields.ack) = (word(4)?, word(8)?);
        (fields.flags, fields.reserved) = ([tcp[13]], [tcp[12] & 0x0f]);
        fields.window = *tcp[14..].first_chunk()?;
        fields.checksum = *tcp[16..].first_chunk()?;
        fields.urgent = *tcp[18..].first_chunk()?;
        fields.options = &bytes[transport + FIXED_TCP..len];
        if fields.options.starts_with(&TIMESTAMPS) && fields.options.len() >= TIMESTAMPS_LEN {
            fields.timestamps = Some([word(24)?, word(28)?]);
            fields.options = &fields.options[TIMESTAMPS_LEN..];
        }
        Some(fields)
    }

    /// These headers with other fields, of a packet of `wire_len` bytes.
    fn with(&self, fields: &Fields<'_>, wire_len: usize) -> Option<Self> {
        let len = self.len_with(fields)?;
        let mut new = self.clone();
        new.layout.len = len;
        let Layout { ip, is_ipv6, transport, is_tcp, .. } = self.layout;
        let bytes = &mut new.bytes;
        bytes[len..].fill(0);
        let [first, second, third, fourth, hops] = fields.class;
        if is_ipv6 {
            // The version is no part of what may change.
            bytes[ip..ip + 4].copy_from_slice(&[0x60 | first & 0x0f, second, third, fourth]);
            bytes[ip + 7] = hops;
        } else {
            bytes[ip + 1] = second;
            bytes[ip + 4..ip + 6].copy_from_slice(&(fields.ip_id as u16).to_be_bytes());
            bytes[ip + 6] = third & 0xc0;
            bytes[ip + 8] = hops;
        }
        let tcp = &mut bytes[transport..];
        if is_tcp {
            tcp[4..8].copy_from_slice(&fields.seq.to_be_bytes());
            tcp[8..12].copy_from_slice(&fields.ack.to_be_bytes());
            tcp[12] = (((len - transport) / 4) << 4) as u8 | fields.reserved[0] & 0x0f;
            tcp[13] = fields.flags[0];
            tcp[14..16].copy_from_slice(&fields.window);
            tcp[16..18].copy_from_slice(&fields.checksum);
            tcp[18..20].copy_from_slice(&fields.urgent);
            let mut at = FIXED_TCP;
            if let Some([value, echo]) = fields.timestamps {
                tcp[at..at + 4].copy_from_slice(&TIMESTAMPS);
                tcp[at + 4..at + 8].copy_from_slice(&value.to_be_bytes());
                tcp[at + 8..at + 12].copy_from_slice(&echo.to_be_bytes());
                at += TIMESTAMPS_LEN;
            }
            tcp[at..at + fields.options.len()].copy_from_slice(fields.options);
        } else {
            tcp[6..8].copy_from_slice(&fields.checksum);
        }
        new.layout.complete(&mut new.bytes[..len], wire_len)?;
        Some(new)
    }
}

/// By how much a number may be below its reference: an eighth of what its bytes can say.
fn below(len: usize) -> u32 {
    1 << (8 * len - 3)
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    mask: u16,
}

impl Writer<'_> {
    /// Writes a number in the first of `lengths` from place `least` on that has room for it.
    fn number(&mut self, place: u32, old: u32, new: u32, lengths: &[usize; 4], least: usize) {
        if new != old {
            self.difference(place, old, new, lengths, least);
        }
    }

    /// Writes a timestamp, of a packet with payload also if it is that of the context.
    fn clock(&mut self, place: u32, old: u32, new: u32, least: usize) {
        if new != old || least > 1 {
            self.difference(place, old, new, &OF_CLOCK, least);
        }
    }

    fn difference(&mut self, place: u32, old: u32, new: u32, lengths: &[usize; 4], least: usize) {
        let fits = |len: usize| new.wrapping_sub(old).wrapping_add(below(len)) >> (8 * len) == 0;
        let code = (least..3).find(|code| fits(lengths[*code])).unwrap_or(3);
        let len = lengths[code];
        self.mask |= (code as u16) << place;
        let sent = if len == 4 { new } else { new.wrapping_sub(old).wrapping_add(below(len)) };
        self.out.extend(&sent.to_be_bytes()[4 - len..]);
    }

    fn id(&mut self, old: u16, new: u16, least: usize) {
        if new == old {
            return;
        }
        let one = new.wrapping_sub(old).wrapping_add(below(1) as u16);
        if let (1, Ok(one)) = (least, u8::try_from(one)) {
            self.mask |= 1 << IP_ID;
            self.out.push(one);
        } else {
            self.mask |= 2 << IP_ID;
            let two = new.wrapping_sub(old).wrapping_add(below(2) as u16);
            self.out.extend(two.to_be_bytes());
        }
    }

    fn literal(&mut self, bit: u16, old: &[u8], new: &[u8]) {
        if old != new {
            self.mask |= bit;
            self.out.extend(new);
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    mask: u16,
}

impl<'a> Reader<'a> {
    fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(taken)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*taken)
    }

    fn number(&mut self, place: u32, old: u32, lengths: &[usize]) -> Option<u32> {
        let len = *lengths.get(usize::from(self.mask >> place & 3))?;
        let sent = self.slice(len)?.iter().fold(0u32, |sent, byte| sent << 8 | u32::from(*byte));
        Some(match len {
            0 => old,
            4 => sent,
            _ => old.wrapping_add(sent).wrapping_sub(below(len)),
        })
    }

    fn literal<const N: usize>(&mut self, bit: u16, old: [u8; N]) -> Option<[u8; N]> {
        if self.mask & bit != 0 { self.take() } else { Some(old) }
    }
}
