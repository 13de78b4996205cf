//! What counts as lost, and how often.

use super::capture::{FIRST, MOBILE, SEGMENT, SERVER, Sent, download, pcap};
use super::replay_freely;
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{LinkType, Port};
use airmend_sim::replay::FlowReport;
use pcap_file::DataLink;

/// The handshake and these packets, the data by its first segment and its number of segments.
fn after_handshake(packets: impl IntoIterator<Item = Sent>) -> FlowReport {
    let packets = download().into_iter().take(3).chain(packets);
    let built = packets.map(|(at, _, packet)| (at, packet.build(LinkType::Ip)));
    let report = replay_freely(&pcap(DataLink::RAW, built), None);
    let [flow] = report.flows.as_slice() else { panic!("not one flow: {:?}", report.flows) };
    flow.clone()
}

fn data(at: u64, first: u32, segments: u32) -> Sent {
    let down = SegmentBuilder::new(SERVER, MOBILE).ack(SeqNumber(1));
    let seq = FIRST + first * SEGMENT;
    (at, Port::Wired, down.seq(seq).payload_len(segments * SEGMENT))
}

fn ack(at: u64, segments: u32) -> Sent {
    let up = SegmentBuilder::new(MOBILE, SERVER).seq(SeqNumber(1));
    (at, Port::Air, up.ack(FIRST + segments * SEGMENT))
}

fn reset(at: u64) -> Sent {
    let up = SegmentBuilder::new(MOBILE, SERVER).seq(SeqNumber(1));
    (at, Port::Air, up.flags(Flags::RST))
}

/// A segment of which nobody ever acknowledges one of six transmissions.
fn outage() -> impl Iterator<Item = Sent> {
    (0..6).map(|time| data(50 + (200 << time), 0, 1))
}

fn counts(flow: &FlowReport) -> (u64, u64, u64) {
    (flow.lost(), flow.unacknowledged, flow.sender_retransmits)
}

#[test]
fn what_nobody_acknowledges_was_lost_once() {
    let ends: [(&str, Vec<Sent>); 3] = [
        ("file", vec![]),
        ("reset", vec![reset(10_000)]),
        (
            "new connection",
            download().into_iter().take(3).map(|s| (10_000 + s.0, s.1, s.2)).collect(),
        ),
    ];
    for (end, packets) in ends {
        let flow = after_handshake(outage().chain(packets));
        assert_eq!(counts(&flow), (1, 1, 5), "{end}: {flow:?}");
    }
    // The answer to the last transmission changes none of this.
    let flow = after_handshake(outage().chain([ack(10_000, 1)]));
    assert_eq!(counts(&flow), (1, 0, 5));
    // What was sent once may be on its way when the capture ends.
    assert_eq!(counts(&after_handshake([data(50, 0, 1)])), (0, 0, 0));
}

#[test]
fn the_bounds_of_a_retransmission_do_not_matter() {
    // Four segments in one packet, of which the second and third come again alone.
    let joined = [data(50, 0, 4), data(300, 1, 1), data(301, 2, 1), ack(310, 4)];
    assert_eq!(counts(&after_handshake(joined)), (2, 0, 2));
    // Two that come again as one, and then each of them once more.
    let split = [data(50, 0, 1), data(51, 1, 1), data(300, 0, 2), data(900, 0, 1), data(901, 1, 1)];
    assert_eq!(counts(&after_handshake(split)), (2, 2, 4));
    // Two in one packet are lost as one, however they come again later.
    let pair = [data(50, 0, 2), data(300, 0, 2), data(900, 0, 1), data(901, 1, 1), ack(910, 2)];
    assert_eq!(counts(&after_handshake(pair)), (1, 0, 3));
}

#[test]
fn what_is_acknowledged_is_not_lost_later() {
    let late = [data(50, 0, 1), data(51, 1, 1), ack(60, 2), data(300, 0, 1), data(900, 0, 1)];
    assert_eq!(counts(&after_handshake(late)), (0, 0, 0));
}
