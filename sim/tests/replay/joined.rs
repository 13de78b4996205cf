//! Connections that go on in another description of their interface, or in another interface.

use super::blocks::{enhanced, interface, name, option, section};
use super::{assert_is_download, built, replay_freely};
use airmend_proto::{LinkType, Packet, Port};
use airmend_sim::replay::{Capture, Reason, Sides, Steps, steps};

const ETHERNET: u16 = 1;

/// The packets of `download`, each with the description of its interface.
fn packets(interface: impl Fn(usize) -> u32) -> Vec<Vec<u8>> {
    let packet = |(index, (at, _, packet))| enhanced(interface(index), at, &packet, &[]);
    built(LinkType::Ethernet).enumerate().map(packet).collect()
}

/// Each reason with its number of packets.
fn left_out(file: &[u8]) -> Vec<(Reason, u64)> {
    let capture = Capture::read(file).unwrap();
    let Steps { left_out, .. } = steps(&capture, &Sides::of(&capture)).unwrap();
    left_out.iter().collect()
}

#[test]
fn a_connection_goes_on_in_the_next_file_of_a_ring() {
    let address = option(6, &[2, 0, 0, 0, 0, 1]);
    for options in [vec![], vec![name("eth0")], vec![name("eth0"), address]] {
        let options: Vec<&[u8]> = options.iter().map(Vec::as_slice).collect();
        let interface = || interface(ETHERNET, &options);
        // `cat`: each file is a section.
        let head = || [section(), interface()].concat();
        let cat = packets(|_| 0);
        let [first, second, third] = [&cat[..9], &cat[9..16], &cat[16..]].map(<[_]>::concat);
        let cat = [head(), first, head(), second, head(), third].concat();
        // `mergecap -I none`: one section, in which each file has an interface.
        let three = [section(), interface(), interface(), interface()].concat();
        let merged = [three, packets(|at| (at > 8) as u32 + (at > 15) as u32).concat()].concat();
        for file in [cat, merged] {
            assert_is_download(&replay_freely(&file, None));
            assert_eq!(left_out(&file), []);
        }
    }
}

#[test]
fn an_interface_in_many_sections_leads_to_the_air_in_all() {
    let air = || [section(), interface(ETHERNET, &[&name("wlan0")])].concat();
    let parts = [0..9, 9..16, 16..24].map(|part| {
        let packet = |(at, side, packet)| {
            let flags = if side == Port::Air { 1_u32 } else { 2 };
            enhanced(0, at, &packet, &[&option(2, &flags.to_le_bytes())])
        };
        let packets = built(LinkType::Ethernet).map(packet).skip(part.start).take(part.len());
        [air(), packets.flatten().collect()].concat()
    });
    let sides = Some(Sides::AirInterface("wlan0".to_owned()));
    assert_is_download(&replay_freely(&parts.concat(), sides));
}

/// Two machines that call their interface `eth0` have seen the same packets.
#[test]
fn interfaces_at_the_same_time_are_two_whatever_their_names() {
    let eth0 = interface(ETHERNET, &[&name("eth0")]);
    let both: Vec<u8> =
        packets(|_| 0).into_iter().zip(packets(|_| 1)).flat_map(<[_; 2]>::from).flatten().collect();
    let file = [section(), eth0.clone(), eth0, both].concat();
    assert_is_download(&replay_freely(&file, None));
    assert_eq!(left_out(&file), [(Reason::Again, 24)]);
}

#[test]
fn what_is_left_out_is_counted_with_its_reason() {
    let mut udp = built(LinkType::Ethernet).next().unwrap().2.bytes().to_vec();
    udp[14 + 9] = 17;
    let udp = Packet::new(LinkType::Ethernet, udp.into());
    let extra = [enhanced(0, 10, &udp, &[]), enhanced(0, 11, &udp, &[])].concat();
    let file = [section(), interface(ETHERNET, &[]), packets(|_| 0).concat(), extra].concat();
    let capture = Capture::read(file.as_slice()).unwrap();
    let names = |sides: &Sides| -> Vec<(String, u64)> {
        let left_out = steps(&capture, sides).unwrap().left_out;
        left_out.iter().map(|(reason, packets)| (reason.name(), packets)).collect()
    };
    assert_eq!(names(&Sides::Payload), [("not_tcp".to_owned(), 2)]);
    assert_is_download(&replay_freely(&file, None));
    let server = Sides::Mobile("10.0.0.1".parse().unwrap());
    assert_eq!(names(&server), [("not_tcp".to_owned(), 2)]);
}
