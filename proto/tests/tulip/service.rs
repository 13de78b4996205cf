//! What each class of packets gets: order within a flow, a way past the bulk, bounded persistence.

use crate::common::packet::{Foreign, Tcp};
use crate::pair::{Fate, GATEWAY, MOBILE, Pair};
use airmend_proto::agents::tulip::frame::{Frame, FrameKind};
use airmend_proto::agents::tulip::{Order, Settings};
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant, Packet, Port};
use std::time::Duration;

const DELAY: Duration = Duration::from_millis(2);
const RATE_BPS: u64 = 20_000_000;

fn data(flow: u16, index: u32) -> Packet {
    Tcp::new(flow, Port::Wired, index * 1_000, 1_000, 1).packet(0)
}

fn pure_ack(flow: u16, number: u32) -> Packet {
    Tcp::new(flow, Port::Wired, 0, 0, number).packet(0)
}

fn arrives(_: usize, _: &Frame) -> Fate {
    Fate::Arrives
}

/// When each UDP packet came to the mobile.
fn datagrams(pair: &Pair) -> Vec<Instant> {
    let delivered = pair.ends[MOBILE].delivered.iter();
    delivered.filter(|(_, packet)| Tcp::read(packet).is_none()).map(|(at, _)| *at).collect()
}

#[test]
fn a_datagram_passes_a_bulk_transfer() {
    let mut pair = Pair::new(&Settings::default(), RATE_BPS, DELAY);
    (0..500).for_each(|index| pair.send(GATEWAY, &data(0, index)));
    let mut sent = Vec::new();
    for _ in 0..8 {
        pair.run(pair.now + Duration::from_millis(20), &mut arrives);
        sent.push(pair.now);
        pair.send(GATEWAY, &Foreign::Udp.packet(0, 100));
    }
    pair.run(Instant::from_millis(1_000), &mut arrives);
    let arrived = datagrams(&pair);
    assert_eq!(arrived.len(), sent.len());
    for (sent, arrived) in sent.iter().zip(&arrived) {
        // The link's delay, and one long frame before it.
        assert!(*arrived - *sent < Duration::from_millis(3), "{:?}", *arrived - *sent);
    }
}

#[test]
fn a_flood_of_datagrams_leaves_the_bulk_its_half() {
    let mut pair = Pair::new(&Settings::default(), RATE_BPS, DELAY);
    (0..500).for_each(|index| pair.send(GATEWAY, &data(0, index)));
    (0..900).for_each(|_| pair.send(GATEWAY, &Foreign::Udp.packet(0, 1_000)));
    pair.run(Instant::from_millis(200), &mut arrives);
    let datagrams = datagrams(&pair).len();
    let segments = pair.ends[MOBILE].delivered.len() - datagrams;
    assert!(segments.abs_diff(datagrams) < 20, "{segments} segments, {datagrams} datagrams");
}

#[test]
fn a_flood_of_datagrams_starves_neither_bulk_nor_pings() {
    for (rate_control, fair_queue) in [(true, false), (false, true)] {
        crate::flood::check(&Settings { rate_control, fair_queue, ..Settings::default() });
    }
}

#[test]
fn an_unreliable_packet_never_overtakes_its_flow() {
    // The second of two segments is lost; the pure ACK that was sent after it waits for it, but
    // those of other flows do not.
    let mut pair = Pair::new(&Settings::default(), RATE_BPS, DELAY);
    pair.run(Instant::from_millis(10), &mut arrives);
    pair.send(GATEWAY, &data(0, 0));
    pair.send(GATEWAY, &data(0, 1));
    pair.run(pair.now + Duration::from_micros(900), &mut |_, frame| {
        if frame.seq.0 == 1 { Fate::Lost } else { Fate::Arrives }
    });
    pair.send(GATEWAY, &pure_ack(0, 500));
    pair.send(GATEWAY, &pure_ack(1, 600));
    pair.run(Instant::from_millis(100), &mut arrives);
    let got: Vec<_> = pair.ends[MOBILE].delivered.iter().map(|(_, p)| Tcp::read(p)).collect();
    let got: Vec<_> = got.into_iter().flatten().map(|tcp| (tcp.flow, tcp.len, tcp.ack)).collect();
    let (first, second) = ((0, 1_000, Some(1)), (0, 1_000, Some(1)));
    assert_eq!(got, [first, (1, 0, Some(600)), second, (0, 0, Some(500))]);
}

#[test]
fn a_loss_delays_only_its_flow_unless_the_order_is_the_papers() {
    for order in [Order::Flow, Order::Destination] {
        // [tulip99 §III S2-02]
        let settings = Settings { order, ..Settings::default() };
        let mut pair = Pair::new(&settings, RATE_BPS, DELAY);
        pair.run(Instant::from_millis(10), &mut arrives);
        (0..4).for_each(|index| pair.send(GATEWAY, &data(index as u16 % 2, index)));
        let mut lost = false;
        pair.run(Instant::from_millis(100), &mut |_, frame| {
            let is_first = frame.kind == FrameKind::Reliable && frame.seq.0 == 0 && !lost;
            lost |= is_first;
            if is_first { Fate::Lost } else { Fate::Arrives }
        });
        let delivered = pair.ends[MOBILE].delivered.iter();
        let order_of: Vec<_> =
            delivered.map(|(_, p)| Segment::parse(p).unwrap().seq.0 / 1_000).collect();
        match order {
            Order::Flow => assert_eq!(order_of, [1, 3, 0, 2]),
            Order::Destination => assert_eq!(order_of, [0, 1, 2, 3]),
        }
    }
}

#[test]
fn persistence_is_bounded_where_the_class_says_so() {
    let mut settings = Settings::default();
    settings.set("classes", "udp=20ms,tcp>0=reliable").unwrap();
    let mut pair = Pair::new(&settings, RATE_BPS, DELAY);
    pair.run(Instant::from_millis(10), &mut arrives);
    pair.send(GATEWAY, &Foreign::Udp.packet(1, 100));
    pair.send(GATEWAY, &Foreign::Udp.packet(2, 100));
    pair.send(GATEWAY, &data(0, 0));
    // The first datagram never gets through; what may be sent in its place does.
    pair.run(Instant::from_millis(500), &mut |_, frame| {
        let is_first = frame.kind == FrameKind::Reliable && frame.seq.0 == 0;
        if is_first { Fate::Lost } else { Fate::Arrives }
    });
    let arrived = datagrams(&pair);
    assert_eq!(arrived.len(), 1);
    let waited = arrived[0] - Instant::from_millis(10);
    assert!((20..50).contains(&waited.as_millis()), "{waited:?}");
    assert_eq!(pair.ends[GATEWAY].counters["link_given_up"], 1);
    assert_eq!(pair.ends[GATEWAY].agent.backlog(), (0, 0));
    assert_eq!(pair.next_instant(), None, "at rest");
}

#[test]
fn a_restarted_end_goes_on_within_two_round_trips() {
    let settings = Settings::default();
    let mut pair = Pair::new(&settings, RATE_BPS, DELAY);
    (0..100).for_each(|index| pair.send(GATEWAY, &data(0, index)));
    pair.run(Instant::from_millis(20), &mut arrives);
    let before = pair.ends[MOBILE].delivered.len();
    pair.restart(MOBILE, &settings, 9);
    let began = pair.now;
    pair.run(Instant::from_millis(500), &mut arrives);
    let delivered = &pair.ends[MOBILE].delivered;
    let first = delivered[before].0 - began;
    assert!(first < Duration::from_millis(10), "{first:?}");
    let numbers: Vec<_> =
        delivered.iter().map(|(_, p)| Segment::parse(p).unwrap().seq.0 / 1_000).collect();
    let mut once = numbers.clone();
    once.dedup();
    once.sort_unstable();
    once.dedup();
    assert!(once.into_iter().eq(0..100), "nothing is lost: {numbers:?}");
    assert!(numbers.len() - 100 < 32, "only what was in flight comes twice: {numbers:?}");
}
