//! Captures as other programs write them, byte by byte (draft-ietf-opsawg-pcapng, little endian).

use airmend_proto::Packet;

/// An option: its code and its value, with padding.
pub(crate) fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = [code.to_le_bytes(), (value.len() as u16).to_le_bytes()].concat();
    option.extend(value);
    option.resize(option.len().next_multiple_of(4), 0);
    option
}

/// Options with the end that they should have.
pub(crate) fn ended(options: &[&[u8]]) -> Vec<u8> {
    [options.concat(), if options.is_empty() { vec![] } else { option(0, &[]) }].concat()
}

/// A block of a type, with its length before and behind its body.
pub(crate) fn block(kind: u32, body: &[&[u8]]) -> Vec<u8> {
    let mut body = body.concat();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = (body.len() as u32 + 12).to_le_bytes();
    [kind.to_le_bytes().as_slice(), &length, &body, &length].concat()
}

/// The head of a section of unknown length.
pub(crate) fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes(), &[1, 0, 0, 0], &[0xff; 8]])
}

/// An interface of a link type with these options; its times are in microseconds.
pub(crate) fn interface(link: u16, options: &[&[u8]]) -> Vec<u8> {
    block(1, &[&link.to_le_bytes(), &[0; 6], &ended(options)])
}

/// The name of an interface, as an option.
pub(crate) fn name(name: &str) -> Vec<u8> {
    option(2, name.as_bytes())
}

/// An enhanced packet block of an interface, at a time in milliseconds.
pub(crate) fn enhanced(interface: u32, millis: u64, packet: &Packet, options: &[&[u8]]) -> Vec<u8> {
    let head = [&interface.to_le_bytes(), time(millis).as_slice()].concat();
    block(6, &[&head, &captured(packet), &ended(options)])
}

/// An obsolete packet block, with a count of drops.
pub(crate) fn obsolete(interface: u16, millis: u64, packet: &Packet, options: &[&[u8]]) -> Vec<u8> {
    let head = [&interface.to_le_bytes(), [7, 0].as_slice(), &time(millis)].concat();
    block(2, &[&head, &captured(packet), &ended(options)])
}

/// A simple packet block.
pub(crate) fn simple(packet: &Packet) -> Vec<u8> {
    block(3, &[&packet.wire_len().to_le_bytes(), packet.bytes()])
}

/// The time of a packet block in microseconds, the upper half first.
pub(crate) fn time(millis: u64) -> Vec<u8> {
    let micros = (1_700_000_000_000 + millis) * 1_000;
    [((micros >> 32) as u32).to_le_bytes(), (micros as u32).to_le_bytes()].concat()
}

/// Both lengths of a packet, and its bytes with padding.
pub(crate) fn captured(packet: &Packet) -> Vec<u8> {
    let lengths = [packet.bytes().len() as u32, packet.wire_len()];
    let mut captured: Vec<u8> = lengths.into_iter().flat_map(u32::to_le_bytes).collect();
    captured.extend(packet.bytes());
    captured.resize(captured.len().next_multiple_of(4), 0);
    captured
}
