//! Segmentation offload: what a TUN device gives is split, joined and split again into the same
//! packets; any packets joined and split are the same, but for IPv4 identifications; a frame of a
//! packet socket is written as it was read.

use crate::common::packet::Tcp;
use airmend_live::device::fuzzing::{join, read_frame, split, split_frame, write_frame};
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{Packet, Port};

pub(crate) fn fuzz(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind & 3 {
        0 => device(rest),
        1 => packets(rest),
        2 => frame(rest, None),
        _ => frame(rest, Some((0x8100, u16::from(*kind)))),
    }
}

fn device(read: &[u8]) {
    let Some(packets) = split(read) else { return };
    let super_packet = read.len();
    let bytes: usize = packets.iter().map(|packet| packet.bytes().len()).sum();
    assert!(bytes <= super_packet * (1 + packets.len()), "no more than headers are added");
    let again: Vec<Packet> = split_all(&join(packets.clone()));
    assert_eq!(again, packets);
}

/// Segments on a grid, so that neighbours belong together often.
fn packets(choices: &[u8]) {
    let mut seq = 0u32;
    let mut packets = Vec::new();
    for choice in choices.chunks_exact(4).take(24) {
        let &[place, len, control, other] = choice else { continue };
        let len = u16::from(len % 8) * 50;
        let mut tcp = Tcp::new(u16::from(other & 1), Port::Wired, seq, len, 7);
        tcp.ipv6 = other & 2 != 0;
        tcp.ecn = other >> 2 & 3;
        if control & 0x0f == 0x0f {
            tcp.flags = Flags(u16::from(control >> 4) << 2);
        }
        if other & 0x30 == 0x30 {
            tcp.options = vec![1, 1, 8, 10, 0, 0, 0, other >> 6, 0, 0, 0, 0];
        }
        packets.push(tcp.packet(u16::from(place)));
        seq = if place & 0xf0 == 0xf0 { u32::from(place) << 24 } else { tcp.end() };
    }
    let again = split_all(&join(packets.clone()));
    let comparable = |packets: &[Packet]| packets.iter().map(without_identification).collect();
    let (before, after): (Vec<_>, Vec<_>) = (comparable(&packets), comparable(&again));
    assert_eq!(after, before);
    assert!(again.iter().all(|packet| Tcp::read(packet).is_some() && Tcp::is_intact(packet)));
}

fn split_all(written: &[Vec<u8>]) -> Vec<Packet> {
    written.iter().flat_map(|piece| split(piece).expect("what was joined can be split")).collect()
}

/// The bytes with zeros for an IPv4 header's identification and checksum.
fn without_identification(packet: &Packet) -> Vec<u8> {
    let mut bytes = packet.bytes().to_vec();
    if bytes.first().is_some_and(|first| first >> 4 == 4) {
        bytes[4..6].fill(0);
        bytes[10..12].fill(0);
    }
    bytes
}

fn frame(read: &[u8], vlan: Option<(u16, u16)>) {
    let Some(packet) = read_frame(read, vlan) else { return };
    let tag = if vlan.is_some() { 4 } else { 0 };
    assert_eq!(packet.bytes().len() + 10, read.len() + tag);
    if let Some(frames) = split_frame(packet.clone()) {
        assert!(frames.iter().all(|frame| frame.segment_size().is_none()));
        let bytes: usize = frames.iter().map(|frame| frame.bytes().len()).sum();
        assert!(bytes <= packet.bytes().len() * (1 + frames.len()), "no more than headers");
    }
    let Some(written) = write_frame(&packet) else { return };
    assert_eq!(written.len(), packet.bytes().len() + 10);
    let again = read_frame(&written, None).expect("what was written can be read");
    assert_eq!(again.segment_size(), packet.segment_size());
    assert_eq!(write_frame(&again).as_deref(), Some(&written[..]));
}
