//! Link-level retransmission below TCP (S0-67): selective repeat with ideal acknowledgments, which
//! take no airtime and are never lost.
//!
//! The sender learns the fate of a frame a round trip after the frame's end, and retransmits a lost
//! frame a limited number of times. The receiver releases frames as they arrive, or in order: then
//! it holds a frame until all frames before it have arrived or were given up.

use crate::plan::ArqSpec;
use airmend_proto::link::{FullDuplex, LinkCounters, LinkParams, Medium, Output, Pair};
use airmend_proto::{Instant, Packet};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// An acknowledgment of the link layer.
const ACK_BITS: u64 = 14 * 8;

/// A full-duplex medium with a link layer that repeats lost frames on each path.
pub(crate) struct Repeating {
    spec: ArqSpec,
    medium: FullDuplex,
    now: Instant,
    /// By the stations at both ends.
    paths: BTreeMap<[usize; 2], Arq>,
    outputs: VecDeque<Output>,
}

/// The link layer of one path.
#[derive(Debug)]
struct Arq {
    /// The time from the end of a frame until its sender learns its fate.
    feedback: Duration,
    /// The number of the next new frame.
    next: u64,
    /// Lost frames, in the order in which the sender learns their fate.
    lost: VecDeque<Attempt>,
    /// Numbers of the frames that will come out of the medium.
    coming: VecDeque<u64>,
    /// Frames that arrived out of order; a given-up frame is an empty entry.
    held: BTreeMap<u64, Option<Packet>>,
    /// The number of the next frame to be released.
    expected: u64,
}

#[derive(Debug)]
struct Attempt {
    known_at: Instant,
    number: u64,
    /// The number of transmissions.
    sent: u32,
    packet: Packet,
}

impl Repeating {
    pub(crate) fn new(spec: ArqSpec, params: [LinkParams; 2], pairs: Vec<Pair>) -> Self {
        let mut paths = BTreeMap::new();
        for pair in &pairs {
            let [first, second] = pair.stations;
            for (way, ends) in [[first, second], [second, first]].into_iter().enumerate() {
                let ack = ACK_BITS * 1_000_000_000 / params[way].rate_bps.max(1);
                let feedback = 2 * pair.delay[way] + Duration::from_nanos(ack);
                paths.insert(ends, Arq::new(feedback));
            }
        }
        let medium = FullDuplex::new(params, pairs);
        Self { spec, medium, now: Instant::ZERO, paths, outputs: VecDeque::new() }
    }

    /// Sends a frame as number `number` of its path. False: the medium's queue refused it.
    fn transmit(&mut self, now: Instant, ends: [usize; 2], attempt: Attempt) -> bool {
        let [from, to] = ends;
        let before = self.medium.counters(from, to);
        if !self.medium.send(now, from, to, attempt.packet.clone()) {
            return false;
        }
        let after = self.medium.counters(from, to);
        let Some(path) = self.paths.get_mut(&ends) else { return false };
        if (after.lost, after.damaged) == (before.lost, before.damaged) {
            path.coming.push_back(attempt.number);
        } else {
            let known_at = self.medium.free_at(from).unwrap_or(now) + path.feedback;
            path.lost.push_back(Attempt { known_at, ..attempt });
        }
        true
    }

    /// A frame arrived or was given up: releases the frames that can be released.
    fn arrived(&mut self, [from, to]: [usize; 2], number: u64, packet: Option<Packet>) {
        let mut hand_on = |packet: Option<Packet>| {
            self.outputs.extend(packet.map(|packet| Output::Delivery { from, to, packet }));
        };
        if !self.spec.ordered {
            return hand_on(packet);
        }
        let Some(path) = self.paths.get_mut(&[from, to]) else { return };
        path.held.insert(number, packet);
        while let Some(packet) = path.held.remove(&path.expected) {
            hand_on(packet);
            path.expected += 1;
        }
    }

    /// The path whose sender learns first that a frame was lost.
    fn next_lost(&self) -> Option<(Instant, [usize; 2])> {
        let lost = |(ends, path): (&[usize; 2], &Arq)| Some((path.lost.front()?.known_at, *ends));
        self.paths.iter().filter_map(lost).min()
    }
}

impl Medium for Repeating {
    fn can_send(&self, now: Instant, from: usize) -> bool {
        self.medium.can_send(now, from)
    }

    fn free_at(&self, from: usize) -> Option<Instant> {
        self.medium.free_at(from)
    }

    fn send(&mut self, now: Instant, from: usize, to: usize, packet: Packet) -> bool {
        let Some(path) = self.paths.get(&[from, to]) else { return false };
        let attempt = Attempt { known_at: now, number: path.next, sent: 1, packet };
        let is_sent = self.transmit(now, [from, to], attempt);
        if let (true, Some(path)) = (is_sent, self.paths.get_mut(&[from, to])) {
            path.next += 1;
        }
        is_sent
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.outputs.is_empty() {
            return Some(self.now);
        }
        let lost = self.next_lost().map(|(at, _)| at);
        lost.into_iter().chain(self.medium.poll_timeout()).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        while let Some((_, ends)) = self.next_lost().filter(|(at, _)| *at <= now) {
            let lost = self.paths.get_mut(&ends).and_then(|path| path.lost.pop_front());
            let Some(attempt) = lost else { return };
            let (number, sent) = (attempt.number, attempt.sent + 1);
            let again = Attempt { sent, ..attempt };
            if sent > self.spec.retries + 1 || !self.transmit(now, ends, again) {
                self.arrived(ends, number, None);
            }
        }
        self.medium.handle_timeout(now);
        while let Some(Output::Delivery { from, to, packet }) = self.medium.poll_output() {
            let coming = self.paths.get_mut(&[from, to]).and_then(|path| path.coming.pop_front());
            if let Some(number) = coming {
                self.arrived([from, to], number, Some(packet));
            }
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn counters(&self, from: usize, to: usize) -> LinkCounters {
        self.medium.counters(from, to)
    }
}

impl Arq {
    fn new(feedback: Duration) -> Self {
        Self {
            feedback,
            next: 0,
            lost: VecDeque::new(),
            coming: VecDeque::new(),
            held: BTreeMap::new(),
            expected: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::LinkType;
    use airmend_proto::link::ErrorModel;
    use airmend_proto::wire::build::SegmentBuilder;
    use airmend_proto::wire::seq::SeqNumber;
    use airmend_proto::wire::tcp::Segment;

    /// 200 frames over a link that loses a third of them: what comes out, by number.
    fn received(retries: u32, ordered: bool) -> Vec<u32> {
        let delay = Duration::from_millis(5);
        let (rate_bps, lookahead) = (1_000_000, Duration::ZERO);
        let params = LinkParams { rate_bps, delay, queue_frames: 1_000, lookahead };
        let models = [ErrorModel::Loss(0.33), ErrorModel::None];
        let pair = Pair::new([0, 1], [delay; 2], models, 1, 0);
        let mut medium = Repeating::new(ArqSpec { retries, ordered }, [params; 2], vec![pair]);
        let (a, b) = (([10, 0, 0, 1], 1), ([10, 0, 0, 2], 2));
        for number in 0..200 {
            let packet = SegmentBuilder::new(a, b).seq(SeqNumber(number)).payload_len(100);
            medium.send(Instant::ZERO, 0, 1, packet.build(LinkType::Ip));
        }
        let mut numbers = Vec::new();
        while let Some(now) = medium.poll_timeout() {
            medium.handle_timeout(now);
            if let Some(Output::Delivery { packet, .. }) = medium.poll_output() {
                numbers.push(Segment::parse(&packet).unwrap().seq.0);
            }
        }
        numbers
    }

    #[test]
    fn all_frames_arrive_once_and_in_order_if_told_so() {
        let all: Vec<u32> = (0..200).collect();
        assert_eq!(received(50, true), all);
        let mut unordered = received(50, false);
        assert_ne!(unordered, all);
        unordered.sort_unstable();
        assert_eq!(unordered, all);
    }

    #[test]
    fn frames_are_given_up_and_leave_a_gap() {
        let numbers = received(1, true);
        assert!(numbers.is_sorted() && (150..200).contains(&numbers.len()), "{}", numbers.len());
        assert!(received(0, true).len() < numbers.len());
    }
}
