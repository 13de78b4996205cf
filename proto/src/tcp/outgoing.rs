//! The data of the application, the peer's window and the timer: the part of a sender that is
//! independent of loss recovery.

use super::congestion::Congestion;
use super::pacing::Pacing;
use super::profile::Profile;
use super::rto::Rto;
use crate::outcome::SenderCounters;
use crate::ranges::Span;
use crate::time::Instant;

/// The least number of segments for which Linux has a send buffer (`tcp_sndbuf_expand`).
const LEAST_BUFFERED: u64 = 10;

/// Positions of the stream (see [`super::stream`]), window and timer of a sender.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    nagle: bool,
    sws_avoidance: bool,
    initial_window: u32,
    /// Bytes that the application wrote, and whether it has closed.
    written: u64,
    closed: bool,
    /// Payload bytes of a full segment.
    pub(super) mss: u64,
    /// The oldest position that is not acknowledged.
    pub(super) una: u64,
    /// The position after the highest position sent.
    pub(super) nxt: u64,
    /// The first position that the peer's window excludes, and its largest window.
    edge: u64,
    largest_window: u64,
    pub(super) congestion: Congestion,
    pub(super) rto: Rto,
    pub(super) pacing: Pacing,
    /// The expiry time of the timer: of loss recovery, or the persist timer when nothing is in
    /// flight.
    pub(super) timer: Option<Instant>,
    /// The end of the segment that last bore PSH.
    pushed: u64,
    /// Whether a closed window may be probed with one byte.
    probe: bool,
    last_sent: Instant,
    pub(super) counters: SenderCounters,
}

impl Outgoing {
    /// A sender before its first segment, the SYN.
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            nagle: profile.nagle,
            sws_avoidance: profile.sws_avoidance,
            initial_window: profile.initial_window,
            written: 0,
            closed: false,
            mss: u64::from(profile.mss),
            una: 0,
            nxt: 0,
            edge: 0,
            largest_window: 0,
            congestion: Congestion::new(profile),
            rto: Rto::new(profile.rto),
            pacing: Pacing::default(),
            timer: None,
            pushed: 0,
            probe: false,
            last_sent: Instant::ZERO,
            counters: SenderCounters::default(),
        }
    }

    /// The SYN was acknowledged: a full segment has `mss` bytes of payload.
    ///
    /// RFC 5681 §3.1: after a lost SYN the window begins at one segment.
    pub(super) fn established(&mut self, mss: u64, syn_was_lost: bool) {
        self.mss = mss;
        let segments = if syn_was_lost { 1 } else { self.initial_window };
        self.congestion.start(mss, segments);
        if syn_was_lost {
            self.rto.syn_was_lost();
        }
    }

    /// The application writes this many bytes.
    pub(super) fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// The application closes: the FIN follows the last byte.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Whether the application may no longer write.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Bytes written by the application.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that the peer acknowledged.
    pub(super) fn acked_bytes(&self) -> u64 {
        self.una.saturating_sub(1).min(self.written)
    }

    /// Whether the FIN has been sent, at least once.
    pub(super) fn fin_sent(&self) -> bool {
        self.closed && self.nxt == self.end()
    }

    /// Whether the FIN was acknowledged.
    pub(super) fn fin_acked(&self) -> bool {
        self.closed && self.una == self.end()
    }

    /// The payload of a segment; what else it takes of the stream is SYN or FIN.
    pub(super) fn payload(&self, segment: Span) -> Span {
        let start = segment.start.max(1);
        Span { start, end: segment.end.min(1 + self.written).max(start) }
    }

    /// Whether this segment bears PSH, as the last of each write does. An application that has more
    /// to write than the send buffer holds writes whenever a part of it is free, in Linux about
    /// half a window each time.
    pub(super) fn pushes(&mut self, payload: Span) -> bool {
        let half = (self.congestion.cwnd() / 2).max(LEAST_BUFFERED / 2 * self.mss);
        let is_last = payload.end == 1 + self.written;
        let ends_write = is_last || payload.end >= self.pushed + half;
        if ends_write {
            self.pushed = self.pushed.max(payload.end);
        }
        ends_write
    }

    /// The first position that the peer's window excludes.
    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    /// The peer's window now ends before this position.
    pub(super) fn set_edge(&mut self, edge: u64) {
        self.edge = edge;
        self.largest_window = self.largest_window.max(edge.saturating_sub(self.una));
    }

    /// New data of at most `room` bytes, or the FIN.
    pub(super) fn new_segment(&self, room: u64) -> Option<Span> {
        if !self.pending() {
            return None;
        }
        let (start, data_end) = (self.nxt, 1 + self.written);
        let available = data_end.saturating_sub(start);
        if available == 0 {
            return Some(Span { start, end: self.end() });
        }
        let window = self.edge.saturating_sub(start);
        let len = available.min(self.mss).min(window).min(room);
        let is_last = len == available;
        let idle = self.una == self.nxt;
        let may_leave = len == self.mss
            || is_last && (idle || !self.nagle || self.closed)
            || len == window && window > 0 && !self.sws_avoidance
            || len > 0 && 2 * len >= self.largest_window
            || self.probe;
        let end = start + len.max(u64::from(self.probe));
        let end = if end == data_end && is_last { self.end() } else { end };
        may_leave.then_some(Span { start, end })
    }

    /// At most one segment of data that was sent before.
    pub(super) fn cut(&self, sent: Span) -> Span {
        if self.payload(sent).len() > self.mss {
            return Span { start: sent.start, end: sent.start + self.mss };
        }
        sent
    }

    /// Notes that this segment is sent now. A timer that ran while nothing was in flight was the
    /// persist timer.
    pub(super) fn sent(&mut self, now: Instant, segment: Span) {
        self.counters.segments += 1;
        self.pacing.sent(now, self.payload(segment).len());
        if self.timer.is_none() || self.una == self.nxt {
            self.timer = Some(self.rto.deadline(now));
        }
        if segment.start >= self.nxt {
            self.nxt = segment.end;
        } else {
            self.counters.retransmits += 1;
        }
        self.probe = false;
        self.last_sent = now;
    }

    /// Called before data is sent while nothing is in flight: an idle time reduces the window.
    pub(super) fn restart_after_idle(&mut self, now: Instant) {
        let idle = self.una == self.nxt && self.nxt > 1 && self.pending();
        if idle && now.since(self.last_sent) > self.rto.current() {
            self.congestion.restart(self.initial_window);
            self.last_sent = now;
        }
    }

    /// No segment may be sent: if all data is acknowledged and unsent data waits, the window is
    /// closed and will be probed.
    pub(super) fn nothing_leaves(&mut self, now: Instant) {
        if self.una == self.nxt && self.pending() && self.timer.is_none() {
            self.timer = Some(self.rto.deadline(now));
        }
    }

    /// Handles the persist timer; returns whether the expired timer was the persist timer.
    pub(super) fn persist_timeout(&mut self) -> bool {
        if self.una < self.nxt {
            return false;
        }
        self.timer = None;
        self.probe = self.pending();
        true
    }

    /// Whether the peer closed its window while data is in flight. Nothing but a probe may leave
    /// then, and that no ACK comes means no loss (RFC 9293 §3.8.6.1, 4.4BSD `tcp_output`).
    pub(super) fn is_shut(&self) -> bool {
        self.una > 0 && self.edge <= self.una && self.una < self.nxt
    }

    /// The persist timer expired while data is in flight: its first byte is the probe.
    pub(super) fn probe_shut_window(&mut self) {
        self.timer = None;
        self.probe = true;
    }

    /// That probe, if it is due.
    pub(super) fn shut_window_probe(&self) -> Option<Span> {
        self.probe.then_some(Span { start: self.una, end: self.una + 1 })
    }

    /// Whether unsent data or an unsent FIN waits.
    pub(super) fn pending(&self) -> bool {
        self.nxt < self.end()
    }

    /// Bytes that the application wrote and that were never sent.
    pub(super) fn waiting(&self) -> u64 {
        (1 + self.written).saturating_sub(self.nxt)
    }

    /// The position after all data of the application, the FIN included.
    fn end(&self) -> u64 {
        1 + self.written + u64::from(self.closed)
    }
}
