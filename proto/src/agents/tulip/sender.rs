//! The sending half: the window, the processing of link ACKs, and the retransmission list
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

/// The most transmissions by which a link may reorder before a packet counts as lost.
const MAX_REORDERING: u32 = 256;

/// The packets that were sent and are not yet acknowledged cumulatively.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sender {
    /// The sequence number of the first of `packets`.
    first: SeqNumber,
    packets: VecDeque<SentPacket>,
    /// Transmissions of `packets` whose outcome no link ACK has shown, by serial number.
    log: VecDeque<Transmission>,
    /// The retransmission list; some of its packets may have arrived since.
    lost: VecDeque<SeqNumber>,
    /// The bit vector of the last link ACK, and the sequence number of its first bit.
    beyond: (SeqNumber, Bytes),
    /// Packets in flight: sent, and neither acknowledged nor lost.
    outstanding: u32,
    /// The serial number of the last transmission, and the highest one that a link ACK reported.
    serial: SeqNumber,
    acked_serial: SeqNumber,
    /// The sequence number of the last packet of each flow.
    last_of_flow: Vec<Option<SeqNumber>>,
    /// The number of later transmissions that must be acknowledged before one counts as lost.
    reordering: u32,
    /// Packets that have arrived, in this stream and those before it.
    arrived: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SentPacket {
    delivery: Delivery,
    /// `None` if the packet was given up. Kept until it is acknowledged cumulatively: a new run of
    /// the other end lacks the packets that its former run had received out of order.
    packet: Option<Packet>,
    class: Class,
    flow: usize,
    after: u16,
    expires: Option<Instant>,
    /// The serial number of the last transmission, and the number of transmissions.
    serial: SeqNumber,
    transmissions: u32,
    /// Whether a link ACK showed a transmission of the packet to be lost.
    was_missing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Delivery {
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

/// The fields of a numbered frame that the sender sets.
#[derive(Clone, Debug)]
pub(super) struct Numbered {
    pub(super) serial: SeqNumber,
    pub(super) seq: SeqNumber,
    pub(super) after: u16,
    /// `None` if the packet was given up.
    pub(super) packet: Option<Packet>,
    pub(super) transmissions: u32,
}

/// The new information of a link ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckSummary {
    /// The round trip of the frame with the highest serial number, without the receiver's delay.
    pub(super) round_trip: Option<Duration>,
    /// Whether the link ACK reports a serial number above all earlier ones.
    pub(super) is_fresh: bool,
}

impl Sender {
    /// A sender before its first packet.
    pub(super) fn new() -> Self {
        Self {
            first: SeqNumber(0),
            packets: VecDeque::new(),
            log: VecDeque::new(),
            lost: VecDeque::new(),
            beyond: (SeqNumber(0), Bytes::new()),
            outstanding: 0,
            serial: SeqNumber(0),
            acked_serial: SeqNumber(0),
            last_of_flow: vec![None; FLOWS],
            reordering: 0,
            arrived: 0,
        }
    }

    /// Begins a new stream; returns the packets that were not acknowledged cumulatively, which must
    /// be sent in the new stream.
    pub(super) fn restart(&mut self) -> impl DoubleEndedIterator<Item = Queued> + use<> {
        let arrived = self.arrived;
        let old = core::mem::replace(self, Self { arrived, ..Self::new() });
        old.packets.into_iter().filter_map(|sent| {
            let mut queued = Queued::new(sent.packet?, sent.class, sent.flow);
            queued.expires = sent.expires;
            Some(queued)
        })
    }

    /// The number of packets from the oldest unacknowledged to the newest.
    pub(super) fn span(&self) -> u32 {
        self.packets.len() as u32
    }

    /// The number of packets in flight.
    pub(super) fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// The number of packets that have arrived, in all streams.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// The serial number of the last transmission.
    pub(super) fn serial(&self) -> SeqNumber {
        self.serial
    }

    /// The highest serial number that a link ACK reported.
    pub(super) fn acked_serial(&self) -> SeqNumber {
        self.acked_serial
    }

    /// Whether the retransmission list has a packet to send.
    pub(super) fn has_lost(&mut self) -> bool {
        while let Some(&seq) = self.lost.front() {
            if let Some(index) = self.index(seq) {
                if self.has_arrived(seq) {
                    self.arrive(index);
                } else if self.packets[index].delivery == Delivery::Lost {
                    return true;
                }
            }
            self.lost.pop_front();
        }
        false
    }

    /// Whether this transmission is the packet's last one, and neither acknowledged nor lost.
    pub(super) fn is_outstanding(&self, seq: SeqNumber, serial: SeqNumber) -> bool {
        let sent = self.index(seq).map(|index| &self.packets[index]);
        sent.is_some_and(|sent| sent.delivery == Delivery::Outstanding && sent.serial == serial)
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
        self.packets.push_back(SentPacket {
            delivery: Delivery::Lost,
            packet: Some(queued.packet),
            class: queued.class,
            flow: queued.flow,
            after: self.after(seq, before),
            expires,
            serial: self.serial,
            transmissions: 0,
            was_missing: false,
        });
        self.transmit(now, self.packets.len() - 1)
    }

    /// Takes a serial number for an unreliable packet; returns it, the next sequence number, and
    /// the ordering constraint ([`Frame::after`](super::frame::Frame::after)).
    pub(super) fn send_unreliable(
        &mut self,
        flow: usize,
        order: Order,
    ) -> (SeqNumber, SeqNumber, u16) {
        self.serial += 1;
        let seq = self.first + self.span();
        // The paper orders reliable packets only; unreliable ones are released as they arrive.
        let before = match order {
            Order::Destination => None,
            Order::Flow => self.last_of_flow[flow],
        };
        (self.serial, seq, self.after(seq, before))
    }

    /// Retransmits the next packet of the retransmission list, if there is one; the event says that
    /// the packet was given up with this call.
    pub(super) fn resend_lost(&mut self, now: Instant) -> Option<(Numbered, Option<LinkEvent>)> {
        if !self.has_lost() {
            return None;
        }
        let seq = self.lost.pop_front()?;
        let index = self.index(seq)?;
        Some(self.resend(now, index))
    }

    /// Retransmits the oldest packet in flight.
    pub(super) fn resend_oldest(&mut self, now: Instant) -> Option<(Numbered, Option<LinkEvent>)> {
        let index = (0..self.packets.len()).find(|&index| {
            let is_outstanding = self.packets[index].delivery == Delivery::Outstanding;
            is_outstanding && !self.has_arrived(self.first + index as u32)
        })?;
        self.outstanding -= 1;
        self.packets[index].delivery = Delivery::Lost;
        Some(self.resend(now, index))
    }

    /// No answer came to a whole turn: all packets in flight enter the retransmission list.
    pub(super) fn lose_outstanding(&mut self) {
        self.log.clear();
        for (sent, offset) in self.packets.iter_mut().zip(0..) {
            if sent.delivery == Delivery::Outstanding {
                sent.delivery = Delivery::Lost;
                self.outstanding -= 1;
                self.lost.push_back(self.first + offset);
            }
        }
    }

    /// Processes a link ACK.
    ///
    /// Every packet that the link ACK does not acknowledge, and whose last transmission has a
    /// serial number no higher than the one reported, enters the retransmission list. This holds
    /// for lost retransmissions too [tulip99 §V.B S2-04].
    ///
    /// # Errors
    /// The link ACK acknowledges packets that were never sent.
    pub(super) fn acknowledge(&mut self, now: Instant, ack: &Ack) -> Result<AckSummary, LinkEvent> {
        let passed = ack.next.offset_from(self.first);
        if passed > self.packets.len() as i32 || ack.highest_serial > self.serial {
            return Err(LinkEvent::BadAck);
        }
        let Ok(passed) = usize::try_from(passed) else {
            // Overtaken by a later link ACK.
            return Ok(AckSummary::default());
        };
        let is_fresh = ack.highest_serial > self.acked_serial;
        let round_trip = self.round_trip(now, ack).filter(|_| is_fresh);
        self.acked_serial = self.acked_serial.max(ack.highest_serial);
        for index in 0..passed {
            self.arrive(index);
        }
        self.packets.drain(..passed);
        self.first = ack.next;
        self.beyond = (ack.next + 1, ack.vector.clone());
        self.settle();
        Ok(AckSummary { round_trip, is_fresh })
    }

    fn index(&self, seq: SeqNumber) -> Option<usize> {
        let index = usize::try_from(seq.offset_from(self.first)).ok()?;
        (index < self.packets.len()).then_some(index)
    }

    /// Whether the last bit vector acknowledges a packet of the window.
    fn has_arrived(&self, seq: SeqNumber) -> bool {
        let (first, vector) = &self.beyond;
        let Ok(bit) = usize::try_from(seq.offset_from(*first)) else { return false };
        vector.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }

    /// The distance from `before` to `seq`, if `before` is not acknowledged cumulatively; else 0.
    fn after(&self, seq: SeqNumber, before: Option<SeqNumber>) -> u16 {
        let before = before.filter(|before| *before >= self.first && *before < seq);
        before.map_or(0, |before| u16::try_from(seq.offset_from(before)).unwrap_or(0))
    }

    fn resend(&mut self, now: Instant, index: usize) -> (Numbered, Option<LinkEvent>) {
        let sent = &mut self.packets[index];
        let is_late = sent.expires.is_some_and(|expires| expires <= now);
        let given_up = is_late && sent.packet.take().is_some();
        let event = given_up.then_some(LinkEvent::GaveUp(self.first + index as u32));
        (self.transmit(now, index), event)
    }

    /// Notes a transmission of a packet that is `Lost`.
    fn transmit(&mut self, now: Instant, index: usize) -> Numbered {
        let seq = self.first + index as u32;
        let sent = &mut self.packets[index];
        self.serial += 1;
        self.outstanding += 1;
        sent.delivery = Delivery::Outstanding;
        sent.serial = self.serial;
        sent.transmissions += 1;
        self.log.push_back(Transmission { serial: self.serial, seq, at: now });
        Numbered {
            serial: self.serial,
            seq,
            after: sent.after,
            packet: sent.packet.clone(),
            transmissions: sent.transmissions,
        }
    }

    fn arrive(&mut self, index: usize) {
        let sent = &mut self.packets[index];
        let before = core::mem::replace(&mut sent.delivery, Delivery::Arrived);
        self.arrived += u64::from(before != Delivery::Arrived);
        self.outstanding -= u32::from(before == Delivery::Outstanding);
        // The packet arrived before its retransmission was reported: an earlier transmission had
        // been overtaken, not lost.
        let was_overtaken = before == Delivery::Lost || sent.serial > self.acked_serial;
        if sent.was_missing && before != Delivery::Arrived && was_overtaken {
            self.reordering = (self.reordering * 2 + 1).min(MAX_REORDERING);
        }
    }

    fn round_trip(&self, now: Instant, ack: &Ack) -> Option<Duration> {
        let place = self.log.partition_point(|sent| sent.serial < ack.highest_serial);
        let sent = self.log.get(place).filter(|sent| sent.serial == ack.highest_serial)?;
        (now - sent.at).checked_sub(ack.delay)
    }

    /// Decides for each transmission up to the reported serial number: arrived or lost.
    fn settle(&mut self) {
        let settled = self.acked_serial - self.reordering;
        while self.log.front().is_some_and(|sent| sent.serial <= settled) {
            let Some(sent) = self.log.pop_front() else { return };
            let Some(index) = self.index(sent.seq) else { continue };
            if self.has_arrived(sent.seq) {
                self.arrive(index);
                continue;
            }
            let packet = &mut self.packets[index];
            if packet.delivery == Delivery::Outstanding && packet.serial == sent.serial {
                packet.delivery = Delivery::Lost;
                packet.was_missing = true;
                self.outstanding -= 1;
                self.lost.push_back(sent.seq);
            }
        }
    }
}
