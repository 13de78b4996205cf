//! The receiving half: what has arrived, and the link ACKs that report its complete state.

use super::frame::{ACK_LEN, Ack, CLOCK_LEN, COVERED_LEN, Frame, FrameKind, MARKS_LEN};
use super::report::Reports;
use super::settings::Settings;
use crate::agents::arq::fields::clock_field;
use crate::agents::arq::{Due, LinkEvent, Resequencer};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use alloc::vec;
use bytes::Bytes;
use core::time::Duration;

/// Unreliable frames after which a report is due, and the time after which it is.
const UNRELIABLE: u32 = 16;
const UNRELIABLE_DELAY: Duration = Duration::from_millis(25);

/// The receive window of one end, and when a link ACK of it is due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Receiver {
    pub(super) window: Resequencer,
    /// The highest serial number received, and its arrival time.
    highest_serial: SeqNumber,
    highest_serial_at: Instant,
    /// Which transmissions have arrived; whether the other end reads reports on them, and whether
    /// it has asked for the longest one.
    reports: Reports,
    by_serial: bool,
    is_polled: bool,
    /// Whether the other end reads the ECN field of what carries frames, and the number of marks
    /// that it must hear of, modulo 2^16.
    peer_reads_ecn: bool,
    /// Whether the other end reads repair frames, and the clock of reports.
    peer_reads_repairs: bool,
    peer_reads_clock: bool,
    marks: Option<u16>,
    /// Numbered frames since the last link ACK.
    unacknowledged: u32,
    ack_due: Due,
    /// The same of unreliable frames, whose sender only wants to know the rate of the path.
    unreported: u32,
    report_due: Due,
}

impl Receiver {
    /// An empty window.
    pub(super) fn new(window: Resequencer) -> Self {
        Self {
            window,
            highest_serial: SeqNumber(0),
            highest_serial_at: Instant::ZERO,
            reports: Reports::default(),
            by_serial: false,
            is_polled: false,
            peer_reads_ecn: false,
            peer_reads_repairs: false,
            peer_reads_clock: false,
            marks: None,
            unacknowledged: 0,
            ack_due: Due::Never,
            unreported: 0,
            report_due: Due::Never,
        }
    }

    /// Begins a new stream with a new run of the other end.
    pub(super) fn restart(&mut self) {
        let mut window = core::mem::replace(&mut self.window, Resequencer::new(0, 0, 0));
        window.restart();
        *self = Self::new(window);
    }

    /// Notes a frame's serial number. A gap shows a loss, of a retransmission too, and what was
    /// overtaken shows that it is none: both cause a link ACK at once (RFC 5681 §4.2).
    pub(super) fn note_serial(&mut self, now: Instant, serial: SeqNumber, is_control: bool) {
        if !is_control {
            self.reports.note(serial, self.highest_serial);
        }
        if serial <= self.highest_serial {
            if self.by_serial && !is_control {
                self.want_ack();
            }
            return;
        }
        if is_control {
            // The frame with this serial number is missing.
            self.reports.note_missing(serial, self.highest_serial);
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
        // Where it reads reports, serial numbers have shown the gap, and what fills it shows no
        // loss.
        if result.is_err() || (result == Ok(false) && !self.is_sparing(settings)) {
            self.want_ack();
        }
        result.map(|_| self.count(now, settings))
    }

    /// Makes a link ACK due at once.
    pub(super) fn want_ack(&mut self) {
        self.ack_due = Due::Now;
    }

    /// The other end asks for a link ACK.
    pub(super) fn poll(&mut self) {
        self.is_polled = true;
        self.want_ack();
    }

    /// Whether the other end reads reports.
    pub(super) fn is_by_serial(&self) -> bool {
        self.by_serial
    }

    /// Whether the other end reads the ECN field of what carries frames.
    pub(super) fn peer_reads_ecn(&self) -> bool {
        self.peer_reads_ecn
    }

    /// Whether the other end reads repair frames.
    pub(super) fn peer_reads_repairs(&self) -> bool {
        self.peer_reads_repairs
    }

    /// Whether a reliable packet has not arrived, and has a place.
    pub(super) fn is_missing(&self, seq: SeqNumber) -> bool {
        self.window.is_missing(seq)
    }

    /// Notes what the other end reads: reports, the ECN field of what carries frames, and, as
    /// control frames tell, repair frames and the clock of reports.
    pub(super) fn set_abilities(&mut self, frame: &Frame) {
        self.by_serial = frame.by_serial;
        self.peer_reads_ecn = frame.reads_version_2;
        if frame.kind == FrameKind::Control {
            self.peer_reads_repairs = frame.reads_repairs;
            self.peer_reads_clock = frame.reads_clock();
        }
    }

    /// A frame has arrived with "congestion experienced", and its sender answers for it.
    pub(super) fn count_mark(&mut self) {
        self.marks = Some(self.marks.unwrap_or(0).wrapping_add(1));
    }

    /// Whether link ACKs are as few as the sender's loss detection allows.
    fn is_sparing(&self, settings: &Settings) -> bool {
        self.by_serial && settings.sparse_acks
    }

    /// Whether a link ACK should travel with a packet now. One that tells of little waits for the
    /// next packet: from half of its number of packets or of its time on it travels.
    pub(super) fn is_worth_sending(&self, now: Instant, settings: &Settings) -> bool {
        match self.ack_due {
            Due::Never => self.is_sparing(settings) && self.unreported > UNRELIABLE / 2,
            Due::Now => true,
            Due::At(at) => {
                !self.is_sparing(settings)
                    || 2 * self.unacknowledged >= settings.ack_every
                    || at.since(now) <= settings.ack_delay / 2
            }
        }
    }

    /// When a link ACK is due, even without a packet to travel with.
    pub(super) fn ack_due(&self) -> Due {
        self.ack_due
    }

    /// Makes a link ACK whose timer has expired due at once.
    pub(super) fn expire(&mut self, now: Instant) {
        self.ack_due.expire(now);
        if self.report_due.expire(now) {
            self.want_ack();
        }
    }

    /// The expiry time of the timer that is needed, if one is.
    pub(super) fn ack_timer(&self) -> Option<Instant> {
        let timers = [self.ack_due.timer(), self.report_due.timer()];
        timers.into_iter().flatten().min().filter(|_| self.ack_due != Due::Now)
    }

    /// Counts an unreliable packet, of which a report tells.
    pub(super) fn count_unreliable(&mut self, now: Instant) {
        if self.by_serial {
            self.unreported += 1;
            self.report_due.no_later_than(now + UNRELIABLE_DELAY);
            if self.unreported >= UNRELIABLE {
                self.want_ack();
            }
        }
    }

    /// The link ACK to be sent now: a report, or the complete state [tulip99 §III S2-03].
    pub(super) fn ack(&mut self, now: Instant) -> Ack {
        let (next, highest_serial) = (self.window.next(), self.highest_serial);
        let delay = now - self.highest_serial_at;
        let (covered, vector) = match self.by_serial {
            true => {
                let (covered, vector) = self.reports.take(highest_serial, self.is_polled);
                (Some(covered), vector)
            }
            false => (None, self.complete_state()),
        };
        (self.unacknowledged, self.unreported) = (0, 0);
        self.is_polled = false;
        (self.ack_due, self.report_due) = (Due::Never, Due::Never);
        let marks = self.marks.filter(|_| covered.is_some());
        let clock = self.tells_clock().then(|| clock_field(now));
        Ack { next, highest_serial, delay, covered, marks, clock, vector }
    }

    /// The length of the next link ACK, and of its bit vector, in bytes.
    pub(super) fn ack_len(&self) -> (usize, usize) {
        let (fixed, vector) = match self.by_serial {
            true => {
                let vector = self.reports.vector_len(self.highest_serial, self.is_polled);
                let clock = if self.tells_clock() { CLOCK_LEN } else { 0 };
                (ACK_LEN + COVERED_LEN + self.marks.map_or(0, |_| MARKS_LEN) + clock, vector)
            }
            false => (ACK_LEN, self.window.beyond().len().div_ceil(8)),
        };
        (fixed + vector, vector)
    }

    fn tells_clock(&self) -> bool {
        self.by_serial && self.peer_reads_clock
    }

    /// The receive window from the packet after the next expected one on. With a window wider than
    /// the longest vector the other end reads reports.
    fn complete_state(&self) -> Bytes {
        let mut vector = vec![0u8; self.window.beyond().len().div_ceil(8)];
        for (index, has_arrived) in self.window.beyond().enumerate() {
            vector[index / 8] |= u8::from(has_arrived) << (index % 8);
        }
        vector.into()
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
