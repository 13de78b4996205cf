//! The soft state of one flow, which is rebuilt from a few packets and ACKs.

use super::budget::RepairBudget;
use super::handshake::{FIRST_ACK, Opened};
use super::outstanding::Outstanding;
use super::own::Own;
use super::rtt::AirPath;
use super::sender::Sender;
use super::settings::Settings;
use super::ts_recent::TsRecent;
use super::window::ReceiveWindow;
use crate::agent::UNANSWERED;
use crate::agents::flows::{FlowBase, FlowState};
use crate::packet::Packet;
use crate::port::Port;
use crate::ranges::Span;
use crate::rare::Rare;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use alloc::boxed::Box;
use core::time::Duration;

/// The state of one flow of data from a fixed to a mobile host.
///
/// In this order, so that what each packet needs shares cache lines: with many flows a packet costs
/// what it reads from memory.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Flow {
    pub(super) base: FlowBase,
    /// The mobile's highest ACK; before the first ACK, the position at which the flow was picked
    /// up.
    pub(super) acked: u64,
    /// The position behind the highest byte seen from the sender.
    pub(super) highest: u64,
    /// Whether `acked` is the number of an ACK.
    pub(super) has_acked: bool,
    /// Whether the mobile has sent an ACK, of whatever number: nothing is retransmitted to a mobile
    /// that never answers [C-23].
    pub(super) is_answered: bool,
    /// Whether data came after the time for an answer.
    pub(super) is_unanswered: bool,
    /// Whether the mobile has ever sent a SACK block.
    pub(super) uses_sack: bool,
    /// Whether a queue was seen beyond the agent lately.
    pub(super) has_queue_beyond: bool,
    pub(super) repair_budget: RepairBudget,
    /// The window and ECN fields of the last ACK that was forwarded to the sender.
    pub(super) forwarded: Option<AckFields>,
    /// The last suppressed ACK, to be forwarded if its hole is not repaired in time.
    pub(super) suppressed: Option<Box<SuppressedAck>>,
    /// [C-24] The window of the mobile.
    pub(super) window: ReceiveWindow,
    /// What is in flight.
    pub(super) outstanding: Rare<Outstanding>,
    pub(super) air: AirPath,
    pub(super) sender: Sender,
    pub(super) ts_recent: TsRecent,
    pub(super) own: Rare<Own>,
}

/// A suppressed ACK.
#[derive(Clone, Debug)]
pub(super) struct SuppressedAck {
    pub(super) packet: Packet,
    pub(super) ack: SeqNumber,
    /// [C-25] The time at which it is forwarded, whatever happens to the holes: the first ACK that
    /// was suppressed since one was forwarded sets it.
    pub(super) deadline: Instant,
    /// The position of the lowest masked hole that the ACK signals.
    pub(super) hole: u64,
}

/// The window and ECN fields of an ACK: the sender must see every change of them [C-8].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AckFields {
    window: u16,
    ecn: u16,
}

impl AckFields {
    pub(super) fn of(segment: &Segment) -> Self {
        let ecn = Flags::ECE.union(Flags::CWR).union(Flags::AE);
        Self { window: segment.window, ecn: segment.flags.0 & ecn.0 }
    }
}

impl Flow {
    pub(super) fn new(base: FlowBase, first: SeqNumber, settings: &Settings) -> Self {
        // Not zero, so that sequence numbers below the first one have a position.
        let first = (1 << 32) | u64::from(first.0);
        Self {
            base,
            acked: first,
            has_acked: false,
            is_answered: false,
            is_unanswered: false,
            window: ReceiveWindow::new(first),
            highest: first,
            uses_sack: false,
            has_queue_beyond: false,
            outstanding: Rare::default(),
            air: AirPath::new(settings.initial_rtt),
            sender: Sender::default(),
            own: Rare::default(),
            repair_budget: RepairBudget::default(),
            ts_recent: TsRecent::default(),
            forwarded: None,
            suppressed: None,
        }
    }

    /// The state of a flow whose handshake was seen.
    pub(super) fn accepted(base: FlowBase, opened: Opened, settings: &Settings) -> Self {
        let mut flow = Self::new(base, opened.first, settings);
        flow.is_answered = true;
        flow.has_acked = true;
        if let Some(scale) = opened.scale {
            flow.window.set_scale(scale);
        }
        if let Some(window) = opened.window {
            flow.window.advertise_unscaled(flow.acked, window);
        }
        flow
    }

    /// Picks the flow up at this ACK.
    pub(super) fn pick_up(&mut self, now: Instant, ack: u64, window: u16) {
        self.forget_sent();
        self.base.active_at = now;
        self.acked = ack;
        self.highest = ack;
        self.has_acked = true;
        self.window.pick_up(ack, window);
    }

    /// Whether the other host would believe this RST, as far as the agent knows: its number is the
    /// one that the other host expects next, and no other (RFC 5961 §3.2). For an RST of the fixed
    /// host that is the end of the data, or what the mobile has acknowledged.
    pub(super) fn believes_reset(&self, from: Port, segment: &Segment) -> bool {
        match from {
            Port::Air => self.sender.expects(segment.seq),
            _ => self
                .position(segment.seq)
                .is_some_and(|position| position == self.highest || position == self.acked),
        }
    }

    /// Forgets all data sent so far, which is neither repaired nor masked any more. After an
    /// observation gap data that seems missing may have arrived: a SACK block is not repeated
    /// without end.
    pub(super) fn forget_sent(&mut self) {
        self.outstanding.take();
        self.has_acked = false;
    }

    /// Bytes that the mobile has not acknowledged, selectively or not.
    pub(super) fn in_flight(&self) -> u64 {
        self.highest.saturating_sub(self.acked).saturating_sub(self.outstanding.sacked.total())
    }

    /// The position of a sequence number in the stream; `None` if it is too far from the window.
    pub(super) fn position(&self, seq: SeqNumber) -> Option<u64> {
        seq.position(self.acked)
    }

    /// The positions that a segment takes in the stream; `None` if it is too far from the window.
    pub(super) fn span(&self, segment: &Segment) -> Option<Span> {
        let start = self.position(segment.seq)?;
        Some(Span { start, end: start + u64::from(segment.seq_len()) })
    }

    /// Whether an ACK of this flow may have this number, also one that was overtaken.
    pub(super) fn covers(&self, ack: SeqNumber) -> bool {
        let overtaken = u64::from(FIRST_ACK.unsigned_abs());
        self.position(ack).is_some_and(|ack| ack + overtaken >= self.acked && ack <= self.highest)
    }

    /// The round trip of the sender, once that of the wired side is known.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        Some(self.sender.wired.round_trip()? + self.air.srtt().max(Duration::from_micros(1)))
    }

    /// The time of the next tail probe [C-5].
    pub(super) fn probe_due(&self) -> Option<Instant> {
        if !self.is_answered || self.outstanding.cache.is_empty() {
            return None;
        }
        self.outstanding.probe.due(&self.air, self.outstanding.has_lone_segment())
    }

    /// [C-24] The time at which the data of a mobile that has never answered is forgotten.
    pub(super) fn unanswered_due(&self) -> Option<Instant> {
        let is_held = !self.is_answered && !self.outstanding.cache.is_empty();
        is_held.then(|| self.base.opened_at + UNANSWERED)
    }
}

impl FlowState for Flow {
    fn base(&self) -> &FlowBase {
        &self.base
    }

    fn base_mut(&mut self) -> &mut FlowBase {
        &mut self.base
    }

    fn memory(&self) -> usize {
        self.outstanding.cache.memory()
    }

    fn packets(&self) -> usize {
        self.outstanding.cache.segments()
    }

    fn is_answered(&self) -> bool {
        self.is_answered
    }

    fn is_unanswered(&self) -> bool {
        self.is_unanswered && !self.is_answered
    }

    fn take_withheld(&mut self) -> Option<(Packet, SeqNumber)> {
        self.suppressed.take().map(|suppressed| (suppressed.packet, suppressed.ack))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::event::FlowId;
    use crate::ranges::Span;

    pub(in super::super) fn flow(first: u32) -> Flow {
        let base = FlowBase::new(FlowId(0), Instant::ZERO);
        Flow::new(base, SeqNumber(first), &Settings::default())
    }

    #[test]
    fn an_idle_flow_is_small() {
        assert!(size_of::<Flow>() <= 256, "{}", size_of::<Flow>());
    }

    #[test]
    fn positions_continue_sequence_numbers_across_the_wrap() {
        let mut flow = flow(u32::MAX - 9);
        let place = |flow: &Flow, seq| flow.position(SeqNumber(seq)).map(|at| at - (1 << 32));
        assert_eq!(place(&flow, u32::MAX), Some(u64::from(u32::MAX)));
        assert_eq!(place(&flow, 10), Some((1 << 32) + 10));
        flow.acked = (2 << 32) + 5;
        assert_eq!(place(&flow, 10), Some((1 << 32) + 10));
        assert_eq!(place(&flow, u32::MAX), Some((1 << 32) - 1));
        assert_eq!(place(&flow, 1 << 31), None);
    }

    #[test]
    fn holes_lie_below_what_is_sacked() {
        let mut flow = flow(100);
        let base = 1u64 << 32;
        for (start, end) in [(200, 300), (400, 500)] {
            flow.outstanding.sacked.insert(Span { start: base + start, end: base + end });
        }
        let holes = |flow: &Flow| -> alloc::vec::Vec<_> {
            flow.outstanding
                .holes(flow.acked)
                .map(|hole| (hole.start - base, hole.end - base))
                .collect()
        };
        assert_eq!(holes(&flow), [(100, 200), (300, 400)]);
        flow.acked = base + 300;
        flow.outstanding.sacked.remove_below(base + 300);
        assert_eq!(holes(&flow), [(300, 400)]);
    }
}
