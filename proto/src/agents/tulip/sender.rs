//! The sending half: the window, what the link ACKs say of it, and the retransmission list
//! [tulip99 §V.B S2-04].

use super::classes::{Class, FLOWS};
use super::frame::Ack;
use super::link_event::LinkEvent;
use super::queue::Queued;
use super::settings::Order;
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// A link that turns out to reorder is allowed to do so by this many transmissions at most.
const MAX_REORDERING: u32 = 256;

/// What has been sent to the other end and is not yet known to have arrived with all before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sender {
    /// The number of the first of `slots`.
    first: SeqNumber,
    slots: VecDeque<Slot>,
    /// Transmissions of `slots` that no link ACK has settled, in their order.
    log: VecDeque<Transmission>,
    /// The retransmission list; some of it may have arrived after all.
    lost: VecDeque<SeqNumber>,
    /// The bit vector of the last link ACK, and the number of its first bit.
    beyond: (SeqNumber, Bytes),
    /// Packets sent and neither acknowledged nor known to be lost.
    outstanding: u32,
    /// The serial number of the last transmission, and the highest one that the receiver heard of.
    serial: SeqNumber,
    heard: SeqNumber,
    /// The last packet of each flow, one above its number; 0 for none.
    last_of_flow: Vec<Option<SeqNumber>>,
    /// How many later transmissions must have been heard of before one counts as lost.
    reordering: u32,
    /// Packets that ever arrived, in this stream and those before it.
    arrived: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slot {
    state: State,
    /// None when it was given up. Kept until all before it has arrived as well: a new run of the
    /// other end has nothing of what waited there.
    packet: Option<Packet>,
    class: Class,
    flow: usize,
    after: u16,
    expires: Option<Instant>,
    /// The last transmission, and what number of transmission that was.
    serial: SeqNumber,
    transmissions: u32,
    /// Whether a link ACK showed it to be missing since it was last sent.
    was_missing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Outstanding,
    Lost,
    Arrived,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Transmission {
    serial: SeqNumber,
    seq: SeqNumber,
    at: Instant,
}

/// A numbered frame to send: the fields that the sender knows.
#[derive(Clone, Debug)]
pub(super) struct Numbered {
    pub(super) serial: SeqNumber,
    pub(super) seq: SeqNumber,
    pub(super) after: u16,
    /// None if the packet has been given up.
    pub(super) packet: Option<Packet>,
    pub(super) transmissions: u32,
}

/// What a link ACK said that was new.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    /// The round trip of the frame last heard of, without the receiver's delay.
    pub(super) round_trip: Option<Duration>,
    /// Whether the receiver heard of any transmission for the first time.
    pub(super) is_fresh: bool,
}

impl Sender {
    /// Nothing has been sent.
    pub(super) fn new() -> Self {
        Self {
            first: SeqNumber(0),
            slots: VecDeque::new(),
            log: VecDeque::new(),
            lost: VecDeque::new(),
            beyond: (SeqNumber(0), Bytes::new()),
            outstanding: 0,
            serial: SeqNumber(0),
            heard: SeqNumber(0),
            last_of_flow: vec![None; FLOWS],
            reordering: 0,
            arrived: 0,
        }
    }

    /// Begins a new stream; returns what has not arrived with all before it, to be sent anew.
    pub(super) fn restart(&mut self) -> impl DoubleEndedIterator<Item = Queued> + use<> {
        let arrived = self.arrived;
        let old = core::mem::replace(self, Self { arrived, ..Self::new() });
        old.slots.into_iter().filter_map(|slot| {
            let mut queued = Queued::new(slot.packet?, slot.class, slot.flow);
            queued.expires = slot.expires;
            Some(queued)
        })
    }

    /// Packets from the oldest unacknowledged to the newest.
    pub(super) fn span(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Packets sent and neither acknowledged nor known to be lost.
    pub(super) fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Packets that ever arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// The serial number of the last transmission.
    pub(super) fn serial(&self) -> SeqNumber {
        self.serial
    }

    /// The highest serial number that the receiver has heard of.
    pub(super) fn heard(&self) -> SeqNumber {
        self.heard
    }

    /// Whether the retransmission list has anything to send.
    pub(super) fn has_lost(&mut self) -> bool {
        while let Some(&seq) = self.lost.front() {
            if let Some(index) = self.index(seq) {
                if self.has_arrived(seq) {
                    self.arrive(index);
                } else if self.slots[index].state == State::Lost {
                    return true;
                }
            }
            self.lost.pop_front();
        }
        false
    }

    /// Whether a packet is under way by this very transmission, for all that is known.
    pub(super) fn is_outstanding(&self, seq: SeqNumber, serial: SeqNumber) -> bool {
        let slot = self.index(seq).map(|index| &self.slots[index]);
        slot.is_some_and(|slot| slot.state == State::Outstanding && slot.serial == serial)
    }

    /// Sends a packet for the first time.
    pub(super) fn send(&mut self, now: Instant, queued: Queued, order: Order) -> Numbered {
        let seq = self.first + self.span();
        let flow = &mut self.last_of_flow[queued.flow];
        let before = match order {
            Order::Destination => Some(seq - 1),
            Order::Flow => *flow,
        };
        *flow = Some(seq);
        let expires = match queued.class {
            Class::Bounded(time) => queued.expires.or(Some(now + time)),
            Class::Reliable | Class::Unreliable => None,
        };
        self.slots.push_back(Slot {
            state: State::Lost,
            packet: Some(queued.packet),
            class: queued.class,
            flow: queued.flow,
            after: self.after(seq, before),
            expires,
            serial: self.serial,
            transmissions: 0,
            was_missing: false,
        });
        self.transmit(now, self.slots.len() - 1)
    }

    /// For an unreliable packet: serial number, next number, and how much lower that one is which
    /// it may not overtake.
    pub(super) fn send_unreliable(
        &mut self,
        flow: usize,
        order: Order,
    ) -> (SeqNumber, SeqNumber, u16) {
        self.serial += 1;
        let seq = self.first + self.span();
        // The paper's order is of reliable packets only: the others are passed up as they arrive.
        let before = match order {
            Order::Destination => None,
            Order::Flow => self.last_of_flow[flow],
        };
        (self.serial, seq, self.after(seq, before))
    }

    /// Sends the next packet of the retransmission list, if there is one; tells if it was given up
    /// just now.
    pub(super) fn resend_lost(&mut self, now: Instant) -> Option<(Numbered, Option<LinkEvent>)> {
        if !self.has_lost() {
            return None;
        }
        let seq = self.lost.pop_front()?;
        let index = self.index(seq)?;
        Some(self.resend(now, index))
    }

    /// Sends the oldest packet again of which nothing is known.
    pub(super) fn resend_oldest(&mut self, now: Instant) -> Option<(Numbered, Option<LinkEvent>)> {
        let index = (0..self.slots.len()).find(|&index| {
            let is_outstanding = self.slots[index].state == State::Outstanding;
            is_outstanding && !self.has_arrived(self.first + index as u32)
        })?;
        self.outstanding -= 1;
        self.slots[index].state = State::Lost;
        Some(self.resend(now, index))
    }

    /// No answer came to a whole turn: all of it goes on the retransmission list.
    pub(super) fn lose_outstanding(&mut self) {
        self.log.clear();
        for (slot, offset) in self.slots.iter_mut().zip(0..) {
            if slot.state == State::Outstanding {
                slot.state = State::Lost;
                self.outstanding -= 1;
                self.lost.push_back(self.first + offset);
            }
        }
    }

    /// Reads a link ACK; an error if it speaks of what was never sent.
    ///
    /// Every packet whose last transmission the receiver could have heard of, and which it lacks,
    /// goes on the retransmission list: on the first ACK, and when a retransmission was lost as
    /// well, on any later one [tulip99 §V.B S2-04].
    pub(super) fn acknowledge(&mut self, now: Instant, ack: &Ack) -> Result<News, LinkEvent> {
        let passed = ack.next.offset_from(self.first);
        if passed > self.slots.len() as i32 || ack.heard > self.serial {
            return Err(LinkEvent::BadAck);
        }
        let Ok(passed) = usize::try_from(passed) else {
            // Overtaken by a later one, which said more.
            return Ok(News::default());
        };
        let is_fresh = ack.heard > self.heard;
        let round_trip = self.round_trip(now, ack).filter(|_| is_fresh);
        self.heard = self.heard.max(ack.heard);
        for index in 0..passed {
            self.arrive(index);
        }
        self.slots.drain(..passed);
        self.first = ack.next;
        self.beyond = (ack.next + 1, ack.vector.clone());
        self.settle();
        Ok(News { round_trip, is_fresh })
    }

    fn index(&self, seq: SeqNumber) -> Option<usize> {
        let index = usize::try_from(seq.offset_from(self.first)).ok()?;
        (index < self.slots.len()).then_some(index)
    }

    /// Whether the last bit vector tells that a packet of the window has arrived.
    fn has_arrived(&self, seq: SeqNumber) -> bool {
        let (first, vector) = &self.beyond;
        let Ok(bit) = usize::try_from(seq.offset_from(*first)) else { return false };
        vector.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }

    /// How much lower `before` is, if it still has to arrive with all before it.
    fn after(&self, seq: SeqNumber, before: Option<SeqNumber>) -> u16 {
        let before = before.filter(|before| *before >= self.first && *before < seq);
        before.map_or(0, |before| u16::try_from(seq.offset_from(before)).unwrap_or(0))
    }

    fn resend(&mut self, now: Instant, index: usize) -> (Numbered, Option<LinkEvent>) {
        let slot = &mut self.slots[index];
        let is_late = slot.expires.is_some_and(|expires| expires <= now);
        let given_up = is_late && slot.packet.take().is_some();
        let event = given_up.then_some(LinkEvent::GaveUp(self.first + index as u32));
        (self.transmit(now, index), event)
    }

    /// Notes a transmission of a slot that is `Lost`.
    fn transmit(&mut self, now: Instant, index: usize) -> Numbered {
        let seq = self.first + index as u32;
        let slot = &mut self.slots[index];
        self.serial += 1;
        self.outstanding += 1;
        slot.state = State::Outstanding;
        slot.serial = self.serial;
        slot.transmissions += 1;
        self.log.push_back(Transmission { serial: self.serial, seq, at: now });
        Numbered {
            serial: self.serial,
            seq,
            after: slot.after,
            packet: slot.packet.clone(),
            transmissions: slot.transmissions,
        }
    }

    fn arrive(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let before = core::mem::replace(&mut slot.state, State::Arrived);
        self.arrived += u64::from(before != State::Arrived);
        self.outstanding -= u32::from(before == State::Outstanding);
        // It arrived although nothing of its retransmission was heard: it had not been lost, but
        // overtaken.
        let was_overtaken = before == State::Lost || slot.serial > self.heard;
        if slot.was_missing && before != State::Arrived && was_overtaken {
            self.reordering = (self.reordering * 2 + 1).min(MAX_REORDERING);
        }
    }

    fn round_trip(&self, now: Instant, ack: &Ack) -> Option<Duration> {
        let place = self.log.partition_point(|sent| sent.serial < ack.heard);
        let sent = self.log.get(place).filter(|sent| sent.serial == ack.heard)?;
        (now - sent.at).checked_sub(ack.delay)
    }

    /// Each transmission that the receiver could have heard of has arrived or is lost.
    fn settle(&mut self) {
        let settled = self.heard - self.reordering;
        while self.log.front().is_some_and(|sent| sent.serial <= settled) {
            let Some(sent) = self.log.pop_front() else { return };
            let Some(index) = self.index(sent.seq) else { continue };
            if self.has_arrived(sent.seq) {
                self.arrive(index);
                continue;
            }
            let slot = &mut self.slots[index];
            if slot.state == State::Outstanding && slot.serial == sent.serial {
                slot.state = State::Lost;
                slot.was_missing = true;
                self.outstanding -= 1;
                self.lost.push_back(sent.seq);
            }
        }
    }
}
