//! The sending half: the processing of link ACKs, and what they show to be lost
//! [tulip99 §V.B S2-04].

use super::frame::Ack;
use super::redundancy::Redundancy;
use super::reordering::Reordering;
use crate::agents::arq::{Delivery, LinkEvent, Numbered, Pool, Queued, Transmission};
use crate::rlc;
use crate::rtt::RoundTrip;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

/// The pool of one end, and what link ACKs have told of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sender {
    pub(super) pool: Pool,
    pub(super) redundancy: Redundancy,
    /// The bit vector of the last link ACK, and the sequence number of its first bit.
    beyond: (SeqNumber, Bytes),
    /// Transmissions that count as lost, and whose arrival a report may still show.
    doubtful: Vec<Transmission>,
    /// The highest serial number that a link ACK reported.
    acked_serial: SeqNumber,
    /// How many later transmissions must be acknowledged before one counts as lost.
    reordering: Reordering,
    /// The number of marked frames that was reported last.
    marks: u16,
    /// A transmission that left a round trip and four deviations before an acknowledged one is
    /// lost in any case, since few others may follow it: the round trip of the oldest
    /// transmissions of which link ACKs were the first to tell, since that of a frame that has
    /// overtaken others says nothing of those.
    round_trip: Option<RoundTrip>,
    /// The serial number up to which it is decided what has arrived.
    settled: SeqNumber,
}

/// The new information of a link ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckSummary {
    /// The round trip of the frame with the highest serial number, without the receiver's delay.
    pub(super) round_trip: Option<Duration>,
    /// Whether the link ACK reports a serial number above all earlier ones.
    pub(super) is_fresh: bool,
    /// Frames that were taken for lost, and have arrived after all.
    pub(super) late: u32,
}

impl Sender {
    /// A sender before its first packet.
    pub(super) fn new() -> Self {
        Self {
            pool: Pool::new(),
            redundancy: Redundancy::default(),
            beyond: (SeqNumber(0), Bytes::new()),
            doubtful: Vec::new(),
            acked_serial: SeqNumber(0),
            reordering: Reordering::default(),
            marks: 0,
            round_trip: None,
            settled: SeqNumber(0),
        }
    }

    /// Begins a new stream; returns the packets that were not acknowledged cumulatively, which must
    /// be sent in the new stream.
    pub(super) fn restart(&mut self) -> impl DoubleEndedIterator<Item = Queued> + use<> {
        let packets = self.pool.restart();
        let pool = core::mem::replace(&mut self.pool, Pool::new());
        let mut redundancy = core::mem::take(&mut self.redundancy);
        redundancy.restart();
        *self = Self { pool, redundancy, ..Self::new() };
        packets
    }

    /// The highest serial number that a link ACK reported.
    pub(super) fn acked_serial(&self) -> SeqNumber {
        self.acked_serial
    }

    /// The serial number up to which it is decided what has arrived.
    pub(super) fn settled(&self) -> SeqNumber {
        self.settled
    }

    /// The number of marked frames of which a link ACK is the first to tell.
    pub(super) fn take_marks(&mut self, ack: &Ack) -> u16 {
        let marks = ack.marks.unwrap_or(self.marks);
        let new = marks.wrapping_sub(self.marks);
        // A link ACK that was overtaken tells of fewer.
        if new > u16::MAX / 2 {
            return 0;
        }
        self.marks = marks;
        new
    }

    /// Whether the retransmission list has a packet to send.
    pub(super) fn has_lost(&mut self) -> bool {
        self.next_lost().is_some()
    }

    /// The place of the next packet of the retransmission list.
    fn next_lost(&mut self) -> Option<usize> {
        while let Some(seq) = self.pool.next_lost() {
            let index = self.pool.index(seq)?;
            if !self.has_arrived(seq) {
                return Some(index);
            }
            self.pool.arrive(index);
        }
        None
    }

    /// Retransmits the next packet of the retransmission list, if there is one that has been lost
    /// for so long, or that repair frames do not reach any more; the event says that the packet was
    /// given up with this call.
    pub(super) fn resend_lost(
        &mut self,
        now: Instant,
        patience: Duration,
    ) -> Option<(Numbered, Option<LinkEvent>)> {
        let index = self.next_lost()?;
        let is_beyond = self.pool.span() as usize - index > usize::from(rlc::MAX_WINDOW);
        let is_due = is_beyond || now.since(self.pool.packet(index).lost_at) >= patience;
        is_due.then(|| self.pool.resend(now, index))
    }

    /// Retransmits the oldest packet in flight.
    pub(super) fn resend_oldest(&mut self, now: Instant) -> Option<(Numbered, Option<LinkEvent>)> {
        let first = self.pool.first();
        let index = (0..self.pool.span() as usize).find(|&index| {
            let is_outstanding = self.pool.packet(index).delivery == Delivery::Outstanding;
            is_outstanding && !self.has_arrived(first + index as u32)
        })?;
        Some(self.pool.resend(now, index))
    }

    /// Processes a link ACK.
    ///
    /// Every packet that the link ACK does not acknowledge, and whose last transmission has a
    /// serial number no higher than the one reported, enters the retransmission list. This holds
    /// for lost retransmissions too [tulip99 §V.B S2-04].
    ///
    /// Of losses those count for repair frames for which nothing else answers: all if the path
    /// `is_clear`, and none where the queue of another may have dropped them.
    ///
    /// # Errors
    /// The link ACK acknowledges packets that were never sent.
    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        ack: &Ack,
        is_clear: bool,
    ) -> Result<AckSummary, LinkEvent> {
        let passed = ack.next.offset_from(self.pool.first());
        if passed > self.pool.span() as i32 || ack.highest_serial > self.pool.serial() {
            return Err(LinkEvent::BadAck);
        }
        let Ok(passed) = usize::try_from(passed) else {
            // Overtaken by a later link ACK.
            return Ok(AckSummary::default());
        };
        let is_fresh = ack.highest_serial > self.acked_serial;
        let round_trip = self.round_trip(now, ack).filter(|_| is_fresh);
        let late = self.take_report(now, ack);
        self.acked_serial = self.acked_serial.max(ack.highest_serial);
        self.decide();
        // By themselves, or recovered from others.
        (0..passed).for_each(|index| _ = self.pool.arrive(index));
        self.pool.drop_first(passed);
        self.beyond = match ack.covered {
            None => (ack.next + 1, ack.vector.clone()),
            Some(_) => (ack.next, Bytes::new()),
        };
        self.settle(now, ack, is_clear);
        self.redundancy.acknowledge(ack, (self.settled, is_clear), || self.pool.missing_packets());
        Ok(AckSummary { round_trip, is_fresh, late })
    }

    /// Takes what a report shows to have arrived, and by how many others it was overtaken. The
    /// number of those that were taken for lost.
    fn take_report(&mut self, now: Instant, ack: &Ack) -> u32 {
        let is_told = |sent: &&mut Transmission| {
            !sent.has_arrived && ack.has_arrived(sent.serial) == Some(true)
        };
        let (mut oldest, mut arrived): (Option<Instant>, Vec<SeqNumber>) = (None, Vec::new());
        let late = self.doubtful.iter_mut().filter(is_told).count() as u32;
        let log = self.pool.log_mut();
        let known = log.iter_mut().take_while(|sent| sent.serial <= ack.highest_serial);
        for sent in self.doubtful.iter_mut().chain(known).filter(is_told) {
            sent.has_arrived = true;
            if sent.serial <= self.acked_serial {
                self.reordering.note(self.acked_serial.offset_from(sent.serial) as u32);
            }
            oldest = Some(oldest.map_or(sent.at, |at| at.min(sent.at)));
            arrived.push(sent.seq);
        }
        self.doubtful.retain(|sent| ack.has_arrived(sent.serial) == Some(false));
        arrived.into_iter().for_each(|seq| self.arrive(seq));
        if let Some(sample) = oldest.map(|at| now.since(at)) {
            self.round_trip.get_or_insert(RoundTrip::first(sample)).sample(sample);
        }
        late
    }

    /// Whether the last bit vector acknowledges a packet of the window.
    fn has_arrived(&self, seq: SeqNumber) -> bool {
        let (first, vector) = &self.beyond;
        let Ok(bit) = usize::try_from(seq.offset_from(*first)) else { return false };
        vector.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }

    fn arrive(&mut self, seq: SeqNumber) {
        if let Some(index) = self.pool.index(seq) {
            self.pool.arrive(index);
        }
    }

    /// Moves `settled` as far as the acknowledgment of a transmission allows.
    fn decide(&mut self) {
        self.reordering.age(self.pool.serial());
        let by_number = self.acked_serial - self.reordering.window();
        let newest = self.pool.transmission(self.acked_serial).map(|sent| sent.at);
        let round_trip = self.round_trip.as_ref().map_or(Duration::MAX, RoundTrip::bound);
        let old = |sent: &&Transmission| newest.is_some_and(|at| at.since(sent.at) > round_trip);
        let by_time = self.pool.log().iter().take_while(old).last().map(|sent| sent.serial);
        self.settled = self.settled.max(by_number).max(by_time.unwrap_or(by_number));
    }

    /// Of a transmission that is lost none is known: the other end has heard of its number by a
    /// control frame, which left later.
    fn round_trip(&self, now: Instant, ack: &Ack) -> Option<Duration> {
        if ack.has_arrived(ack.highest_serial) == Some(false) {
            return None;
        }
        let sent = self.pool.transmission(ack.highest_serial)?;
        (now - sent.at).checked_sub(ack.delay)
    }

    /// Decides for each transmission up to the reported serial number: arrived or lost.
    fn settle(&mut self, now: Instant, ack: &Ack, is_clear: bool) {
        while self.pool.log().front().is_some_and(|sent| sent.serial <= self.settled) {
            let Some(sent) = self.pool.pop_log() else { return };
            if let Some(has_arrived) = ack.has_arrived(sent.serial).filter(|_| is_clear) {
                self.redundancy.count(has_arrived);
            }
            let Some(index) = self.pool.index(sent.seq) else { continue };
            if self.has_arrived(sent.seq) {
                self.pool.arrive(index);
            } else if self.pool.is_outstanding(sent.seq, sent.serial) {
                self.pool.lose(index);
                self.pool.packet_mut(index).lost_at = now;
                if ack.has_arrived(sent.serial).is_some() {
                    self.doubtful.push(sent);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::redundancy::InFlight;
    use super::*;
    use crate::agents::arq::{Class, Order};
    use crate::packet::{LinkType, Packet};

    /// A sender of ten packets, with the serial numbers from 1 on.
    fn sender() -> Sender {
        let mut sender = Sender::new();
        send(&mut sender, 10);
        sender
    }

    fn send(sender: &mut Sender, packets: u16) {
        for _ in 0..packets {
            let packet = Packet::truncated(LinkType::Ip, Bytes::new(), 100);
            sender.pool.send(Instant::ZERO, Queued::new(packet, Class::Reliable, 0), Order::Flow);
        }
    }

    /// A report that packets below `next` are there and of the first eight transmissions all have
    /// arrived but these.
    fn report(next: u32, missing: &[u32]) -> Ack {
        let vector = missing.iter().fold(0u8, |vector, serial| vector | 1 << (8 - serial));
        Ack {
            next: SeqNumber(next),
            highest_serial: SeqNumber(8),
            delay: Duration::ZERO,
            covered: Some(8),
            marks: None,
            clock: None,
            vector: Bytes::copy_from_slice(&[vector]),
        }
    }

    /// A report that the first two packets are there.
    fn first_two() -> Ack {
        Ack { highest_serial: SeqNumber(2), covered: Some(2), ..report(2, &[]) }
    }

    #[test]
    fn what_a_queue_may_have_dropped_asks_for_no_repair_frames() {
        let expected = |is_clear| {
            let mut sender = sender();
            let losses = report(8, &[2, 3, 5, 7]);
            sender.acknowledge(Instant::from_millis(50), &losses, is_clear).expect("it was sent");
            sender.redundancy.expected(InFlight { first: SeqNumber(0), open: 100, missing: 0 })
        };
        let before =
            Redundancy::default().expected(InFlight { first: SeqNumber(0), open: 100, missing: 0 });
        assert!(expected(true) > 3.0 * before);
        assert_eq!(expected(false).to_bits(), before.to_bits());
    }

    #[test]
    fn what_repair_frames_do_not_reach_does_not_wait_for_them() {
        let patience = Duration::from_secs(1);
        let mut sender = sender();
        sender.pool.lose(0);
        send(&mut sender, rlc::MAX_WINDOW - 10);
        assert!(sender.resend_lost(Instant::ZERO, patience).is_none());
        send(&mut sender, 1);
        assert!(sender.resend_lost(Instant::ZERO, patience).is_some());
    }

    #[test]
    fn the_round_trip_of_what_overtook_others_does_not_make_them_lost() {
        // Its packets leave 5 ms apart.
        let missing_after = |times: [u64; 2]| {
            let mut sender = Sender::new();
            for number in 0..10 {
                let packet = Packet::truncated(LinkType::Ip, Bytes::new(), 100);
                let packet = Queued::new(packet, Class::Reliable, 0);
                sender.pool.send(Instant::from_millis(5 * number), packet, Order::Flow);
            }
            sender.reordering.note(7);
            for (now, ack) in times.into_iter().zip([first_two(), report(2, &[3, 4, 5, 6, 7])]) {
                let now = Instant::from_millis(now);
                sender.acknowledge(now, &ack, true).expect("it was sent");
            }
            sender.pool.missing()
        };
        // The second one took 40 ms, the eighth 6 ms: the third may still come.
        assert_eq!(missing_after([45, 41 + 5]), 0);
        // All take 8 ms at most: what left 25 ms before is lost.
        assert!(missing_after([8, 38]) > 0);
    }

    #[test]
    fn a_packet_that_was_recovered_from_others_was_not_overtaken() {
        let acknowledge = |reports: [Ack; 2]| {
            let mut sender = sender();
            for ack in reports {
                sender.acknowledge(Instant::from_millis(50), &ack, true).expect("it was sent");
            }
            (sender.pool.missing(), sender.reordering.window())
        };
        assert_eq!(acknowledge([report(2, &[3]), report(2, &[3])]), (1, 0));
        assert_eq!(acknowledge([report(2, &[3]), report(8, &[3])]), (0, 0), "recovered");
        assert_eq!(acknowledge([report(2, &[3]), report(8, &[])]), (0, 6), "overtaken");
    }
}
