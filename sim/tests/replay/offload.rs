//! Segments that were captured before the network card filled their checksum in.

use super::built;
use super::capture::pcap;
use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::wire::checksum::tcp;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Forwarder, LinkType, Packet};
use airmend_sim::replay::{Capture, Pace, Sides, Steps, replay, steps};
use pcap_file::DataLink;

/// A packet that was captured whole, all of its payload zeros, with this checksum.
fn whole(packet: &Packet, checksum: impl Fn(&Segment, u16) -> u16) -> Packet {
    let segment = Segment::parse(packet).unwrap();
    let mut bytes = packet.bytes().to_vec();
    bytes.resize(packet.wire_len() as usize, 0);
    let begin = usize::from(segment.transport_offset);
    bytes[begin + 16..begin + 18].fill(0);
    let length = (bytes.len() - begin) as u32;
    let right = tcp(&segment.source.address, &segment.destination.address, &bytes[begin..], length);
    let checksum = if segment.payload_len > 0 { checksum(&segment, right) } else { right };
    bytes[begin + 16..begin + 18].copy_from_slice(&checksum.to_be_bytes());
    Packet::new(LinkType::Ip, bytes.into())
}

/// The sum of the pseudo-header with this length.
fn pseudo_header(segment: &Segment, length: u32) -> u16 {
    !tcp(&segment.source.address, &segment.destination.address, &[], length)
}

/// How many segments had an open checksum, and how many the agent repaired first.
fn replayed(checksum: impl Fn(&Segment, u16) -> u16 + Copy) -> (u64, u64) {
    let packets = built(LinkType::Ip).map(|(at, _, packet)| (at, whole(&packet, checksum)));
    let capture = Capture::read(pcap(DataLink::RAW, packets).as_slice()).unwrap();
    let Steps { steps, open_checksums, .. } = steps(&capture, &Sides::of(&capture)).unwrap();
    let agent = AgentConfig::by_name("snoop").unwrap().build(Limits::default(), 1);
    let mut forwarder = Forwarder::new(agent, Limits::default().egress);
    let (report, _) = replay(&mut forwarder, &steps, Pace::Free, false);
    (open_checksums, report.flows[0].repaired_locally)
}

#[test]
fn a_checksum_that_is_left_to_the_network_card_is_right() {
    assert_eq!(replayed(|_, right| right), (0, 1));
    assert_eq!(replayed(|_, _| 0), (11, 1));
    assert_eq!(replayed(|segment, _| pseudo_header(segment, 0)), (11, 1));
    assert_eq!(replayed(|segment, _| pseudo_header(segment, 1_020)), (11, 1));
    // Damage is damage.
    assert_eq!(replayed(|_, right| right ^ 0x0f0f), (0, 0));
}
