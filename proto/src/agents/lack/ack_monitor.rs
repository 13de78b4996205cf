//! `ack_monitor_module`: CACKs, EACKs and timeouts decide what becomes of the packets in the pool
//! [lack §3.2 S1-13 S1-14 S1-15].

use super::frame::{Ack, COVERED};
use crate::agents::arq::{LinkEvent, Numbered, Pool, Queued};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use core::time::Duration;

/// The transmissions for which a late CACK is still understood.
const REMEMBERED: u32 = 4_096;

/// The pool of one end, and what local ACKs have told of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AckMonitor {
    pub(super) pool: Pool,
    /// The highest serial number that a local ACK named, and its CACKs and EACKs.
    heard: SeqNumber,
    correct: u32,
    erroneous: u32,
    /// The serial number up to which no local ACK is waited for any more, and when it last moved.
    told: SeqNumber,
    told_at: Instant,
    /// Transmissions of packets that are sent once which local ACKs showed to have arrived.
    once_arrived: u64,
    /// The serial number up to which no transmission has a timer.
    timed: SeqNumber,
    /// Whether the other end sends EACKs for gaps: then one transmission shows what became of all
    /// before it, and a timeout retransmits the oldest packet alone, as in RFC 6298 §5.4.
    has_gap_eacks: bool,
    /// When such a timeout last was.
    timed_out_at: Instant,
}

/// The new information of a local ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckSummary {
    /// The round trip of the transmission that it names, without the receiver's delay.
    pub(super) round_trip: Option<Duration>,
    /// Whether it names a transmission after all that were named before.
    pub(super) is_fresh: bool,
    /// The number of transmissions that its EACKs showed to be lost.
    pub(super) eacks: u32,
}

impl AckMonitor {
    /// The state before the first packet.
    pub(super) fn new(has_gap_eacks: bool) -> Self {
        let none = SeqNumber(0);
        Self {
            pool: Pool::new(),
            heard: none,
            correct: 0,
            erroneous: 0,
            told: none,
            told_at: Instant::ZERO,
            once_arrived: 0,
            timed: none,
            has_gap_eacks,
            timed_out_at: Instant::ZERO,
        }
    }

    /// Begins a new stream; returns the packets that must be sent in it.
    pub(super) fn restart(&mut self) -> impl DoubleEndedIterator<Item = Queued> + use<> {
        let packets = self.pool.restart();
        let pool = core::mem::replace(&mut self.pool, Pool::new());
        let once_arrived = self.once_arrived;
        *self = Self { pool, once_arrived, ..Self::new(self.has_gap_eacks) };
        packets
    }

    /// The highest serial number that a local ACK named.
    pub(super) fn heard(&self) -> SeqNumber {
        self.heard
    }

    /// The number of transmissions, of packets that are sent once too, for which a local ACK is
    /// waited.
    pub(super) fn untold(&self) -> u32 {
        u32::try_from(self.pool.serial().offset_from(self.told)).unwrap_or(0)
    }

    /// When it will have been waited for too long for a local ACK of any of them.
    pub(super) fn untold_timer(&self, wait: Duration) -> Instant {
        self.told_at + wait
    }

    /// Nothing is waited for any more once that time has come.
    pub(super) fn expire_untold(&mut self, now: Instant, wait: Duration) {
        if self.untold_timer(wait) <= now {
            (self.told, self.told_at) = (self.pool.serial(), now);
        }
    }

    /// Packets that have arrived, in all streams, with those that are sent once.
    pub(super) fn arrived(&self) -> u64 {
        self.pool.arrived() + self.once_arrived
    }

    /// Processes a local ACK.
    ///
    /// # Errors
    /// It acknowledges what was never sent.
    pub(super) fn acknowledge(&mut self, now: Instant, ack: &Ack) -> Result<AckSummary, LinkEvent> {
        let passed = ack.next.offset_from(self.pool.first());
        let is_known = passed <= self.pool.span() as i32 && ack.serial <= self.pool.serial();
        // Numbers are compared as in RFC 1982: one that is too far below may seem ahead.
        if !is_known || self.pool.serial().offset_from(ack.serial) < 0 {
            return Err(LinkEvent::BadAck);
        }
        let is_fresh = ack.serial > self.heard;
        let mut summary = AckSummary { is_fresh, ..AckSummary::default() };
        if is_fresh && (ack.correct | ack.erroneous) & 1 == 1 {
            let sent = self.pool.transmission(ack.serial);
            summary.round_trip = sent.and_then(|sent| (now - sent.at).checked_sub(ack.delay));
        }
        let (correct, erroneous) = self.unheard(ack);
        for bit in bits(correct) {
            let is_known = self.arrive(ack.serial - bit);
            // A late local ACK repeats what others have told.
            self.once_arrived += u64::from(is_fresh && !is_known);
        }
        for index in 0..usize::try_from(passed).unwrap_or(0) {
            self.pool.arrive(index);
        }
        self.pool.drop_first(usize::try_from(passed).unwrap_or(0));
        // A local ACK of one packet alone says nothing of those below.
        while self.pool.span() > 0 && self.pool.packet(0).has_arrived() {
            self.pool.drop_first(1);
        }
        for bit in bits(erroneous & !ack.correct) {
            summary.eacks += u32::from(self.lose(ack.serial - bit, true));
        }
        if is_fresh {
            (self.heard, self.correct, self.erroneous) = (ack.serial, ack.correct, ack.erroneous);
            (self.told, self.told_at) = (self.told.max(ack.serial), now);
        }
        self.settle();
        Ok(summary)
    }

    /// The bits of a local ACK that no earlier one had.
    fn unheard(&self, ack: &Ack) -> (u32, u32) {
        let Ok(shift) = u32::try_from(ack.serial.offset_from(self.heard)) else {
            return (ack.correct, ack.erroneous);
        };
        let known = |bits: u32| bits.checked_shl(shift).unwrap_or(0);
        (ack.correct & !known(self.correct), ack.erroneous & !known(self.erroneous))
    }

    /// A transmission arrived: its packet leaves the pool as soon as all before it have. False if
    /// the log does not have it, as of what is sent once.
    fn arrive(&mut self, serial: SeqNumber) -> bool {
        let Some(seq) = self.pool.transmission(serial).map(|sent| sent.seq) else { return false };
        if let Some(index) = self.pool.index(seq) {
            self.pool.arrive(index);
        }
        true
    }

    /// A transmission is lost; false if a later one of its packet is on its way, or it has arrived.
    fn lose(&mut self, serial: SeqNumber, was_missing: bool) -> bool {
        let Some(seq) = self.pool.transmission(serial).map(|sent| sent.seq) else { return false };
        let Some(index) = self.pool.index(seq) else { return false };
        let is_last = self.pool.is_outstanding(seq, serial);
        if is_last {
            self.pool.packet_mut(index).was_missing = was_missing;
            self.pool.lose(index);
        }
        is_last
    }

    /// The local timeouts: every transmission for which no local ACK has come for `wait` is lost.
    /// True if there is one.
    pub(super) fn expire(&mut self, now: Instant, wait: Duration) -> bool {
        let mut is_any = false;
        while let Some(serial) = self.timer(wait).filter(|(at, _)| *at <= now).map(|(_, s)| s) {
            let is_lost = self.lose(serial, false);
            if is_lost && self.has_gap_eacks {
                self.timed_out_at = now;
            }
            is_any |= is_lost;
            self.timed = serial;
            self.settle();
        }
        is_any
    }

    /// When the next local timeout is, and of which transmission.
    pub(super) fn timer(&self, wait: Duration) -> Option<(Instant, SeqNumber)> {
        let log = self.pool.log();
        let place = if log.front()?.serial > self.timed {
            0
        } else {
            log.partition_point(|sent| sent.serial <= self.timed)
        };
        let sent = log.get(place)?;
        // Of what is further below, no local ACK tells any more.
        let is_told = self.has_gap_eacks && sent.serial + COVERED > self.heard;
        let since = if is_told { sent.at.max(self.timed_out_at) } else { sent.at };
        Some((since + wait, sent.serial))
    }

    /// Moves on to the first transmission that needs a timer, and forgets those of which nothing
    /// more is expected.
    fn settle(&mut self) {
        let wait = Duration::ZERO;
        while let Some((_, serial)) = self.timer(wait) {
            let seq = self.pool.transmission(serial).map_or(SeqNumber(0), |sent| sent.seq);
            if self.pool.is_outstanding(seq, serial) {
                break;
            }
            self.timed = serial;
        }
        while let Some(front) = self.pool.log().front().filter(|sent| sent.serial <= self.timed) {
            let index = self.pool.index(front.seq);
            let is_open = index.is_some_and(|index| !self.pool.packet(index).has_arrived());
            let is_recent = front.serial + COVERED > self.heard
                && front.serial + REMEMBERED > self.pool.serial();
            if is_open && is_recent {
                break;
            }
            self.pool.pop_log();
        }
    }

    /// Retransmits the next packet that was lost. The event says that it was given up with this
    /// call; the last result whether a timeout showed the loss.
    pub(super) fn resend_lost(
        &mut self,
        now: Instant,
    ) -> Option<(Numbered, Option<LinkEvent>, bool)> {
        let seq = self.pool.next_lost()?;
        let index = self.pool.index(seq)?;
        let is_overdue = !self.pool.packet(index).was_missing;
        let (numbered, event) = self.pool.resend(now, index);
        Some((numbered, event, is_overdue))
    }

    /// Replaces the copy of a packet that the host has sent again, if it is still in the pool, and
    /// retransmits it if `resend`. False if it is not there.
    pub(super) fn replace(&mut self, identity: u64, packet: &Packet, resend: bool) -> bool {
        let Some(index) = self.pool.find(identity) else { return false };
        self.pool.replace(index, packet.clone());
        if resend {
            self.pool.packet_mut(index).was_missing = true;
            self.pool.lose(index);
        }
        self.settle();
        true
    }
}

/// The number of each bit that is set.
fn bits(mut word: u32) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}
