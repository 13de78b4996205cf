//! The normal class of an egress queue with FQ-CoDel (RFC 8290): flows take turns, and a flow that
//! keeps its queue long is marked or dropped before others have to wait for it.

use super::queued::Queued;
use crate::codel::{CoDelParams, Control, Sojourn};
use crate::drr::{Turn, Turns};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::edit::mark_congestion;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The queues of all flows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FairQueue {
    pub(super) params: CoDelParams,
    flows: Vec<Flow>,
    turns: Turns,
    len: usize,
    /// Packets that CoDel marked, and that it dropped.
    marked: u32,
    dropped: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Flow {
    packets: VecDeque<Queued>,
    bytes: u64,
    control: Control,
    turn: Turn,
    marked: u32,
    dropped: u32,
}

impl FairQueue {
    /// Empty queues of this many flows.
    pub(super) fn new(flows: usize) -> Self {
        Self {
            params: CoDelParams::default(),
            flows: (0..flows).map(|_| Flow::default()).collect(),
            turns: Turns::default(),
            len: 0,
            marked: 0,
            dropped: 0,
        }
    }

    /// The number of packets.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a packet.
    pub(super) fn push(&mut self, queued: Queued) {
        let number = queued.flow;
        let flow = &mut self.flows[number];
        flow.bytes += u64::from(queued.packet.wire_len());
        flow.packets.push_back(queued);
        self.len += 1;
        self.turns.join(number, &mut flow.turn);
    }

    /// Puts a packet before all others of its flow.
    pub(super) fn push_front(&mut self, queued: Queued) {
        let number = queued.flow;
        self.push(queued);
        self.flows[number].packets.rotate_right(1);
    }

    /// Whether packets of a flow wait.
    pub(super) fn has(&self, flow: usize) -> bool {
        !self.flows[flow].packets.is_empty()
    }

    /// All packets, in no order but that of each flow.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Queued> {
        self.flows.iter_mut().flat_map(|flow| &mut flow.packets)
    }

    /// Drops the first packet of the flow with the most bytes (RFC 8290 §4.1.2).
    pub(super) fn drop_from_fattest(&mut self) {
        let fattest = self.flows.iter_mut().max_by_key(|flow| flow.bytes);
        if let Some(packet) = fattest.and_then(Sojourn::pop) {
            self.len -= 1;
            drop(packet);
        }
    }

    /// The packet that is next if CoDel drops none.
    pub(super) fn head(&mut self) -> Option<&Queued> {
        loop {
            let number = self.turns.next(&mut self.flows, |flow| &mut flow.turn)?;
            let flow = &mut self.flows[number];
            if !flow.packets.is_empty() {
                return self.flows[number].packets.front();
            }
            self.turns.leave(&mut flow.turn);
        }
    }

    /// Takes the next packet.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Queued> {
        while let Some(number) = self.head().map(|head| head.flow) {
            let flow = &mut self.flows[number];
            let (before, mut control) = (flow.packets.len(), core::mem::take(&mut flow.control));
            let next = control.dequeue(now, self.params, flow);
            flow.control = control;
            self.len -= before - flow.packets.len();
            self.marked += core::mem::take(&mut flow.marked);
            self.dropped += core::mem::take(&mut flow.dropped);
            if let Some(queued) = next {
                flow.turn.spend(queued.packet.wire_len());
                return Some(queued);
            }
        }
        None
    }

    /// Packets that were marked and dropped since the last call.
    pub(super) fn take_counts(&mut self) -> (u32, u32) {
        (core::mem::take(&mut self.marked), core::mem::take(&mut self.dropped))
    }
}

impl Sojourn for Flow {
    type Packet = Queued;

    fn pop(&mut self) -> Option<Queued> {
        let queued = self.packets.pop_front()?;
        self.bytes -= u64::from(queued.packet.wire_len());
        Some(queued)
    }

    fn bytes(&self) -> u64 {
        self.bytes
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
