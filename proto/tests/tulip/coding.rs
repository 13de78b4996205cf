//! Repair frames: what is lost on a long path is recovered without a retransmission, where both
//! ends read them and a retransmission takes long.

use crate::common::packet::{Foreign, Tcp};
use crate::kit::{Frame, Settings};
use crate::pair::{Fate, GATEWAY, Hop, MOBILE, Pair};
use airmend_proto::agents::tulip::frame::FrameKind;
use airmend_proto::random::{Purpose, Stream};
use airmend_proto::{Instant, Packet, Port};
use std::time::Duration;

const RATE_BPS: u64 = 20_000_000;
const LONG: Duration = Duration::from_millis(70);
const SHORT: Duration = Duration::from_millis(2);
const SEGMENTS: u32 = 3_000;
/// Datagrams of a call.
const CALL: usize = 750;
const SEED: u64 = 36;

/// What became of a transfer of so many segments, one in each millisecond, over a path that loses
/// one frame of twenty.
struct Transfer {
    pair: Pair,
    /// When each segment was sent.
    sent: Vec<Instant>,
    lost: u32,
    repairs: u32,
    /// Bytes of IP packets that the repair frames had in the place of a packet.
    repair_bytes: u64,
}

impl Transfer {
    fn run(mut pair: Pair) -> Self {
        println!("seed {SEED}");
        let mut random = Stream::new(SEED, 0, 0, Purpose::Loss);
        let (mut lost, mut repairs, mut repair_bytes) = (0, 0, 0);
        let mut sent = Vec::new();
        let mut fate = |from: usize, frame: &Frame| {
            let is_repair = from == GATEWAY && frame.kind == FrameKind::Repair;
            repairs += u32::from(is_repair);
            repair_bytes += frame.payload.as_ref().filter(|_| is_repair).map_or(0, len);
            let is_lost = random.happens(0.05);
            lost += u32::from(is_lost && frame.kind == FrameKind::Reliable);
            if is_lost { Fate::Lost } else { Fate::Arrives }
        };
        for number in 0..SEGMENTS {
            pair.send(GATEWAY, &segment(number));
            sent.push(pair.now);
            pair.run(pair.now + Duration::from_millis(1), &mut fate);
        }
        pair.run(pair.now + Duration::from_secs(5), &mut fate);
        Self { pair, sent, lost, repairs, repair_bytes }
    }

    fn count(&self, end: usize, counter: &str) -> u32 {
        self.pair.ends[end].counters.get(counter).map_or(0, |count| *count as u32)
    }

    /// Whether every segment has arrived as it was sent, in order and once.
    fn is_whole(&self) -> bool {
        let arrived = &self.pair.ends[MOBILE].delivered;
        arrived.len() == SEGMENTS as usize
            && arrived.iter().zip(0..).all(|((_, packet), number)| *packet == segment(number))
    }

    /// The delay of which nine of ten segments have less, once the rate of the path is known.
    fn delay(&self) -> Duration {
        let arrived = self.pair.ends[MOBILE].delivered.iter().zip(&self.sent);
        let mut delays: Vec<_> = arrived.skip(1_000).map(|((at, _), sent)| *at - *sent).collect();
        delays.sort_unstable();
        delays[delays.len() * 9 / 10]
    }
}

fn len(packet: &Packet) -> u64 {
    u64::from(packet.wire_len())
}

/// A segment of its own length.
fn segment(number: u32) -> Packet {
    Tcp::new(0, Port::Wired, number * 1_000, (700 + number % 300) as u16, 1).packet(number as u16)
}

#[test]
fn on_a_long_path_losses_are_recovered_without_a_retransmission() {
    let transfer = Transfer::run(Pair::new(&Settings::link(), RATE_BPS, LONG));
    assert!(transfer.is_whole());
    let recovered = transfer.count(MOBILE, "link_recovered");
    let (lost, repairs) = (transfer.lost, transfer.repairs);
    assert!(lost > 120 && recovered * 10 > lost * 9, "{recovered} of {lost}");
    assert!(transfer.count(GATEWAY, "link_retransmits") * 10 < lost);
    assert_eq!(repairs, transfer.count(GATEWAY, "link_repairs"));
    // A repair frame is as long as the longest packet in it, and five bytes.
    assert!(transfer.repair_bytes <= u64::from(repairs) * (len(&segment(299)) + 5));
    assert!(repairs < lost * 5, "{repairs} for {lost}");
    let without = Settings { coding: false, ..Settings::link() };
    let without = Transfer::run(Pair::new(&without, RATE_BPS, LONG));
    assert!(without.is_whole() && without.repairs == 0);
    let (delay, before) = (transfer.delay() - LONG, without.delay() - LONG);
    assert!(delay * 4 < before, "{delay:?} beyond the path for {before:?}");
}

/// A radio at the end itself: nothing is in flight that its own queue does not show.
#[test]
fn without_rate_control_losses_of_a_long_hop_are_recovered_too() {
    let transfer = Transfer::run(Pair::new(&Settings::default(), RATE_BPS, LONG));
    assert!(transfer.is_whole());
    let (lost, recovered) = (transfer.lost, transfer.count(MOBILE, "link_recovered"));
    assert!(lost > 120 && recovered * 10 > lost * 9, "{recovered} of {lost}");
    assert!(transfer.repairs < lost * 5, "{} for {lost}", transfer.repairs);
}

/// Slow start over a radio at the end itself: bursts, and pauses between them. The first packet of
/// a burst is lost, and made up for while the burst still waits for the radio: what followed the
/// burst before it covers none of this one.
#[test]
fn the_first_loss_of_a_burst_is_made_up_for_within_it() {
    const BURST: u32 = 60;
    let mut pair = Pair::new(&Settings::default(), RATE_BPS, LONG);
    // What is known from the first burst on is the round trip.
    for burst in 0..6 {
        let first = segment(burst * BURST);
        let mut is_first = true;
        let mut fate = |from: usize, frame: &Frame| {
            let is_lost = from == GATEWAY && frame.payload.as_ref() == Some(&first) && is_first;
            is_first &= !is_lost;
            if is_lost && burst > 0 { Fate::Lost } else { Fate::Arrives }
        };
        let sent = pair.now;
        (0..BURST).for_each(|number| pair.send(GATEWAY, &segment(burst * BURST + number)));
        pair.run(sent + Duration::from_millis(400), &mut fate);
        let (arrived, packet) = &pair.ends[MOBILE].delivered[(burst * BURST) as usize];
        assert_eq!(*packet, first);
        let late = *arrived - sent - LONG;
        println!("burst {burst}: {late:?} late");
        // The whole burst takes 21 ms.
        assert!(burst < 1 || late < Duration::from_millis(10), "burst {burst}: {late:?} late");
    }
}

/// A slower hop whose queue the end does not see: what that queue drops asks for no repair frames,
/// which would only make it drop more.
#[test]
fn without_rate_control_a_full_queue_behind_the_end_gets_no_repair_frames() {
    let mut pair = Pair::new(&Settings::default(), RATE_BPS, LONG);
    pair.hops = Some([Hop::new(RATE_BPS / 4, LONG); 2]);
    pair.may_drop = true;
    let transfer = Transfer::run(pair);
    let (resent, repairs) = (transfer.count(GATEWAY, "link_retransmits"), transfer.repairs);
    println!("{resent} retransmissions, {repairs} repair frames");
    assert!(resent > 300 && repairs * 10 < resent, "{repairs} beside {resent}");
}

/// Datagrams of a class of 50 ms beside segments, over a path that loses 5 %: nine of ten losses
/// are made up for within 20 ms, which no retransmission is. Over 24 ms each way the round trip is
/// less than the 50 ms, but a loss is known later; over 16 ms there is time for one retransmission.
#[test]
fn a_call_beside_a_transfer_arrives_in_time() {
    for one_way in [LONG, Duration::from_millis(24), Duration::from_millis(16)] {
        // As much as the path carries, and a little more.
        let call = Call { one_way, loss: 0.05, segments: 12, every: Duration::from_millis(4) };
        let (in_time, all) = call.run();
        // Losses of one and of both transmissions: 5 % and 0.25 %, of which no more than twice as
        // many.
        assert!(in_time * 200 >= all * 199, "{in_time} of {all} over {one_way:?}");
    }
}

/// A call alone: each datagram has its copy, though no other frame leaves soon.
#[test]
fn a_call_alone_arrives_in_time() {
    let call = Call { one_way: LONG, loss: 0.1, segments: 0, every: Duration::from_millis(20) };
    let (in_time, all) = call.run();
    assert!(in_time * 100 >= all * 98, "{in_time} of {all}");
}

/// Datagrams of a class of 50 ms and segments.
struct Call {
    one_way: Duration,
    loss: f64,
    /// Segments beside each datagram, and the time from one datagram to the next.
    segments: u32,
    every: Duration,
}

impl Call {
    /// Of the datagrams from the time on at which the path is known, those that arrived within one
    /// way and 20 ms, and all.
    fn run(&self) -> (usize, usize) {
        println!("seed {SEED}");
        let mut random = Stream::new(SEED, 0, 0, Purpose::Loss);
        let mut settings = Settings::link();
        settings.set("classes", "udp=50ms,tcp>0=reliable").expect("these are classes");
        let mut pair = Pair::new(&settings, RATE_BPS, self.one_way);
        pair.may_drop = true;
        let mut fate = |_: usize, _: &Frame| {
            if random.happens(self.loss) { Fate::Lost } else { Fate::Arrives }
        };
        let mut sent = Vec::new();
        for number in 0..CALL {
            pair.send(GATEWAY, &datagram(number));
            sent.push(pair.now);
            let segments = number as u32 * self.segments..(number as u32 + 1) * self.segments;
            segments.for_each(|part| pair.send(GATEWAY, &segment(part)));
            pair.run(pair.now + self.every, &mut fate);
        }
        pair.run(pair.now + Duration::from_secs(5), &mut fate);
        let is_datagram = |packet: &&(Instant, Packet)| Tcp::read(&packet.1).is_none();
        let arrived: Vec<_> = pair.ends[MOBILE].delivered.iter().filter(is_datagram).collect();
        let first = sent.len() / 3;
        let in_time = (first..sent.len()).filter(|&number| {
            let arrival = arrived.iter().find(|(_, packet)| *packet == datagram(number));
            let latest = self.one_way + Duration::from_millis(20);
            arrival.is_some_and(|(at, _)| *at - sent[number] < latest)
        });
        let (in_time, all) = (in_time.count(), sent.len() - first);
        let copies = pair.ends[GATEWAY].counters.get("link_copies");
        println!("{in_time} of {all} in time, {copies:?} copies");
        (in_time, all)
    }
}

/// A packet of the call.
fn datagram(number: usize) -> Packet {
    Foreign::Udp.packet(number as u16, 160)
}

#[test]
fn where_a_retransmission_is_quick_there_are_no_repair_frames() {
    let transfer = Transfer::run(Pair::new(&Settings::link(), RATE_BPS, SHORT));
    assert!(transfer.is_whole() && transfer.repairs == 0 && transfer.lost > 120);
}

#[test]
fn an_end_that_does_not_read_them_gets_none() {
    let mut pair = Pair::new(&Settings::link(), RATE_BPS, LONG);
    pair.restart(MOBILE, &Settings { coding: false, ..Settings::link() }, 3);
    let transfer = Transfer::run(pair);
    assert!(transfer.is_whole() && transfer.repairs == 0 && transfer.lost > 120);
}

fn ack(number: u32) -> Packet {
    Tcp::new(0, Port::Air, 1, 0, 1_000 * number).packet(number as u16)
}

/// Bursts of eight TCP ACKs each 200 ms, over a path that loses the last one of each burst, or
/// none. Returns the time by which the last one of each burst arrived after it would have, and how
/// often one had left once more by then.
fn bursts_of_acks(bursts: u32, loses_last: bool) -> (Vec<Duration>, Vec<u32>) {
    let mut pair = Pair::new(&Settings::link(), RATE_BPS, LONG);
    pair.may_drop = true;
    // The ends know each other and the round trip, as after a handshake.
    for end in [MOBILE, GATEWAY] {
        pair.send(end, &segment(0));
        pair.run(pair.now + Duration::from_secs(1), &mut |_, _| Fate::Arrives);
    }
    let (mut late, mut copies) = (Vec::new(), Vec::new());
    for burst in 0..bursts {
        let last = ack(8 * burst + 7);
        let mut is_first = true;
        let mut fate = |from: usize, frame: &Frame| {
            let is_last = from == MOBILE && frame.payload.as_ref() == Some(&last);
            let is_lost = loses_last && is_last && is_first;
            is_first &= !is_lost;
            if is_lost { Fate::Lost } else { Fate::Arrives }
        };
        let sent = pair.now;
        (0..8).for_each(|number| pair.send(MOBILE, &ack(8 * burst + number)));
        pair.run(sent + Duration::from_millis(200), &mut fate);
        let arrived = pair.ends[GATEWAY].delivered.iter().find(|(_, packet)| *packet == last);
        late.push(arrived.map_or(Duration::MAX, |(at, _)| *at - sent - LONG));
        let counter = pair.ends[MOBILE].counters.get("link_ack_copies");
        copies.push(counter.map_or(0, |count| *count as u32));
    }
    (late, copies)
}

#[test]
fn the_last_ack_of_a_burst_is_lost_and_its_copy_arrives_soon() {
    let (late, copies) = bursts_of_acks(20, true);
    println!("{late:?} late, {copies:?} copies");
    assert!(late.iter().all(|late| *late < Duration::from_millis(20)), "{late:?}");
    assert_eq!(copies[19], 20);
}

#[test]
fn where_the_path_loses_nothing_no_ack_leaves_once_more() {
    let (_, copies) = bursts_of_acks(40, false);
    println!("{copies:?} copies");
    // That is known after a few bursts.
    assert_eq!(copies[39], copies[15]);
}
