//! The holes in the data of one mobile host, and the timestamps of what fills them.

use super::echo::EchoTimes;
use crate::agents::flows::{FlowBase, FlowState};
use crate::agents::snoop::decision::Left;
use crate::agents::snoop::hop::{Hop, Loss, PROMPT};
use crate::agents::snoop::sender::{UNKNOWN_ROUND_TRIP, answer_at};
use crate::event::FlowId;
use crate::packet::Packet;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::seq::{SeqNumber, is_before};
use crate::wire::tcp::{Flags, Segment};
use crate::wired_path::WiredPath;
use alloc::collections::VecDeque;
use core::time::Duration;

/// The most holes of a flow that are remembered [C-26].
const MAX_HOLES: usize = 512;
/// The round trip of the air before its measurement.
const UNKNOWN_AIR: Duration = Duration::from_millis(20);

/// Data that was lost between the mobile's TCP and the base station.
#[derive(Clone, Copy, Debug)]
struct Hole {
    span: Span,
    /// The timestamp of the data that followed, if it has one: the mobile had sent the lost data by
    /// then.
    sent_by: Option<u32>,
    /// Whether the loss counts as congestion [C-22].
    is_congestion: bool,
}

/// The state of one flow of data from a mobile to a fixed host.
#[derive(Clone, Debug)]
pub(super) struct UplinkFlow {
    base: FlowBase,
    /// The highest ACK of the fixed host.
    acked: u64,
    is_answered: bool,
    /// The position behind the highest byte that has passed.
    highest: u64,
    /// Lowest first.
    holes: VecDeque<Hole>,
    /// The timestamp of the last data that passed in order: the fixed host's TS.Recent is not newer
    /// (RFC 7323 §4.3).
    ts_recent: Option<u32>,
    /// The round trip to the mobile, which includes the queue in it.
    air: EchoTimes,
    wired: WiredPath,
    last_data_at: Instant,
    /// When the sender's answer to the last loss that was taken for congestion can be here.
    answer_at: Option<Instant>,
    /// The last round trip to the mobile.
    air_sample: Option<Duration>,
}

impl UplinkFlow {
    pub(super) fn new(base: FlowBase, first: SeqNumber) -> Self {
        let first = (1 << 32) | u64::from(first.0);
        Self {
            last_data_at: base.active_at,
            base,
            acked: first,
            is_answered: false,
            highest: first,
            holes: VecDeque::new(),
            ts_recent: None,
            air: EchoTimes::default(),
            wired: WiredPath::default(),
            answer_at: None,
            air_sample: None,
        }
    }

    pub(super) fn id(&self) -> FlowId {
        self.base.id
    }

    fn air_sample(&self) -> Duration {
        self.air_sample.unwrap_or(UNKNOWN_AIR)
    }

    fn wired_round_trip(&self) -> Duration {
        self.wired.round_trip().unwrap_or(UNKNOWN_ROUND_TRIP)
    }

    /// Whether the agent is in the receiving host: what is lost before it may be congestion.
    fn is_in_host(&self) -> bool {
        self.wired.is_own_host(self.air_sample())
    }

    fn position(&self, seq: SeqNumber) -> Option<u64> {
        seq.position(self.highest)
    }

    /// Takes data of the mobile; returns the timestamp of the lost original, if the data fills a
    /// hole that the air made and has a newer one.
    pub(super) fn take_data(
        &mut self,
        now: Instant,
        segment: &Segment,
        packet: &Packet,
        hop: &mut Hop,
    ) -> Option<u32> {
        let start = self.position(segment.seq)?;
        let span = Span { start, end: start + u64::from(segment.seq_len()) };
        self.base.active_at = now;
        let value = segment.options.timestamps.map(|timestamps| timestamps.value);
        self.sample(now, segment, hop);
        let size = packet.segment_size().map_or(segment.payload_len, |size| size.get().into());
        let size = u64::from(size.max(1));
        hop.arrived(now, span.len().div_ceil(size));
        let in_order = self.next();
        let mut original = None;
        if span.start > self.highest {
            let hole = Span { start: self.highest, end: span.start };
            self.open_hole(now, hole, size, value, hop);
        } else {
            original = self.fill(span);
        }
        self.highest = self.highest.max(span.end);
        let restored = value.zip(original).and_then(|(value, original)| {
            let recent = self.ts_recent.filter(|recent| is_before(original, *recent));
            Some(recent.unwrap_or(original)).filter(|restored| is_before(*restored, value))
        });
        let is_known = self.wired.round_trip().is_some();
        let restored =
            restored.filter(|_| is_known && !self.is_in_host() && !segment.options.signed);
        let forwarded = restored.or(value);
        let is_newer = |value| self.ts_recent.is_none_or(|recent| is_before(recent, value));
        if span.start <= in_order && forwarded.is_some_and(is_newer) {
            self.ts_recent = forwarded;
        }
        if let Some(value) = forwarded {
            self.wired.ack_left(now, value);
        }
        restored
    }

    /// The position up to which all data has passed.
    fn next(&self) -> u64 {
        self.holes.front().map_or(self.highest, |hole| hole.span.start)
    }

    /// The round trip to the mobile, from an ACK to the data that answers it.
    fn sample(&mut self, now: Instant, segment: &Segment, hop: &mut Hop) {
        let is_prompt = now.since(self.last_data_at) <= PROMPT;
        self.last_data_at = now;
        let Some(timestamps) = segment.options.timestamps else { return };
        if let Some(sample) = self.air.echoed(now, timestamps.echo) {
            hop.sample(now, sample, is_prompt, self.wired_round_trip());
            self.air_sample = Some(sample);
        }
    }

    fn open_hole(
        &mut self,
        now: Instant,
        span: Span,
        size: u64,
        sent_by: Option<u32>,
        hop: &mut Hop,
    ) {
        let wired = self.wired_round_trip();
        let mut is_congestion = self.air_sample.is_none();
        for _ in 0..span.len().div_ceil(size).min(64) {
            let loss = Loss { sent_at: now, wired, window: 0, answer_at: self.answer_at };
            let cause = hop.judge(now, &loss);
            if cause.is_some_and(Left::is_new_congestion) {
                self.answer_at = Some(answer_at(now, wired, hop.least()));
            }
            is_congestion |= cause.is_some();
        }
        if self.holes.len() < MAX_HOLES {
            self.holes.push_back(Hole { span, sent_by, is_congestion });
        }
    }

    /// Data that overlaps with holes: returns the timestamp by which all of it was sent first, if
    /// it lay in holes of the air.
    fn fill(&mut self, span: Span) -> Option<u32> {
        let from = self.holes.partition_point(|hole| hole.span.end <= span.start);
        let to = self.holes.partition_point(|hole| hole.span.start < span.end);
        if from >= to {
            return None;
        }
        let filled: VecDeque<Hole> = self.holes.range(from..to).copied().collect();
        for index in (from..to).rev() {
            self.holes.remove(index);
        }
        for hole in filled.iter().rev() {
            let below = Span { start: hole.span.start, end: span.start };
            let above = Span { start: span.end, end: hole.span.end };
            for rest in [above, below] {
                if rest.start < rest.end {
                    self.holes.insert(from, Hole { span: rest, ..*hole });
                }
            }
        }
        let is_air = filled.iter().all(|hole| !hole.is_congestion);
        filled.front().filter(|_| is_air).and_then(|hole| hole.sent_by)
    }

    /// Takes an ACK of the fixed host that has departed to the mobile.
    pub(super) fn ack_departed(&mut self, now: Instant, segment: &Segment) {
        if !segment.flags.intersects(Flags::ACK) {
            return;
        }
        let Some(ack) = self.position(segment.ack).filter(|ack| *ack <= self.highest) else {
            return;
        };
        self.is_answered = true;
        self.base.active_at = now;
        self.acked = self.acked.max(ack);
        if let Some(timestamps) = segment.options.timestamps {
            self.air.departed(now, timestamps.value);
            self.wired.data_came(now, timestamps.echo);
        }
        // Another path carried it.
        while self.holes.front().is_some_and(|hole| hole.span.end <= self.acked) {
            self.holes.pop_front();
        }
    }
}

impl FlowState for UplinkFlow {
    fn base(&self) -> &FlowBase {
        &self.base
    }

    fn base_mut(&mut self) -> &mut FlowBase {
        &mut self.base
    }

    fn is_answered(&self) -> bool {
        self.is_answered
    }
}
