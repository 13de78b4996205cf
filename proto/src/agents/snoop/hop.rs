//! The hop to one mobile host, as its round trips and losses show it: the least round trip, the
//! queue beyond the agent, what the air loses, and whether a loss is congestion [C-22]. All flows
//! of the mobile host share that queue, and so their samples are of one queue.
//!
//! A loss counts as congestion only while a queue stands: for a third of the sender's round trip no
//! sample came near the least round trip (the sojourn rule of RFC 8289, with the interval of the
//! sender). Then one of these findings is enough: the path loses nothing while its queue is short;
//! more is lost than while the queue is short; the delay is at a peak that it does not exceed any
//! more; or the queue exceeds the sender's round trip, or half of its window [C-34]. As long as too
//! few packets passed while the queue was short, each loss counts once the queue has stood for a
//! whole round trip, unless others fill it. The time counts from the sender's last answer, which
//! the queue must show first; but where the path loses nothing by itself, from the begin of the
//! queue.
//!
//! A delay is that of a queue only if a queue can have grown to it: between two packets it grows by
//! what came between at most. What rises more steeply, and stays, is a longer path.

use super::decision::Left;
use super::surplus::Surplus;
use super::tally::Tally;
use crate::extreme::{Extreme, PATH_WINDOW};
use crate::time::Instant;
use core::time::Duration;

/// The queueing delay that a queue without congestion does not keep (RFC 8289 §4.2).
const TARGET: Duration = Duration::from_millis(5);
/// The window of the largest round trip.
const PEAK_WINDOW: Duration = Duration::from_secs(15);

/// The time within which the next segment must follow for a sample to be prompt: neither did the
/// application wait, nor the receiver with its ACK.
pub(super) const PROMPT: Duration = Duration::from_millis(2);

/// A loss of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    /// When the lost packet departed.
    pub(super) sent_at: Instant,
    /// The round trip of the wired side of the flow.
    pub(super) wired: Duration,
    /// The window of the sender in bytes, 0 if it is not known.
    pub(super) window: u64,
    /// When the sender's answer to the last loss that was taken for congestion can be here.
    pub(super) answer_at: Option<Instant>,
}

/// The local round trips to one mobile host, and what was lost at which of them.
#[derive(Debug)]
pub(super) struct Hop {
    least: Extreme,
    peak: Extreme,
    /// When the peak last rose.
    raised_at: Instant,
    /// The last prompt sample.
    latest: Duration,
    /// The last sample, and the segments that arrived since.
    last: Duration,
    arrived: u32,
    jump: Option<Jump>,
    /// Since when every sample exceeds the least round trip by the target.
    standing_since: Option<Instant>,
    surplus: Surplus,
    short: Tally,
    standing: Tally,
}

/// A rise of the delay that no queue explains.
#[derive(Clone, Copy, Debug)]
struct Jump {
    /// The delay before it, and what it rose by.
    from: Duration,
    by: Duration,
    /// When the path counts as longer, unless the delay falls before.
    until: Instant,
}

impl Hop {
    /// Takes an unambiguous round-trip sample. The receiver may have delayed the ACK unless the
    /// sample `is_prompt`.
    pub(super) fn sample(
        &mut self,
        now: Instant,
        sample: Duration,
        is_prompt: bool,
        wired: Duration,
    ) {
        if is_prompt {
            self.follow_path(now, sample, wired);
            if sample > self.peak.get() {
                self.raised_at = now;
            }
            self.peak.sample(now, sample);
            self.latest = sample;
        }
        // A sample that is not prompt may be too high.
        if is_prompt || sample <= self.last {
            (self.last, self.arrived) = (sample, 0);
        }
        self.least.sample(now, sample);
        self.surplus.sample(now, sample);
        if sample <= self.least() + TARGET {
            self.standing_since = None;
        } else if is_prompt {
            self.standing_since.get_or_insert(now);
        }
    }

    /// The share of packets that the air loses: of those over a short queue.
    pub(super) fn air_loss(&self) -> f32 {
        self.short.share()
    }

    /// Whether no queue stands.
    pub(super) fn is_short(&self) -> bool {
        self.standing_since.is_none()
    }

    /// Whether a queue was seen beyond the agent in the window of the largest round trip: the
    /// bottleneck is there.
    pub(super) fn has_queued(&self) -> bool {
        self.peak.get().saturating_sub(self.least()) > TARGET
    }

    #[cfg(test)]
    pub(super) fn is_known(&self) -> bool {
        self.peak.get() > Duration::ZERO
    }

    /// Counts segments that arrived.
    pub(super) fn arrived(&mut self, now: Instant, segments: u64) {
        let segments = u32::try_from(segments).unwrap_or(1);
        self.surplus.arrived(now, segments);
        self.arrived = self.arrived.saturating_add(segments);
        self.tally().add(segments as f32, 0.0);
    }

    /// All that a flow had in flight has arrived: nothing of it waits in the queue.
    pub(super) fn drained(&mut self) {
        self.arrived = 0;
    }

    /// Decides why a loss that is found now counts as congestion, if it does, and counts it.
    pub(super) fn judge(&mut self, now: Instant, loss: &Loss) -> Option<Left> {
        if loss.answer_at.is_some_and(|at| loss.sent_at <= at) {
            // The sender counts this loss and the last one as one event.
            return self.standing_since.map(|_| Left::SameEvent);
        }
        self.tally().add(1.0, 1.0);
        let cause = self.congestion(now, loss);
        let is_asked = cause.is_none_or(|cause| cause == Left::SharedQueue);
        if is_asked && self.has_stood(now, loss, self.answered_at(loss)) {
            self.surplus.watch(loss.wired + self.latest);
        }
        if cause.is_some() {
            self.standing = Tally::default();
        }
        cause
    }
}

impl Default for Hop {
    fn default() -> Self {
        let start = Instant::ZERO;
        Self {
            least: Extreme::least(PATH_WINDOW, start, Duration::MAX),
            peak: Extreme::largest(PEAK_WINDOW, start, Duration::ZERO),
            raised_at: start,
            latest: Duration::ZERO,
            last: Duration::MAX,
            arrived: 0,
            jump: None,
            standing_since: None,
            surplus: Surplus::new(start, Duration::MAX),
            short: Tally::default(),
            standing: Tally::default(),
        }
    }
}

impl Hop {
    /// Tells a longer path from a queue. A queue grows from one packet to the next by what came
    /// between at most. A rise that exceeds it is the path's, unless the delay falls by half of it
    /// within two round trips of the sender, as after a pause of the hop.
    fn follow_path(&mut self, now: Instant, sample: Duration, wired: Duration) {
        if let Some(jump) = self.jump {
            if sample < jump.from + jump.by / 2 {
                self.jump = None;
            } else if now >= jump.until {
                self.least.rise(jump.by);
                self.peak = Extreme::largest(PEAK_WINDOW, now, sample);
                self.jump = None;
            }
        }
        let rise = sample.saturating_sub(self.last);
        let is_jump = |service: Duration| rise > PROMPT + service;
        if self.surplus.service_time(self.arrived).is_some_and(is_jump) {
            let until = now + (wired + sample) * 2;
            let first = Jump { from: self.last, by: Duration::ZERO, until };
            self.jump.get_or_insert(first).by += rise;
        }
    }

    /// The least round trip; the longest time there is before the first sample.
    pub(super) fn least(&self) -> Duration {
        self.least.get()
    }

    /// Why a loss that was counted is congestion of a standing queue.
    fn congestion(&self, now: Instant, loss: &Loss) -> Option<Left> {
        // Where the air loses nothing, a queue has dropped it, answered by the sender or not.
        if self.is_clean() && self.jump.is_none() && self.has_stood(now, loss, Instant::ZERO) {
            return Some(Left::CleanAir);
        }
        let answered_at = self.answered_at(loss);
        // In doubt the sender is told. Its answer empties the queue, and ends the doubt, unless
        // others fill the queue.
        if self.is_unknown()
            && self.surplus.is_own()
            && self.stood(now, answered_at)? >= loss.wired + self.least()
        {
            return Some(Left::UnknownAir);
        }
        if !self.has_stood(now, loss, answered_at) {
            return None;
        }
        let shared = || self.surplus.outlasts(loss.window, self.least());
        self.full(now, loss.wired).or_else(|| shared().then_some(Left::SharedQueue))
    }

    /// When the queue shows the sender's last answer.
    fn answered_at(&self, loss: &Loss) -> Instant {
        loss.answer_at.map_or(Instant::ZERO, |at| at + self.latest)
    }

    /// For how long a queue stands, counted from this time on.
    fn stood(&self, now: Instant, from: Instant) -> Option<Duration> {
        Some(now.since(self.standing_since?.max(from)))
    }

    /// Whether a queue has stood for long enough, counted from this time on.
    fn has_stood(&self, now: Instant, loss: &Loss, from: Instant) -> bool {
        self.stood(now, from).is_some_and(|stood| stood >= (loss.wired + self.least()) / 3)
    }

    /// The finding that shows that the standing queue loses packets.
    fn full(&self, now: Instant, wired: Duration) -> Option<Left> {
        // Whether the delay is that of a queue will show.
        let by_delay = self.full_by_delay(now, wired).filter(|_| self.jump.is_none());
        by_delay.or_else(|| self.standing.exceeds(&self.short).then_some(Left::Excess))
    }

    fn full_by_delay(&self, now: Instant, wired: Duration) -> Option<Left> {
        // The peak is that of a full queue if the delay has stopped to rise.
        let is_at_peak = || now.since(self.raised_at) >= wired + self.latest;
        if self.is_near_peak() && is_at_peak() {
            Some(Left::FullQueue)
        } else {
            let queue = self.latest.saturating_sub(self.least());
            (queue >= wired + self.least()).then_some(Left::LongQueue)
        }
    }

    /// Whether nothing was lost while the queue was short.
    fn is_clean(&self) -> bool {
        !self.is_unknown() && self.short.lost < 0.5
    }

    /// Whether too few packets have shown what the air loses.
    fn is_unknown(&self) -> bool {
        !self.short.is_known()
    }

    /// Whether the delay is within a tenth of its peak.
    fn is_near_peak(&self) -> bool {
        let range = self.peak.get().saturating_sub(self.least());
        self.latest >= self.least() + TARGET.max(range.mul_f64(0.9))
    }

    fn tally(&mut self) -> &mut Tally {
        if self.standing_since.is_some() { &mut self.standing } else { &mut self.short }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sender::answer_at;
    use super::*;

    const WIRED: Duration = Duration::from_millis(80);

    /// One flow over a path of 4 ms.
    #[derive(Default)]
    struct Path {
        hop: Hop,
        answer_at: Option<Instant>,
        millis: u64,
    }

    impl Path {
        /// A path that loses nothing by itself, and at whose growing queue a loss was congestion.
        fn after_congestion() -> Self {
            let mut path = Self::default();
            path.feed(|_| 0, 300, u64::MAX);
            path.feed(|number| number / 10, 400, u64::MAX);
            assert!(path.lose(4));
            path
        }

        /// Feeds a sample and an arrival for each of `packets`; one of each `interval` is lost.
        /// Returns the number of losses, and of those that count as congestion.
        fn feed(&mut self, delay: impl Fn(u64) -> u64, packets: u64, interval: u64) -> (u64, u64) {
            let (mut losses, mut congested) = (0, 0);
            for number in 0..packets {
                self.millis += 1;
                let round_trip = 4 + delay(number);
                self.hop.sample(self.now(), Duration::from_millis(round_trip), true, WIRED);
                if number % interval == interval - 1 {
                    losses += 1;
                    congested += u64::from(self.lose(round_trip));
                } else {
                    self.hop.arrived(self.now(), 1);
                }
            }
            (losses, congested)
        }

        fn now(&self) -> Instant {
            Instant::from_millis(1_000 + self.millis)
        }

        /// Whether the loss of a packet of `millis` ago counts as congestion.
        fn lose(&mut self, millis: u64) -> bool {
            let now = self.now();
            let sent_at = Instant::from_millis(1_000 + self.millis - millis);
            let cause = self.hop.judge(now, &loss(sent_at, self.answer_at));
            if cause.is_some_and(Left::is_new_congestion) {
                self.answer_at = Some(answer_at(now, WIRED, self.hop.least()));
            }
            cause.is_some()
        }
    }

    fn loss(sent_at: Instant, answer_at: Option<Instant>) -> Loss {
        Loss { sent_at, wired: WIRED, window: 0, answer_at }
    }

    #[test]
    fn losses_over_a_short_queue_are_the_airs() {
        let mut path = Path::default();
        assert_eq!(path.feed(|number| number % 5, 10_000, 10), (1_000, 0));
    }

    #[test]
    fn a_queue_that_just_began_to_stand_loses_by_chance() {
        let mut path = Path::default();
        path.feed(|_| 0, 1_000, 20);
        assert_eq!(path.feed(|_| 20, 20, 20), (1, 0));
    }

    #[test]
    fn on_a_clean_path_a_loss_over_a_standing_queue_is_congestion() {
        let mut path = Path::default();
        path.feed(|_| 0, 300, u64::MAX);
        assert_eq!(path.feed(|number| number / 10, 400, 400), (1, 1));
    }

    #[test]
    fn an_excess_of_losses_over_a_standing_queue_is_congestion() {
        let grow = |number: u64| 6 + number / 50;
        for (interval, is_congestion) in [(20, false), (5, true)] {
            let mut path = Path::default();
            path.feed(|_| 0, 2_000, 20);
            let (_, congested) = path.feed(grow, 1_000, interval);
            assert_eq!(congested > 0, is_congestion, "one of {interval} lost");
        }
    }

    #[test]
    fn a_late_ack_in_a_fade_is_no_queue() {
        let mut path = Path::default();
        path.feed(|_| 0, 2_000, 100);
        path.millis += 8;
        path.hop.sample(path.now(), Duration::from_millis(12), true, WIRED);
        assert_eq!((0..20).filter(|_| path.lose(8)).count(), 0);
    }

    #[test]
    fn the_peak_of_a_full_queue_is_congestion_once_it_does_not_rise() {
        let mut path = Path::default();
        path.feed(|_| 0, 2_000, 100);
        let growing = path.feed(|number| 1 + number / 10, 400, 100);
        assert_eq!(growing.1, 0, "the queue still grows");
        let full = path.feed(|_| 40, 400, 100);
        assert!(full.1 > 0, "the queue is full");
    }

    #[test]
    fn a_path_that_has_become_longer_is_no_queue() {
        let mut path = Path::default();
        path.feed(|_| 0, 2_000, 100);
        for delay in [20, 24, 60] {
            assert_eq!(path.feed(|_| delay, 4_000, 50), (80, 0), "{delay} ms longer");
        }
    }

    #[test]
    fn a_pause_of_the_hop_makes_no_longer_path() {
        let mut path = Path::default();
        path.feed(|_| 0, 2_000, 100);
        path.feed(|number| 1 + number / 10, 400, 100);
        let full = path.feed(|number| 44 - number.min(4), 400, 100);
        assert!(full.1 > 0, "the queue is as full as before the pause");
    }

    #[test]
    fn a_queue_that_fell_after_an_answer_is_full_again() {
        let mut path = Path::default();
        path.feed(|_| 0, 2_000, 100);
        path.feed(|number| number / 20, 400, 100);
        let sawtooth = |number: u64| 20 + number % 500 / 25;
        let (losses, congested) = path.feed(sawtooth, 4_000, 50);
        assert!(congested >= 8, "{congested} of {losses}");
    }

    #[test]
    fn a_queue_longer_than_the_round_trip_is_congestion() {
        let mut path = Path::default();
        path.feed(|_| 0, 2_000, 100);
        path.feed(|number| number / 2, 170, u64::MAX);
        let (losses, congested) = path.feed(|number| 85 + number, 200, 100);
        assert_eq!((losses, congested), (2, 2));
    }

    #[test]
    fn a_shorter_queue_that_stands_after_the_answer_is_the_next_event() {
        let mut path = Path::default();
        path.feed(|_| 0, 300, u64::MAX);
        path.feed(|number| 10 + number / 8, 400, u64::MAX);
        assert!(path.lose(4));
        path.feed(|_| 20, 300, u64::MAX);
        assert!(path.lose(4));
    }

    #[test]
    fn losses_of_an_event_are_no_excess_after_it() {
        let mut path = Path::default();
        path.feed(|_| 0, 2_000, 100);
        path.feed(|number| number / 8, 400, u64::MAX);
        path.feed(|_| 50, 200, u64::MAX);
        assert!(path.lose(4), "the queue is full");
        assert_eq!((0..100).filter(|_| path.lose(20)).count(), 100, "the same event");
        path.feed(|_| 10, 300, u64::MAX);
        assert!(!path.lose(4), "a loss at a queue that has become shorter");
    }

    #[test]
    fn what_departs_before_an_answer_can_be_there_is_of_the_same_event() {
        let mut path = Path::after_congestion();
        let signalled_at = path.now();
        path.feed(|_| 40, 200, u64::MAX);
        let mut cause_of = |millis: u64| {
            let sent_at = signalled_at + WIRED + Duration::from_millis(millis);
            path.hop.judge(path.now(), &loss(sent_at, path.answer_at))
        };
        // A quarter of 84 ms after the round trip by wire.
        assert_eq!(cause_of(20), Some(Left::SameEvent));
        assert_ne!(cause_of(22), Some(Left::SameEvent));
    }

    #[test]
    fn each_flow_signals_for_itself() {
        let mut path = Path::after_congestion();
        let cause = path.hop.judge(path.now(), &loss(path.now(), None));
        assert!(cause.is_some_and(Left::is_new_congestion), "the history of the first flow");
    }
}
