//! A host that sends three times what the link carries, sent once: an honest flow keeps its fair
//! share, half of the link, and a ping takes no longer than without the flood.

use crate::common::packet::{Foreign, Tcp};
use crate::kit::{Frame, Settings};
use crate::pair::{Fate, GATEWAY, Hop, MOBILE, Pair};
use airmend_proto::{Instant, Packet, Port};
use std::collections::BTreeMap;
use std::time::Duration;

const RATE_BPS: u64 = 20_000_000;
const DELAY: Duration = Duration::from_millis(5);
/// What counts begins when the queues stand.
const SETTLED: Instant = Instant::from_millis(1_000);
const END: Instant = Instant::from_millis(5_000);
/// Pings that are sent before this time arrive before the end, or are lost.
const LAST_PING: Instant = Instant::from_millis(4_500);
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

/// What became of it: the honest flow's segments, and pings by the time that each took.
struct Outcome {
    segments: usize,
    pings_lost: usize,
    pings: Vec<Duration>,
}

fn segment(number: u32) -> Packet {
    Tcp::new(0, Port::Wired, number * 1_460, 1_460, 1).packet(0)
}

/// A packet of the flood; the rate is in its `every`.
pub(crate) fn datagram(number: u32) -> Packet {
    Foreign::Udp.packet(number as u16, 1_200)
}

/// What is neither TCP nor UDP is a flow of its own.
fn ping(number: u32) -> Packet {
    Foreign::NotIp.packet(number as u16, 64)
}

/// The number of a ping.
fn ping_number(packet: &Packet) -> Option<usize> {
    match packet.bytes()[..] {
        [0xf0, _, _, _, high, low, ..] => Some(usize::from(u16::from_be_bytes([high, low]))),
        _ => None,
    }
}

/// The path has `queue`, at a hop behind the end; without one the end itself is the slowest hop.
fn run(settings: &Settings, queue: Option<Duration>, floods: &[Source]) -> Outcome {
    let mut pair = Pair::new(settings, RATE_BPS, DELAY);
    if let Some(queue) = queue {
        pair.rate_bps = 10 * RATE_BPS;
        pair.hops = Some([Hop::new(RATE_BPS, queue); 2]);
    }
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
    let delivered = &pair.ends[MOBILE].delivered;
    let arrived: BTreeMap<usize, Instant> =
        delivered.iter().filter_map(|(at, packet)| Some((ping_number(packet)?, *at))).collect();
    let sent = sources[1].sent.iter().enumerate();
    let judged = sent.filter(|(_, at)| (SETTLED..LAST_PING).contains(*at));
    let waits: Vec<_> =
        judged.map(|(number, sent)| arrived.get(&number).map(|at| *at - *sent)).collect();
    let is_segment = |packet: &Packet| Tcp::read(packet).is_some_and(|tcp| tcp.flow == 0);
    let late = delivered.iter().filter(|(at, _)| *at >= SETTLED);
    Outcome {
        segments: late.filter(|(_, packet)| is_segment(packet)).count(),
        pings_lost: waits.iter().filter(|wait| wait.is_none()).count(),
        pings: waits.into_iter().flatten().collect(),
    }
}

/// Checks it with these settings of both ends; the flood is what `flood` makes of it.
pub(crate) fn check(settings: &Settings) {
    check_against(settings, None, datagram);
}

/// The same with other packets, of about as many bytes, and with a hop behind the end that is the
/// slowest one and has a FIFO of this length.
pub(crate) fn check_against(
    settings: &Settings,
    queue: Option<Duration>,
    flood: fn(u32) -> Packet,
) {
    let alone = run(settings, queue, &[]);
    let longest = |outcome: &Outcome| outcome.pings.iter().max().copied().unwrap_or(Duration::MAX);
    for every in [400, 160].map(Duration::from_micros) {
        let flooded = run(settings, queue, &[(every, flood)]);
        let share = flooded.segments as f64 / alone.segments as f64;
        let waits = [&alone, &flooded].map(longest);
        let lost = flooded.pings_lost;
        println!(
            "queue {queue:?}, every {every:?}: {share:.3} of {}, {waits:?}, {lost} lost",
            alone.segments
        );
        assert!(share >= 0.95 * 0.5, "every {every:?}: {share:.3} of what it has alone");
        assert!(lost == 0 && waits[1] <= 2 * waits[0], "every {every:?}: a ping, {waits:?}");
    }
}
