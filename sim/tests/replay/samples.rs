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
    for Sample { name, file, left_out } in metadata() {
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

/// Metadata that some reader takes offence at.
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
    let monitor = || enhanced(1, 10, &Packet::new(LinkType::Ip, vec![0; 40].into()), &[]);
    let unknown = || enhanced(9, 10, &Packet::new(LinkType::Ip, vec![0; 40].into()), &[]);
    let first = built(LinkType::Ip).next().unwrap().2;
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
        sample("pcapng-time-offset", [section(), raw_ip(), later, blocks(ahead)].concat()),
        sample("pcapng-damaged-end", damaged.concat()),
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
