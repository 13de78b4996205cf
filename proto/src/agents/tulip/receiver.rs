//! The receiving half: what has arrived, and the link ACKs that report its complete state.

use super::frame::Ack;
use super::settings::Settings;
use crate::agents::arq::{Due, LinkEvent, Resequencer};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use alloc::vec;

/// The receive window of one end, and when a link ACK of it is due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Receiver {
    pub(super) window: Resequencer,
    /// The highest serial number received, and its arrival time.
    highest_serial: SeqNumber,
    highest_serial_at: Instant,
    /// Numbered frames since the last link ACK.
    unacknowledged: u32,
    ack_due: Due,
}

impl Receiver {
    /// An empty window.
    pub(super) fn new(window: Resequencer) -> Self {
        Self {
            window,
            highest_serial: SeqNumber(0),
            highest_serial_at: Instant::ZERO,
            unacknowledged: 0,
            ack_due: Due::Never,
        }
    }

    /// Begins a new stream with a new run of the other end.
    pub(super) fn restart(&mut self) {
        let mut window = core::mem::replace(&mut self.window, Resequencer::new(0, 0));
        window.restart();
        *self = Self::new(window);
    }

    /// Notes a frame's serial number. A gap shows a loss, of a retransmission too, and causes a
    /// link ACK at once.
    pub(super) fn note_serial(&mut self, now: Instant, serial: SeqNumber, is_control: bool) {
        if serial <= self.highest_serial {
            return;
        }
        let expected = self.highest_serial + u32::from(!is_control);
        self.highest_serial = serial;
        self.highest_serial_at = now;
        if serial != expected {
            self.want_ack();
        }
    }

    /// Takes a reliable packet; `None` if its sender has given it up.
    pub(super) fn reliable(
        &mut self,
        now: Instant,
        seq: SeqNumber,
        after: u16,
        packet: Option<Packet>,
        settings: &Settings,
    ) -> Result<(), LinkEvent> {
        let result = self.window.reliable(seq, after, packet);
        // The packet leaves a gap, fills one, or is not taken: the sender must learn of it at once.
        if result != Ok(true) {
            self.want_ack();
        }
        result.map(|_| self.count(now, settings))
    }

    /// Makes a link ACK due at once.
    pub(super) fn want_ack(&mut self) {
        self.ack_due = Due::Now;
    }

    /// When a link ACK is due, even without a packet to travel with.
    pub(super) fn ack_due(&self) -> Due {
        self.ack_due
    }

    /// Makes a link ACK whose timer has expired due at once.
    pub(super) fn expire(&mut self, now: Instant) {
        self.ack_due.expire(now);
    }

    /// The link ACK to be sent now: the complete state [tulip99 §III S2-03].
    pub(super) fn ack(&mut self, now: Instant) -> Ack {
        self.unacknowledged = 0;
        self.ack_due = Due::Never;
        let mut vector = vec![0u8; self.vector_len()];
        for (index, has_arrived) in self.window.beyond().enumerate() {
            vector[index / 8] |= u8::from(has_arrived) << (index % 8);
        }
        let (next, highest_serial) = (self.window.next(), self.highest_serial);
        Ack { next, highest_serial, delay: now - self.highest_serial_at, vector: vector.into() }
    }

    /// The length of the bit vector of the next link ACK, in bytes.
    pub(super) fn vector_len(&self) -> usize {
        self.window.beyond().len().div_ceil(8)
    }

    fn count(&mut self, now: Instant, settings: &Settings) {
        self.unacknowledged += 1;
        let is_enough = self.unacknowledged >= settings.ack_every && !settings.half_duplex;
        if is_enough {
            self.want_ack();
        } else {
            self.ack_due.no_later_than(now + settings.ack_delay);
        }
    }
}
