//! Captures as people have them: each is `download`, written in another way.
//!
//! `SEEDS=fuzz/seeds/capture cargo test -p airmend-sim --test replay samples` writes the files.

use super::blocks::*;
use super::capture::{cooked, pcap};
use super::{assert_is_download, built, replay_freely};
use airmend_proto::{LinkType, Packet, Port};
use airmend_sim::replay::{Capture, Sides, Steps, steps};
use flate2::Compression;
use flate2::write::GzEncoder;
use pcap_file::DataLink;
use std::io::Write;
use std::path::Path;

/// A file, and what is left out of it.
struct Sample {
    name: &'static str,
    file: Vec<u8>,
    left_out: &'static [(&'static str, u64)],
}

fn sample(name: &'static str, file: Vec<u8>) -> Sample {
    Sample { name, file, left_out: &[] }
}

#[test]
fn a_capture_is_read_however_it_was_written() {
    let samples = [metadata(), read_in_part(), pcap_forms(), encapsulated()];
    for Sample { name, file, left_out } in samples.into_iter().flatten() {
        println!("{name}");
        if let Some(directory) = std::env::var_os("SEEDS") {
            std::fs::write(Path::new(&directory).join(name), &file).unwrap();
        }
        let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/capture").join(name);
        assert!(std::fs::read(seed).is_ok_and(|seed| seed == file), "{name} is no seed: SEEDS");
        assert_is_download(&replay_freely(&file, None));
        let capture = Capture::read(file.as_slice()).unwrap();
        let steps: Steps = steps(&capture, &Sides::of(&capture)).unwrap();
        let found: Vec<_> = steps.left_out.iter().map(|(why, many)| (why.name(), many)).collect();
        let wanted: Vec<_> = left_out.iter().map(|(why, many)| (why.to_string(), *many)).collect();
        assert_eq!(found, wanted, "{name}");
    }
}

/// The packets of `download` as IP packets of one interface, each as a block.
fn blocks(block: impl Fn(u64, &Packet) -> Vec<u8>) -> Vec<u8> {
    built(LinkType::Ip).flat_map(|(at, _, packet)| block(at, &packet)).collect()
}

fn raw_ip() -> Vec<u8> {
    interface(101, &[])
}

fn gzip(file: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(file).unwrap();
    packed.finish().unwrap()
}

fn raw_pcap() -> Vec<u8> {
    pcap(DataLink::RAW, built(LinkType::Ip).map(|(at, _, packet)| (at, packet)))
}

/// With an own header in the place of the first 24 bytes, and each 32-bit number turned around.
fn big_endian(file: &[u8]) -> Vec<u8> {
    let mut turned =
        [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, 101].map(u32::to_be_bytes).concat();
    let mut rest = &file[24..];
    while let Some((header, behind)) = rest.split_first_chunk::<16>() {
        let captured = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        turned.extend(header.chunks(4).flat_map(|number| number.iter().rev()));
        turned.extend(&behind[..captured as usize]);
        rest = &behind[captured as usize..];
    }
    turned
}

/// Blocks and options of pcapng that some reader takes offence at.
fn metadata() -> Vec<Sample> {
    let open = |code, value: &[u8]| option(code, value);
    let without_end = [
        section(),
        block(1, &[&101_u16.to_le_bytes(), &[0; 6], &open(2, b"tun0")]),
        blocks(|at, packet| {
            let flags = open(2, &1_u32.to_le_bytes());
            block(6, &[&[0; 4], &time(at), &captured(packet), &flags])
        }),
    ];
    let latin1 = option(1, b"caf\xe9");
    let too_long = [1, 0, 200, 0, b'x', 0, 0, 0];
    let plain = |at, packet: &Packet| enhanced(0, at, packet, &[]);
    let ahead = |at, packet: &Packet| match at {
        0..60 => enhanced(0, at, packet, &[]),
        _ => enhanced(1, at + 1000, packet, &[]),
    };
    // The second interface's clock is a second ahead.
    let later = interface(101, &[&option(14, &(-1_i64).to_le_bytes()), &option(9, &[6])]);
    let damaged = [section(), raw_ip(), blocks(plain), vec![6, 0, 0, 0, 8, 0, 0, 0], vec![1; 40]];
    vec![
        sample("pcapng-no-end-of-options", without_end.concat()),
        sample(
            "pcapng-comment-latin1",
            [
                block(
                    0x0a0d_0d0a,
                    &[&0x1a2b_3c4d_u32.to_le_bytes(), &[1, 0, 0, 0], &[0xff; 8], &latin1],
                ),
                interface(101, &[&option(2, b"tun\xff"), &latin1]),
                blocks(|at, packet| enhanced(0, at, packet, &[&latin1])),
            ]
            .concat(),
        ),
        sample(
            "pcapng-option-too-long",
            [
                section(),
                interface(101, &[&too_long]),
                blocks(|at, packet| enhanced(0, at, packet, &[&too_long])),
            ]
            .concat(),
        ),
        sample(
            "pcapng-obsolete",
            [
                section(),
                raw_ip(),
                blocks(|at, packet| obsolete(0, at, packet, &[&option(2, &1_u32.to_le_bytes())])),
            ]
            .concat(),
        ),
        sample("pcapng-time-offset", [section(), raw_ip(), later, blocks(ahead)].concat()),
        sample("pcapng-damaged-end", damaged.concat()),
        sample(
            "pcapng-joined.gz",
            [
                gzip(&[section(), raw_ip(), halves_of(&plain, 0..9)].concat()),
                gzip(&[section(), raw_ip(), halves_of(&plain, 9..24)].concat()),
            ]
            .concat(),
        ),
    ]
}

/// Files of which some packets cannot be used.
fn read_in_part() -> Vec<Sample> {
    let plain = |at, packet: &Packet| enhanced(0, at, packet, &[]);
    let monitor = || enhanced(1, 10, &Packet::new(LinkType::Ip, vec![0; 40].into()), &[]);
    let unknown = || enhanced(9, 10, &Packet::new(LinkType::Ip, vec![0; 40].into()), &[]);
    let first = built(LinkType::Ip).next().unwrap().2;
    vec![
        Sample {
            left_out: &[("no_time", 1)],
            ..sample("pcapng-simple", [section(), raw_ip(), simple(&first), blocks(plain)].concat())
        },
        Sample {
            left_out: &[("link_type_127", 2)],
            ..sample(
                "pcapng-monitor-beside",
                [section(), raw_ip(), interface(127, &[]), blocks(plain), monitor(), monitor()]
                    .concat(),
            )
        },
        Sample {
            left_out: &[("no_interface", 1)],
            ..sample(
                "pcapng-no-interface",
                [section(), raw_ip(), unknown(), blocks(plain)].concat(),
            )
        },
    ]
}

/// Link types, byte orders and other forms of pcap.
fn pcap_forms() -> Vec<Sample> {
    let with_link = |link: u32| {
        let mut file = raw_pcap();
        file[20..24].copy_from_slice(&link.to_le_bytes());
        file
    };
    let with_fcs = |(at, _, packet): (u64, Port, Packet)| {
        let mut bytes = packet.bytes().to_vec();
        bytes.resize(packet.wire_len() as usize, 0);
        bytes.extend([0xde, 0xad, 0xbe, 0xef]);
        (at, Packet::new(LinkType::Ethernet, bytes.into()))
    };
    let mut fcs = pcap(DataLink::ETHERNET, built(LinkType::Ethernet).map(with_fcs).take(24));
    // The presence of a frame check sequence, and its length in words of 16 bits.
    fcs[20..24].copy_from_slice(&0x2400_0001_u32.to_le_bytes());
    let halves = |from: usize, to: usize| {
        let part = built(LinkType::Ip).skip(from).take(to - from);
        pcap(DataLink::RAW, part.map(|(at, _, packet)| (at, packet)))
    };
    let joined = [halves(0, 9), big_endian(&halves(9, 16)), halves(16, 24)].concat();
    let cooked_vlan = pcap(
        DataLink::LINUX_SLL,
        built(LinkType::Ip).map(|(at, side, packet)| {
            let mut bytes = cooked(&packet, side == Port::Wired).bytes().to_vec();
            bytes.splice(14..16, [0x81, 0x00, 0x00, 0x07, 0x08, 0x00]);
            (at, Packet::truncated(LinkType::Ip, bytes.into(), packet.wire_len() + 20))
        }),
    );
    vec![
        sample("pcap-raw-12", with_link(12)),
        sample("pcap-raw-14", with_link(14)),
        sample("pcap-raw-12-fcs", with_link(0x2400_000c)),
        sample("pcap-raw-14-fcs", with_link(0x2400_000e)),
        sample("pcap-raw-101-fcs", with_link(0x2400_0065)),
        sample("pcap-ethernet-fcs", fcs),
        sample("pcap-big-endian", big_endian(&raw_pcap())),
        sample("pcap-joined", joined),
        sample("pcap-cooked-vlan", cooked_vlan),
        sample("pcap.gz", gzip(&raw_pcap())),
    ]
}

fn halves_of(block: &dyn Fn(u64, &Packet) -> Vec<u8>, part: std::ops::Range<usize>) -> Vec<u8> {
    let packets = built(LinkType::Ip).skip(part.start).take(part.len());
    packets.flat_map(|(at, _, packet)| block(at, &packet)).collect()
}

#[test]
fn what_cannot_be_read_of_a_file_is_told() {
    let whole = gzip(&raw_pcap());
    let cut = Capture::read(&whole[..whole.len() - 40]).unwrap();
    assert!(cut.is_cut && cut.records.len() == 23, "{}", cut.records.len());
    let simple_only = [section(), raw_ip(), blocks(|_, packet| simple(packet))].concat();
    let mut no_gzip = whole;
    no_gzip[3] = 0xff;
    for (file, words) in [
        (simple_only, "24 packets without a time"),
        (no_gzip, "cannot be unpacked"),
        (b"\x28\xb5\x2f\xfd zstd".to_vec(), "unpack it first (unzstd)"),
        (b"snoop\0\0\0\0\0\0\x02".to_vec(), "editcap"),
        ([section(), interface(105, &[])].concat(), "holds no packet"),
    ] {
        let sentence = Capture::read(file.as_slice()).unwrap_err().to_string();
        assert!(sentence.contains(words) && sentence.len() < 200, "{words}: {sentence}");
    }
}

/// `download` with each packet behind these bytes, as Ethernet.
fn behind(outer: &[u8]) -> Vec<u8> {
    let wrapped = |(at, _, packet): (u64, Port, Packet)| {
        let mut bytes = [outer, packet.bytes()].concat();
        let wire_len = packet.wire_len() + outer.len() as u32;
        if outer.get(12..24).is_some_and(|outer| outer.starts_with(&[8, 0]) && outer[11] == 17) {
            bytes[38..40].copy_from_slice(&(wire_len as u16 - 34).to_be_bytes());
        }
        (at, Packet::truncated(LinkType::Ethernet, bytes.into(), wire_len))
    };
    pcap(DataLink::ETHERNET, built(LinkType::Ip).map(wrapped))
}

fn ethernet(ethertype: u16) -> Vec<u8> {
    [[2; 12].as_slice(), &ethertype.to_be_bytes()].concat()
}

/// An IPv4 header in Ethernet, whose length is longer than any packet here needs.
fn ipv4(protocol: u8, rest: &[u8]) -> Vec<u8> {
    let header = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    [&ethernet(0x0800), header.as_slice(), rest].concat()
}

fn udp(port: u16, rest: &[u8]) -> Vec<u8> {
    ipv4(17, &[&[0xc0, 0], port.to_be_bytes().as_slice(), &[0; 4], rest].concat())
}

/// TCP in other protocols, and the IP length that segmentation offload leaves open.
fn encapsulated() -> Vec<Sample> {
    let tag = |ethertype: u16| [&[0, 7], ethertype.to_be_bytes().as_slice()].concat();
    let qinq = [ethernet(0x9100), tag(0x8100), tag(0x8100), tag(0x0800)].concat();
    let labels = [ethernet(0x8847), vec![0, 1, 0, 64, 0, 2, 1, 64]].concat();
    let wire = [labels.clone(), vec![0; 4], ethernet(0x0800)].concat();
    let pppoe = [ethernet(0x8864), vec![0x11, 0, 0, 1, 4, 0, 0, 0x21]].concat();
    let vxlan = [vec![8, 0, 0, 0, 0, 0, 7, 0], ethernet(0x0800)].concat();
    let geneve = [vec![1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 0], ethernet(0x0800)].concat();
    let gtp = [0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0];
    let llc = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let wifi = [[0x88, 1].as_slice(), &[2; 24], &llc].concat();
    let capwap = [&[0, 0x10, 3, 0, 0, 0, 0, 0], wifi.as_slice()].concat();
    let no_length = |(at, _, packet): (u64, Port, Packet)| {
        let mut bytes = packet.bytes().to_vec();
        bytes[16..18].copy_from_slice(&[0, 0]);
        (at, Packet::truncated(LinkType::Ethernet, bytes.into(), packet.wire_len()))
    };
    let ppp = built(LinkType::Ip).map(|(at, _, packet)| {
        let bytes = [&[0xff, 3, 0, 0x21], packet.bytes()].concat();
        (at, Packet::truncated(LinkType::Ip, bytes.into(), packet.wire_len() + 4))
    });
    vec![
        sample("pcap-qinq", behind(&qinq)),
        sample("pcap-mpls", behind(&labels)),
        sample("pcap-mpls-pseudowire", behind(&wire)),
        sample("pcap-pppoe", behind(&pppoe)),
        sample("pcap-ppp", pcap(DataLink::PPP, ppp)),
        sample("pcap-gre", behind(&ipv4(47, &[0x20, 0, 8, 0, 0, 0, 0, 7]))),
        sample("pcap-ip-in-ip", behind(&ipv4(4, &[]))),
        sample("pcap-vxlan", behind(&udp(4789, &vxlan))),
        sample("pcap-geneve", behind(&udp(6081, &geneve))),
        sample("pcap-gtp-u", behind(&udp(2152, &gtp))),
        sample("pcap-capwap", behind(&udp(5247, &capwap))),
        sample(
            "pcap-no-length",
            pcap(DataLink::ETHERNET, built(LinkType::Ethernet).map(no_length)),
        ),
    ]
}

#[test]
fn what_a_tunnel_hides_is_named() {
    let dtls = behind(&udp(5247, &[1, 0, 0, 0]));
    let cut = |(at, _, packet): (u64, Port, Packet)| {
        let bytes = packet.bytes()[..46].to_vec();
        (at, Packet::truncated(LinkType::Ethernet, bytes.into(), packet.wire_len()))
    };
    let cut = pcap(DataLink::ETHERNET, built(LinkType::Ethernet).map(cut));
    for (file, words) in [
        (dtls, "24 packets in CAPWAP encrypted"),
        (behind(&ipv4(50, &[])), "24 packets encrypted"),
        (cut, "24 packets captured too short for their headers; capture at least 128 bytes"),
    ] {
        let capture = Capture::read(file.as_slice()).unwrap();
        let sentence = steps(&capture, &Sides::Payload).unwrap_err().to_string();
        assert!(sentence.contains(words), "{words}: {sentence}");
    }
}
