//! What each packet gets: its place in the order, persistence, and a new number after it was lost
//! behind the link.

use crate::common::packet::{Foreign, Tcp};
use crate::pair::{Fate, GATEWAY, MOBILE, Pair};
use airmend_proto::agents::lack::frame::{Frame, FrameKind};
use airmend_proto::agents::lack::{Order, Settings};
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant, Packet, Port};
use std::time::Duration;

const DELAY: Duration = Duration::from_millis(2);
const RATE_BPS: u64 = 20_000_000;

fn data(flow: u16, index: u32) -> Packet {
    Tcp::new(flow, Port::Wired, index * 1_000, 1_000, 1).packet(0)
}

fn arrives(_: usize, _: &Frame) -> Fate {
    Fate::Arrives
}

/// The numbers of the segments that came to the other station, in their order.
fn segments(pair: &Pair) -> Vec<u32> {
    let delivered = pair.ends[MOBILE].delivered.iter();
    let segments = delivered.filter_map(|(_, packet)| Segment::parse(packet).ok());
    segments.map(|segment| segment.seq.0 / 1_000).collect()
}

fn connected(settings: &Settings) -> Pair {
    let mut pair = Pair::new(settings, RATE_BPS, DELAY);
    pair.run(Instant::from_millis(10), &mut arrives);
    pair
}

#[test]
fn a_packet_lost_behind_the_link_crosses_again() {
    // [S1-12 S1-A5] WN2 loses segment 1. Its sender sends it again: under its old number the other
    // station would drop it for ever.
    for settings in [Settings::default(), Settings::flow()] {
        let mut pair = connected(&settings);
        (0..3).for_each(|index| pair.send(GATEWAY, &data(0, index)));
        pair.run(Instant::from_millis(100), &mut arrives);
        assert_eq!(segments(&pair), [0, 1, 2]);
        pair.send(GATEWAY, &data(0, 1));
        pair.run(Instant::from_millis(200), &mut arrives);
        assert_eq!(segments(&pair), [0, 1, 2, 1]);
        assert_eq!(pair.ends[GATEWAY].counters["link_sender_duplicates"], 1);
        assert_eq!(pair.ends[GATEWAY].agent.backlog(), (0, 0));
    }
}

#[test]
fn a_duplicate_of_what_is_on_its_way_comes_out_once() {
    // [S1-12] The old copy is still in the pool, lost on the air: one number, one packet.
    for settings in [Settings::default(), Settings::flow()] {
        let mut pair = connected(&settings);
        pair.send(GATEWAY, &data(0, 0));
        let mut first = true;
        pair.run(pair.now + Duration::from_millis(1), &mut |_, _| {
            if core::mem::take(&mut first) { Fate::Lost } else { Fate::Arrives }
        });
        pair.send(GATEWAY, &data(0, 0));
        pair.run(Instant::from_millis(500), &mut arrives);
        assert_eq!(segments(&pair), [0]);
    }
}

#[test]
fn a_loss_delays_only_its_flow_unless_the_order_is_the_papers() {
    for settings in [Settings::default(), Settings::flow()] {
        // [S1-23]
        let mut pair = connected(&settings);
        (0..4).for_each(|index| pair.send(GATEWAY, &data(index as u16 % 2, index)));
        let mut lost = false;
        pair.run(Instant::from_millis(100), &mut |_, frame| {
            let is_first = frame.kind == FrameKind::Packet && frame.seq.0 == 0 && !lost;
            lost |= is_first;
            if is_first { Fate::Lost } else { Fate::Arrives }
        });
        match settings.order {
            Order::Flow => assert_eq!(segments(&pair), [1, 3, 0, 2]),
            Order::Destination => assert_eq!(segments(&pair), [0, 1, 2, 3]),
        }
    }
}

#[test]
fn retransmissions_and_sender_duplicates_go_before_what_waits() {
    // [S1-12 S1-14] A long queue waits; what was lost behind the link does not wait behind it.
    let mut pair = connected(&Settings::default());
    (0..10).for_each(|index| pair.send(GATEWAY, &data(0, index)));
    pair.run(Instant::from_millis(50), &mut arrives);
    (10..60).for_each(|index| pair.send(GATEWAY, &data(0, index)));
    pair.run(pair.now + Duration::from_micros(100), &mut arrives);
    pair.send(GATEWAY, &data(0, 5));
    pair.run(Instant::from_millis(500), &mut arrives);
    let place = segments(&pair).iter().rposition(|segment| *segment == 5);
    assert!(place.is_some_and(|place| (10..14).contains(&place)), "{place:?}");
}

#[test]
fn persistence_is_bounded_where_the_class_says_so() {
    let mut settings = Settings::flow();
    settings.set("classes", "udp=20ms,tcp>0=reliable").unwrap();
    let mut pair = connected(&settings);
    pair.send(GATEWAY, &Foreign::Udp.packet(1, 100));
    pair.send(GATEWAY, &Foreign::Udp.packet(2, 100));
    pair.send(GATEWAY, &data(0, 0));
    // The first datagram never gets through; what may be sent in its place does.
    pair.run(Instant::from_millis(500), &mut |_, frame| {
        let is_first = frame.kind == FrameKind::Packet && frame.seq.0 == 0;
        if is_first { Fate::Lost } else { Fate::Arrives }
    });
    assert_eq!(pair.ends[MOBILE].delivered.len(), 2);
    assert_eq!(pair.ends[GATEWAY].counters["link_given_up"], 1);
    assert_eq!(pair.ends[GATEWAY].agent.backlog(), (0, 0));
    assert_eq!(pair.next_instant(), None, "at rest");
}

#[test]
fn a_restarted_station_goes_on() {
    for settings in [Settings::default(), Settings::flow()] {
        let mut pair = Pair::new(&settings, RATE_BPS, DELAY);
        (0..100).for_each(|index| pair.send(GATEWAY, &data(0, index)));
        pair.run(Instant::from_millis(20), &mut arrives);
        let before = pair.ends[MOBILE].delivered.len();
        pair.restart(MOBILE, &settings, 9);
        let began = pair.now;
        pair.run(Instant::from_millis(500), &mut arrives);
        let first = pair.ends[MOBILE].delivered[before].0 - began;
        assert!(first < Duration::from_millis(15), "{first:?}");
        let segments = segments(&pair);
        assert!((0..100).all(|index| segments.contains(&index)), "{segments:?}");
    }
}

/// As `airmend link` has it.
fn fair(settings: Settings) -> Settings {
    Settings { fair_queue: true, resend_duplicates: false, gap_eack: 1, ..settings }
}

/// The second flood is of segments that were sent before.
#[test]
fn a_flood_starves_neither_bulk_nor_pings() {
    for settings in [Settings::default(), Settings::flow()].map(fair) {
        crate::flood::check(&settings);
        crate::flood::check_against(&settings, None, |number| {
            let offset = (number % 32) * 1_200;
            Tcp::new(9, Port::Wired, offset, 1_200, 1).packet(0)
        });
    }
}

/// What is sent once is in flight too: the flood waits where each flow has a queue of its own.
#[test]
fn a_flood_that_is_sent_once_fills_no_queue_behind_the_station() {
    for settings in [Settings::default(), Settings::flow()].map(fair) {
        let classes = "tcp>0=reliable,any=unreliable".parse().expect("classes");
        let settings = Settings { classes, ..settings };
        for queue in [40, 150].map(Duration::from_millis) {
            crate::flood::check_against(&settings, Some(queue), crate::flood::datagram);
        }
    }
}
