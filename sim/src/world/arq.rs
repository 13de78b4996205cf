//! Link-level retransmission that knows nothing of TCP (S0-67): selective repeat by an ideal
//! receiver, whose acknowledgments cost no airtime and are never lost.
//!
//! The sender learns a round trip after a frame's end whether it arrived, and sends a lost one
//! again, a limited number of times. The receiver passes frames on as they come, or holds those
//! that came early until all before them arrived or were given up.

use crate::plan::ArqSpec;
use airmend_proto::link::Link;
use airmend_proto::{Instant, Packet};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The link layer of one direction.
#[derive(Debug)]
pub(crate) struct Arq {
    spec: ArqSpec,
    /// From the end of a frame to the news of its fate.
    feedback: Duration,
    /// The number of the next new frame.
    next: u64,
    /// Lost frames, in the order in which the sender learns of them.
    lost: VecDeque<Attempt>,
    /// Numbers of the frames that will come out of the link.
    coming: VecDeque<u64>,
    /// Frames that came early; given-up ones are gaps that need not be waited for.
    held: BTreeMap<u64, Option<Packet>>,
    /// The number of the frame that is to be passed on next.
    expected: u64,
    ready: VecDeque<Packet>,
}

#[derive(Debug)]
struct Attempt {
    known_at: Instant,
    number: u64,
    /// Transmissions so far.
    sent: u32,
    packet: Packet,
}

impl Arq {
    pub(crate) fn new(spec: ArqSpec, feedback: Duration) -> Self {
        Self {
            spec,
            feedback,
            next: 0,
            lost: VecDeque::new(),
            coming: VecDeque::new(),
            held: BTreeMap::new(),
            expected: 0,
            ready: VecDeque::new(),
        }
    }

    /// Sends a new frame.
    pub(crate) fn send(&mut self, now: Instant, link: &mut Link, packet: Packet) {
        if self.transmit(now, link, packet, self.next, 1) {
            self.next += 1;
        }
    }

    /// Acts on what is known by now, and takes the next frame that the receiver passes on.
    pub(crate) fn deliver(&mut self, now: Instant, link: &mut Link) -> Option<Packet> {
        while let Some(attempt) = self.lost.pop_front_if(|attempt| attempt.known_at <= now) {
            let Attempt { number, sent, packet, .. } = attempt;
            if sent > self.spec.retries || !self.transmit(now, link, packet, number, sent + 1) {
                self.arrived(number, None);
            }
        }
        while let Some(delivery) = link.poll_delivery(now) {
            if let Some(number) = self.coming.pop_front() {
                self.arrived(number, Some(delivery.packet));
            }
        }
        self.ready.pop_front()
    }

    /// When there is something to do next.
    pub(crate) fn deadline(&self, now: Instant, link: &Link) -> Option<Instant> {
        if !self.ready.is_empty() {
            return Some(now);
        }
        let lost = self.lost.front().map(|attempt| attempt.known_at);
        lost.into_iter().chain(link.next_delivery()).min()
    }

    /// False: the link's queue refused the frame.
    fn transmit(
        &mut self,
        now: Instant,
        link: &mut Link,
        packet: Packet,
        number: u64,
        sent: u32,
    ) -> bool {
        let before = link.counters();
        if !link.send(now, packet.clone()) {
            return false;
        }
        let after = link.counters();
        if (after.lost, after.damaged) == (before.lost, before.damaged) {
            self.coming.push_back(number);
        } else {
            let known_at = link.free_at() + self.feedback;
            self.lost.push_back(Attempt { known_at, number, sent, packet });
        }
        true
    }

    /// A frame arrived, or was given up.
    fn arrived(&mut self, number: u64, packet: Option<Packet>) {
        if !self.spec.ordered {
            self.ready.extend(packet);
            return;
        }
        self.held.insert(number, packet);
        while let Some(packet) = self.held.remove(&self.expected) {
            self.ready.extend(packet);
            self.expected += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::LinkType;
    use airmend_proto::link::{ErrorModel, LinkParams};
    use airmend_proto::wire::build::SegmentBuilder;
    use airmend_proto::wire::seq::SeqNumber;
    use airmend_proto::wire::tcp::Segment;

    /// 200 frames over a link that loses a third of them: what comes out, by number.
    fn received(retries: u32, ordered: bool) -> Vec<u32> {
        let delay = Duration::from_millis(5);
        let (rate_bps, lookahead) = (1_000_000, Duration::ZERO);
        let params = LinkParams { rate_bps, delay, queue_frames: 1_000, lookahead };
        let mut link = Link::new(params, ErrorModel::Loss(0.33).process(1, 0, 0));
        let mut arq = Arq::new(ArqSpec { retries, ordered }, 2 * delay);
        let (a, b) = (([10, 0, 0, 1], 1), ([10, 0, 0, 2], 2));
        for number in 0..200 {
            let packet = SegmentBuilder::new(a, b).seq(SeqNumber(number)).payload_len(100);
            arq.send(Instant::ZERO, &mut link, packet.build(LinkType::Ip));
        }
        let (mut now, mut numbers) = (Instant::ZERO, Vec::new());
        while let Some(at) = arq.deadline(now, &link) {
            now = at;
            let packet = arq.deliver(now, &mut link);
            numbers.extend(packet.map(|packet| Segment::parse(&packet).unwrap().seq.0));
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
