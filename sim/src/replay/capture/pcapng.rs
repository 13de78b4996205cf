//! Files of the format pcapng (draft-ietf-opsawg-pcapng).

use super::super::left_out::Reason;
use super::order::Order;
use super::reading::Reading;
use super::record::{Crossing, Interface};
use super::source::{Source, Stop};
use airmend_proto::recording::{COPIED, DEPARTED, TimersRan};
use std::io::Read;

/// The first four bytes of a file, in any byte order: the type of a section header block.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

const INTERFACE_DESCRIPTION: u32 = 1;
/// The obsolete packet block (appendix A).
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const OPT_COMMENT: u16 = 1;

/// Reads a file behind its first four bytes.
pub(super) fn read<R: Read>(source: &mut Source<R>, reading: &mut Reading) -> Result<(), Stop> {
    let mut section = Section { order: Order::Little, first_interface: 0, clocks: Vec::new() };
    let mut kind = Some(SECTION_HEADER);
    let mut body = Vec::new();
    while let Some(bytes) = kind {
        let length = source.next::<4>()?.ok_or(Stop::Cut)?;
        // Type and length of the block, and its length again.
        let mut around = 12;
        if bytes == SECTION_HEADER {
            let order = byte_order(source.next()?.ok_or(Stop::Cut)?)?;
            let first_interface = reading.interfaces.len();
            section = Section { order, first_interface, clocks: Vec::new() };
            around += 4;
        }
        let order = section.order;
        let length = order.u32(&length, 0).unwrap_or_default();
        // Some programs do not count the padding.
        let padded = length.checked_next_multiple_of(4).ok_or_else(too_short)?;
        source.fill(padded.checked_sub(around).ok_or_else(too_short)?, &mut body)?;
        let again = source.next::<4>()?.ok_or(Stop::Cut)?;
        if order.u32(&again, 0) != Some(length) {
            return Err(Stop::Damaged("the two lengths of a block differ".to_owned()));
        }
        match order.u32(&bytes, 0) {
            _ if bytes == SECTION_HEADER => read_agent(order, &body, reading),
            Some(INTERFACE_DESCRIPTION) => section.interface(&body, reading),
            Some(PACKET) => section.packet(&body, true, reading),
            Some(ENHANCED_PACKET) => section.packet(&body, false, reading),
            Some(SIMPLE_PACKET) => {
                reading.left_out.count(Reason::NoTime);
                Some(())
            }
            _ => Some(()),
        }
        .ok_or_else(too_short)?;
        kind = source.next()?;
    }
    Ok(())
}

fn too_short() -> Stop {
    Stop::Damaged("a block is shorter than its fields".to_owned())
}

fn byte_order(magic: [u8; 4]) -> Result<Order, Stop> {
    match BYTE_ORDER_MAGIC {
        order if order == u32::from_be_bytes(magic) => Ok(Order::Big),
        order if order == u32::from_le_bytes(magic) => Ok(Order::Little),
        _ => Err(Stop::Damaged("a section has no byte order".to_owned())),
    }
}

/// Finds the agent that was recorded in the comments of a section, behind its version and length.
fn read_agent(order: Order, body: &[u8], reading: &mut Reading) -> Option<()> {
    let comments = options(order, body.get(12..)?).filter(|(code, _)| *code == OPT_COMMENT);
    let agent = comments.filter_map(|(_, text)| str::from_utf8(text).ok()?.parse().ok()).next();
    reading.agent = reading.agent.take().or(agent);
    Some(())
}

/// What the blocks of a section refer to.
struct Section {
    order: Order,
    /// The index of its first interface among those of the file.
    first_interface: usize,
    clocks: Vec<Clock>,
}

/// How an interface counts time.
#[derive(Clone, Copy)]
struct Clock {
    ticks_per_second: u64,
    /// Seconds to be added.
    offset: i64,
}

impl Clock {
    /// Nanoseconds since 1970, within the range of the type.
    fn nanos(self, stamp: u64) -> u64 {
        let nanos = u128::from(stamp) * 1_000_000_000 / u128::from(self.ticks_per_second);
        let offset = i128::from(self.offset) * 1_000_000_000;
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX).saturating_add(offset);
        u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
    }
}

impl Section {
    /// An interface description block; none if it is too short.
    fn interface(&mut self, body: &[u8], reading: &mut Reading) -> Option<()> {
        let mut interface = Interface { link: self.order.u16(body, 0)?, ..Interface::default() };
        let mut clock = Clock { ticks_per_second: 1_000_000, offset: 0 };
        for (code, value) in options(self.order, body.get(8..)?) {
            match (code, value) {
                // if_name, then the addresses.
                (2, name) => interface.name = Some(String::from_utf8_lossy(name).into_owned()),
                (4..=7, address) => interface.addresses.push(address.to_vec()),
                // if_tsresol.
                (9, &[resolution]) => {
                    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
                    let power = u32::from(resolution & 0x7f);
                    clock.ticks_per_second = base.checked_pow(power).unwrap_or(u64::MAX);
                }
                // if_tsoffset.
                (14, seconds) => {
                    clock.offset = self.order.u64(seconds, 0).unwrap_or_default().cast_signed();
                }
                _ => {}
            }
        }
        reading.interfaces.push(interface);
        self.clocks.push(clock);
        Some(())
    }

    /// An enhanced packet block or an obsolete one, which has a count of drops beside the number of
    /// its interface; none if it is too short.
    fn packet(&self, body: &[u8], is_obsolete: bool, reading: &mut Reading) -> Option<()> {
        let number = match is_obsolete {
            true => usize::from(self.order.u16(body, 0)?),
            false => usize::try_from(self.order.u32(body, 0)?).ok()?,
        };
        let [high, low, captured, wire_len] = [4, 8, 12, 16].map(|at| self.order.u32(body, at));
        let stamp = u64::from(high?) << 32 | u64::from(low?);
        let captured = usize::try_from(captured?).ok()?;
        let data = body.get(20..)?.get(..captured)?;
        let Some(clock) = self.clocks.get(number) else {
            reading.left_out.count(Reason::NoInterface);
            return Some(());
        };
        let interface = self.first_interface + number;
        let Some(record) = reading.packet(clock.nanos(stamp), interface, data, wire_len?) else {
            return Some(());
        };
        let options_at = 20 + captured.next_multiple_of(4);
        for (code, value) in options(self.order, body.get(options_at..).unwrap_or_default()) {
            match (code, str::from_utf8(value)) {
                // epb_flags, and the same of the obsolete block.
                (2, _) => {
                    let flags = self.order.u32(value, 0).unwrap_or_default();
                    record.crossing = crossing(flags & 3).or(record.crossing);
                }
                (OPT_COMMENT, Ok(COPIED)) => record.is_copy = true,
                (OPT_COMMENT, Ok(DEPARTED)) => record.is_departure = true,
                (OPT_COMMENT, Ok(text)) => {
                    record.timers.extend(text.parse::<TimersRan>().map(|ran| ran.0));
                }
                _ => {}
            }
        }
        Some(())
    }
}

/// The direction in the flags of a packet.
fn crossing(flags: u32) -> Option<Crossing> {
    match flags {
        1 => Some(Crossing::Inbound),
        2 => Some(Crossing::Outbound),
        _ => None,
    }
}

/// Codes and values, up to opt_endofopt, which some programs leave out, or to an option that does
/// not fit.
fn options(order: Order, bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (code, length) = (order.u16(rest, 0)?, usize::from(order.u16(rest, 2)?));
        let value = rest.get(4..)?.get(..length)?;
        rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        (code != 0).then_some((code, value))
    })
}
