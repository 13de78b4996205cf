//! Loss detection by counting: Tahoe, Reno, NewReno (RFC 5681, RFC 6582) and SACK by RFC 6675.
//!
//! One account serves all of them. Bytes below `lost` that are not SACKed count as lost, those of
//! them below `rxt` as sent again. What is in flight is then `una..rxt` and `lost..nxt`, less what
//! is SACKed: RFC 6675's pipe. After a timeout all of `una..nxt` is lost; without SACK that is
//! go-back-N, and otherwise nothing is lost and the account is plain FlightSize.

mod ack;
mod scoreboard;

use super::outgoing::Outgoing;
use super::profile::{Profile, Recovery};
use crate::ranges::Span;
use crate::time::Instant;
use scoreboard::Scoreboard;

/// The state of loss recovery.
#[derive(Clone, Debug)]
pub(super) struct Classic {
    /// Loss recovery without SACK.
    recovery: Recovery,
    /// Whether both ends agreed on SACK.
    sack: bool,
    /// Whether the first SACK block is as good as that.
    sack_alone: bool,
    dupack_threshold: u32,
    limited_transmit: bool,
    hold_ssthresh: bool,
    impatient: bool,
    /// The next position to look at for a retransmission.
    rxt: u64,
    /// The position below which all data that is not SACKed is lost.
    lost: u64,
    phase: Phase,
    /// `nxt` when the last loss was noticed: recovery ends there.
    recover: u64,
    /// Duplicate ACKs in a row.
    dup_acks: u32,
    /// The segment at `una` is to be sent again at once, whatever the window.
    resend_head: bool,
    /// How far RFC 6675's rescue retransmission was used in this recovery.
    rescued: u64,
    /// Partial ACKs in this recovery (RFC 6582).
    partial_acks: u32,
    scoreboard: Scoreboard,
    /// The end of the segment whose round trip is being measured, and when it was sent.
    timed: Option<(u64, Instant)>,
    last_timeout: Option<u64>,
}

/// The phase of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No loss is known.
    Open,
    /// Fast recovery.
    Recovery,
    /// Slow start after a timeout, or after Tahoe's fast retransmit.
    Loss,
}

impl Classic {
    /// A sender before its first segment.
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            recovery: profile.recovery,
            sack: false,
            sack_alone: profile.sack && profile.sack_alone,
            dupack_threshold: profile.dupack_threshold,
            limited_transmit: profile.limited_transmit,
            hold_ssthresh: profile.hold_ssthresh,
            impatient: profile.impatient,
            rxt: 0,
            lost: 0,
            phase: Phase::Open,
            recover: 0,
            dup_acks: 0,
            resend_head: false,
            rescued: 0,
            partial_acks: 0,
            scoreboard: Scoreboard::default(),
            timed: None,
            last_timeout: None,
        }
    }

    /// The SYN was acknowledged.
    pub(super) fn established(&mut self, sack: bool) {
        self.sack = sack;
        self.phase = Phase::Open;
    }

    /// Whether a timer has expired: before the handshake was done, that of the SYN.
    pub(super) fn had_timeout(&self) -> bool {
        self.last_timeout.is_some()
    }

    /// The SYN is to be sent again at once: the peer's SYN arrived again.
    pub(super) fn resend_syn(&mut self, out: &Outgoing) {
        self.rxt = 0;
        self.lost = out.nxt;
    }

    /// Bytes in the network, as far as is known: FlightSize, or RFC 6675's pipe.
    pub(super) fn in_flight(&self, out: &Outgoing) -> u64 {
        if self.scoreboard.is_empty() {
            return self.rxt - out.una + (out.nxt - self.lost);
        }
        self.scoreboard.unsacked(out.una, self.rxt) + self.scoreboard.unsacked(self.lost, out.nxt)
    }

    /// The next segment that may leave now; it counts as sent.
    pub(super) fn poll(&mut self, now: Instant, out: &mut Outgoing) -> Option<Span> {
        let Some(segment) = self.next_segment(now, out) else {
            if out.una > 0 {
                out.nothing_leaves(now);
            }
            return None;
        };
        if segment.start >= out.nxt {
            self.timed.get_or_insert((segment.end, now));
        } else {
            // Karn: an ACK may be for either copy.
            self.timed = None;
            // RFC 6675's HighRxt, which a rescue beyond all SACKed does not move. A fast retransmit
            // without SACK is not counted: there the window inflates instead.
            if segment.start < self.scoreboard.highest().unwrap_or(0).max(self.lost) {
                self.rxt = self.rxt.max(segment.end);
            }
        }
        self.resend_head = false;
        out.sent(now, segment);
        Some(segment)
    }

    /// The timer expired: everything in flight is lost (RFC 6298 5.4 to 5.6, RFC 5681 §3.1), or a
    /// closed window is probed.
    pub(super) fn timeout(&mut self, now: Instant, out: &mut Outgoing) {
        out.rto.back_off();
        self.timed = None;
        if out.persist_timeout() {
            return;
        }
        if out.is_shut() {
            return out.probe_shut_window();
        }
        out.timer = Some(out.rto.deadline(now));
        out.counters.timeouts += 1;
        let again = self.last_timeout == Some(out.una) || self.phase == Phase::Recovery;
        if out.una > 0 && !(again && self.hold_ssthresh) {
            let in_flight = self.in_flight(out);
            out.congestion.reduce(in_flight.min(out.congestion.cwnd()));
        }
        self.last_timeout = Some(out.una);
        out.congestion.collapse();
        if self.scoreboard.hole(out.una, out.nxt).is_none_or(|hole| hole.start > out.una) {
            // The receiver reneged on what it had SACKed (RFC 2018 §8).
            self.scoreboard = Scoreboard::default();
        }
        self.phase = Phase::Loss;
        self.partial_acks = 0;
        self.recover = out.nxt;
        self.lost = out.nxt;
        self.rxt = out.una;
        self.dup_acks = 0;
        self.resend_head = false;
    }

    fn next_segment(&mut self, now: Instant, out: &mut Outgoing) -> Option<Span> {
        if out.una == 0 {
            let due = out.nxt == 0 || self.rxt < self.lost;
            return due.then_some(Span { start: 0, end: 1 });
        }
        if out.is_shut() {
            return out.shut_window_probe();
        }
        if self.resend_head {
            return self.segment(out, out.una, out.nxt);
        }
        out.restart_after_idle(now);
        let in_flight = self.in_flight(out);
        let cwnd = out.congestion.cwnd();
        if let Some(segment) = self.segment(out, self.rxt, self.lost) {
            let fits = in_flight == 0 || in_flight + segment.len() <= cwnd;
            return Some(segment).filter(|_| fits);
        }
        let room = (cwnd + self.limited_transmit(out)).saturating_sub(in_flight);
        let segment = out.new_segment(room);
        let recovering = self.sack && self.phase == Phase::Recovery;
        if segment.is_none() && recovering && in_flight + out.mss <= cwnd {
            return self.speculative_segment(out);
        }
        segment
    }

    /// What the first duplicate ACKs allow beyond the window (RFC 3042). With SACK the pipe shrinks
    /// by what they report, which allows as much.
    fn limited_transmit(&self, out: &Outgoing) -> u64 {
        let allowed = self.limited_transmit && !self.sack && self.phase == Phase::Open;
        if allowed { u64::from(self.dup_acks.min(2)) * out.mss } else { 0 }
    }

    /// RFC 6675 §4 NextSeg, rules 3 and 4: a hole that is not lost by the count, or the end of the
    /// window once in each recovery, to keep ACKs coming.
    fn speculative_segment(&mut self, out: &Outgoing) -> Option<Span> {
        let highest = self.scoreboard.highest().unwrap_or(out.una);
        if let Some(segment) = self.segment(out, self.rxt, highest) {
            return Some(segment);
        }
        if out.una <= self.rescued {
            return None;
        }
        self.rescued = self.recover;
        let tail = self.scoreboard.hole(highest, self.recover)?;
        Some(Span { start: tail.start.max(tail.end.saturating_sub(out.mss)), ..tail })
    }

    /// One segment of what was sent and is not SACKed, from `start` on and below `end`.
    fn segment(&self, out: &Outgoing, start: u64, end: u64) -> Option<Span> {
        self.scoreboard.hole(start, end).map(|hole| out.cut(hole))
    }
}
