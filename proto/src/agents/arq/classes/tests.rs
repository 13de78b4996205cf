use super::*;
use crate::packet::LinkType;
use crate::wire::build::SegmentBuilder;
use crate::wire::flow::Endpoint;
use alloc::string::ToString;
use alloc::vec;
use core::net::Ipv6Addr;

const FIXED: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
const MOBILE: ([u8; 4], u16) = ([10, 9, 0, 1], 5_000);

fn class(rules: &str, packet: &Packet) -> Class {
    rules.parse::<Rules>().unwrap().class(&View::of(packet))
}

/// An IP packet of this protocol, whose payload is the bytes and so many more.
fn ip(version: u8, protocol: u8, payload: &[u8], uncaptured: usize) -> Packet {
    let len = (payload.len() + uncaptured) as u16;
    let mut bytes = match version {
        4 => {
            let mut header = vec![0; 20];
            header[0] = 0x45;
            header[2..4].copy_from_slice(&(len + 20).to_be_bytes());
            header[9] = protocol;
            header[15] = 1;
            header
        }
        _ => {
            let mut header = vec![0; 40];
            header[0] = 0x60;
            header[4..6].copy_from_slice(&len.to_be_bytes());
            header[6] = protocol;
            header
        }
    };
    bytes.extend(payload);
    let wire_len = (bytes.len() + uncaptured) as u32;
    Packet::truncated(LinkType::Ip, bytes.into(), wire_len)
}

fn ports(source: u16, destination: u16) -> Vec<u8> {
    [source.to_be_bytes(), destination.to_be_bytes(), [0; 2], [0; 2]].concat()
}

#[test]
fn tcp_data_is_told_from_acks_by_length() {
    // [tulip99 §III S2-01]
    for link_type in [LinkType::Ip, LinkType::Ethernet] {
        for mobile in [Endpoint::from(MOBILE), Endpoint::from((Ipv6Addr::LOCALHOST, 5_000))] {
            let segment = SegmentBuilder::new(FIXED, mobile);
            let data = segment.payload_len(1).build(link_type);
            assert_eq!(class("tcp>0=reliable", &data), Class::Reliable, "{mobile:?} {link_type:?}");
            let ack = segment.build(link_type);
            assert_eq!(class("tcp>0=reliable", &ack), Class::Unreliable, "{mobile:?}");
            assert_eq!(class("tcp=reliable", &ack), Class::Reliable, "{mobile:?}");
        }
    }
}

#[test]
fn a_syn_or_fin_counts_as_a_byte() {
    for (flags, expected) in [
        (Flags::SYN, Class::Reliable),
        (Flags::SYN.union(Flags::ACK), Class::Reliable),
        (Flags::FIN.union(Flags::ACK), Class::Reliable),
        (Flags::RST, Class::Unreliable),
    ] {
        let packet = SegmentBuilder::new(FIXED, MOBILE).flags(flags).build(LinkType::Ip);
        assert_eq!(class("tcp>0=reliable", &packet), expected, "{flags:?}");
        assert_eq!(class("tcp>1=reliable", &packet), Class::Unreliable, "{flags:?}");
    }
}

#[test]
fn an_encrypted_tcp_header_is_classed_by_length() {
    // [tulip99 §VI S2-01] ESP: 20 + 20 bytes of TCP ACK and the ESP overhead are below 120.
    for version in [4, 6] {
        let data = ip(version, 50, &[0; 8], 1_400);
        let ack = ip(version, 50, &[0; 8], 80);
        assert_eq!(class("esp>120=reliable", &data), Class::Reliable);
        assert_eq!(class("esp>120=reliable", &ack), Class::Unreliable);
    }
}

#[test]
fn ports_are_of_either_end_and_the_first_rule_decides() {
    let rules = "udp:443>1000=reliable,udp:443=50ms,any=unreliable";
    for (from, to) in [(443, 9), (9, 443)] {
        let short = ip(4, UDP, &ports(from, to), 1_000);
        let long = ip(6, UDP, &ports(from, to), 1_001);
        assert_eq!(class(rules, &short), Class::Bounded(Duration::from_millis(50)));
        assert_eq!(class(rules, &long), Class::Reliable);
    }
    assert_eq!(class(rules, &ip(4, UDP, &ports(53, 9), 0)), Class::Unreliable);
    assert_eq!(class(rules, &ip(4, TCP, &ports(443, 9), 0)), Class::Unreliable, "not UDP");
}

#[test]
fn extension_headers_are_walked_and_fragments_have_no_ports() {
    // Hop-by-hop options of 16 bytes, then UDP; then the same as a fragment.
    let mut options = vec![UDP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    options.extend(ports(443, 9));
    assert_eq!(class("udp:443=reliable", &ip(6, 0, &options, 5)), Class::Reliable);
    assert_eq!(View::of(&ip(6, 0, &options, 5)).payload_len, 5);
    let fragment = [vec![UDP, 0, 0, 9, 0, 0, 0, 0], ports(443, 9)].concat();
    let fragment = ip(6, 44, &fragment, 0);
    assert_eq!(class("udp:443=reliable", &fragment), Class::Unreliable);
    assert_eq!(class("udp=reliable", &fragment), Class::Reliable);
    // Two fragments of one datagram share a flow.
    assert_eq!(View::of(&fragment).flow, View::of(&fragment).flow);
}

#[test]
fn flows_differ_by_ports_and_direction() {
    let flow = |from, to| View::of(&SegmentBuilder::new(from, to).build(LinkType::Ip)).flow;
    let numbers = [
        flow(FIXED, MOBILE),
        flow(MOBILE, FIXED),
        flow(FIXED, (MOBILE.0, 5_001)),
        flow((FIXED.0, 81), MOBILE),
    ];
    let mut distinct = numbers.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), numbers.len(), "{numbers:?}");
    assert!(numbers.iter().all(|flow| *flow < FLOWS));
}

#[test]
fn anything_is_classed() {
    for len in 0..48 {
        for first in [0x00, 0x45, 0x4f, 0x60, 0xff] {
            for fill in [0, 6, 44, 60, 0xff] {
                let mut bytes = vec![fill; len];
                if let Some(byte) = bytes.first_mut() {
                    *byte = first;
                }
                for link_type in [LinkType::Ip, LinkType::Ethernet] {
                    let view = View::of(&Packet::new(link_type, bytes.clone().into()));
                    assert!(view.flow < FLOWS);
                }
            }
        }
    }
}

#[test]
fn rules_are_read_back_as_written() {
    for text in ["", "tcp>0=reliable", "udp:443=100ms,esp>120=reliable,47=2s,any>9=unreliable"] {
        assert_eq!(text.parse::<Rules>().unwrap().to_string(), text);
    }
    assert_eq!(Rules::default().to_string(), "tcp>0=reliable,udp:443=100ms");
    assert_eq!(" tcp > 0 = reliable ,".parse(), Ok(Rules::tulip99()));
}

#[test]
fn refuses_in_one_sentence() {
    let refusal = |text: &str| text.parse::<Rules>().unwrap_err();
    assert!(refusal("tcp").contains("must be PACKETS=CLASS"));
    assert!(refusal("quic=reliable").contains("must begin with tcp, udp"));
    assert!(refusal("300=reliable").contains("or a number"));
    assert!(refusal("icmp:7=reliable").contains("must be tcp or udp"));
    assert!(refusal("udp:70000=reliable").contains("from 0 to 65535"));
    assert!(refusal("udp>many=reliable").contains("whole number"));
    assert!(refusal("udp=0ms").contains("reliable, unreliable or a time"));
    assert!(refusal("udp=sometimes").contains("such as udp:443>0=100ms"));
    assert!(refusal(&"udp=1s,".repeat(65)).contains("at most 64"));
}
