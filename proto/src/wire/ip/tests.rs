use super::*;
use crate::wire::build::SegmentBuilder;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU16;

/// An Ethernet packet with these tags, whose TCP segment has 100 bytes of payload.
fn ethernet(tags: &[u16]) -> Vec<u8> {
    let mut bytes = vec![0; 12];
    for tag in tags {
        bytes.extend_from_slice(&tag.to_be_bytes());
        bytes.extend_from_slice(&[0, 5]);
    }
    bytes.extend_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
    bytes.extend_from_slice(&ipv4());
    bytes
}

fn ipv4() -> Vec<u8> {
    let builder = SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 1, 2], 5000));
    builder.payload(&[0; 100]).build(LinkType::Ip).bytes().to_vec()
}

/// An IPv6 packet with these extension headers and 120 bytes of TCP. Each header is given with its
/// own number and without its next-header byte.
fn ipv6(headers: &[(u8, &[u8])], last: u8) -> Vec<u8> {
    let ends = (([0x20, 1, 0xd, 0xb8, 0, 0, 0, 1], 80), ([0x20, 1, 0xd, 0xb8, 0, 0, 0, 2], 5000));
    let builder = SegmentBuilder::new(ends.0, ends.1).payload(&[0; 100]);
    let mut bytes = builder.build(LinkType::Ip).bytes().to_vec();
    let transport = bytes.split_off(IPV6_HEADER);
    let numbers: Vec<u8> = headers.iter().map(|(number, _)| *number).chain([last]).collect();
    bytes[6] = numbers[0];
    for ((_, body), next) in headers.iter().zip(&numbers[1..]) {
        bytes.push(*next);
        bytes.extend_from_slice(body);
    }
    bytes.extend_from_slice(&transport);
    let payload_len = (bytes.len() - IPV6_HEADER) as u16;
    bytes[4..6].copy_from_slice(&payload_len.to_be_bytes());
    bytes
}

fn parse(link_type: LinkType, bytes: Vec<u8>) -> Result<Network, Bypass> {
    Network::parse(&Packet::new(link_type, bytes.into()))
}

fn parse_ip(bytes: Vec<u8>) -> Result<Network, Bypass> {
    parse(LinkType::Ip, bytes)
}

/// What an IPv4 packet parses to after these bytes were replaced.
fn ipv4_with(replaced: &[(usize, u8)]) -> Result<Network, Bypass> {
    let mut bytes = ipv4();
    replaced.iter().for_each(|&(at, value)| bytes[at] = value);
    parse_ip(bytes)
}

#[test]
fn up_to_two_vlan_tags_are_walked() {
    let cases: [&[u16]; 4] = [&[], &[0x8100], &[0x88a8, 0x8100], &[0x8100, 0x8100]];
    for tags in cases {
        let network = parse(LinkType::Ethernet, ethernet(tags)).unwrap();
        assert_eq!(usize::from(network.offset), 14 + 4 * tags.len());
        assert_eq!(network.transport_offset, network.offset + 20);
        assert_eq!(network.transport_len, 120);
    }
    assert_eq!(parse(LinkType::Ethernet, ethernet(&[0x8100; 3])), Err(Bypass::NotIp));
}

#[test]
fn other_ethertypes_and_versions_are_not_ip() {
    // ARP, and an IEEE 802.3 length.
    for ethertype in [0x0806_u16, 0x0040] {
        let mut bytes = ethernet(&[]);
        bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        assert_eq!(parse(LinkType::Ethernet, bytes), Err(Bypass::NotIp));
    }
    assert_eq!(ipv4_with(&[(0, 0x55)]), Err(Bypass::NotIp));
}

#[test]
fn an_ethertype_that_contradicts_the_version_is_malformed() {
    let mut bytes = ethernet(&[]);
    bytes[14] = 0x65;
    assert_eq!(parse(LinkType::Ethernet, bytes), Err(Bypass::Malformed));
}

#[test]
fn ipv4_options_are_skipped() {
    let network = ipv4_with(&[(0, 0x47)]).unwrap();
    assert_eq!((network.transport_offset, network.transport_len), (28, 112));
    assert_eq!(ipv4_with(&[(0, 0x44)]), Err(Bypass::Malformed));
}

#[test]
fn ipv4_fragments_are_told_apart() {
    assert_eq!(ipv4_with(&[(6, 0x20)]), Err(Bypass::Fragment), "more fragments");
    assert_eq!(ipv4_with(&[(6, 0x00), (7, 1)]), Err(Bypass::Fragment), "an offset");
    assert!(ipv4_with(&[(6, 0x40)]).is_ok(), "don't fragment");
    assert_eq!(ipv4_with(&[(6, 0x20), (9, 17)]), Err(Bypass::NotTcp));
}

#[test]
fn ethernet_padding_is_not_payload() {
    let mut bytes = ipv4();
    bytes.extend_from_slice(&[0; 6]);
    assert_eq!(parse_ip(bytes).unwrap().transport_len, 120);
}

#[test]
fn lengths_must_agree() {
    assert_eq!(ipv4_with(&[(3, 141)]), Err(Bypass::Malformed), "longer than on the wire");
    assert_eq!(ipv4_with(&[(3, 19)]), Err(Bypass::Malformed), "shorter than its header");
    assert_eq!(ipv4_with(&[(3, 0)]), Err(Bypass::Malformed), "zero");
    let mut bytes = ipv6(&[], TCP);
    bytes[5] += 1;
    assert_eq!(parse_ip(bytes), Err(Bypass::Malformed));
    let mut bytes = ethernet(&[0x8100]);
    bytes[18 + 3] += 1;
    assert_eq!(parse(LinkType::Ethernet, bytes), Err(Bypass::Malformed));
}

#[test]
fn a_super_packet_may_leave_its_length_to_the_capture() {
    let mut four = ipv4();
    four[3] = 0;
    let mut six = ipv6(&[], TCP);
    six[5] = 0;
    for (bytes, header_len) in [(four, 20), (six, 40)] {
        let len = bytes.len() as u32;
        let marked =
            Packet::new(LinkType::Ip, bytes.clone().into()).with_segment_size(NonZeroU16::new(50));
        assert_eq!(Network::parse(&marked).unwrap().transport_len, len - header_len);
        let huge = Packet::truncated(LinkType::Ip, bytes.into(), 100_000);
        assert_eq!(Network::parse(&huge).unwrap().transport_len, 100_000 - header_len);
    }
}

#[test]
fn ipv6_extension_headers_are_walked() {
    let headers: [(u8, &[u8]); 4] = [
        (HOP_BY_HOP, &[0, 1, 4, 0, 0, 0, 0]),
        (ROUTING, &[2, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        // The byte where others have their length is reserved here.
        (FRAGMENT, &[3, 0, 0, 9, 9, 9, 9]),
        (DESTINATION_OPTIONS, &[0, 1, 4, 0, 0, 0, 0]),
    ];
    let network = parse_ip(ipv6(&headers, TCP)).unwrap();
    assert_eq!((network.transport_offset, network.transport_len), (40 + 8 + 24 + 8 + 8, 120));
    assert_eq!(parse_ip(ipv6(&headers, 17)), Err(Bypass::NotTcp));
}

#[test]
fn eight_extension_headers_are_the_limit() {
    let options: (u8, &[u8]) = (DESTINATION_OPTIONS, &[0, 1, 4, 0, 0, 0, 0]);
    assert_eq!(parse_ip(ipv6(&[options; 8], TCP)).unwrap().transport_offset, 40 + 64);
    assert_eq!(parse_ip(ipv6(&[options; 9], TCP)), Err(Bypass::NotTcp));
}

#[test]
fn ipv6_fragments_are_told_apart() {
    let fragment = |b2, b3| parse_ip(ipv6(&[(FRAGMENT, &[0, b2, b3, 0, 0, 0, 1])], TCP));
    assert_eq!(fragment(0, 1), Err(Bypass::Fragment), "more fragments");
    assert_eq!(fragment(0, 8), Err(Bypass::Fragment), "an offset");
    assert!(fragment(0, 6).is_ok(), "reserved bits");
}

#[test]
fn tcp_out_of_reach_is_not_tcp() {
    let routing: (u8, &[u8]) = (ROUTING, &[0, 2, 1, 0, 0, 0, 0]);
    assert_eq!(parse_ip(ipv6(&[routing], TCP)), Err(Bypass::NotTcp), "segments left");
    let authentication: (u8, &[u8]) = (51, &[4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(parse_ip(ipv6(&[authentication], TCP)), Err(Bypass::NotTcp), "AH");
    assert_eq!(parse_ip(ipv6(&[(50, &[0; 7])], TCP)), Err(Bypass::NotTcp), "ESP");
}
