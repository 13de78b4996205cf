//! Packets that were captured more than once.

use super::capture::{MOBILE, SERVER, Sent, download, pcap};
use super::{assert_is_download, forwarder};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::checksum::internet;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{LinkType, Packet, Port};
use airmend_sim::replay::{Capture, Pace, Reason, Report, Sides, Steps, replay, steps};
use pcap_file::DataLink;

/// The number of copies in a file, and the report without them.
fn replayed(packets: impl IntoIterator<Item = (u64, Packet)>) -> (u64, Report) {
    let file = pcap(DataLink::RAW, packets);
    let mut capture = Capture::read(file.as_slice()).unwrap();
    capture.remove_duplicates();
    let Steps { steps, left_out, .. } = steps(&capture, &Sides::of(&capture)).unwrap();
    let copies = left_out.iter().find(|(reason, _)| *reason == Reason::Copy);
    let report = replay(&mut forwarder(&[]), &steps, Pace::Free, false).0;
    (copies.map_or(0, |(_, packets)| packets), report)
}

fn built((at, _, packet): Sent) -> (u64, Packet) {
    (at, packet.build(LinkType::Ip))
}

/// With another TTL and IP identification.
fn with_header(packet: &Packet, ttl: u8, identification: u16) -> Packet {
    let mut bytes = packet.bytes().to_vec();
    bytes[8] = ttl;
    bytes[4..6].copy_from_slice(&identification.to_be_bytes());
    bytes[10..12].fill(0);
    let checksum = internet(&bytes[..20]);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    Packet::truncated(LinkType::Ip, bytes.into(), packet.wire_len())
}

#[test]
fn what_a_mirror_port_shows_twice_counts_once() {
    let (none, report) = replayed(download().into_iter().map(built));
    assert_eq!(none, 0);
    assert_is_download(&report);
    // Both ports of a router, between which the TTL falls; packets with a number, and without.
    for identified in [true, false] {
        let twice =
            download().into_iter().map(built).zip(1..).flat_map(|((at, packet), number)| {
                let number = if identified { number } else { 0 };
                [64, 63].map(|ttl| (at, with_header(&packet, ttl, number)))
            });
        let (copies, report) = replayed(twice);
        // The six duplicate ACKs come one after the other, and each twice.
        assert_eq!(copies, 24, "{identified}");
        assert_is_download(&report);
    }
}

#[test]
fn duplicate_acks_at_once_and_retransmissions_are_no_copies() {
    let ack = || SegmentBuilder::new(MOBILE, SERVER).seq(SeqNumber(1)).ack(SeqNumber(1_000));
    let data = || SegmentBuilder::new(SERVER, MOBILE).seq(SeqNumber(1_000)).payload_len(1_000);
    let acks = (0..3).map(|_| (5, Port::Air, ack()));
    let sent = [(0, Port::Wired, data()), (1, Port::Wired, data())].into_iter().chain(acks);
    assert_eq!(replayed(sent.map(built)).0, 0);
}
