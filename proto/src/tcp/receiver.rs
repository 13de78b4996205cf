//! The receiving half: data in order, data beyond a gap, and the times of acknowledgments.

use super::buffer::Buffer;
use super::profile::{Acknowledging, Profile};
use crate::ranges::{Ranges, Span};
use crate::time::Instant;
use core::time::Duration;

/// Duplicate ACKs for a gap that are never merged.
const PROMPT_DUPLICATES: u32 = 3;
/// With more SACK blocks than this, duplicate ACKs do not wait for each other.
const EXPECTED_BLOCKS: usize = 2;
/// How long merged duplicate ACKs wait at most (Linux `tcp_comp_sack_delay_ns`).
const MERGE_LIMIT: Duration = Duration::from_millis(1);

/// Positions of the peer's stream (see [`super::stream`]).
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    settings: Acknowledging,
    window: u64,
    /// The window is that of this buffer, if it is tuned.
    buffer: Option<Buffer>,
    dsack: bool,
    /// The next expected position; 0 before the SYN.
    next: u64,
    /// The position of the FIN, once it is known.
    fin: Option<u64>,
    beyond: Ranges,
    /// A position in each span of `beyond` that was touched last, the latest first.
    recent: [u64; 4],
    /// A segment that arrived twice and was not yet reported.
    duplicate: Option<Span>,
    /// ACKs to send at once; each segment out of order makes one, so that none is merged away.
    acks_due: u32,
    /// Segments in order since the last ACK.
    unacked: u32,
    quick: u32,
    /// When the last segment with payload arrived, and whether the next one bears PSH.
    heard: Instant,
    pushed: bool,
    /// How long an ACK waits (`ato`), and at most: the timeout.
    wait: Duration,
    timeout: Duration,
    /// Whether both ends agreed on SACK, so that duplicate ACKs may be merged.
    sack: bool,
    /// Duplicate ACKs sent at once for a gap at this position, and those merged since.
    gap: (u64, u32),
    merged: u32,
    /// When a delayed or merged ACK leaves.
    pub(super) timer: Option<Instant>,
    /// `next` in the last ACK sent (RFC 7323 §4.3, Last.ACK.sent).
    last_ack: u64,
    /// The timestamp to echo (RFC 7323 §4.3, TS.Recent).
    ts_recent: u32,
}

impl Receiver {
    /// A receiver that waits for a SYN.
    pub(super) fn new(profile: &Profile) -> Self {
        Self {
            settings: profile.ack,
            window: u64::from(profile.receive_window),
            buffer: profile.moderate_rcvbuf.then(|| Buffer::new(profile)),
            dsack: profile.dsack,
            next: 0,
            fin: None,
            beyond: Ranges::default(),
            recent: [0; 4],
            duplicate: None,
            acks_due: 0,
            unacked: 0,
            quick: profile.ack.quick,
            heard: Instant::ZERO,
            pushed: false,
            wait: profile.ack.delay,
            timeout: profile.ack.delay,
            sack: false,
            gap: (0, 0),
            merged: 0,
            timer: None,
            last_ack: 0,
            ts_recent: 0,
        }
    }

    /// The peer's SYN arrived.
    pub(super) fn synchronised(&mut self, timestamp: Option<u32>, sack: bool) {
        self.sack = sack;
        self.next = 1;
        self.last_ack = 1;
        self.acks_due = 1;
        self.ts_recent = timestamp.unwrap_or(0);
    }

    /// The next expected position: the ACK number.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Payload bytes that arrived in order.
    pub(super) fn delivered(&self) -> u64 {
        self.fin.map_or(self.next, |fin| self.next.min(fin)).saturating_sub(1)
    }

    /// Whether everything up to the FIN arrived.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// The window to announce, a multiple of `1 << shift`; none if the buffer is not tuned.
    pub(super) fn announce(&mut self, shift: u8) -> Option<u64> {
        let (next, beyond) = (self.next, self.beyond.total());
        Some(self.buffer.as_mut()?.announce(next, beyond, shift))
    }

    /// The application reads slowly, and says itself how much room there is.
    pub(super) fn stop_tuning(&mut self) {
        self.buffer = None;
    }

    /// The timestamp to echo.
    pub(super) fn ts_recent(&self) -> u32 {
        self.ts_recent
    }

    /// Remembers the timestamp of a segment that begins at `start`, if it is one to echo: it is no
    /// older, and the segment touches what the last ACK asked for (RFC 7323 §4.3 (2)).
    pub(super) fn stamp(&mut self, start: u64, timestamp: u32) {
        let is_newer = timestamp.wrapping_sub(self.ts_recent) as i32 >= 0;
        if is_newer && start <= self.last_ack {
            self.ts_recent = timestamp;
        }
    }

    /// Whether a segment with this timestamp is older than what arrived in order (PAWS, RFC 7323
    /// §5.3); Linux forgives one tick of the clock.
    pub(super) fn is_stale(&self, timestamp: u32) -> bool {
        self.ts_recent.wrapping_sub(timestamp) as i32 > 1
    }

    /// Whether a segment that ends here was acknowledged before (`tcp_sequence`). Linux does not
    /// remember the timestamp of such a segment, and its ACK echoes an older one: the sender's
    /// round trip, and with it the timeout, then contains the wait for the retransmission.
    pub(super) fn is_old(&self, end: u64) -> bool {
        end < self.last_ack
    }

    /// Refuses a segment (RFC 7323 §5.3 R1): repeats the ACK, and reports the duplicate.
    pub(super) fn refuse(&mut self, segment: Span) {
        if segment.start < self.next {
            let twice = Span { end: segment.end.min(self.next), ..segment };
            self.duplicate = Some(twice).filter(|_| self.dsack);
            self.quick = self.settings.quick;
        }
        self.acks_due += 1;
    }

    /// A segment with payload arrived while the timeout was `timeout`: after a longer silence the
    /// sender begins anew, and delayed ACKs would hold it back (`tcp_event_data_recv`). It echoed a
    /// timestamp of this age.
    pub(super) fn heard(
        &mut self,
        now: Instant,
        timeout: Duration,
        age: Option<Duration>,
        is_pushed: bool,
    ) {
        let silence = now.since(self.heard);
        let least = self.settings.delay;
        if silence > timeout {
            self.quick = self.quick.max(self.settings.quick);
        } else if silence <= least / 2 {
            self.wait = self.wait / 2 + least / 2;
        } else if silence < self.wait {
            self.wait = (self.wait / 2 + silence).min(timeout);
        }
        self.timeout = timeout;
        self.heard = now;
        self.pushed = is_pushed;
        if let (Some(buffer), Some(age)) = (&mut self.buffer, age) {
            buffer.measured(age);
        }
    }

    /// Takes a segment with payload, FIN or both; `round_trip` is what is known of the path.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        payload: Span,
        fin: bool,
        round_trip: Option<Duration>,
    ) {
        self.application_reads(now);
        let is_pushed = core::mem::take(&mut self.pushed) && self.settings.push;
        let limit = self.next + self.window;
        let mut segment = Span { end: payload.end.min(limit), ..payload };
        if fin && payload.end <= limit {
            self.fin = Some(payload.end);
            segment.end += 1;
        }
        if segment.end <= self.next || segment.start >= limit {
            // An old segment, or one beyond the window: repeat the ACK (RFC 9293 §3.10.7.4).
            self.duplicate = Some(segment).filter(|_| self.dsack && segment.start < segment.end);
            self.quick = self.settings.quick;
            self.acks_due += 1;
            return;
        }
        if segment.start > self.next {
            if !self.beyond.insert(segment) && self.dsack {
                self.duplicate = Some(segment);
            }
            self.touch(segment.start);
            self.make_room(segment);
            self.out_of_order(now, round_trip);
            return;
        }
        if self.dsack && segment.start < self.next {
            self.duplicate = Some(Span { end: self.next, ..segment });
        }
        let fills_gap = !self.beyond.is_empty();
        self.next = segment.end;
        if fills_gap {
            if let Some(span) = self.beyond.span_at(self.next) {
                self.next = span.end;
            }
            self.beyond.remove_below(self.next);
        }
        self.make_room(segment);
        if fills_gap || self.is_finished() || self.duplicate.is_some() {
            self.acks_due = 1;
        } else {
            self.delay_ack(now, is_pushed, round_trip);
        }
    }

    /// The peer's SYN arrived a second time, or an unacceptable segment: acknowledge at once.
    pub(super) fn repeat_ack(&mut self) {
        self.acks_due += 1;
    }

    /// A delayed ACK is due.
    pub(super) fn timeout(&mut self) {
        self.timer = None;
        self.acks_due = self.acks_due.max(1);
        if self.merged == 0 {
            self.wait = (2 * self.wait).min(self.timeout).max(self.settings.delay);
        }
    }

    /// Whether an ACK must be sent without data.
    pub(super) fn ack_is_due(&self) -> bool {
        self.acks_due > 0
    }

    /// A segment with data and the current ACK was sent; it replaces all ACKs that are due, unless
    /// they must be duplicates.
    pub(super) fn piggybacked(&mut self) {
        if self.beyond.is_empty() && self.duplicate.is_none() {
            self.acks_due = 0;
        }
        self.acked();
    }

    /// A pure ACK was sent.
    pub(super) fn ack_sent(&mut self) {
        self.acks_due = self.acks_due.saturating_sub(1);
        self.duplicate = None;
        self.acked();
    }

    /// The SACK blocks of an ACK: a duplicate, then the spans touched last (RFC 2018 §4, RFC 2883).
    pub(super) fn sack_blocks(&self) -> impl Iterator<Item = Span> {
        let spans = self.recent.map(|position| self.beyond.span_at(position));
        let is_first = move |index: usize| {
            let earlier = spans.get(..index).unwrap_or_default();
            spans.get(index).copied().flatten().filter(|span| !earlier.contains(&Some(*span)))
        };
        self.duplicate.into_iter().chain((0..spans.len()).filter_map(is_first))
    }

    /// Whether an ACK has anything to report in SACK blocks.
    pub(super) fn has_sack_blocks(&self) -> bool {
        self.duplicate.is_some() || !self.beyond.is_empty()
    }

    /// A pure ACK was sent that stands for all that are due.
    pub(super) fn all_acks_sent(&mut self) {
        self.acks_due = 0;
        self.duplicate = None;
        self.acked();
    }

    fn acked(&mut self) {
        self.unacked = 0;
        self.merged = 0;
        self.timer = None;
        // Those of the handshake do not count.
        self.quick -= u32::from(self.quick > 0 && self.next > 1);
        self.last_ack = self.next;
        let (next, beyond) = (self.next, self.beyond.total());
        if self.buffer.as_mut().is_some_and(|buffer| buffer.opens(next, beyond)) {
            self.acks_due = self.acks_due.max(1);
        }
    }

    /// The application has read what arrived before.
    fn application_reads(&mut self, now: Instant) {
        let (next, ahead) = (self.next, self.ahead());
        if let Some(buffer) = &mut self.buffer {
            buffer.read(now, next, ahead);
        }
    }

    /// The window grows with what arrives.
    fn make_room(&mut self, segment: Span) {
        let (next, beyond, ahead) = (self.next, self.beyond.total(), self.ahead());
        if let Some(buffer) = &mut self.buffer {
            buffer.arrived(segment.len(), next, beyond, ahead);
        }
    }

    /// How far what arrived out of order reaches beyond what is expected next.
    fn ahead(&self) -> u64 {
        self.beyond.end().map_or(0, |end| end.saturating_sub(self.next))
    }

    /// A segment in order arrived and nothing is beyond it (RFC 5681 §4.2).
    fn delay_ack(&mut self, now: Instant, is_pushed: bool, round_trip: Option<Duration>) {
        self.unacked += 1;
        if is_pushed || self.quick > 0 || self.unacked >= self.settings.every {
            self.acks_due = 1;
        } else if self.timer.is_none() {
            self.timer = Some(self.ack_deadline(now, round_trip));
        }
    }

    /// A segment beyond a gap arrived: acknowledged at once (RFC 5681 §4.2), or merged with the
    /// next ones (Linux `__tcp_ack_snd_check`).
    fn out_of_order(&mut self, now: Instant, round_trip: Option<Duration>) {
        if self.gap.0 != self.next {
            self.gap = (self.next, 0);
        }
        let may_merge = self.sack && self.quick == 0 && self.merged < self.settings.compress;
        if !may_merge || self.gap.1 < PROMPT_DUPLICATES {
            self.gap.1 += u32::from(may_merge);
            self.acks_due += 1;
            return;
        }
        // Linux reports a third block before it drops one.
        if self.merged > 0 && self.sack_blocks().count() > EXPECTED_BLOCKS {
            self.acks_due += 1;
            self.merged = 0;
            return;
        }
        self.merged += 1;
        if self.merged == 1 {
            let wait = round_trip.map_or(MERGE_LIMIT, |time| MERGE_LIMIT.min(time / 20));
            self.timer = Some(self.timer.map_or(now + wait, |timer| timer.min(now + wait)));
        }
    }

    fn ack_deadline(&self, now: Instant, round_trip: Option<Duration>) -> Instant {
        let delay = self.settings.delay;
        if self.settings.adaptive {
            return now + self.wait.min(round_trip.unwrap_or(delay)).max(delay);
        }
        if !self.settings.free_running || delay == Duration::ZERO {
            return now + delay;
        }
        let period = delay.as_nanos() as u64;
        Instant::from_nanos((now.as_nanos() / period + 1).saturating_mul(period))
    }

    /// Moves a span to the front of those to report.
    fn touch(&mut self, position: u64) {
        let Some(span) = self.beyond.span_at(position) else { return };
        let holds = |recent: &u64| (span.start..span.end).contains(recent);
        let last = self.recent.len() - 1;
        let from = self.recent.iter().position(holds).unwrap_or(last);
        if let Some(moved) = self.recent.get_mut(..=from) {
            moved.rotate_right(1);
        }
        self.recent[0] = position;
    }
}
