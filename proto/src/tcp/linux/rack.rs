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

    /// The least round trip, once there was one.
    pub(super) fn least(&self) -> Option<Duration> {
        self.least
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

    /// `tcp_rack_update_reo_wnd`: an ACK reports what was sent when `prior` segments had been
    /// delivered, and now `delivered` are: what was needless widens the window once a round trip.
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
        let is_open = |segment: &Segment| !segment.lost || segment.resent;
        let earlier = queue.in_order_of_time().filter(is_open).take_while(is_earlier);
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
            queue.forget_time(start);
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

#[cfg(test)]
mod tests {
    use super::super::queue::Sent;
    use super::*;
    use crate::ranges::Span;

    const ROUND_TRIP: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Five segments of 1000 bytes, a millisecond apart, on a path of 100 ms.
    fn five() -> (Rack, Queue) {
        let (mut rack, mut queue) = (Rack::new(), Queue::default());
        rack.measured(ROUND_TRIP);
        for index in 0..5 {
            queue.push(
                at(index),
                Span { start: 1 + 1000 * index, end: 1001 + 1000 * index },
                Sent::default(),
            );
        }
        (rack, queue)
    }

    fn sack(rack: &mut Rack, queue: &mut Queue, now: Instant, start: u64, end: u64) {
        queue.sack(Span { start, end }, |segment| rack.arrived(now, segment));
    }

    #[test]
    fn what_was_sent_before_an_arrival_is_lost_when_its_time_is_over() {
        let (mut rack, mut queue) = five();
        sack(&mut rack, &mut queue, at(103), 3001, 4001);
        // §6.2 step 5: 1 and 1001 left 3 and 2 ms before, and are waited for a quarter more.
        let detected = rack.detect(at(103), &mut queue, ROUND_TRIP / 4);
        assert_eq!((detected.lost, detected.wait), (0, Duration::from_millis(24)));
        assert_eq!(rack.detect(at(125), &mut queue, ROUND_TRIP / 4).lost, 1);
        assert_eq!(rack.detect(at(127), &mut queue, ROUND_TRIP / 4).lost, 2);
        assert_eq!((queue.lost_out, queue.in_flight()), (3, 1));
    }

    #[test]
    fn a_retransmission_is_lost_when_something_later_arrives() {
        let (mut rack, mut queue) = five();
        sack(&mut rack, &mut queue, at(104), 1001, 5001);
        assert_eq!(rack.detect(at(104), &mut queue, Duration::ZERO).lost, 1);
        queue.resend(at(104), 1, false, Sent::default());
        queue.push(at(104), Span { start: 5001, end: 6001 }, Sent::default());
        assert_eq!(queue.in_flight(), 2);
        sack(&mut rack, &mut queue, at(204), 5001, 6001);
        let detected = rack.detect(at(204), &mut queue, Duration::ZERO);
        assert!(detected.again);
        assert_eq!(queue.first_to_resend().map(|segment| segment.span.start), Some(1));
    }

    // `tcp_undo_cwnd_reduction` clears the marks; `tcp_mark_skb_lost` alone leaves a segment in the
    // order of time.
    #[test]
    fn after_an_undone_timeout_the_losses_that_it_marked_are_found_again() {
        let (mut rack, mut queue) = five();
        queue.lose(1);
        queue.lose(1001);
        sack(&mut rack, &mut queue, at(104), 2001, 5001);
        assert_eq!(rack.detect(at(104), &mut queue, Duration::ZERO).lost, 0, "they are marked");
        queue.unlose();
        sack(&mut rack, &mut queue, at(105), 2001, 5001);
        assert_eq!(rack.detect(at(105), &mut queue, Duration::ZERO).lost, 2);
        queue.unlose();
        assert_eq!(rack.detect(at(106), &mut queue, Duration::ZERO).lost, 0, "RACK marked them");
    }

    #[test]
    fn a_retransmission_that_arrives_too_soon_was_the_original() {
        let (mut rack, mut queue) = five();
        queue.lose(1);
        queue.resend(at(110), 1, false, Sent::default());
        sack(&mut rack, &mut queue, at(150), 1, 1001);
        assert!(!rack.advanced);
    }

    #[test]
    fn the_window_for_reordering_is_zero_until_there_is_some() {
        let (mut rack, _) = five();
        let srtt = 2 * ROUND_TRIP;
        assert_eq!(rack.window(true, srtt), Duration::ZERO);
        assert_eq!(rack.window(false, srtt), ROUND_TRIP / 4);
        rack.reordered(7);
        assert_eq!(rack.window(true, srtt), ROUND_TRIP / 4);
        assert!(!rack.is_enough(6) && rack.is_enough(7));
    }

    #[test]
    fn each_round_trip_with_a_needless_retransmission_adds_a_quarter() {
        let (mut rack, _) = five();
        let srtt = Duration::from_secs(1);
        // Where nothing is ever reordered, duplicates say nothing of reordering.
        rack.duplicate();
        rack.adapt(1, 2);
        rack.reordered(3);
        assert_eq!(rack.window(true, srtt), ROUND_TRIP / 4);
        rack.duplicate();
        rack.adapt(10, 20);
        assert_eq!(rack.window(true, srtt), ROUND_TRIP / 2);
        // Before what was then sent arrives, a second one adds nothing.
        rack.duplicate();
        rack.adapt(19, 25);
        assert_eq!(rack.window(true, srtt), ROUND_TRIP / 2);
        // Sixteen recoveries later it is one quarter again, and never more than a round trip.
        (0..16).for_each(|_| rack.recovered(false));
        rack.adapt(30, 31);
        assert_eq!(rack.window(true, srtt), ROUND_TRIP / 4);
        assert_eq!(rack.window(true, ROUND_TRIP / 10), ROUND_TRIP / 10);
    }
}
