//! Loss recovery as Linux has it where both ends agreed on SACK: RACK and tail loss probes
//! (RFC 8985), or counting up to as many segments as the path reorders, proportional rate reduction
//! (RFC 6937), F-RTO (RFC 5682), and undo of what was for nothing (RFC 3522, RFC 3708). Before
//! working here, read `tcp_input.c`, `tcp_recovery.c` and `tcp_timer.c` of Linux 6.18; names of its
//! functions stand where order matters.
//!
//! Windows and flights are counted in segments, each remembered with all that is known of it.

mod ack;
mod blocks;
mod control;
mod delivery;
mod detection;
mod prr;
mod queue;
mod rack;
mod timers;
mod undo;

use super::outgoing::Outgoing;
use super::profile::{CongestionControl, Profile};
use super::state::Timer;
use super::stream::timestamp;
use crate::ranges::Span;
use crate::time::Instant;
use delivery::Delivery;
use prr::Reduction;
use queue::Queue;
use rack::Rack;
use undo::Undo;

/// The state of loss recovery.
#[derive(Clone, Debug)]
pub(super) struct Linux {
    wants_rack: bool,
    wants_tlp: bool,
    wants_frto: bool,
    wants_bbr: bool,
    queue: Queue,
    state: State,
    /// `nxt` when the last loss was noticed: recovery ends there (`high_seq`).
    recover: u64,
    rack: Rack,
    reduction: Reduction,
    undo: Undo,
    /// Whether F-RTO has still to decide if the timeout was spurious.
    frto: bool,
    /// `nxt` when the last probe left, and whether it was a retransmission (`tlp_high_seq`).
    probed: Option<(u64, bool)>,
    /// Whether a probe must be sent, regardless of the window.
    probe_due: bool,
    /// The segments that may be sent until the next ACK.
    turn: Turn,
    /// The purpose of the timer of [`Outgoing`].
    timer: Timer,
    /// After what leaves next, the timer is the retransmission timer again.
    rearm: bool,
    /// New data left since nothing more could.
    burst: bool,
    /// Timeouts since an ACK advanced.
    timeouts: u32,
    /// Segments delivered, lost, and reported as duplicates, in all.
    delivered: u64,
    lost: u64,
    duplicates: u64,
    delivery: Delivery,
    usage: Usage,
}

/// The congestion states of Linux but for CWR, which only ECN leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is lost.
    Open,
    /// Data was SACKed or retransmitted, no loss is known.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// Slow start after a timeout.
    Loss,
}

/// The segments that an ACK releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// What is lost first, then new data.
    LostFirst,
    /// New data, and what is lost only if there are none (F-RTO step 2.b).
    NewFirst,
    /// New data only.
    NewOnly,
}

/// Whether the window is what limits the sender (`tcp_cwnd_validate`).
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    is_limited: bool,
    /// Segments out at most in this window, which ends at this position.
    most_out: u32,
    end: u64,
}

impl Linux {
    /// A sender before its first segment.
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            wants_rack: profile.rack,
            wants_tlp: profile.tlp,
            wants_frto: profile.frto,
            wants_bbr: profile.congestion == CongestionControl::Bbr,
            queue: Queue::default(),
            state: State::Open,
            recover: 0,
            rack: Rack::new(),
            reduction: Reduction::default(),
            undo: Undo::default(),
            frto: false,
            probed: None,
            probe_due: false,
            turn: Turn::LostFirst,
            timer: Timer::Retransmit,
            rearm: false,
            burst: false,
            timeouts: 0,
            delivered: 0,
            lost: 0,
            duplicates: 0,
            delivery: Delivery::default(),
            usage: Usage::default(),
        }
    }

    /// The handshake is done.
    pub(super) fn established(&mut self, now: Instant, out: &mut Outgoing) {
        if let Some(round_trip) = out.rto.srtt() {
            self.rack.measured(round_trip);
        }
        self.recover = out.una;
        if self.wants_bbr {
            let rate = out.congestion.start_bbr(now, out.rto.srtt());
            out.pacing.set_rate(rate);
        }
    }

    /// Segments in the network, as far as is known.
    pub(super) fn in_flight(&self) -> u32 {
        self.queue.in_flight()
    }

    /// The purpose of the timer.
    pub(super) fn timer(&self) -> Timer {
        self.timer
    }

    /// The next segment that may leave now; it counts as sent.
    pub(super) fn poll(&mut self, now: Instant, out: &mut Outgoing) -> Option<Span> {
        out.restart_after_idle(now);
        out.pacing.stop_waiting();
        if core::mem::take(&mut self.probe_due)
            && let Some(segment) = self.send_probe(now, out)
        {
            return Some(segment);
        }
        if self.turn == Turn::LostFirst
            && let Some(segment) = self.send_lost(now, out)
        {
            return Some(segment);
        }
        if let Some(segment) = self.send_new(now, out) {
            return Some(segment);
        }
        if self.turn == Turn::NewFirst {
            self.turn = Turn::NewOnly;
            if out.nxt == self.recover {
                self.frto = false;
                self.turn = Turn::LostFirst;
                return self.poll(now, out);
            }
        }
        self.nothing_more(now, out);
        None
    }

    /// `tcp_xmit_retransmit_queue`.
    fn send_lost(&mut self, now: Instant, out: &mut Outgoing) -> Option<Span> {
        if u64::from(self.in_flight()) >= cwnd(out) {
            return None;
        }
        let lost = self.queue.first_to_resend()?;
        let is_head = self.queue.head().is_some_and(|head| head.span == lost.span);
        if lost.span.start >= out.edge() && !is_head {
            return None;
        }
        if !out.pacing.may_leave(now) {
            return None;
        }
        let segment = self.resend(now, out, lost.span, false);
        self.undo.resent(timestamp(now));
        if self.is_reducing() {
            self.reduction.sent();
        }
        if is_head && self.timer != Timer::Reordering {
            self.start_timer(out, Timer::Retransmit, out.rto.deadline(now));
        }
        Some(segment)
    }

    /// `tcp_write_xmit`.
    fn send_new(&mut self, now: Instant, out: &mut Outgoing) -> Option<Span> {
        let room = cwnd(out).saturating_sub(self.in_flight().into()) * out.mss;
        let segment = out.new_segment(room).filter(|_| room > 0)?;
        if !out.pacing.may_leave(now) {
            return None;
        }
        self.new_data_leaves(now, out, segment);
        self.burst = true;
        Some(segment)
    }

    fn new_data_leaves(&mut self, now: Instant, out: &mut Outgoing, segment: Span) {
        let was_empty = self.queue.packets_out() == 0;
        let sent = self.departs(now, out);
        self.queue.push(now, segment, sent);
        out.sent(now, segment);
        if self.is_reducing() {
            self.reduction.sent();
        }
        if was_empty || self.timer == Timer::LossProbe {
            self.rearm_timeout(now, out);
        }
    }

    /// The acknowledged part of a segment is not retransmitted.
    fn resend(&mut self, now: Instant, out: &mut Outgoing, span: Span, is_probe: bool) -> Span {
        let sent = self.departs(now, out);
        self.queue.resend(now, span.start, is_probe, sent);
        let segment = out.cut(Span { start: span.start.max(out.una), ..span });
        out.sent(now, segment);
        segment
    }

    /// No further segment may be sent now.
    fn nothing_more(&mut self, now: Instant, out: &mut Outgoing) {
        let is_limited = u64::from(self.in_flight()) >= cwnd(out);
        self.check_app_limited(out);
        let left = core::mem::take(&mut self.burst);
        if left {
            self.schedule_probe(now, out, false);
        }
        if core::mem::take(&mut self.rearm) && self.timer != Timer::Retransmit {
            self.rearm_timeout(now, out);
        }
        if left || is_limited {
            let (usage, packets) = (&mut self.usage, self.queue.packets_out());
            if out.una >= usage.end || is_limited || !usage.is_limited && packets > usage.most_out {
                *usage = Usage { is_limited, most_out: packets, end: out.nxt };
            }
        }
        if self.queue.packets_out() == 0 {
            self.timer = Timer::Retransmit;
        }
        // What the pacer holds back is not held back by a closed window.
        if out.pacing.deadline().is_none() {
            out.nothing_leaves(now);
        }
    }

    /// Whether the window is being reduced.
    fn is_reducing(&self) -> bool {
        self.state == State::Recovery
    }
}

/// The window in segments.
fn cwnd(out: &Outgoing) -> u64 {
    out.congestion.cwnd() / out.mss
}
