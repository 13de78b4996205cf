//! `packet_check_module`: what arrives from the air is checked, buffered and released in order, and
//! answered by CACKs and EACKs [lack §3.3 S1-20 S1-21 S1-22 S1-23].

use super::frame::{Ack, COVERED};
use super::settings::Settings;
use crate::agents::arq::{Due, LinkEvent, MAX_WINDOW, Resequencer};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;
use core::time::Duration;

/// The most local ACKs that wait at a time. Each names [`COVERED`] transmissions, half of them for
/// the second time, since one may be lost.
const MAX_REPORTS: usize = 16;

/// The receive window, and the local ACKs that are due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PacketCheck {
    /// The packet buffer, with `p_number`.
    pub(super) buffer: Resequencer,
    /// The highest serial number of which this end knows, and when it came.
    highest: SeqNumber,
    highest_at: Instant,
    /// Bit `i`: transmission `highest - i` arrived correctly, or arrived damaged.
    correct: u32,
    damaged: u32,
    /// Packets since the last local ACK.
    unacknowledged: u32,
    ack_due: Due,
    /// The highest serial number that a local ACK has named, or will.
    told: SeqNumber,
    /// Local ACKs of what lies further below than one of now could tell, at most [`MAX_REPORTS`],
    /// with the time of the highest serial number that each names.
    reports: VecDeque<(Instant, Ack)>,
}

impl PacketCheck {
    /// An empty packet buffer.
    pub(super) fn new(buffer: Resequencer) -> Self {
        Self {
            buffer,
            highest: SeqNumber(0),
            highest_at: Instant::ZERO,
            correct: 0,
            damaged: 0,
            unacknowledged: 0,
            ack_due: Due::Never,
            told: SeqNumber(0),
            reports: VecDeque::new(),
        }
    }

    /// Begins a new stream with a new run of the other end.
    pub(super) fn restart(&mut self) {
        let mut buffer = core::mem::replace(&mut self.buffer, Resequencer::new(0, 0, 0));
        buffer.restart();
        *self = Self::new(buffer);
    }

    /// Takes a packet that arrived correctly; `None` if its sender has given it up.
    pub(super) fn packet(
        &mut self,
        now: Instant,
        (serial, seq, after): (SeqNumber, SeqNumber, u16),
        packet: Option<Packet>,
        settings: &Settings,
    ) -> Result<(), LinkEvent> {
        self.note(now, serial, settings);
        let result = self.buffer.reliable(seq, after, packet);
        match result {
            // There is no room: neither CACK nor EACK, and the sender's timeout repeats it.
            Err(LinkEvent::BeyondWindow(_)) => return result.map(|_| ()),
            // The CACK was lost [S1-22].
            Err(_) => self.want_ack(),
            Ok(_) => {}
        }
        self.correct |= self.bit(serial);
        self.unacknowledged += 1;
        if self.unacknowledged >= settings.ack_every {
            self.want_ack();
        } else {
            self.ack_due.no_later_than(now + settings.ack_delay);
        }
        result.map(|_| ())
    }

    /// Takes a packet that is sent once.
    pub(super) fn once(
        &mut self,
        now: Instant,
        (serial, seq, after): (SeqNumber, SeqNumber, u16),
        packet: Packet,
        settings: &Settings,
    ) -> Result<(), LinkEvent> {
        self.note(now, serial, settings);
        self.correct |= self.bit(serial);
        self.buffer.unreliable(seq, after, packet)
    }

    /// A frame with this serial number arrived damaged: it is dropped, and an EACK is due [S1-20].
    pub(super) fn damaged(&mut self, now: Instant, serial: SeqNumber, settings: &Settings) {
        self.note(now, serial, settings);
        let bit = self.bit(serial) & !self.correct;
        self.damaged |= bit;
        if bit != 0 {
            self.want_ack();
        }
    }

    /// Notes a serial number. A gap shows a loss, of a retransmission too.
    fn note(&mut self, now: Instant, serial: SeqNumber, settings: &Settings) {
        let gap_eack = settings.gap_eack;
        let Ok(ahead @ 1..) = u32::try_from(serial.offset_from(self.highest)) else { return };
        if self.must_tell(serial, settings.ack_covers) {
            self.keep_report(settings);
        }
        self.highest = serial;
        self.highest_at = now;
        self.correct = self.correct.checked_shl(ahead).unwrap_or(0);
        self.damaged = self.damaged.checked_shl(ahead).unwrap_or(0);
        if gap_eack > 0 && self.new_gaps(gap_eack, ahead) != 0 {
            self.want_ack();
        }
    }

    /// Whether a local ACK sent after this transmission could be too late for one before it: half
    /// of what it covers is told for the second time then.
    fn must_tell(&self, serial: SeqNumber, covers: u32) -> bool {
        let is_told = self.highest <= self.told;
        serial.offset_from(self.told) > covers as i32 / 2 && !(covers == 1 && is_told)
    }

    /// Keeps a local ACK before transmissions leave its range: a runner may hand over many frames
    /// before it asks for one.
    fn keep_report(&mut self, settings: &Settings) {
        if self.reports.len() == MAX_REPORTS {
            self.reports.pop_front();
        }
        let ack = self.present(settings);
        self.reports.push_back((self.highest_at, ack));
        self.told = self.highest;
        self.want_ack();
    }

    /// The transmissions that count as missing with this step of so many serial numbers.
    fn new_gaps(&self, gap_eack: u32, ahead: u32) -> u32 {
        self.gaps(gap_eack) & !u32::MAX.checked_shl(gap_eack.saturating_add(ahead)).unwrap_or(0)
    }

    /// The transmissions after which at least `gap_eack` others were sent, and that have not
    /// arrived.
    fn gaps(&self, gap_eack: u32) -> u32 {
        let sent = self.highest.0.min(COVERED);
        let all = u32::MAX.checked_shr(COVERED - sent).unwrap_or(0);
        all & !self.correct & u32::MAX.checked_shl(gap_eack).unwrap_or(0)
    }

    fn bit(&self, serial: SeqNumber) -> u32 {
        let behind = u32::try_from(self.highest.offset_from(serial)).unwrap_or(COVERED);
        1u32.checked_shl(behind).unwrap_or(0)
    }

    /// Makes a local ACK due at once.
    pub(super) fn want_ack(&mut self) {
        self.ack_due = Due::Now;
    }

    /// When a local ACK is due, even without a packet to travel with.
    pub(super) fn ack_due(&self) -> Due {
        self.ack_due
    }

    /// Makes a local ACK whose timer has expired due at once.
    pub(super) fn expire(&mut self, now: Instant) {
        self.ack_due.expire(now);
    }

    /// The local ACK to be sent now.
    pub(super) fn ack(&mut self, now: Instant, settings: &Settings) -> Ack {
        if let Some((at, report)) = self.reports.pop_front() {
            return Ack { delay: now - at, ..report };
        }
        self.unacknowledged = 0;
        self.ack_due = Due::Never;
        self.told = self.highest;
        Ack { delay: now - self.highest_at, ..self.present(settings) }
    }

    /// A local ACK of what has arrived, without its delay. One that covers fewer transmissions than
    /// it could acknowledges nothing below them either [S1-03].
    fn present(&self, settings: &Settings) -> Ack {
        let Settings { gap_eack, ack_covers, .. } = *settings;
        let gaps = if gap_eack > 0 { self.gaps(gap_eack) } else { 0 };
        let covered = u32::MAX.checked_shr(COVERED - ack_covers).unwrap_or(0);
        let below = if ack_covers < COVERED { MAX_WINDOW } else { 0 };
        Ack {
            next: SeqNumber(self.buffer.next().0.wrapping_sub(below)),
            serial: self.highest,
            delay: Duration::ZERO,
            correct: self.correct & covered,
            erroneous: ((self.damaged & !self.correct) | gaps) & covered,
        }
    }
}
