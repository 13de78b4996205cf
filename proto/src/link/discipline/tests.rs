//! Disciplines by what is known of them.

use super::*;
use crate::link::{
    ErrorModel, FullDuplex, LinkCounters, LinkParams, Managed, Medium, Output, Pair,
};
use crate::packet::{LinkType, Packet};
use crate::time::Instant;
use crate::wire::build::SegmentBuilder;
use alloc::vec;
use alloc::vec::Vec;

/// A full frame takes 1 ms.
const RATE_BPS: u64 = 12_000_000;
const AIRTIME: Duration = Duration::from_millis(1);
const CODEL: CoDelParams =
    CoDelParams { target: Duration::from_millis(5), interval: Duration::from_millis(100) };

fn params(queue_frames: usize) -> LinkParams {
    let delay = Duration::from_millis(2);
    LinkParams { rate_bps: RATE_BPS, delay, queue_frames, lookahead: Duration::ZERO }
}

fn pairs() -> Vec<Pair> {
    vec![Pair::new([0, 1], [Duration::from_millis(2); 2], [ErrorModel::None; 2], 1, 0)]
}

fn managed(discipline: QueueDiscipline, queue_frames: usize) -> Managed {
    let disciplines = [(discipline, CODEL), (QueueDiscipline::Fifo, CODEL)];
    Managed::new([params(queue_frames); 2], disciplines, pairs(), 1, 0)
}

/// A packet of a flow, of so many bytes.
fn packet(flow: u16, bytes: u32) -> Packet {
    let (a, b) = (([10, 0, 0, 1], flow), ([10, 0, 0, 2], 80));
    SegmentBuilder::new(a, b).payload_len(bytes - 40).build(LinkType::Ip)
}

/// The same as one that understands ECN.
fn capable(flow: u16, bytes: u32) -> Packet {
    let plain = packet(flow, bytes);
    let mut header = plain.bytes().to_vec();
    header[1] |= 2;
    Packet::truncated(LinkType::Ip, header.into(), plain.wire_len())
}

fn port(packet: &Packet) -> u16 {
    u16::from_be_bytes([packet.bytes()[20], packet.bytes()[21]])
}

/// Sends what `next` gives every `gap` for so long; the frames that arrived, with the time of each.
fn flood(
    medium: &mut dyn Medium,
    gap: Duration,
    lasts: Duration,
    mut next: impl FnMut(u64) -> Vec<Packet>,
) -> Vec<(Instant, Packet)> {
    let (mut now, mut number, mut arrived) = (Instant::ZERO, 0, Vec::new());
    while now < Instant::ZERO + lasts {
        while let Some(at) = medium.poll_timeout().filter(|at| *at <= now) {
            if let Some(Output::Delivery { packet, .. }) = medium.poll(at) {
                arrived.push((at, packet));
            }
        }
        for packet in next(number) {
            let _ = medium.send(now, 0, 1, packet);
        }
        (now, number) = (now + gap, number + 1);
    }
    arrived
}

fn counters(medium: &dyn Medium) -> LinkCounters {
    medium.counters(0, 1)
}

/// The times of the drops of an overloaded CoDel queue, in milliseconds.
fn drop_times(overload: Duration, lasts: u64) -> Vec<u64> {
    let mut medium = managed(QueueDiscipline::CoDel, 10_000);
    let (mut times, mut seen) = (Vec::new(), 0);
    for millis in 0..lasts {
        let now = Instant::from_millis(millis);
        while let Some(at) = medium.poll_timeout().filter(|at| *at <= now) {
            let _ = medium.poll(at);
        }
        let dropped = counters(&medium).dropped;
        times.extend((seen..dropped).map(|_| millis));
        seen = dropped;
        let due = |millis: u64| Duration::from_millis(millis).as_nanos() / overload.as_nanos();
        for _ in due(millis)..due(millis + 1) {
            let _ = medium.send(now, 0, 1, packet(1, 1500));
        }
    }
    times
}

#[test]
fn a_queue_that_does_not_last_is_left_alone() {
    for discipline in [QueueDiscipline::CoDel, QueueDiscipline::FqCoDel] {
        // 60 packets at once every 200 ms: they wait for up to 60 ms, but never for an interval.
        let mut medium = managed(discipline, 1_000);
        let burst = |_| (0..60).map(|_| packet(1, 1500)).collect();
        let (gap, lasts) = (Duration::from_millis(200), Duration::from_secs(10));
        let arrived = flood(&mut medium, gap, lasts, burst);
        // The last burst is still on its way.
        assert_eq!((counters(&medium).dropped, arrived.len()), (0, 49 * 60));
    }
}

#[test]
fn codel_drops_by_its_control_law() {
    // Twice the rate for ever: the waiting time is above the target from the 10th ms on, and the
    // first packet is dropped an interval later.
    let times = drop_times(AIRTIME / 2, 1_000);
    assert!((105..=115).contains(&times[0]), "{}", times[0]);
    // RFC 8289 §5.3: the n-th drop is followed by the next after interval / sqrt(n).
    let mut next = times[0] as f64;
    for (number, at) in (1..).zip(&times[1..]) {
        next += 100.0 / f64::from(number).sqrt();
        let late = *at as f64 - next;
        assert!((-1.1..=2.1).contains(&late), "drop {number} at {at} instead of {next}");
    }
    assert!(times.len() > 20);
}

#[test]
fn codel_marks_instead_of_dropping() {
    let overload = |ecn: bool| {
        let mut medium = managed(QueueDiscipline::CoDel, 10_000);
        let one = |_| vec![if ecn { capable(1, 1500) } else { packet(1, 1500) }];
        let arrived = flood(&mut medium, AIRTIME / 2, Duration::from_secs(1), one);
        let marked = arrived.iter().filter(|(_, packet)| packet.bytes()[1] & 3 == 3).count();
        (counters(&medium).dropped, marked)
    };
    let ((dropped, none), (no_drops, marked)) = (overload(false), overload(true));
    assert_eq!((none, no_drops), (0, 0));
    assert!(dropped > 20 && (marked as i64 - dropped as i64).abs() <= 2, "{dropped}, {marked}");
}

#[test]
fn fq_codel_gives_flows_their_share_and_sparse_flows_no_wait() {
    let mut medium = managed(QueueDiscipline::FqCoDel, 100);
    // One flow sends twice the rate, another one half of it, a third one a small packet each 20 ms.
    let gap = AIRTIME / 2;
    let arrived = flood(&mut medium, gap, Duration::from_secs(10), |number| {
        let mut packets = vec![packet(1, 1500)];
        packets.extend((number % 4 == 0).then(|| packet(2, 1500)));
        packets.extend((number % 40 == 7).then(|| packet(3, 100)));
        packets
    });
    let of = |flow: u16| arrived.iter().filter(move |(_, packet)| port(packet) == flow);
    let [bulk, half, sparse] = [1, 2, 3].map(|flow| of(flow).count());
    // It asks for a half, which is its share, and some of which CoDel drops.
    assert!((4_700..=5_100).contains(&bulk) && (4_700..=5_000).contains(&half), "{bulk}, {half}");
    assert_eq!(sparse, 500);
    // The packet under way, which takes 1 ms, a turn of each other flow, and 2 ms of delay.
    let sent = |number: u64| Instant::from_micros((number * 40 + 7) * 500);
    for ((at, _), number) in of(3).zip(0..) {
        let waited = at.since(sent(number));
        assert!(waited <= Duration::from_micros(3_100), "{number}: {waited:?}");
    }
}

#[test]
fn fq_codel_drops_from_the_fattest_queue() {
    let mut medium = managed(QueueDiscipline::FqCoDel, 20);
    for _ in 0..100 {
        let _ = medium.send(Instant::ZERO, 0, 1, packet(1, 1500));
    }
    assert_eq!(counters(&medium).dropped, 79, "20 wait and one is being serialised");
    assert!(medium.send(Instant::ZERO, 0, 1, packet(2, 1500)));
    assert_eq!(counters(&medium).dropped, 80);
    let arrived = flood(&mut medium, AIRTIME, Duration::from_millis(40), |_| Vec::new());
    let flows: Vec<u16> = arrived.iter().map(|(_, packet)| port(packet)).collect();
    assert_eq!(flows.len(), 21);
    assert!(flows[1..4].contains(&2), "{flows:?}");
}

#[test]
fn red_holds_the_queue_between_its_thresholds_and_repeats_its_seed() {
    let overload = |seed| {
        let disciplines = [(QueueDiscipline::Red, CODEL), (QueueDiscipline::Fifo, CODEL)];
        let mut medium = Managed::new([params(120); 2], disciplines, pairs(), seed, 0);
        // A tenth more than the rate: below the upper threshold a tenth is dropped at most.
        let gap = Duration::from_micros(909);
        let arrived = flood(&mut medium, gap, Duration::from_secs(60), |_| vec![packet(1, 1500)]);
        let times: Vec<Instant> = arrived.iter().map(|(at, _)| *at).collect();
        (counters(&medium).dropped, times)
    };
    let (dropped, times) = overload(1);
    // What is more than the rate, less what waits at the end.
    assert!((5_800..=6_000).contains(&dropped), "{dropped}");
    assert!(times.windows(2).skip(100).all(|pair| pair[1].since(pair[0]) == AIRTIME));
    assert_eq!(overload(1), (dropped, times.clone()));
    assert_ne!(overload(2).0, dropped, "another seed");
}

#[test]
fn without_disciplines_it_is_full_duplex() {
    let fifo = [(QueueDiscipline::Fifo, CODEL); 2];
    let run = |medium: &mut dyn Medium| {
        let one = |number: u64| vec![packet(1, 40 + (number * 577 % 1461) as u32)];
        let arrived = flood(medium, AIRTIME / 3, Duration::from_secs(2), one);
        let arrived: Vec<_> = arrived.iter().map(|(at, frame)| (*at, frame.wire_len())).collect();
        // What waits is counted by a FIFO already.
        (arrived, counters(medium).dropped)
    };
    let mut managed = Managed::new([params(10); 2], fifo, pairs(), 1, 0);
    let expected = run(&mut FullDuplex::new([params(10); 2], pairs()));
    assert_eq!(run(&mut managed), expected);
    // CoDel with a target that is never reached is a FIFO as well.
    let never = CoDelParams { target: Duration::from_secs(60), interval: CODEL.interval };
    let lazy = [(QueueDiscipline::CoDel, never), (QueueDiscipline::Fifo, CODEL)];
    assert_eq!(run(&mut Managed::new([params(10); 2], lazy, pairs(), 1, 0)), expected);
}
