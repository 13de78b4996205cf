//! FQ-CoDel (RFC 8290) in front of a link, for packets of every class: flows take turns, those that
//! are sparse first, and of a flow that keeps its queue long packets are marked or dropped.
//!
//! The class of a packet says how often it is sent, not when. Packets have no numbers yet, so that
//! what is dropped here leaves no hole.

use super::ack_filter::supersedes;
use super::classes::FLOWS;
use super::queued::Queued;
use crate::codel::{CoDelParams, Control, Sojourn};
use crate::drr::{Turn, Turns};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::edit::mark_congestion;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

/// Bytes that wait at most, all flows together (the `memory_limit` of Linux's `fq_codel`).
const MAX_BYTES: usize = 32 << 20;
/// And at most this part of what packets that are sent may take.
const SHARE: usize = 8;

/// The queues of all flows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FairQueue {
    limit: usize,
    max_bytes: u64,
    flows: Vec<Flow>,
    turns: Turns,
    /// Packets and bytes of all flows.
    len: usize,
    bytes: u64,
    /// Packets that CoDel marked, that it dropped, and TCP ACKs that a later one stands for.
    marked: u32,
    dropped: u32,
    filtered: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Flow {
    packets: VecDeque<Queued>,
    bytes: u64,
    control: Control,
    turn: Turn,
}

/// A flow, of which only unreliable packets may leave unless there is room.
struct Served<'a> {
    flow: &'a mut Flow,
    room: bool,
    marked: u32,
    dropped: u32,
}

impl FairQueue {
    /// Empty queues, of `limit` packets together, at an end that caches so many bytes.
    pub(super) fn new(limit: usize, cache_bytes: usize) -> Self {
        Self {
            limit,
            max_bytes: max_bytes(cache_bytes),
            flows: (0..FLOWS).map(|_| Flow::default()).collect(),
            turns: Turns::default(),
            len: 0,
            bytes: 0,
            marked: 0,
            dropped: 0,
            filtered: 0,
        }
    }

    /// From now on at an end that caches so many bytes.
    pub(super) fn limit_cache(&mut self, bytes: usize) {
        self.max_bytes = max_bytes(bytes);
    }

    /// The number of packets.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Their bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// Adds a packet.
    pub(super) fn push(&mut self, queued: Queued) {
        let number = queued.flow;
        let flow = &mut self.flows[number];
        let bytes = u64::from(queued.packet.wire_len());
        (self.len, self.bytes, flow.bytes) = (self.len + 1, self.bytes + bytes, flow.bytes + bytes);
        flow.packets.push_back(queued);
        self.turns.join(number, &mut flow.turn);
    }

    /// Puts a packet before all others of its flow.
    pub(super) fn push_front(&mut self, queued: Queued) {
        let number = queued.flow;
        self.push(queued);
        self.flows[number].packets.rotate_right(1);
    }

    /// All packets, in no order but that of each flow.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Queued> {
        self.flows.iter_mut().flat_map(|flow| &mut flow.packets)
    }

    /// Drops a packet if the queues are over their limit and `more` places: the first one of the
    /// flow that has the most of what there is too much of, packets or bytes (RFC 8290 §4.1.2).
    pub(super) fn drop_excess(&mut self, more: usize) -> bool {
        let measure: fn(&Flow) -> u64 = match self {
            _ if self.len > self.limit + more => |flow| flow.packets.len() as u64,
            _ if self.bytes > self.max_bytes => |flow| flow.bytes,
            _ => return false,
        };
        let fattest = self.flows.iter_mut().max_by_key(|flow| measure(flow));
        let Some(packet) = fattest.and_then(Flow::pop) else { return false };
        self.len -= 1;
        self.bytes -= u64::from(packet.packet.wire_len());
        true
    }

    /// Takes the next packet; only an unreliable one unless there is `room`.
    pub(super) fn pop(&mut self, now: Instant, room: bool, codel: CoDelParams) -> Option<Queued> {
        loop {
            let is_ready = |flow: &Flow| flow.packets.is_empty() || flow.fits(room);
            let number = self.turns.next(&mut self.flows, |flow| &mut flow.turn, is_ready)?;
            let flow = &mut self.flows[number];
            if flow.packets.is_empty() {
                self.turns.leave(number, &mut flow.turn);
                continue;
            }
            let (len, bytes) = (flow.packets.len(), flow.bytes);
            self.filtered += flow.filter_acks(now, codel.target);
            let mut control = core::mem::take(&mut flow.control);
            let mut served = Served { flow, room, marked: 0, dropped: 0 };
            let next = control.dequeue(now, codel, &mut served);
            self.marked += served.marked;
            self.dropped += served.dropped;
            flow.control = control;
            self.len -= len - flow.packets.len();
            self.bytes -= bytes - flow.bytes;
            if let Some(queued) = next {
                flow.turn.spend(queued.packet.wire_len());
                return Some(queued);
            }
        }
    }

    /// Whether a packet waits that may be sent.
    pub(super) fn has_next(&self, room: bool) -> bool {
        self.len > 0 && self.flows.iter().any(|flow| flow.fits(room))
    }

    /// Packets that were marked, dropped and filtered since the last call.
    pub(super) fn take_counts(&mut self) -> [u32; 3] {
        [&mut self.marked, &mut self.dropped, &mut self.filtered].map(core::mem::take)
    }
}

/// Bytes that wait at most, at an end that caches so many.
fn max_bytes(cache_bytes: usize) -> u64 {
    MAX_BYTES.min(cache_bytes / SHARE) as u64
}

impl Flow {
    /// Whether its first packet may be sent.
    fn fits(&self, room: bool) -> bool {
        self.packets.front().is_some_and(|head| room || !head.needs_room())
    }

    /// Drops TCP ACKs from the front that have waited for longer than `target`, as far as the next
    /// one stands for them; how many. Else ACKs of a download would fill a narrow way back: no
    /// sender slows down for the loss of one.
    fn filter_acks(&mut self, now: Instant, target: Duration) -> u32 {
        let mut filtered = 0;
        while let [Some(first), Some(next)] = [0, 1].map(|place| self.packets.get(place))
            && now.since(first.since) >= target
            && supersedes(&next.packet, &first.packet)
        {
            self.pop();
            filtered += 1;
        }
        filtered
    }

    fn pop(&mut self) -> Option<Queued> {
        let queued = self.packets.pop_front()?;
        self.bytes -= u64::from(queued.packet.wire_len());
        Some(queued)
    }
}

impl Sojourn for Served<'_> {
    type Packet = Queued;

    fn pop(&mut self) -> Option<Queued> {
        if self.flow.fits(self.room) { self.flow.pop() } else { None }
    }

    fn bytes(&self) -> u64 {
        self.flow.bytes
    }

    fn describe(packet: &Queued) -> (Instant, u64) {
        (packet.since, u64::from(packet.packet.wire_len()))
    }

    fn mark(&mut self, packet: &mut Queued) -> bool {
        let marked: Option<Packet> = mark_congestion(&packet.packet);
        let is_marked = marked.is_some();
        marked.into_iter().for_each(|marked| packet.packet = marked);
        self.marked += u32::from(is_marked);
        is_marked
    }

    fn discard(&mut self, _packet: Queued) {
        self.dropped += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::arq::Class;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::seq::SeqNumber;
    use crate::wire::tcp::Segment;
    use alloc::vec;
    use bytes::Bytes;

    /// Adds packets of a flow; how many of any flow were dropped for them.
    fn add(queue: &mut FairQueue, flow: usize, count: usize, len: u32) -> usize {
        let packet = Packet::truncated(LinkType::Ip, Bytes::new(), len);
        let added = (0..count).filter(|_| {
            queue.push(Queued::new(packet.clone(), Class::Unreliable, flow));
            queue.drop_excess(0)
        });
        added.count()
    }

    fn counts(queue: &FairQueue) -> [usize; 2] {
        [1, 2].map(|flow| queue.flows[flow].packets.len())
    }

    #[test]
    fn short_packets_take_no_places_of_others() {
        let mut queue = FairQueue::new(1_000, usize::MAX);
        assert_eq!(add(&mut queue, 1, 400, 1_500), 0);
        assert_eq!(add(&mut queue, 2, 5_000, 40), 4_400);
        assert_eq!(counts(&queue), [400, 600]);
    }

    #[test]
    fn long_packets_are_bounded_in_bytes() {
        let mut queue = FairQueue::new(100_000, usize::MAX);
        assert_eq!(add(&mut queue, 1, 400, 1_500), 0);
        assert!(add(&mut queue, 2, 1_000, 65_535) > 400);
        assert_eq!(counts(&queue)[0], 400);
        let most = MAX_BYTES as u64;
        assert!(queue.bytes <= most && queue.bytes > most - 65_536);
        let mut left = 0;
        while queue.pop(Instant::ZERO, true, CoDelParams::default()).is_some() {
            left += 1;
        }
        assert!(left > 900 && (queue.len, queue.bytes) == (0, 0));
    }

    #[test]
    fn of_tcp_acks_that_wait_the_last_leaves() {
        let mut queue = FairQueue::new(100, usize::MAX);
        let codel = CoDelParams::default();
        let mut left = |acks: &[u32], waited| {
            for ack in acks.iter().map(|ack| SeqNumber(*ack)) {
                let segment = SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 1, 2], 5_000));
                let packet = segment.ack(ack).build(LinkType::Ip);
                let mut queued = Queued::new(packet, Class::Unreliable, 1);
                queued.since = Instant::ZERO;
                queue.push(queued);
            }
            let pops = core::iter::from_fn(|| queue.pop(Instant::ZERO + waited, true, codel));
            let left: Vec<_> = pops.map(|queued| Segment::parse(&queued.packet)).collect();
            (
                left.into_iter().map(|ack| ack.expect("a segment").ack.0).collect::<Vec<_>>(),
                queue.take_counts()[2],
                queue.len,
            )
        };
        assert_eq!(left(&[1, 2, 3], codel.target / 2), (vec![1, 2, 3], 0, 0), "not for long");
        assert_eq!(left(&[1, 2, 3], codel.target), (vec![3], 2, 0));
        assert_eq!(left(&[1, 1, 3, 3], codel.target), (vec![1, 3, 3], 1, 0), "duplicates count");
    }

    #[test]
    fn another_limit_lets_each_packet_in_for_one_that_is_dropped() {
        let mut queue = FairQueue::new(100_000, 8 << 20);
        assert_eq!(add(&mut queue, 1, 500, 1_500), 0);
        queue.limit_cache(1 << 20);
        assert_eq!(add(&mut queue, 2, 100, 1_500), 100);
        assert_eq!(counts(&queue), [400, 100]);
    }

    #[test]
    fn what_needs_room_leaves_none_of_its_flow_behind_and_stops_no_other() {
        let mut queue = FairQueue::new(100, usize::MAX);
        let packet = |class, flow, len| {
            Queued::new(Packet::truncated(LinkType::Ip, Bytes::new(), len), class, flow)
        };
        queue.push(packet(Class::Reliable, 1, 1_000));
        queue.push(packet(Class::Unreliable, 1, 40));
        queue.push(packet(Class::Unreliable, 2, 50));
        let mut next = |room| {
            assert!(queue.has_next(room) || !room);
            let queued = queue.pop(Instant::ZERO, room, CoDelParams::default());
            queued.map(|queued| queued.packet.wire_len())
        };
        assert_eq!((next(false), next(false)), (Some(50), None));
        assert_eq!((next(true), next(true)), (Some(1_000), Some(40)));
    }
}
