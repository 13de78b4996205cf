//! A host that sends three times what the link carries, sent once: an honest flow keeps its fair
//! share, half of the link, and a ping takes no longer than without the flood.

use crate::common::packet::{Foreign, Tcp};
use crate::kit::{Frame, Settings};
use crate::pair::{Fate, GATEWAY, MOBILE, Pair};
use airmend_proto::{Instant, Packet, Port};
use std::time::Duration;

const RATE_BPS: u64 = 20_000_000;
const DELAY: Duration = Duration::from_millis(5);
/// What counts begins when the queues stand.
const SETTLED: Instant = Instant::from_millis(1_000);
const END: Instant = Instant::from_millis(5_000);
/// Between two segments of the honest flow, which alone would fill the link.
const SEGMENTS: Duration = Duration::from_micros(600);
const PINGS: Duration = Duration::from_millis(50);

/// One packet each so often.
type Source = (Duration, fn(u32) -> Packet);

/// What the hosts behind one end send.
struct Traffic {
    every: Duration,
    next: Instant,
    packet: fn(u32) -> Packet,
    sent: Vec<Instant>,
}

/// What became of it.
struct Outcome {
    segments: usize,
    pings_sent: usize,
    pings: Vec<Duration>,
}

fn segment(number: u32) -> Packet {
    Tcp::new(0, Port::Wired, number * 1_460, 1_460, 1).packet(0)
}

/// A packet of the flood; the rate is in its `every`.
fn datagram(number: u32) -> Packet {
    Foreign::Udp.packet(number as u16, 1_200)
}

/// What is neither TCP nor UDP is a flow of its own.
fn ping(_: u32) -> Packet {
    Foreign::NotIp.packet(0, 64)
}

fn run(settings: &Settings, floods: &[Source]) -> Outcome {
    let mut pair = Pair::new(settings, RATE_BPS, DELAY);
    pair.may_drop = true;
    let sources: [Source; 2] = [(SEGMENTS, segment), (PINGS, ping)];
    let sources = sources.iter().chain(floods);
    let mut sources: Vec<_> = sources
        .map(|(every, packet)| Traffic {
            every: *every,
            next: Instant::from_millis(10),
            packet: *packet,
            sent: Vec::new(),
        })
        .collect();
    while pair.now < END {
        let next = sources.iter_mut().min_by_key(|source| source.next).expect("two at least");
        pair.run(next.next, &mut |_, _: &Frame| Fate::Arrives);
        pair.send(GATEWAY, &(next.packet)(next.sent.len() as u32));
        next.sent.push(next.next);
        next.next += next.every;
    }
    let sent = &sources[1].sent;
    let delivered = &pair.ends[MOBILE].delivered;
    let is_ping = |packet: &Packet| packet.bytes()[0] == 0xf0;
    let arrived: Vec<_> = delivered.iter().filter(|(_, packet)| is_ping(packet)).collect();
    // One that is lost makes those after it seem to be late.
    let waits = arrived.iter().zip(sent).map(|((at, _), sent)| (*sent, *at - *sent));
    let is_segment = |packet: &Packet| Tcp::read(packet).is_some_and(|tcp| tcp.flow == 0);
    let late = delivered.iter().filter(|(at, _)| *at >= SETTLED);
    Outcome {
        segments: late.filter(|(_, packet)| is_segment(packet)).count(),
        pings_sent: sent.iter().filter(|at| **at + 2 * DELAY < END).count(),
        pings: waits.filter(|(sent, _)| *sent >= SETTLED).map(|(_, wait)| wait).collect(),
    }
}

/// Checks it with these settings of both ends; the flood is what `flood` makes of it.
pub(crate) fn check(settings: &Settings) {
    check_against(settings, datagram);
}

/// The same with other packets, of about as many bytes.
pub(crate) fn check_against(settings: &Settings, flood: fn(u32) -> Packet) {
    let alone = run(settings, &[]);
    let longest = |outcome: &Outcome| outcome.pings.iter().max().copied().unwrap_or(Duration::MAX);
    for every in [400, 160].map(Duration::from_micros) {
        let flooded = run(settings, &[(every, flood)]);
        let share = flooded.segments as f64 / alone.segments as f64;
        let waits = [&alone, &flooded].map(longest);
        let lost = flooded.pings_sent.saturating_sub(flooded.pings.len() + 20);
        println!("every {every:?}: {share:.3} of {}, {waits:?}, {lost} lost", alone.segments);
        assert!(share >= 0.95 * 0.5, "every {every:?}: {share:.3} of what it has alone");
        assert!(lost == 0 && waits[1] <= 2 * waits[0], "every {every:?}: a ping, {waits:?}");
    }
}
