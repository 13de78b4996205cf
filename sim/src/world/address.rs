//! Flows by their ports: the flow of a packet is found without a table.

use airmend_proto::agents::handoff::{self, StationId};
use airmend_proto::wire::edit::ecn;
use airmend_proto::wire::tcp::{Endpoint as Address, Segment};
use airmend_proto::{Ecn, Instant, LinkType, Packet};
use std::ops::RangeInclusive;

/// The most flows that ports can distinguish.
pub(crate) const MAX_FLOWS: usize = 4_000 * SENDER_PORTS as usize;

const FIRST_SENDER_PORT: u16 = 10_000;
const SENDER_PORTS: u32 = 50_000;
const FIRST_RECEIVER_PORT: u16 = 5_001;

/// The addresses of a flow's sending and receiving end, which are on these hosts.
pub(crate) fn of_flow(flow: u32, hosts: [u32; 2]) -> [Address; 2] {
    let sender = FIRST_SENDER_PORT + (flow % SENDER_PORTS) as u16;
    let receiver = FIRST_RECEIVER_PORT + (flow / SENDER_PORTS) as u16;
    [(of_host(hosts[0]), sender).into(), (of_host(hosts[1]), receiver).into()]
}

/// The flow that a segment belongs to, and the end (0 sending, 1 receiving) that it goes to.
pub(crate) fn flow_and_end(segment: &Segment) -> (u32, usize) {
    let (from, to) = (segment.source.port, segment.destination.port);
    if to >= FIRST_SENDER_PORT { (flow_of(to, from), 0) } else { (flow_of(from, to), 1) }
}

/// The flow with these ports.
fn flow_of(sender: u16, receiver: u16) -> u32 {
    u32::from(receiver - FIRST_RECEIVER_PORT) * SENDER_PORTS + u32::from(sender - FIRST_SENDER_PORT)
}

/// The destination host of a packet; `None` for a frame of a link protocol.
pub(crate) fn destination(packet: &Packet) -> Option<u32> {
    let address = packet.bytes().get(16..20).filter(|_| packet.link_type() == LinkType::Ip)?;
    let [_, a, b, c] = *address else { return None };
    u32::from_be_bytes([0, a, b, c]).checked_sub(1)
}

/// The address of a host, IPv4-mapped.
pub(crate) fn mapped(host: u32) -> [u8; 16] {
    Address::from((of_host(host), 0)).address
}

/// The number of a station among those that hand over.
pub(crate) fn station_id(station: u32) -> StationId {
    StationId(station + 1)
}

/// A UDP packet with a handoff message from one node to another.
pub(crate) fn datagram(nodes: [u32; 2], payload: &[u8]) -> Packet {
    udp(nodes, [0; 2], Ecn::NotEct, payload, handoff::wire_len(payload))
}

/// A UDP packet of a flow, with so many bytes of payload, which begin with the time of sending.
pub(crate) fn flow_datagram(flow: u32, hosts: [u32; 2], now: Instant, size: u32) -> Packet {
    let ports = of_flow(flow, hosts).map(|end| end.port);
    udp(hosts, ports, Ecn::NotEct, &now.as_nanos().to_be_bytes(), size)
}

/// The least and the largest payload of a flow's datagram.
pub(crate) const DATAGRAM_SIZES: RangeInclusive<u64> =
    8..=(u16::MAX as u64 - UDP_OFFSET as u64 - 8);

/// The flow of a datagram, and when it was sent.
pub(crate) fn datagram_of_flow(packet: &Packet) -> Option<(u32, Instant)> {
    let payload = datagram_to(destination(packet)?, packet)?;
    let [a, b, c, d] = *packet.bytes().get(UDP_OFFSET..UDP_OFFSET + 4)? else { return None };
    let sent_at = u64::from_be_bytes(payload.get(..8)?.try_into().ok()?);
    let [sender, receiver] = [[a, b], [c, d]].map(u16::from_be_bytes);
    Some((flow_of(sender, receiver), Instant::from_nanos(sent_at)))
}

/// A UDP packet with a frame of a link protocol from one end of the link to the other, and with
/// the frame's outer ECN field.
pub(crate) fn tunnelled(nodes: [u32; 2], frame: &Packet) -> Packet {
    udp(nodes, [0; 2], frame.outer_ecn(), frame.bytes(), frame.wire_len())
}

/// The frame in a UDP packet to this node.
pub(crate) fn frame_to(node: u32, packet: &Packet) -> Option<Packet> {
    let payload = datagram_to(node, packet)?;
    let wire_len = packet.wire_len().checked_sub(UDP_OFFSET as u32 + 8)?;
    let frame = Packet::truncated(LinkType::Frame, payload.to_vec().into(), wire_len);
    Some(frame.with_outer_ecn(ecn(packet)))
}

/// A packet between nodes and ports; of a payload of so many bytes these are the first.
fn udp(
    [from, to]: [u32; 2],
    ports: [u16; 2],
    ecn: Ecn,
    payload: &[u8],
    payload_len: u32,
) -> Packet {
    let wire_len = UDP_OFFSET as u32 + 8 + payload_len;
    let len = wire_len.min(u16::MAX.into()) as u16;
    let mut bytes = vec![0x45, ecn as u8];
    bytes.extend(len.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, UDP, 0, 0]);
    bytes.extend(of_host(from));
    bytes.extend(of_host(to));
    bytes.extend(ports.into_iter().flat_map(u16::to_be_bytes));
    bytes.extend((len - UDP_OFFSET as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    Packet::truncated(LinkType::Ip, bytes.into(), wire_len)
}

/// The payload of a UDP packet to this node.
pub(crate) fn datagram_to(node: u32, packet: &Packet) -> Option<&[u8]> {
    let is_udp = packet.bytes().get(9) == Some(&UDP);
    let payload = packet.bytes().get(UDP_OFFSET + 8..)?;
    (is_udp && destination(packet) == Some(node)).then_some(payload)
}

/// The protocol number of UDP, and where its header begins.
const UDP: u8 = 17;
const UDP_OFFSET: usize = 20;

/// The address of a host: 10.0.0.1 and so on.
fn of_host(host: u32) -> [u8; 4] {
    let [_, a, b, c] = (host + 1).to_be_bytes();
    [10, a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::wire::build::SegmentBuilder;
    use airmend_proto::wire::edit::mark_congestion;

    #[test]
    fn ports_tell_the_flow_and_the_end() {
        for flow in [0, 1, 49_999, 50_000, 123_456, MAX_FLOWS as u32 - 1] {
            let [sender, receiver] = of_flow(flow, [0, 70_000]);
            for (from, to, end) in [(sender, receiver, 1), (receiver, sender, 0)] {
                let packet = SegmentBuilder::new(from, to).build(LinkType::Ip);
                assert_eq!(flow_and_end(&Segment::parse(&packet).unwrap()), (flow, end));
                assert_eq!(destination(&packet), Some([0, 70_000][end]));
            }
            let sent_at = Instant::from_millis(7);
            let datagram = flow_datagram(flow, [0, 70_000], sent_at, 1472);
            assert_eq!(datagram.wire_len(), 1500);
            assert_eq!(datagram_of_flow(&datagram), Some((flow, sent_at)));
        }
    }

    #[test]
    fn a_mark_on_the_packet_that_carries_a_frame_is_a_mark_on_the_frame() {
        let frame = Packet::new(LinkType::Frame, vec![1; 30].into());
        let sent = tunnelled([1, 2], &frame.clone().with_outer_ecn(Ecn::Ect0));
        assert_eq!(ecn(&sent), Ecn::Ect0);
        let marked = mark_congestion(&sent).unwrap();
        assert_eq!(frame_to(2, &marked), Some(frame.with_outer_ecn(Ecn::Ce)));
    }
}
