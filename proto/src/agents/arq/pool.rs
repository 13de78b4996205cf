//! The packet pool: what was sent and is not yet acknowledged, with the log of the transmissions
//! whose outcome is unknown, and the retransmission list [lack §3.2 S1-02, tulip99 §V.B S2-04].

use super::classes::{Class, FLOWS};
use super::link_event::LinkEvent;
use super::order::Order;
use super::queued::Queued;
use super::resequencer::WIDEST_WINDOW;
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

/// The most transmissions in the log: the other end need not say what became of them. A packet
/// whose transmission is no longer there is lost when a timeout says so.
const MAX_LOG: usize = 4 * WIDEST_WINDOW as usize;

/// The packets that were sent and are not yet acknowledged cumulatively.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pool {
    /// The sequence number of the first of `packets`.
    first: SeqNumber,
    packets: VecDeque<SentPacket>,
    /// Transmissions of `packets` whose outcome is not known, by serial number.
    log: VecDeque<Transmission>,
    /// The retransmission list; some of its packets may have arrived since.
    lost: VecDeque<SeqNumber>,
    /// Packets in flight: sent, and neither acknowledged nor lost; and packets that are lost.
    outstanding: u32,
    missing: u32,
    /// The serial number of the last transmission.
    serial: SeqNumber,
    /// The serial number up to which every packet in flight has been copied.
    copied: SeqNumber,
    /// The sequence number of the last packet of each flow.
    last_of_flow: Vec<Option<SeqNumber>>,
    /// Packets that have arrived, in this stream and those before it.
    arrived: u64,
    /// Bytes of `packets`.
    bytes: usize,
}

/// A packet that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SentPacket {
    pub(crate) delivery: Delivery,
    /// `None` if the packet was given up. Kept until it is acknowledged cumulatively: a new run of
    /// the other end lacks the packets that its former run had received out of order.
    pub(crate) packet: Option<Packet>,
    class: Class,
    flow: usize,
    after: u16,
    expires: Option<Instant>,
    /// When it was sent first.
    since: Instant,
    /// The serial number of the last transmission, and the number of transmissions.
    pub(crate) serial: SeqNumber,
    transmissions: u32,
    /// Whether a link ACK showed a transmission of the packet to be lost, and when one did last.
    pub(crate) was_missing: bool,
    pub(crate) lost_at: Instant,
    /// The identity by which a retransmission of the host is recognized; 0 for none.
    pub(crate) identity: u64,
}

/// What is known of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Delivery {
    Outstanding,
    Lost,
    Arrived,
}

impl SentPacket {
    /// Whether it is known to have arrived.
    pub(crate) fn has_arrived(&self) -> bool {
        self.delivery == Delivery::Arrived
    }

    /// The distance to the packet that it must not overtake; 0 for none.
    pub(crate) fn after(&self) -> u16 {
        self.after
    }

    /// Whether it is given up after a time.
    pub(crate) fn is_bounded(&self) -> bool {
        self.expires.is_some()
    }
}

/// A transmission whose outcome is not known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Transmission {
    pub(crate) serial: SeqNumber,
    pub(crate) seq: SeqNumber,
    pub(crate) at: Instant,
    /// Of how many copies it is the last one: transmissions before which nothing had shown the
    /// packet to be lost, and the link had nothing else to carry.
    pub(crate) copies: u32,
    /// Whether a link ACK has told of its arrival.
    pub(crate) has_arrived: bool,
}

/// The fields of a numbered frame that the pool sets.
#[derive(Clone, Debug)]
pub(crate) struct Numbered {
    pub(crate) serial: SeqNumber,
    pub(crate) seq: SeqNumber,
    pub(crate) after: u16,
    /// `None` if the packet was given up.
    pub(crate) packet: Option<Packet>,
    pub(crate) transmissions: u32,
}

impl Pool {
    /// A pool before the first packet.
    pub(crate) fn new() -> Self {
        Self {
            first: SeqNumber(0),
            packets: VecDeque::new(),
            log: VecDeque::new(),
            lost: VecDeque::new(),
            outstanding: 0,
            missing: 0,
            serial: SeqNumber(0),
            copied: SeqNumber(0),
            last_of_flow: vec![None; FLOWS],
            arrived: 0,
            bytes: 0,
        }
    }

    /// Begins a new stream; returns the packets that were not acknowledged cumulatively, which must
    /// be sent in the new stream.
    pub(crate) fn restart(&mut self) -> impl DoubleEndedIterator<Item = Queued> + use<> {
        let arrived = self.arrived;
        let old = core::mem::replace(self, Self { arrived, ..Self::new() });
        old.packets.into_iter().filter_map(|sent| {
            let mut queued = Queued::new(sent.packet?, sent.class, sent.flow);
            (queued.expires, queued.identity) = (sent.expires, sent.identity);
            Some(queued)
        })
    }

    /// The sequence number of the oldest packet that is not acknowledged cumulatively, or of the
    /// next new packet.
    pub(crate) fn first(&self) -> SeqNumber {
        self.first
    }

    /// The number of packets from the oldest unacknowledged to the newest.
    pub(crate) fn span(&self) -> u32 {
        self.packets.len() as u32
    }

    /// The time for which the oldest packet has not been acknowledged cumulatively.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        self.packets.front().map_or(Duration::ZERO, |sent| now.since(sent.since))
    }

    /// Bytes of packets that are not acknowledged cumulatively.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of packets in flight.
    pub(crate) fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// The number of packets that are known to be lost, and not sent again since.
    pub(crate) fn missing(&self) -> u32 {
        self.missing
    }

    /// The number of packets that have arrived, in all streams.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// The serial number of the last transmission.
    pub(crate) fn serial(&self) -> SeqNumber {
        self.serial
    }

    /// The place of a packet of the pool.
    pub(crate) fn index(&self, seq: SeqNumber) -> Option<usize> {
        let index = usize::try_from(seq.offset_from(self.first)).ok()?;
        (index < self.packets.len()).then_some(index)
    }

    /// The packet at a place.
    pub(crate) fn packet(&self, index: usize) -> &SentPacket {
        &self.packets[index]
    }

    /// The same, to be changed.
    pub(crate) fn packet_mut(&mut self, index: usize) -> &mut SentPacket {
        &mut self.packets[index]
    }

    /// Puts a packet in the place of one that was sent.
    pub(crate) fn replace(&mut self, index: usize, packet: Packet) {
        self.bytes += packet.bytes().len();
        let old = self.packets[index].packet.replace(packet);
        self.bytes -= old.map_or(0, |old| old.bytes().len());
    }

    /// The place of the newest packet with this identity that is not known to have arrived.
    pub(crate) fn find(&self, identity: u64) -> Option<usize> {
        let is_it = |sent: &SentPacket| {
            sent.identity == identity && !sent.has_arrived() && sent.packet.is_some()
        };
        if identity == 0 {
            return None;
        }
        self.packets.iter().rposition(is_it)
    }

    /// The transmissions whose outcome is not known, in their order.
    pub(crate) fn log(&self) -> &VecDeque<Transmission> {
        &self.log
    }

    /// The same, to be changed.
    pub(crate) fn log_mut(&mut self) -> &mut VecDeque<Transmission> {
        &mut self.log
    }

    /// Takes the oldest transmission from the log.
    pub(crate) fn pop_log(&mut self) -> Option<Transmission> {
        self.log.pop_front()
    }

    /// The transmission with this serial number, if its outcome is not known.
    pub(crate) fn transmission(&self, serial: SeqNumber) -> Option<&Transmission> {
        let place = self.log.partition_point(|sent| sent.serial < serial);
        self.log.get(place).filter(|sent| sent.serial == serial)
    }

    /// The first packet of the retransmission list.
    pub(crate) fn next_lost(&mut self) -> Option<SeqNumber> {
        while let Some(&seq) = self.lost.front() {
            let sent = self.index(seq).map(|index| &self.packets[index]);
            if sent.is_some_and(|sent| sent.delivery == Delivery::Lost) {
                return Some(seq);
            }
            self.lost.pop_front();
        }
        None
    }

    /// The packets that are known to be lost, and not sent again since, in order.
    pub(crate) fn missing_packets(&self) -> Vec<SeqNumber> {
        let is_lost = |seq: &SeqNumber| {
            let index = self.index(*seq);
            index.is_some_and(|index| self.packets[index].delivery == Delivery::Lost)
        };
        let mut missing: Vec<_> = self.lost.iter().copied().filter(is_lost).collect();
        missing.sort_unstable_by_key(|seq| seq.offset_from(self.first));
        missing
    }

    /// Whether this transmission is the packet's last one, and neither acknowledged nor lost.
    pub(crate) fn is_outstanding(&self, seq: SeqNumber, serial: SeqNumber) -> bool {
        let sent = self.index(seq).map(|index| &self.packets[index]);
        sent.is_some_and(|sent| sent.delivery == Delivery::Outstanding && sent.serial == serial)
    }

    /// Sends a packet for the first time.
    pub(crate) fn send(&mut self, now: Instant, queued: Queued, order: Order) -> Numbered {
        let seq = self.first + self.span();
        let flow = &mut self.last_of_flow[queued.flow];
        let before = match order {
            Order::Destination => Some(seq - 1),
            Order::Flow => *flow,
        };
        if queued.is_waited_for {
            *flow = Some(seq);
        }
        let expires = match queued.class {
            Class::Bounded(time) => queued.expires.or(Some(now + time)),
            Class::Reliable | Class::Unreliable => None,
        };
        self.bytes += queued.packet.bytes().len();
        self.packets.push_back(SentPacket {
            delivery: Delivery::Lost,
            packet: Some(queued.packet),
            class: queued.class,
            flow: queued.flow,
            after: self.after(seq, before),
            expires,
            since: now,
            serial: self.serial,
            transmissions: 0,
            was_missing: false,
            lost_at: now,
            identity: queued.identity,
        });
        self.missing += 1;
        self.transmit(now, self.packets.len() - 1, 0)
    }

    /// Takes a serial number for an unreliable packet; returns it, the next sequence number, and
    /// the ordering constraint ([`Frame::after`](super::frame::Frame::after)).
    pub(crate) fn send_once(&mut self, flow: usize, order: Order) -> (SeqNumber, SeqNumber, u16) {
        let serial = self.take_serial();
        let seq = self.first + self.span();
        // The paper orders reliable packets only; unreliable ones are released as they arrive.
        let before = match order {
            Order::Destination => None,
            Order::Flow => self.last_of_flow[flow],
        };
        (serial, seq, self.after(seq, before))
    }

    /// Takes a serial number for a frame that carries none of the packets.
    pub(crate) fn take_serial(&mut self) -> SeqNumber {
        self.serial += 1;
        self.serial
    }

    /// The last packets of the pool, at most so many, of which all are there: the first one's
    /// sequence number, and their number.
    pub(crate) fn combinable(&self, most: u16) -> (SeqNumber, u16) {
        let there = self.packets.iter().rev().take(usize::from(most));
        let len = there.take_while(|sent| sent.packet.is_some()).count() as u16;
        (self.first + self.span() - u32::from(len), len)
    }

    /// Retransmits a packet in flight or on the retransmission list; the event says that the packet
    /// was given up with this call.
    pub(crate) fn resend(&mut self, now: Instant, index: usize) -> (Numbered, Option<LinkEvent>) {
        let seq = self.first + index as u32;
        self.lost.pop_front_if(|first| *first == seq);
        let sent = &mut self.packets[index];
        let before = core::mem::replace(&mut sent.delivery, Delivery::Lost);
        self.outstanding -= u32::from(before == Delivery::Outstanding);
        self.missing += u32::from(before != Delivery::Lost);
        let is_late = sent.expires.is_some_and(|expires| expires <= now);
        let given_up = sent.packet.take_if(|_| is_late);
        self.bytes -= given_up.as_ref().map_or(0, |packet| packet.bytes().len());
        let event = given_up.map(|_| LinkEvent::GaveUp(seq));
        (self.transmit(now, index, 0), event)
    }

    /// Transmits the packet once more that was transmitted first of those in flight, unless that
    /// was done since, or it was copied `most` times already. One that is given up after a time is
    /// not copied.
    pub(crate) fn copy_oldest(&mut self, now: Instant, most: u32) -> Option<Numbered> {
        let first = self.log.partition_point(|sent| sent.serial <= self.copied);
        let may = |sent: &&Transmission| sent.copies < most && self.may_be_copied(sent);
        let found = self.log.range(first..).find(may).cloned();
        self.copied = found.as_ref().map_or(self.serial, |sent| sent.serial);
        let Transmission { seq, copies, .. } = found?;
        self.copy(now, seq, copies)
    }

    /// Transmits a packet in flight once more, which was copied so many times.
    pub(crate) fn copy(&mut self, now: Instant, seq: SeqNumber, copies: u32) -> Option<Numbered> {
        let in_flight = |index: &usize| self.packets[*index].delivery == Delivery::Outstanding;
        let index = self.index(seq).filter(in_flight)?;
        self.outstanding -= 1;
        self.missing += 1;
        Some(self.transmit(now, index, copies + 1))
    }

    /// Whether the outcome of a transmission is open, and its packet is not given up after a time.
    fn may_be_copied(&self, sent: &Transmission) -> bool {
        let index = self.index(sent.seq);
        index.is_some_and(|index| !self.packets[index].is_bounded())
            && self.is_outstanding(sent.seq, sent.serial)
    }

    /// A packet in flight is lost: it enters the retransmission list.
    pub(crate) fn lose(&mut self, index: usize) {
        let sent = &mut self.packets[index];
        if sent.delivery == Delivery::Outstanding {
            sent.delivery = Delivery::Lost;
            self.outstanding -= 1;
            self.missing += 1;
            self.lost.push_back(self.first + index as u32);
        }
    }

    /// All packets in flight are lost.
    pub(crate) fn lose_outstanding(&mut self) {
        self.log.clear();
        (0..self.packets.len()).for_each(|index| self.lose(index));
    }

    /// A packet has arrived; returns what was known of it before.
    pub(crate) fn arrive(&mut self, index: usize) -> Delivery {
        let sent = &mut self.packets[index];
        let before = core::mem::replace(&mut sent.delivery, Delivery::Arrived);
        self.arrived += u64::from(before != Delivery::Arrived);
        self.outstanding -= u32::from(before == Delivery::Outstanding);
        self.missing -= u32::from(before == Delivery::Lost);
        before
    }

    /// Drops the first packets of the pool, all of which have arrived.
    pub(crate) fn drop_first(&mut self, count: usize) {
        let dropped = self.packets.drain(..count).filter_map(|sent| sent.packet);
        self.bytes -= dropped.map(|packet| packet.bytes().len()).sum::<usize>();
        self.first += count as u32;
    }

    /// The distance from `before` to `seq`, if `before` is not acknowledged cumulatively; else 0.
    fn after(&self, seq: SeqNumber, before: Option<SeqNumber>) -> u16 {
        let before = before.filter(|before| *before >= self.first && *before < seq);
        before.map_or(0, |before| u16::try_from(seq.offset_from(before)).unwrap_or(0))
    }

    /// Notes a transmission of a packet that is not in flight, or is its `copies`-th copy.
    fn transmit(&mut self, now: Instant, index: usize, copies: u32) -> Numbered {
        let seq = self.first + index as u32;
        let sent = &mut self.packets[index];
        self.serial += 1;
        self.outstanding += 1;
        self.missing -= 1;
        sent.delivery = Delivery::Outstanding;
        sent.serial = self.serial;
        sent.transmissions += 1;
        if self.log.len() == MAX_LOG {
            self.log.pop_front();
        }
        self.log.push_back(Transmission {
            serial: self.serial,
            seq,
            at: now,
            copies,
            has_arrived: false,
        });
        Numbered {
            serial: self.serial,
            seq,
            after: sent.after,
            packet: sent.packet.clone(),
            transmissions: sent.transmissions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use bytes::Bytes;

    #[test]
    fn a_peer_that_says_nothing_costs_no_more_than_the_log() {
        let packet = Packet::truncated(LinkType::Ip, Bytes::new(), 100);
        let mut pool = Pool::new();
        pool.send(Instant::ZERO, Queued::new(packet, Class::Reliable, 0), Order::Flow);
        for _ in 0..MAX_LOG + 10 {
            pool.resend(Instant::ZERO, 0);
        }
        assert_eq!((pool.log.len(), pool.outstanding()), (MAX_LOG, 1));
        assert!(pool.is_outstanding(SeqNumber(0), pool.serial()));
    }

    #[test]
    fn a_packet_waits_for_the_last_one_of_its_flow_that_others_wait_for() {
        let mut pool = Pool::new();
        let mut send = |is_waited_for| {
            let packet = Packet::truncated(LinkType::Ip, Bytes::new(), 100);
            let queued = Queued::new(packet, Class::Bounded(Duration::from_millis(50)), 0);
            pool.send(Instant::ZERO, Queued { is_waited_for, ..queued }, Order::Flow).after
        };
        assert_eq!([true, true, false, false, true].map(&mut send), [0, 1, 1, 2, 3]);
    }
}
