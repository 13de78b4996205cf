//! RACK (RFC 8985): what was sent is lost when something that was sent later has arrived, and the
//! time that reordering may take has passed. It sees a loss where fewer than three segments follow,
//! and the loss of a retransmission.

use super::queue::{Queue, Segment};
use crate::time::Instant;
use alloc::vec::Vec;
use core::time::Duration;

/// Recoveries without a spurious retransmission after which the window for reordering is small
/// again (§6.2 step 4).
const PATIENCE: u32 = 16;
/// Steps that the window for reordering may grow to.
const MOST_STEPS: u32 = 255;
/// Segments of reordering that Linux believes in: at first, and at most (`tcp_reordering`,
/// `tcp_max_reordering`).
const REORDERING: u32 = 3;
const MOST_REORDERING: u32 = 300;

/// The latest segment that arrived, and how much reordering there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    /// When the one sent last among all that arrived was sent, and its end.
    latest: (Instant, u64),
    /// The round trip of what arrived last, and the least of any.
    round_trip: Duration,
    least: Option<Duration>,
    /// Something arrived since losses were last looked for.
    pub(super) advanced: bool,
    /// The window for reordering is so many quarters of the least round trip.
    steps: u32,
    /// Recoveries until it is one step again.
    persist: u32,
    dsack_seen: bool,
    /// Segments delivered when the window last grew.
    grew_at: u64,
    /// Reordering in segments, and whether any was ever seen.
    pub(super) degree: u32,
    seen: bool,
}

impl Rack {
    /// Nothing was sent yet.
    pub(super) fn new() -> Self {
        Self {
            latest: (Instant::ZERO, 0),
            round_trip: Duration::ZERO,
            least: None,
            advanced: false,
            steps: 1,
            persist: 0,
            dsack_seen: false,
            grew_at: 0,
            degree: REORDERING,
            seen: false,
        }
    }

    /// A round trip that an ACK showed without ambiguity.
    pub(super) fn measured(&mut self, round_trip: Duration) {
        self.least = Some(self.least.map_or(round_trip, |least| least.min(round_trip)));
    }

    /// A segment arrived (§6.2 steps 1 and 2).
    pub(super) fn arrived(&mut self, now: Instant, segment: &Segment) {
        let round_trip = now.since(segment.at);
        // An ACK sooner than any round trip is the original's.
        if segment.again && self.least.is_some_and(|least| round_trip < least) {
            return;
        }
        self.advanced = true;
        self.round_trip = round_trip;
        self.latest = self.latest.max((segment.at, segment.span.end));
    }

    /// A hole was filled by what was sent once: reordering of so many segments (§6.2 step 3).
    pub(super) fn reordered(&mut self, segments: u32) {
        self.seen = true;
        self.degree = self.degree.max(segments.min(MOST_REORDERING));
    }

    /// A timeout came though three segments were SACKed: reordering was overestimated.
    pub(super) fn overestimated(&mut self) {
        self.degree = self.degree.min(REORDERING);
    }

    /// Whether as many segments are SACKed as mean a loss.
    pub(super) fn is_enough(&self, sacked: u32) -> bool {
        sacked >= self.degree
    }

    /// A retransmission was needless: the window for reordering may be too small (§6.2 step 4).
    pub(super) fn duplicate(&mut self) {
        self.dsack_seen |= self.seen;
    }

    /// An ACK arrived after `prior` segments had been delivered, and now `delivered` are: what was
    /// needless widens the window once a round trip.
    pub(super) fn adapt(&mut self, prior: u64, delivered: u64) {
        if prior < self.grew_at {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.dsack_seen = false;
            self.steps = (self.steps + 1).min(MOST_STEPS);
            self.grew_at = delivered;
            self.persist = PATIENCE;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// A recovery ended; it was undone or not.
    pub(super) fn recovered(&mut self, by_duplicates: bool) {
        if by_duplicates {
            self.persist = (self.persist + 1).min(PATIENCE);
        } else {
            self.persist = self.persist.saturating_sub(1);
        }
    }

    /// How long a segment may be late (§6.2 step 4): not at all where nothing was ever reordered
    /// and a loss is certain.
    pub(super) fn window(&self, is_certain: bool, srtt: Duration) -> Duration {
        if !self.seen && is_certain {
            return Duration::ZERO;
        }
        (self.least.unwrap_or(Duration::MAX) / 4).saturating_mul(self.steps).min(srtt)
    }

    /// How long this segment may still be late; zero when its time is over.
    pub(super) fn remaining(&self, now: Instant, segment: &Segment, window: Duration) -> Duration {
        (self.round_trip + window).saturating_sub(now.since(segment.at))
    }

    /// Marks what is lost (§6.2 step 5).
    pub(super) fn detect(&mut self, now: Instant, queue: &mut Queue, window: Duration) -> Detected {
        self.advanced = false;
        let mut detected = Detected::default();
        let is_earlier = |segment: &Segment| (segment.at, segment.span.end) < self.latest;
        let earlier = queue.in_order_of_time().take_while(is_earlier);
        let mut lost = Vec::new();
        for segment in earlier {
            let remaining = self.remaining(now, &segment, window);
            if remaining.is_zero() {
                lost.push(segment.span.start);
            } else {
                detected.wait = detected.wait.max(remaining);
            }
        }
        detected.lost = lost.len() as u32;
        for start in lost {
            detected.again |= queue.lose(start);
        }
        detected
    }
}

/// What [`Rack::detect`] found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Detected {
    /// Segments.
    pub(super) lost: u32,
    /// Whether a retransmission is among them.
    pub(super) again: bool,
    /// Until the last of those that are late is lost; zero if none is late.
    pub(super) wait: Duration,
}
