//! A small capture, written in every form that can be read.

use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{LinkType, Packet, Port};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, TsResolution};
use std::borrow::Cow;
use std::time::Duration;

pub(crate) const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
pub(crate) const MOBILE: ([u8; 4], u16) = ([10, 0, 1, 2], 5000);
pub(crate) const SEGMENT: u32 = 1_000;
/// The stream's numbers wrap within the capture.
pub(crate) const FIRST: SeqNumber = SeqNumber(u32::MAX - 2_500);

/// Milliseconds, the side it came from, and the packet.
pub(crate) type Sent = (u64, Port, SegmentBuilder<'static>);

/// A download of ten segments through a base station without an agent. The fourth is lost on the
/// air; six duplicate ACKs follow, the first at 65 ms, and the sender's repair comes at 150 ms.
/// The wired side's round trip is 40 ms.
pub(crate) fn download() -> Vec<Sent> {
    let down = || SegmentBuilder::new(SERVER, MOBILE).ack(SeqNumber(1));
    let up = |segments: u32| {
        let up = SegmentBuilder::new(MOBILE, SERVER).seq(SeqNumber(1));
        (Port::Air, up.ack(FIRST + segments * SEGMENT))
    };
    let data =
        |segment: u32| (Port::Wired, down().seq(FIRST + segment * SEGMENT).payload_len(SEGMENT));
    let syn = SegmentBuilder::new(MOBILE, SERVER).flags(Flags::SYN);
    let mut sent = vec![
        (0, Port::Air, syn),
        (40, Port::Wired, down().seq(FIRST - 1).flags(Flags::SYN)),
        (41, Port::Air, up(0).1),
    ];
    let mut at = |time: u64, (side, packet)| sent.push((time, side, packet));
    for segment in 0..10 {
        at(50 + u64::from(segment), data(segment));
    }
    for segment in 0..3 {
        at(61 + u64::from(segment), up(segment + 1));
    }
    for duplicate in 0..6 {
        at(65 + duplicate, up(3));
    }
    at(150, data(3));
    at(160, up(10));
    sent
}

/// As pcapng: each packet with the number of its interface and its flags, if it has any.
pub(crate) fn pcapng(
    interfaces: &[(&'static str, DataLink)],
    packets: impl IntoIterator<Item = (u64, u32, Option<u32>, Packet)>,
) -> Vec<u8> {
    let mut file = PcapNgWriter::new(Vec::new()).unwrap();
    for (name, linktype) in interfaces {
        let options = vec![InterfaceDescriptionOption::IfName(Cow::Borrowed(name))];
        let block = InterfaceDescriptionBlock { linktype: *linktype, snaplen: 96, options };
        file.write_pcapng_block(block).unwrap();
    }
    for (millis, interface_id, flags, packet) in packets {
        let block = EnhancedPacketBlock {
            interface_id,
            // Without a resolution, microseconds; the library writes what it takes for nanoseconds.
            timestamp: Duration::from_nanos((1_700_000_000_000 + millis) * 1_000),
            original_len: packet.wire_len(),
            data: Cow::Borrowed(packet.bytes()),
            options: flags.map(EnhancedPacketOption::Flags).into_iter().collect(),
        };
        file.write_pcapng_block(block).unwrap();
    }
    file.into_inner()
}

/// As pcap with microseconds, little endian, cut by its snap length.
pub(crate) fn pcap(
    datalink: DataLink,
    packets: impl IntoIterator<Item = (u64, Packet)>,
) -> Vec<u8> {
    let header = PcapHeader {
        datalink,
        snaplen: 65_535,
        ts_resolution: TsResolution::MicroSecond,
        endianness: Endianness::Little,
        ..PcapHeader::default()
    };
    let mut file = PcapWriter::with_header(Vec::new(), header).unwrap();
    for (millis, packet) in packets {
        let time = Duration::from_millis(1_700_000_000_000 + millis);
        file.write_packet(&PcapPacket::new(time, packet.wire_len(), packet.bytes())).unwrap();
    }
    file.into_writer()
}

/// Behind a Linux cooked header, which says whether this machine sent the packet.
pub(crate) fn cooked(packet: &Packet, outgoing: bool) -> Packet {
    let mut bytes = vec![0; 16];
    bytes[1] = if outgoing { 4 } else { 0 };
    bytes[14] = 0x08;
    bytes.extend_from_slice(packet.bytes());
    Packet::truncated(LinkType::Ip, bytes.into(), packet.wire_len() + 16)
}
