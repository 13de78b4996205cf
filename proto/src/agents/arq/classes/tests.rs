use super::*;
use crate::packet::LinkType;
use crate::wire::build::SegmentBuilder;
use crate::wire::flow::Endpoint;
use alloc::borrow::ToOwned;
use alloc::string::ToString;
use alloc::vec;
use core::net::{Ipv4Addr, Ipv6Addr};

const FIXED: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
const MOBILE: ([u8; 4], u16) = ([10, 9, 0, 1], 5_000);

fn class(rules: &str, packet: &Packet) -> Class {
    rules.parse::<Rules>().unwrap().class(&View::of(packet, 1))
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
fn a_dscp_is_read_of_both_versions_and_beside_any_ecn() {
    for version in [4, 6] {
        for (dscp, ecn) in [(46, 0), (46, 3), (44, 1), (0, 2), (8, 0)] {
            let mut bytes = ip(version, UDP, &ports(9, 8), 0).bytes().to_vec();
            match version {
                4 => bytes[1] = dscp << 2 | ecn,
                _ => {
                    bytes[0] |= dscp >> 2;
                    bytes[1] |= dscp << 6 | ecn << 4;
                }
            }
            let packet = Packet::new(LinkType::Ip, bytes.into());
            let expected = match dscp {
                46 | 44 => Class::Bounded(VOICE_PERSISTENCE),
                _ => Class::Unreliable,
            };
            assert_eq!(class("default", &packet), expected, "{version} {dscp} {ecn}");
            let by_number = alloc::format!("udp:8@{dscp}=reliable");
            assert_eq!(class(&by_number, &packet), Class::Reliable, "{version} {dscp} {ecn}");
        }
    }
}

#[test]
fn dns_is_given_up_before_it_is_asked_again_and_nothing_else_of_udp() {
    for (from, to) in [(53, 9), (9, 53)] {
        let packet = ip(4, UDP, &ports(from, to), 40);
        assert_eq!(class("default", &packet), Class::Bounded(DNS_PERSISTENCE));
    }
    assert_eq!(class("default", &ip(4, UDP, &ports(5_060, 9), 40)), Class::Unreliable);
}

/// What WireGuard (Donenfeld 2020, §5.4.6) and ESP (RFC 4303 §2) make of an IP packet: bytes
/// behind the UDP or IP header.
fn encrypted_len(packet: usize) -> [usize; 3] {
    let padded = |to: usize, len: usize| len.div_ceil(to) * to;
    let wireguard = 16 + padded(16, packet) + 16;
    let gcm = 8 + 8 + padded(4, packet + 2) + 16;
    let cbc = 8 + 16 + padded(16, packet + 2) + 32;
    [wireguard, gcm, cbc]
}

#[test]
fn one_word_makes_encrypted_data_reliable_and_acks_not() {
    let class_of = |protocol, port, len: usize| {
        let header = if protocol == UDP { ports(9, port) } else { vec![] };
        class("encrypted", &ip(4, protocol, &header, len))
    };
    for (protocol, port) in [(UDP, 51_820), (UDP, 4_500), (50, 0)] {
        // TCP's longest header, over IPv6, is an ACK; so is a header with timestamps over IPv4.
        for ack in [40, 52, 100] {
            for len in encrypted_len(ack) {
                assert_eq!(class_of(protocol, port, len), Class::Unreliable, "{ack} {len}");
            }
        }
        for data in [153, 576, 1_420] {
            for len in encrypted_len(data) {
                assert_eq!(class_of(protocol, port, len), Class::Reliable, "{data} {len}");
            }
        }
    }
    assert_eq!(class_of(UDP, 443, 1_200), Class::Bounded(QUIC_PERSISTENCE));
    assert_eq!(class_of(UDP, 51_821, 1_400), Class::Unreliable);
}

#[test]
fn extension_headers_are_walked_and_fragments_have_no_ports() {
    // Hop-by-hop options of 16 bytes, then UDP; then the same as a fragment.
    let mut options = vec![UDP, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    options.extend(ports(443, 9));
    assert_eq!(class("udp:443=reliable", &ip(6, 0, &options, 5)), Class::Reliable);
    assert_eq!(View::of(&ip(6, 0, &options, 5), 1).payload_len, 5);
    let fragment = [vec![UDP, 0, 0, 9, 0, 0, 0, 0], ports(443, 9)].concat();
    let fragment = ip(6, 44, &fragment, 0);
    assert_eq!(class("udp:443=reliable", &fragment), Class::Unreliable);
    assert_eq!(class("udp=reliable", &fragment), Class::Reliable);
    // Two fragments of one datagram share a flow.
    assert_eq!(View::of(&fragment, 1).flow, View::of(&fragment, 1).flow);
}

/// Flows that share a number with one seed do not with most others: nobody can look for them in
/// advance.
#[test]
fn who_shares_a_flow_s_number_depends_on_the_seed() {
    let packet = |port| {
        let (from, to) = ((Ipv4Addr::new(10, 0, 0, 1), port), (Ipv4Addr::new(10, 0, 0, 2), 80));
        SegmentBuilder::new(from, to).build(LinkType::Ip)
    };
    let victim = packet(1_000);
    let shares =
        |port: &u16, seed| View::of(&packet(*port), seed).flow == View::of(&victim, seed).flow;
    let found: Vec<u16> = (2_000..60_000).filter(|port| shares(port, 1)).collect();
    assert!(found.len() > 100, "a sixteenth of a thousand each: {}", found.len());
    let again = found.iter().filter(|port| shares(port, 2)).count();
    assert!(again < found.len() / 10, "{again} of {}", found.len());
}

#[test]
fn flows_differ_by_ports_and_direction() {
    let flow = |from, to| View::of(&SegmentBuilder::new(from, to).build(LinkType::Ip), 1).flow;
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
                    let view = View::of(&Packet::new(link_type, bytes.clone().into()), 1);
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
    for text in ["any@ef=50ms", "udp:9@af41>0=reliable", "tcp@13=unreliable", "esp@voice-admit=1s"]
    {
        assert_eq!(text.parse::<Rules>().unwrap().to_string(), text);
    }
    let default = "tcp>0=reliable,udp:443=100ms,udp@ef=50ms,udp@voice-admit=50ms,udp:53=300ms";
    assert_eq!(Rules::default().to_string(), default);
    assert_eq!("default".parse(), Ok(Rules::default()));
    let encrypted = "esp>168=reliable,udp:4500>168=reliable,udp:51820>168=reliable,";
    assert_eq!(Rules::encrypted().to_string(), encrypted.to_owned() + default);
    assert_eq!(
        "icmp=1s,encrypted".parse::<Rules>().unwrap().to_string(),
        "icmp=1s,".to_owned() + encrypted + default
    );
    assert_eq!(" tcp > 0 = reliable ,".parse(), Ok(Rules::tulip99()));
}

#[test]
fn refuses_in_one_sentence() {
    let refusal = |text: &str| text.parse::<Rules>().unwrap_err();
    assert!(refusal("tcp").contains("must be default, encrypted or PACKETS=CLASS"));
    assert!(refusal("Encrypted").contains("must be default, encrypted or PACKETS=CLASS"));
    assert!(refusal("encrypted=reliable").contains("a word that stands for rules"));
    assert!(refusal("udp@64=1s").contains("needs a DSCP after @"));
    assert!(refusal("udp@=1s").contains("a name like ef"));
    assert!(refusal("udp@ef:5060=1s").contains("needs a DSCP after @"), "the port comes first");
    assert!(refusal("quic=reliable").contains("must begin with tcp, udp"));
    assert!(refusal("300=reliable").contains("or a number"));
    assert!(refusal("icmp:7=reliable").contains("must be tcp or udp"));
    assert!(refusal("udp:70000=reliable").contains("from 0 to 65535"));
    assert!(refusal("udp>many=reliable").contains("whole number"));
    assert!(refusal("udp=0ms").contains("reliable, unreliable or a time"));
    assert!(refusal("udp=sometimes").contains("such as udp:443>0=100ms"));
    assert!(refusal(&"udp=1s,".repeat(65)).contains("at most 64"));
    assert!(refusal(&"encrypted,".repeat(9)).contains("at most 64"));
}
