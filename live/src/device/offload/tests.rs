use super::layout::*;
use super::*;
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::checksum;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{LinkType, Packet};
use std::num::NonZeroU16;

const FOUR: ([u8; 4], [u8; 4]) = ([10, 0, 0, 1], [10, 0, 0, 2]);

fn super_packet(payload: &[u8], flags: Flags) -> Packet {
    SegmentBuilder::new((FOUR.0, 80), (FOUR.1, 5000))
        .seq(SeqNumber(u32::MAX - 2000))
        .ack(SeqNumber(7))
        .flags(flags)
        .payload(payload)
        .build(LinkType::Ip)
}

/// What a read of the device gives for this packet, with segments of `size` bytes.
fn read(packet: &Packet, gso_type: u8, size: u16) -> Vec<u8> {
    let header = Header {
        flags: NEEDS_CHECKSUM,
        gso_type,
        header_len: 0,
        segment_size: size,
        checksum_start: if packet.bytes()[0] >> 4 == 4 { 20 } else { 40 },
        checksum_offset: 16,
    };
    [&header.to_bytes()[..], packet.bytes()].concat()
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 % 251) as u8).collect()
}

fn joined(packets: Vec<Packet>) -> Vec<Vec<u8>> {
    let mut coalescer = Coalescer::default();
    let mut written = Vec::new();
    let write = |slices: &[std::io::IoSlice<'_>]| {
        slices.iter().flat_map(|slice| slice.to_vec()).collect::<Vec<u8>>()
    };
    for packet in packets {
        if let Err(packet) = coalescer.push(packet) {
            written.extend(coalescer.flush(write));
            coalescer.push(packet).expect("an empty run takes anything");
        }
    }
    written.extend(coalescer.flush(write));
    written
}

#[test]
fn a_super_packet_becomes_whole_segments() {
    let data = payload(4000);
    let flags = Flags::ACK.union(Flags::PSH).union(Flags::FIN).union(Flags::CWR);
    let packet = super_packet(&data, flags);
    let mut batch = Vec::new();
    assert!(split(&read(&packet, GSO_TCPV4 | GSO_ECN, 1460), &mut batch));
    let segments: Vec<_> = batch.iter().map(|p| Segment::parse(p).expect("a segment")).collect();
    let lengths: Vec<_> = segments.iter().map(|segment| segment.payload_len).collect();
    assert_eq!(lengths, [1460, 1460, 1080]);
    let mut together = Vec::new();
    let mut seq = u32::MAX - 2000;
    for (packet, segment) in batch.iter().zip(&segments) {
        assert_eq!(segment.seq.0, seq);
        seq = seq.wrapping_add(segment.payload_len);
        let at = usize::from(segment.payload_offset);
        together.extend_from_slice(&packet.bytes()[at..]);
        assert_eq!(checksum::internet(&packet.bytes()[..20]), 0, "the IP checksum is right");
        assert!(checksum::tcp_is_right(
            &segment.source.address,
            &segment.destination.address,
            &packet.bytes()[20..]
        ));
    }
    assert_eq!(together, data);
    let has = |flag| segments.iter().map(|s| s.flags.intersects(flag)).collect::<Vec<_>>();
    assert_eq!(has(Flags::FIN), [false, false, true]);
    assert_eq!(has(Flags::PSH), [false, false, true]);
    assert_eq!(has(Flags::CWR), [true, false, false]);
}

#[test]
fn a_super_packet_of_a_lan_becomes_frames_with_its_link_header() {
    let packet = super_packet(&payload(4000), Flags::ACK.union(Flags::PSH));
    let mut packets = Vec::new();
    assert!(split(&read(&packet, GSO_TCPV4, 1460), &mut packets));
    let tagged = [&[2; 12][..], &[0x81, 0, 0xe0, 7, 8, 0]].concat();
    for header in [[&[2; 12][..], &[8, 0]].concat(), tagged] {
        let bytes = [&header[..], packet.bytes()].concat();
        let frame = Packet::new(LinkType::Ethernet, bytes.into());
        let mut frames = Vec::new();
        assert!(split_frame(frame.clone(), &mut frames));
        assert_eq!(frames, std::slice::from_ref(&frame), "no super-packet");
        frames.clear();
        assert!(split_frame(frame.with_segment_size(NonZeroU16::new(1460)), &mut frames));
        let expected = packets.iter().map(|packet| {
            let bytes = [&header[..], packet.bytes()].concat();
            Packet::new(LinkType::Ethernet, bytes.into())
        });
        assert_eq!(frames, expected.collect::<Vec<_>>());
    }
}

/// A UDP packet over IPv4 or IPv6, its checksum right.
fn datagram(is_ipv4: bool, identification: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let mut packet = if is_ipv4 {
        let mut header = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, UDP, 0, 0].to_vec();
        header.extend([FOUR.0, FOUR.1].concat());
        put_u16(&mut header, 2, 20 + length);
        put_u16(&mut header, 4, identification);
        let sum = checksum::internet(&header);
        put_u16(&mut header, 10, sum);
        header
    } else {
        let mut header = [[0x60, 0, 0, 0, 0, 0, UDP, 64].to_vec(), vec![0xfd; 32]].concat();
        put_u16(&mut header, 4, length);
        header
    };
    let transport = packet.len();
    packet.extend([[0x13, 0x88, 0x13, 0x89, 0, 0, 0, 0].as_slice(), payload].concat());
    put_u16(&mut packet, transport + 4, length);
    let addresses = if is_ipv4 { 12..20 } else { 8..40 };
    let sum = match transport_checksum(UDP, &packet[addresses], &packet[transport..]) {
        0 => 0xffff,
        sum => sum,
    };
    put_u16(&mut packet, transport + 6, sum);
    packet
}

#[test]
fn a_super_packet_of_udp_becomes_datagrams() {
    let data = payload(4_000);
    for (is_ipv4, ethertype) in [(true, [8, 0]), (false, [0x86, 0xdd])] {
        let datagrams: Vec<_> = (65_534..=65_536)
            .zip(data.chunks(1_400))
            .map(|(number, chunk)| datagram(is_ipv4, number as u16, chunk))
            .collect();
        let whole = datagram(is_ipv4, 65_534, &data);
        let mut packets = Vec::new();
        let packet = Packet::new(LinkType::Ip, whole.clone().into());
        assert!(split(&read(&packet, GSO_UDP, 1_400), &mut packets));
        let expected = datagrams.iter().map(|d| Packet::new(LinkType::Ip, d.clone().into()));
        assert_eq!(packets, expected.collect::<Vec<_>>());
        assert_eq!(joined(packets).len(), 3, "datagrams are not joined");

        let tagged = [&[2; 12][..], &[0x81, 0, 0xe0, 7], &ethertype].concat();
        let header = read(&packet, GSO_UDP, 1_400)[..HEADER_LEN].try_into().expect("a header");
        let frame = [&tagged[..], &whole].concat();
        let frame = parse_frame(LinkType::Ethernet, header, None, frame[..].into());
        let mut frames = Vec::new();
        assert!(split_frame(frame.expect("a super-packet"), &mut frames));
        let expected = datagrams.iter().map(|datagram| [&tagged[..], datagram].concat());
        let expected = expected.map(|frame| Packet::new(LinkType::Ethernet, frame.into()));
        assert_eq!(frames, expected.collect::<Vec<_>>());
    }
}

#[test]
fn no_checksum_of_udp_is_zero() {
    // The sum of a datagram's words is made to complement to zero by its last payload word.
    let first = |word: u16| [payload(98), word.to_be_bytes().to_vec()].concat();
    let mut zero = (0..=u16::MAX).map(first).filter(|bytes| {
        let packet = datagram(false, 0, bytes);
        packet[46..48] == [0xff, 0xff]
    });
    let bytes = zero.next().expect("one of all words");
    let data = [bytes.clone(), vec![9; 50]].concat();
    let packet = Packet::new(LinkType::Ip, datagram(false, 0, &data).into());
    let mut packets = Vec::new();
    assert!(split(&read(&packet, GSO_UDP, 100), &mut packets));
    assert_eq!(packets[0].bytes(), datagram(false, 0, &bytes));
}

#[test]
fn what_was_split_is_joined_to_the_same() {
    for data in [payload(1461), payload(30_000), payload(14_600)] {
        let packet = super_packet(&data, Flags::ACK.union(Flags::PSH));
        let mut batch = Vec::new();
        assert!(split(&read(&packet, GSO_TCPV4, 1460), &mut batch));
        let written = joined(batch.clone());
        let [whole] = &written[..] else { panic!("{} pieces", written.len()) };
        let mut again = Vec::new();
        assert!(split(whole, &mut again));
        assert_eq!(again, batch);
    }
}

#[test]
fn ipv6_is_split_and_joined_alike() {
    let address = |last: u8| {
        let mut address = [0u8; 16];
        (address[0], address[15]) = (0xfd, last);
        address
    };
    let packet = SegmentBuilder::new((address(1), 80), (address(2), 5000))
        .flags(Flags::ACK)
        .payload(&payload(5000))
        .build(LinkType::Ip);
    let mut batch = Vec::new();
    assert!(split(&read(&packet, GSO_TCPV6, 1440), &mut batch));
    assert_eq!(batch.len(), 4);
    let written = joined(batch.clone());
    assert_eq!(written.len(), 1);
    let mut again = Vec::new();
    assert!(split(&written[0], &mut again));
    assert_eq!(again, batch);
}

#[test]
fn only_what_belongs_together_is_joined() {
    let packet = super_packet(&payload(4380), Flags::ACK);
    let mut batch = Vec::new();
    assert!(split(&read(&packet, GSO_TCPV4, 1460), &mut batch));
    let changed = |at: usize, value: u8, repair: bool| {
        let mut bytes = batch[1].bytes().to_vec();
        bytes[at] = value;
        if repair {
            for (at, range) in [(10, 0..20), (36, 20..bytes.len())] {
                put_u16(&mut bytes, at, 0);
                let sum = match at {
                    10 => checksum::internet(&bytes[range]),
                    _ => transport_checksum(TCP, &bytes[12..20], &bytes[range]),
                };
                put_u16(&mut bytes, at, sum);
            }
        }
        vec![batch[0].clone(), Packet::new(LinkType::Ip, bytes.into())]
    };
    assert_eq!(joined(changed(34, batch[1].bytes()[34], true)).len(), 1, "unchanged");
    for (what, packets) in [
        ("a wrong checksum", changed(1000, 0xee, false)),
        ("another type of service", changed(1, 3, true)),
        ("another port", changed(21, 81, true)),
        ("another ACK", changed(31, 8, true)),
        ("another window", changed(34, 77, true)),
        ("a FIN", changed(33, 0x11, true)),
        ("a gap", vec![batch[0].clone(), batch[2].clone()]),
        ("reordered", vec![batch[1].clone(), batch[0].clone()]),
    ] {
        assert_eq!(joined(packets.clone()).len(), 2, "{what}");
        let alone = joined(packets.clone());
        for (written, packet) in alone.iter().zip(&packets) {
            assert_eq!(&written[HEADER_LEN..], packet.bytes(), "{what}");
        }
    }
    let short_first = vec![batch[0].clone(), batch[1].clone()];
    assert_eq!(joined([short_first, vec![super_packet(b"x", Flags::ACK)]].concat()).len(), 2);
}

#[test]
fn a_lone_packet_gets_its_checksum() {
    let packet = super_packet(b"hello", Flags::ACK);
    let mut read = read(&packet, GSO_NONE, 0);
    let sum = !pseudo_header(TCP, &packet.bytes()[12..20], 25);
    put_u16(&mut read, HEADER_LEN + 36, sum);
    let mut batch = Vec::new();
    assert!(split(&read, &mut batch));
    assert_eq!(batch, [packet]);
}

#[test]
fn nonsense_is_refused() {
    let packet = super_packet(&payload(3000), Flags::ACK);
    let mut batch = Vec::new();
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("no packet", read(&packet, GSO_TCPV4, 1460)[..HEADER_LEN].to_vec()),
        ("half a header", read(&packet, GSO_TCPV4, 1460)[..HEADER_LEN + 30].to_vec()),
        ("segments of nothing", read(&packet, GSO_TCPV4, 0)),
        ("too many segments", read(&packet, GSO_TCPV4, 1)),
        ("the wrong family", read(&packet, GSO_TCPV6, 1460)),
        ("the wrong protocol", read(&packet, GSO_UDP, 1460)),
        ("an unknown type", read(&packet, 3, 1460)),
    ] {
        assert!(!split(&bytes, &mut batch) && batch.is_empty(), "{what}");
    }
    let mut outside = read(&packet, GSO_NONE, 0);
    outside[6..8].copy_from_slice(&9000u16.to_ne_bytes());
    assert!(!split(&outside, &mut batch));
}
