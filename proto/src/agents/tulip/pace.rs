//! How long to wait for an answer and how much may be under way: from the link's constants, or
//! from its measured round trip and rate.

use super::settings::Settings;
use crate::rtt::RoundTrip;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use core::time::Duration;

/// The shortest wait for an answer of a link that tunes itself: processors have other work too.
const MIN_WAIT: Duration = Duration::from_millis(2);
/// The wait while nothing has been measured.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// While no answer comes the wait doubles, up to this or to twice the usual one.
const MAX_BACKED_OFF: Duration = Duration::from_millis(100);
/// How long the shortest round trip is remembered.
const MEMORY: Duration = Duration::from_secs(10);
/// Round trips among which the highest rate counts.
const ROUNDS: usize = 8;
/// Packets that may always be under way, and for how long packets at the full rate may be beyond
/// the link's own round trip: answers come in batches.
const MIN_LIMIT: u64 = 16;
const SLACK: Duration = Duration::from_millis(3);
/// Packets that may be under way before the rate has been measured.
const FIRST_LIMIT: u32 = 32;

/// What has been measured of the link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pace {
    is_adaptive: bool,
    limit: u32,
    /// The wait by the link's constants.
    answer_wait: Duration,
    ack_delay: Duration,
    smoothed: Option<RoundTrip>,
    /// The shortest round trip of this period of memory and of the one before it.
    shortest: [Duration; 2],
    period_end: Instant,
    /// Packets per second that arrived in the last rounds.
    rates: [u64; ROUNDS],
    round: u64,
    /// The present round: its first instant, what had arrived by then, and the serial number whose
    /// being heard of ends it.
    round_began: Instant,
    arrived_before: u64,
    round_ends: SeqNumber,
}

impl Pace {
    /// Nothing has been measured.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            is_adaptive: settings.adaptive,
            limit: if settings.adaptive { FIRST_LIMIT } else { u32::MAX },
            answer_wait: settings.answer_wait(),
            ack_delay: settings.ack_delay,
            smoothed: None,
            shortest: [Duration::MAX; 2],
            period_end: Instant::ZERO,
            rates: [0; ROUNDS],
            round: 0,
            round_began: Instant::ZERO,
            arrived_before: 0,
            round_ends: SeqNumber(0),
        }
    }

    /// How long to wait for an answer, after `unanswered` waits for nothing.
    pub(super) fn wait(&self, unanswered: u32) -> Duration {
        if !self.is_adaptive {
            return self.answer_wait;
        }
        let wait = self
            .smoothed
            .map_or(FIRST_WAIT, |smoothed| MIN_WAIT.max(smoothed.bound()) + self.ack_delay);
        let backed_off = wait.saturating_mul(1 << unanswered.min(16));
        backed_off.min(MAX_BACKED_OFF.max(2 * wait))
    }

    /// Packets that may be under way.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// Takes a round trip, as in RFC 6298 §2.
    pub(super) fn round_trip(&mut self, now: Instant, sample: Duration) {
        match &mut self.smoothed {
            None => self.smoothed = Some(RoundTrip::first(sample)),
            Some(smoothed) => smoothed.sample(sample),
        }
        if now >= self.period_end {
            self.shortest = [Duration::MAX, self.shortest[0]];
            self.period_end = now + MEMORY;
        }
        self.shortest[0] = self.shortest[0].min(sample);
    }

    /// A link ACK came: the receiver has heard of transmission `heard` of `sent`, and `arrived`
    /// packets have arrived. Once in a round trip this gives a rate.
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        arrived: u64,
        heard: SeqNumber,
        sent: SeqNumber,
    ) {
        if !self.is_adaptive || heard < self.round_ends {
            return;
        }
        let nanos = (now - self.round_began).as_nanos() as u64;
        if nanos > 0 && self.round > 0 {
            let rate = (arrived - self.arrived_before).saturating_mul(1_000_000_000) / nanos;
            self.rates[self.round as usize % ROUNDS] = rate;
        }
        self.round += 1;
        self.round_began = now;
        self.arrived_before = arrived;
        self.round_ends = sent + 1;
        self.set_limit();
    }

    /// A new stream counts its transmissions from the beginning.
    pub(super) fn restart(&mut self) {
        self.round_ends = SeqNumber(0);
        self.round = 0;
    }

    /// Twice what the link holds, so that it never runs dry and no long queue builds up in it.
    fn set_limit(&mut self) {
        let rate = self.rates.iter().copied().max().unwrap_or(0);
        let shortest = self.shortest[0].min(self.shortest[1]);
        if rate > 0 && shortest < Duration::MAX {
            let nanos = (2 * shortest + SLACK).as_nanos();
            let held = u128::from(rate) * nanos / 1_000_000_000 + u128::from(MIN_LIMIT);
            self.limit = u32::try_from(held).unwrap_or(u32::MAX);
        }
    }
}
