//! The sending half: what may leave now, and when the timer fires.
//!
//! One account serves all kinds of recovery. Bytes below `lost` that are not SACKed count as lost,
//! those of them below `rxt` as sent again. What is in flight is then `una..rxt` and `lost..nxt`,
//! less what is SACKed: RFC 6675's pipe. After a timeout all of `una..nxt` is lost; without SACK
//! that is go-back-N, and otherwise nothing is lost and the account is plain FlightSize.

use super::congestion::Congestion;
use super::profile::{Profile, Recovery};
use super::rack::Rack;
use super::rto::Rto;
use super::scoreboard::Scoreboard;
use crate::ranges::Span;
use crate::time::Instant;

/// Positions of the stream (see [`super::stream`]) and what was learned of each.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    /// Loss recovery without SACK.
    pub(super) recovery: Recovery,
    /// Whether both ends agreed on SACK.
    pub(super) sack: bool,
    pub(super) dupack_threshold: u32,
    pub(super) limited_transmit: bool,
    hold_ssthresh: bool,
    pub(super) impatient: bool,
    /// Whether to use RACK where both ends agree on SACK.
    wants_rack: bool,
    nagle: bool,
    sws_avoidance: bool,
    initial_window: u32,
    /// Bytes that the application wrote, and whether it will write no more.
    written: u64,
    closed: bool,
    /// Payload bytes of a full segment.
    pub(super) mss: u64,
    /// The oldest position that is not acknowledged.
    pub(super) una: u64,
    /// Behind the highest position sent.
    pub(super) nxt: u64,
    /// The next position to look at for a retransmission.
    pub(super) rxt: u64,
    /// What is not SACKed below is lost.
    pub(super) lost: u64,
    /// The first position that the peer's window excludes, and its largest window.
    edge: u64,
    largest_window: u64,
    pub(super) congestion: Congestion,
    pub(super) phase: Phase,
    /// `nxt` when the last loss was noticed: recovery ends there.
    pub(super) recover: u64,
    /// Duplicate ACKs in a row.
    pub(super) dup_acks: u32,
    /// The segment at `una` is to be sent again at once, whatever the window.
    pub(super) resend_head: bool,
    /// How far RFC 6675's rescue retransmission was used in this recovery.
    pub(super) rescued: u64,
    /// Partial ACKs in this recovery (RFC 6582).
    pub(super) partial_acks: u32,
    pub(super) scoreboard: Scoreboard,
    pub(super) rack: Option<Rack>,
    /// When the wait for a segment that may only be reordered is over.
    pub(super) reordering: Option<Instant>,
    pub(super) rto: Rto,
    /// When the retransmission timer fires; the persist timer when nothing is in flight.
    pub(super) timer: Option<Instant>,
    /// Whether a closed window may be probed with one byte.
    probe: bool,
    /// The end of the segment whose round trip is being measured, and when it was sent.
    pub(super) timed: Option<(u64, Instant)>,
    last_sent: Instant,
    last_timeout: Option<u64>,
    pub(super) counters: Counters,
}

/// What the sender is doing about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing: no loss is known.
    Open,
    /// Fast recovery.
    Recovery,
    /// Slow start after a timeout, or after Tahoe's fast retransmit.
    Loss,
}

/// What the sender did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) segments: u64,
    pub(super) retransmits: u64,
    pub(super) retransmitted_bytes: u64,
    pub(super) timeouts: u64,
    pub(super) fast_retransmits: u64,
    pub(super) dup_acks: u64,
}

impl Sender {
    /// A sender that has sent nothing: its first segment is the SYN.
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            recovery: profile.recovery,
            sack: false,
            dupack_threshold: profile.dupack_threshold,
            limited_transmit: profile.limited_transmit,
            hold_ssthresh: profile.hold_ssthresh,
            impatient: profile.impatient,
            wants_rack: profile.rack,
            nagle: profile.nagle,
            sws_avoidance: profile.sws_avoidance,
            initial_window: profile.initial_window,
            written: 0,
            closed: false,
            mss: u64::from(profile.mss),
            una: 0,
            nxt: 0,
            rxt: 0,
            lost: 0,
            edge: 0,
            largest_window: 0,
            congestion: Congestion::new(profile),
            phase: Phase::Open,
            recover: 0,
            dup_acks: 0,
            resend_head: false,
            rescued: 0,
            partial_acks: 0,
            scoreboard: Scoreboard::default(),
            rack: None,
            reordering: None,
            rto: Rto::new(profile.rto),
            timer: None,
            probe: false,
            timed: None,
            last_sent: Instant::ZERO,
            last_timeout: None,
            counters: Counters::default(),
        }
    }

    /// The SYN was acknowledged: a full segment has `mss` bytes of payload.
    ///
    /// RFC 5681 §3.1: after a lost SYN the window begins at one segment.
    pub(super) fn established(&mut self, mss: u64, sack: bool) {
        self.mss = mss;
        self.sack = sack;
        self.rack = (sack && self.wants_rack).then(Rack::new);
        let segments = if self.last_timeout.is_none() { self.initial_window } else { 1 };
        self.congestion.start(mss, segments);
        if self.last_timeout.is_some() {
            self.rto.syn_was_lost();
        }
        self.phase = Phase::Open;
    }

    /// The application writes this many bytes.
    pub(super) fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// The application writes no more: the FIN follows the last byte.
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

    /// Whether the FIN has been sent; it may have to be sent again.
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

    /// The first position that the peer's window excludes.
    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    /// The peer's window now ends before this position.
    pub(super) fn set_edge(&mut self, edge: u64) {
        self.edge = edge;
        self.largest_window = self.largest_window.max(edge.saturating_sub(self.una));
    }

    /// Bytes in the network, as far as is known: FlightSize, or RFC 6675's pipe.
    pub(super) fn in_flight(&self) -> u64 {
        if self.scoreboard.is_empty() && self.rack.is_none() {
            return self.rxt - self.una + (self.nxt - self.lost);
        }
        let scoreboard = &self.scoreboard;
        let lost_again = self.rack.as_ref().map_or(0, |rack| rack.lost_again(self.una, scoreboard));
        let sent = scoreboard.unsacked(self.una, self.rxt);
        (sent + scoreboard.unsacked(self.lost, self.nxt)).saturating_sub(lost_again)
    }

    /// The next segment that may leave now; it counts as sent.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Span> {
        let segment = self.next_segment(now)?;
        self.sent(now, segment);
        Some(segment)
    }

    /// The SYN is to be sent again at once: the peer's SYN arrived again.
    pub(super) fn resend_syn(&mut self) {
        self.rxt = 0;
        self.lost = self.nxt;
    }

    /// The earlier of the retransmission timer and the wait for reordered segments.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timer.into_iter().chain(self.reordering).min()
    }

    /// A timer is due.
    pub(super) fn timeout(&mut self, now: Instant) {
        if self.reordering.is_some_and(|at| at <= now) {
            self.detect_losses(now);
        }
        if self.timer.is_some_and(|at| at <= now) {
            self.retransmission_timeout(now);
        }
    }

    /// The timer expired: everything in flight is lost (RFC 6298 5.4 to 5.6, RFC 5681 §3.1), or a
    /// closed window is probed.
    fn retransmission_timeout(&mut self, now: Instant) {
        self.rto.back_off();
        self.timed = None;
        if self.una == self.nxt {
            self.timer = None;
            self.probe = self.pending();
            return;
        }
        self.timer = Some(self.rto.deadline(now));
        self.counters.timeouts += 1;
        let again = self.last_timeout == Some(self.una) || self.phase == Phase::Recovery;
        if self.una > 0 && !(again && self.hold_ssthresh) {
            self.congestion.reduce(self.in_flight().min(self.congestion.cwnd()));
        }
        self.last_timeout = Some(self.una);
        self.congestion.collapse();
        if self.scoreboard.hole(self.una, self.nxt).is_none_or(|hole| hole.start > self.una) {
            // The receiver reneged on what it had SACKed (RFC 2018 §8).
            self.scoreboard = Scoreboard::default();
        }
        if let Some(rack) = &mut self.rack {
            rack.timed_out();
        }
        self.reordering = None;
        self.phase = Phase::Loss;
        self.partial_acks = 0;
        self.recover = self.nxt;
        self.lost = self.nxt;
        self.rxt = self.una;
        self.dup_acks = 0;
        self.resend_head = false;
    }

    fn next_segment(&mut self, now: Instant) -> Option<Span> {
        if self.una == 0 {
            let due = self.nxt == 0 || self.rxt < self.lost;
            return due.then_some(Span { start: 0, end: 1 });
        }
        if self.resend_head {
            return self.segment(self.una, self.nxt);
        }
        if self.una == self.nxt {
            self.restart_after_idle(now);
        }
        let in_flight = self.in_flight();
        let cwnd = self.congestion.cwnd();
        let lost_again = self.rack.as_ref().and_then(Rack::first_lost_again);
        if let Some(segment) = lost_again.or_else(|| self.segment(self.rxt, self.lost)) {
            let fits = in_flight == 0 || in_flight + segment.len() <= cwnd;
            return Some(segment).filter(|_| fits);
        }
        let segment = self.new_segment(in_flight);
        let recovering = self.sack && self.rack.is_none() && self.phase == Phase::Recovery;
        if segment.is_none() && recovering && in_flight + self.mss <= cwnd {
            return self.speculative_segment();
        }
        if segment.is_none() && self.una == self.nxt && self.pending() && self.timer.is_none() {
            self.timer = Some(self.rto.deadline(now));
        }
        segment
    }

    /// New data, or the FIN.
    fn new_segment(&self, in_flight: u64) -> Option<Span> {
        if !self.pending() {
            return None;
        }
        let (start, data_end) = (self.nxt, 1 + self.written);
        let available = data_end.saturating_sub(start);
        if available == 0 {
            return Some(Span { start, end: self.end() });
        }
        let window = self.edge.saturating_sub(start);
        let room = (self.congestion.cwnd() + self.limited_transmit()).saturating_sub(in_flight);
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

    /// What the first duplicate ACKs allow beyond the window (RFC 3042). With SACK the pipe shrinks
    /// by what they report, which allows as much.
    fn limited_transmit(&self) -> u64 {
        let allowed = self.limited_transmit && !self.sack && self.phase == Phase::Open;
        if allowed { u64::from(self.dup_acks.min(2)) * self.mss } else { 0 }
    }

    /// RFC 6675 §4 NextSeg, rules 3 and 4: a hole that is not lost by the count, or the end of the
    /// window once in each recovery, to keep ACKs coming.
    fn speculative_segment(&mut self) -> Option<Span> {
        let highest = self.scoreboard.highest().unwrap_or(self.una);
        if let Some(segment) = self.segment(self.rxt, highest) {
            return Some(segment);
        }
        if self.una <= self.rescued {
            return None;
        }
        self.rescued = self.recover;
        let tail = self.scoreboard.hole(highest, self.recover)?;
        Some(Span { start: tail.start.max(tail.end.saturating_sub(self.mss)), ..tail })
    }

    /// One segment of what was sent and is not SACKed, from `start` on and below `end`.
    fn segment(&self, start: u64, end: u64) -> Option<Span> {
        let hole = self.scoreboard.hole(start, end)?;
        let payload = self.payload(hole);
        if payload.len() > self.mss {
            return Some(Span { start: hole.start, end: hole.start + self.mss });
        }
        Some(hole)
    }

    fn sent(&mut self, now: Instant, segment: Span) {
        self.counters.segments += 1;
        // What ran until now while nothing was in flight was the persist timer.
        if self.timer.is_none() || self.una == self.nxt {
            self.timer = Some(self.rto.deadline(now));
        }
        if segment.start >= self.nxt {
            self.nxt = segment.end;
            if let Some(rack) = &mut self.rack {
                rack.sent(now, segment.end);
            }
            self.timed.get_or_insert((segment.end, now));
        } else {
            self.counters.retransmits += 1;
            self.counters.retransmitted_bytes += self.payload(segment).len();
            // Karn: an ACK may be for either copy.
            self.timed = None;
            if let Some(rack) = &mut self.rack {
                rack.resent(now, segment);
                if segment.start == self.una {
                    self.timer = Some(self.rto.deadline(now));
                }
            }
            // RFC 6675's HighRxt, which a rescue beyond all SACKed does not move. A fast retransmit
            // without SACK is not counted: there the window inflates instead.
            if segment.start < self.scoreboard.highest().unwrap_or(0).max(self.lost) {
                self.rxt = self.rxt.max(segment.end);
            }
        }
        self.resend_head = false;
        self.probe = false;
        self.last_sent = now;
    }

    fn restart_after_idle(&mut self, now: Instant) {
        if self.nxt > 1 && self.pending() && now.since(self.last_sent) > self.rto.current() {
            self.congestion.restart(self.initial_window);
            self.last_sent = now;
        }
    }

    /// Whether there is something that was never sent.
    fn pending(&self) -> bool {
        self.nxt < self.end()
    }

    /// Behind all that the application has given, the FIN included.
    fn end(&self) -> u64 {
        1 + self.written + u64::from(self.closed)
    }
}
