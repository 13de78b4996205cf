//! A stream of datagrams over a long and clean path: what the path would carry, the link carries.

use crate::common::packet::{Foreign, Tcp};
use crate::kit::{Frame, Settings};
use crate::pair::{Fate, GATEWAY, MOBILE, Pair};
use airmend_proto::Port;
use std::time::Duration;

const RATE_BPS: u64 = 200_000_000;
const DELAY: Duration = Duration::from_millis(75);
/// Bytes behind the IP header of each datagram; 35 Mb/s.
const DATAGRAM: u16 = 1_200;
const EVERY: Duration = Duration::from_micros(274);
/// The delay of the path, and of a few frames that leave at once.
const PROMPT: Duration = Duration::from_millis(76);

fn arrives(_: usize, _: &Frame) -> Fate {
    Fate::Arrives
}

/// A link with control of its rate, before its first packet.
fn link() -> Pair {
    Pair::new(&Settings::link(), RATE_BPS, DELAY)
}

fn idle(pair: &mut Pair, lasts: Duration) {
    pair.run(pair.now + lasts, &mut arrives);
}

/// Sends a datagram so often for a time; the longest delay of one. Each of them arrives.
fn stream(pair: &mut Pair, every: Duration, lasts: Duration) -> Duration {
    let (end, before) = (pair.now + lasts, pair.ends[MOBILE].delivered.len());
    let mut sent = Vec::new();
    while pair.now < end {
        pair.send(GATEWAY, &Foreign::Udp.packet(sent.len() as u16, DATAGRAM));
        sent.push(pair.now);
        idle(pair, every);
    }
    idle(pair, Duration::from_secs(1));
    let arrived = &pair.ends[MOBILE].delivered[before..];
    assert_eq!(arrived.len(), sent.len(), "{:?}", pair.ends[GATEWAY].counters);
    arrived.iter().zip(&sent).map(|((at, _), sent)| *at - *sent).max().unwrap()
}

#[test]
fn a_stream_loses_nothing_over_a_clean_path() {
    let lasts = Duration::from_secs(5);
    let mut pair = link();
    // The ends ask for each other's epochs first.
    let delay = stream(&mut pair, EVERY, lasts);
    assert!(delay < 3 * PROMPT, "from the first packet on: {delay:?}");
    let minute = Duration::from_secs(60);
    let delay = stream(&mut pair, EVERY, lasts);
    assert!(delay < PROMPT, "once more: {delay:?}");
    idle(&mut pair, minute);
    let delay = stream(&mut pair, EVERY, lasts);
    assert!(delay < PROMPT, "after an idle minute: {delay:?}");
    let mut pair = link();
    stream(&mut pair, 100 * EVERY, minute);
    let delay = stream(&mut pair, EVERY, lasts);
    assert!(delay < PROMPT, "after a minute with little to carry: {delay:?}");
}

#[test]
fn the_begin_of_a_stream_holds_up_nothing_that_is_repeated() {
    let mut pair = link();
    idle(&mut pair, Duration::from_secs(1));
    // As much as is on the path at 35 Mb/s, before anything is known of it.
    (0..500).for_each(|id| pair.send(GATEWAY, &Foreign::Udp.packet(id, DATAGRAM)));
    idle(&mut pair, Duration::from_millis(50));
    let sent = pair.now;
    pair.send(GATEWAY, &Tcp::new(0, Port::Wired, 0, 1_000, 1).packet(0));
    idle(&mut pair, Duration::from_secs(1));
    let (at, segment) = pair.ends[MOBILE].delivered.last().unwrap();
    assert!(Tcp::read(segment).is_some() && *at - sent < PROMPT, "{:?}", *at - sent);
}
