//! Captures of every form, replayed.

mod blocks;
mod capture;
mod duplicates;
mod joined;
mod losses;
mod offload;
mod samples;

use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::{Event, Forwarder, Instant, LinkType, Packet, Port};
use airmend_sim::replay::{
    Capture, Check, Pace, ReplayError, Report, Sides, Step, Steps, replay, steps,
};
use capture::{Sent, cooked, download, pcap, pcapng};
use pcap_file::DataLink;
use std::time::Duration;

fn forwarder(settings: &[(&str, &str)]) -> Forwarder {
    let mut config = AgentConfig::by_name("snoop95").unwrap();
    for (key, value) in settings {
        config.set(key, value).unwrap();
    }
    let limits = Limits::default();
    Forwarder::new(config.build(limits, 1), limits.egress)
}

fn replay_freely(file: &[u8], sides: Option<Sides>) -> Report {
    let capture = Capture::read(file).unwrap();
    let sides = sides.unwrap_or_else(|| Sides::of(&capture));
    replay(&mut forwarder(&[]), &steps(&capture, &sides).unwrap().steps, Pace::Free, false).0
}

/// What must come out of `download`, whatever the file looks like.
fn assert_is_download(report: &Report) {
    assert_eq!((report.packets, report.time), (24, Duration::from_millis(160)));
    assert_eq!(report.oversized, 0);
    let [flow] = report.flows.as_slice() else { panic!("not one flow: {:?}", report.flows) };
    assert_eq!(flow.key.to_string(), "10.0.0.1:80 <-> 10.0.1.2:5000");
    assert_eq!((flow.segments, flow.payload_bytes), (11, 11_000));
    assert_eq!((flow.repaired_locally, flow.repaired_by_sender, flow.needless), (1, 0, 0));
    assert_eq!(flow.suppressed_dupacks, 6);
    assert_eq!((flow.stalls, flow.stalls_unknown), (1, 0));
    // From the first duplicate ACK to the sender's repair.
    assert_eq!(flow.stall_saved, Duration::from_millis(150 - 65));
    assert_eq!(flow.wired_round_trip, Some(Duration::from_millis(40)));
    let first =
        report.timeline.iter().find(|moment| matches!(moment.event, Event::LocalRetransmit { .. }));
    assert_eq!(first.map(|moment| moment.at), Some(Instant::from_millis(65)));
}

fn built(link: LinkType) -> impl Iterator<Item = (u64, Port, Packet)> {
    download().into_iter().map(move |(at, side, packet): Sent| (at, side, packet.build(link)))
}

#[test]
fn any_link_type_and_file_format_tells_the_same() {
    let unnamed = |(at, _, packet)| (at, 0, None, packet);
    let ethernet = [("eth0", DataLink::ETHERNET)];
    for file in [
        pcapng(&ethernet, built(LinkType::Ethernet).map(unnamed)),
        pcapng(&[("tun0", DataLink::RAW)], built(LinkType::Ip).map(unnamed)),
        pcap(DataLink::ETHERNET, built(LinkType::Ethernet).map(|(at, _, p)| (at, p))),
        pcap(DataLink::IPV4, built(LinkType::Ip).map(|(at, _, p)| (at, p))),
        pcap(
            DataLink::LINUX_SLL,
            built(LinkType::Ip).map(|(at, side, p)| (at, cooked(&p, side == Port::Wired))),
        ),
    ] {
        assert_is_download(&replay_freely(&file, None));
        let prefix = "10.0.1.0/24".parse().unwrap();
        assert_is_download(&replay_freely(&file, Some(Sides::Mobile(prefix))));
    }
}

#[test]
fn an_interface_that_leads_to_the_air_tells_the_sides() {
    const INBOUND: u32 = 1;
    const OUTBOUND: u32 = 2;
    let air = |(at, side, packet)| {
        (at, 0, Some(if side == Port::Air { INBOUND } else { OUTBOUND }), packet)
    };
    let sides = Some(Sides::AirInterface("wlan0".to_owned()));
    let only_air = [("wlan0", DataLink::ETHERNET)];
    let file = pcapng(&only_air, built(LinkType::Ethernet).map(air));
    assert_is_download(&replay_freely(&file, sides.clone()));

    // A router captures each packet twice: as it comes, and a moment later as it goes.
    let both = [("eth0", DataLink::ETHERNET), ("wlan0", DataLink::ETHERNET)];
    let twice = |(at, side, packet): (u64, Port, Packet)| {
        let (came, went) = if side == Port::Air { (1, 0) } else { (0, 1) };
        [(at, came, Some(INBOUND), packet.clone()), (at, went, Some(OUTBOUND), packet)]
    };
    let file = pcapng(&both, built(LinkType::Ethernet).flat_map(twice));
    assert_is_download(&replay_freely(&file, sides));
    // Without being told, one of the two copies is taken.
    assert_is_download(&replay_freely(&file, None));

    // Our own recording needs not be told, and is not taken for one where a side is missing.
    let ours = [("wired", DataLink::ETHERNET), ("air", DataLink::ETHERNET)];
    let packets = || built(LinkType::Ethernet).flat_map(twice);
    let told = |file: &[u8]| Sides::of(&Capture::read(file).unwrap());
    let whole = pcapng(&ours, packets());
    let only_wired = pcapng(&ours, packets().filter(|(_, interface, ..)| *interface == 0));
    assert_eq!((told(&whole), told(&only_wired)), (Sides::Recorded, Sides::Payload));
    assert_is_download(&replay_freely(&whole, None));
    assert_is_download(&replay_freely(&only_wired, None));
}

#[test]
fn where_an_agent_was_at_work_a_repair_saves_a_wired_round_trip() {
    let repaired = |(at, _, _): &(u64, Port, Packet)| *at != 150;
    let unnamed = |(at, _, packet)| (at, 0, None, packet);
    let packets = built(LinkType::Ip).filter(repaired).map(unnamed);
    let file = pcapng(&[("tun0", DataLink::RAW)], packets);
    let capture = Capture::read(file.as_slice()).unwrap();
    let Steps { steps, .. } = steps(&capture, &Sides::of(&capture)).unwrap();
    let flow = |is_mended| {
        let report = replay(&mut forwarder(&[]), &steps, Pace::Free, is_mended).0;
        let flow = &report.flows[0];
        (flow.repaired_locally, flow.needless, flow.stalls, flow.stall_saved)
    };
    assert_eq!(flow(true), (1, 0, 1, Duration::from_millis(40)));
    // Without an agent, what arrived without being sent again was never lost.
    assert_eq!(flow(false), (0, 1, 0, Duration::ZERO));
}

#[test]
fn what_offload_joined_is_noticed() {
    let joined = |(at, side, packet): Sent| match side {
        Port::Wired => (at, 0, None, packet.payload_len(9_217).build(LinkType::Ip)),
        Port::Air => (at, 0, None, packet.build(LinkType::Ip)),
    };
    let file = pcapng(&[("tun0", DataLink::RAW)], download().into_iter().skip(3).map(joined));
    assert_eq!(replay_freely(&file, None).oversized, 11);
}

#[test]
fn a_file_that_ends_early_is_good_as_far_as_it_goes() {
    let unnamed = |(at, _, packet)| (at, 0, None, packet);
    let file = pcapng(&[("tun0", DataLink::RAW)], built(LinkType::Ip).map(unnamed));
    let whole = Capture::read(file.as_slice()).unwrap();
    let cut = Capture::read(&file[..file.len() - 5]).unwrap();
    assert_eq!((whole.is_cut, whole.records.len()), (false, 24));
    assert_eq!((cut.is_cut, cut.records.len()), (true, 23));
}

/// Every byte of the headers and options wrong in three ways: an error or a capture, no panic and
/// no end of time.
#[test]
fn damaged_files_do_no_harm() {
    let flagged = |(at, side, packet)| (at, 0, Some(1 + u32::from(side == Port::Air)), packet);
    let unnamed = |(at, _, packet)| (at, packet);
    for file in [
        pcapng(&[("tun0", DataLink::RAW)], built(LinkType::Ip).take(6).map(flagged)),
        pcap(DataLink::RAW, built(LinkType::Ip).take(6).map(unnamed)),
    ] {
        for (at, change) in (0..file.len()).flat_map(|at| [(at, 0xff), (at, 0x80), (at, 0x01)]) {
            let mut damaged = file.clone();
            damaged[at] ^= change;
            let Ok(capture) = Capture::read(damaged.as_slice()) else { continue };
            let Ok(steps) = steps(&capture, &Sides::of(&capture)) else { continue };
            replay(&mut forwarder(&[]), &steps.steps, Pace::Free, false);
        }
    }
}

#[test]
fn what_cannot_be_replayed_is_said_in_one_sentence() {
    let one = || built(LinkType::Ip).take(1);
    let read = |file: &[u8]| Capture::read(file);
    let named = [("tun0", DataLink::RAW)];
    let udp = Packet::new(LinkType::Ip, vec![0x45; 40].into());
    let refused = |file: &[u8], sides: Sides| steps(&read(file).unwrap(), &sides).unwrap_err();
    let file = pcapng(&named, one().map(|(at, _, packet)| (at, 0, None, packet)));
    let wlan = || Sides::AirInterface("wlan0".to_owned());
    // The second packet is 127 years after the first.
    let jumps = [0, 4_000_000_000_000];
    let jumps = jumps.map(|at| (at, 0, None, built(LinkType::Ip).next().unwrap().2));
    let cases: [(ReplayError, &str); 9] = [
        (read(&pcapng(&named, jumps)).unwrap_err(), "a hundred years"),
        (read(b"").unwrap_err(), "is no capture"),
        (read(b"[package]\nname").unwrap_err(), "is no capture"),
        (read(&pcapng(&named, [])).unwrap_err(), "holds no packet"),
        (read(&pcap(DataLink::USB_LINUX, [(0, udp.clone())])).unwrap_err(), "link type 189"),
        (refused(&pcap(DataLink::RAW, [(0, udp)]), Sides::Payload), "no TCP"),
        (refused(&file, wlan()), "no interface \"wlan0\"; it has tun0"),
        (refused(&file, Sides::AirInterface("tun0".to_owned())), "--mobile"),
        (refused(&file, Sides::Mobile("192.0.2.1".parse().unwrap())), "192.0.2.1/32"),
    ];
    for (error, words) in cases {
        let sentence = error.to_string();
        assert!(sentence.contains(words) && sentence.len() < 200, "{words}: {sentence}");
    }
}

/// An agent whose loop looks every 3 ms, and whose links then take one packet each.
fn record(mut agent: Forwarder) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut arrivals = built(LinkType::Ip).peekable();
    for millis in (0..400).step_by(3) {
        let now = Instant::from_millis(millis);
        while let Some((_, from, packet)) = arrivals.next_if(|(at, ..)| *at <= millis) {
            steps.push(Step::Enters(now, from, packet.clone()));
            agent.handle_packet(now, from, packet);
        }
        if agent.poll_timeout().is_some_and(|due| due.at <= now) {
            steps.push(Step::TimersRan(now));
            agent.handle_timeout(now);
        }
        for to in Port::BOTH {
            let sent = agent.poll_transmit(now, to);
            steps.extend(sent.map(|packet| Step::Leaves(now, to, packet)));
        }
    }
    steps
}

fn check(settings: &[(&str, &str)], steps: &[Step]) -> Check {
    replay(&mut forwarder(settings), steps, Pace::Recorded, true).1
}

#[test]
fn a_recording_tells_the_same_agent_from_any_other() {
    let steps = record(forwarder(&[]));
    let same = check(&[], &steps);
    assert!(same.outputs > 15 && same.outputs == same.same, "{same:?}");
    assert!(same.difference.is_none(), "{same:?}");
    assert!(same.timers_late < Duration::from_millis(3), "{same:?}");
    for other in [("dupack_threshold", "3"), ("fast_queue", "false")] {
        let other = check(&[other], &steps);
        assert!(other.same < other.outputs, "{other:?}");
        assert!(other.difference.is_some(), "{other:?}");
    }
    let later = check(&[("round_trip_floor", "60ms")], &steps).difference.map(|d| d.what);
    assert_eq!(later.as_deref(), Some("timers ran, which were not due in the replay"));
}
