//! The egress queue of a link: the FIFOs of the papers, or a queue for each flow.

use super::fair_queue::FairQueue;
use super::fifo::Fifo;
use super::link_event::LinkEvent;
use super::queued::Queued;
use crate::agent::Port;
use crate::codel::CoDelParams;
use crate::event::Event;
use crate::packet::Packet;
use crate::time::Instant;

/// Packets that wait for the link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Queue {
    /// One queue for what is retransmitted, and one for what is not.
    Fifo(Fifo),
    /// One for each flow, whatever its class (RFC 8290).
    Fair(FairQueue),
}

impl Queue {
    /// The queue of a link; of `limit` packets, each of the FIFOs, or all flows together. What
    /// waits in those of flows takes a part of `cache_bytes` at most.
    pub(crate) fn new(is_fair: bool, limit: usize, cache_bytes: usize) -> Self {
        match is_fair {
            true => Self::Fair(FairQueue::new(limit, cache_bytes)),
            false => Self::Fifo(Fifo::new(limit)),
        }
    }

    /// From now on what waits in the queues of flows takes a part of so many bytes.
    pub(crate) fn limit_cache(&mut self, bytes: usize) {
        match self {
            Self::Fifo(_) => {}
            Self::Fair(fair) => fair.limit_cache(bytes),
        }
    }

    /// Adds a packet; false if the queue is full, which has `more` places than its limit, and a
    /// packet was dropped: of a fair queue one of the flow with the most.
    #[must_use]
    pub(crate) fn push(&mut self, now: Instant, mut queued: Queued, more: usize) -> bool {
        queued.since = now;
        match self {
            Self::Fifo(fifo) => fifo.push(queued, more),
            Self::Fair(fair) => {
                fair.push(queued);
                !fair.drop_excess(more)
            }
        }
    }

    /// Adds a packet before all others of its flow, of which it would be the last in a FIFO; false
    /// if the queue is full, and a packet was dropped.
    #[must_use]
    pub(crate) fn push_first(&mut self, now: Instant, queued: Queued) -> bool {
        let queued = Queued { since: now, ..queued };
        match self {
            Self::Fifo(fifo) => fifo.push(queued, 0),
            Self::Fair(fair) => {
                fair.push_front(queued);
                !fair.drop_excess(0)
            }
        }
    }

    /// Puts packets that must be sent a second time before all others, those of a fair queue before
    /// all of their flow, in their order. The limit is not applied: the packets were within it when
    /// they were first queued.
    pub(crate) fn put_back(
        &mut self,
        now: Instant,
        packets: impl DoubleEndedIterator<Item = Queued>,
    ) {
        let packets = packets.map(|queued| Queued { since: now, ..queued });
        match self {
            Self::Fifo(fifo) => fifo.put_back(packets),
            Self::Fair(fair) => packets.rev().for_each(|queued| fair.push_front(queued)),
        }
    }

    /// Puts a packet in the place of the waiting one with this identity; false if there is none.
    pub(crate) fn replace(&mut self, identity: u64, packet: &Packet) -> bool {
        let is_it = |queued: &&mut Queued| identity != 0 && queued.identity == identity;
        let waiting = match self {
            Self::Fifo(fifo) => fifo.iter_mut().find(is_it),
            Self::Fair(fair) => fair.iter_mut().find(is_it),
        };
        waiting.map(|queued| queued.packet = packet.clone()).is_some()
    }

    /// Takes the next packet; only an unreliable one unless the window has `room` for a reliable
    /// one. CoDel with these parameters may drop packets of a fair queue before it.
    pub(crate) fn pop(&mut self, now: Instant, room: bool, codel: CoDelParams) -> Option<Queued> {
        match self {
            Self::Fifo(fifo) => fifo.pop(room),
            Self::Fair(fair) => fair.pop(now, room, codel),
        }
    }

    /// Whether a packet may be sent now.
    pub(crate) fn has_next(&self, room: bool) -> bool {
        match self {
            Self::Fifo(fifo) => fifo.has_next(room),
            Self::Fair(fair) => fair.has_next(room),
        }
    }

    /// Whether no packet waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of packets.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fifo(fifo) => fifo.len(),
            Self::Fair(fair) => fair.len(),
        }
    }

    /// Their bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Fifo(fifo) => fifo.bytes(),
            Self::Fair(fair) => fair.bytes(),
        }
    }

    /// What CoDel marked and dropped since the last call, and TCP ACKs that were filtered.
    pub(crate) fn take_events(&mut self) -> impl Iterator<Item = Event> + use<> {
        let counts = match self {
            Self::Fifo(_) => [0; 3],
            Self::Fair(fair) => fair.take_counts(),
        };
        let events = [
            Event::CongestionMarked,
            Event::EgressDropped(Port::Air),
            LinkEvent::AckFiltered.into(),
        ];
        let each = counts.into_iter().zip(events);
        each.flat_map(|(count, event)| core::iter::repeat_n(event, count as usize))
    }
}
