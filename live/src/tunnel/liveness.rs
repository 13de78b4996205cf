//! Whether the peer is there. Sans-I/O.
//!
//! The end that initiates sends something ten times a second, so the other one hears of its end
//! soon. Where nothing comes for a second, the peer is asked: every version answers probes.

use airmend_proto::Instant;
use std::time::Duration;

/// The peer is asked when it has said nothing for this time.
const QUIET: Duration = Duration::from_secs(1);
/// And again, since questions and answers are lost.
const ASK: Duration = Duration::from_millis(100);
/// Then it is taken for lost.
const SILENT: Duration = Duration::from_millis(2_500);

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing has come from the peer for too long.
    Lost,
    /// Something has.
    Found,
}

/// When the peer was last heard.
#[derive(Debug)]
pub(super) struct Liveness {
    /// Authentic datagrams so far.
    received: u64,
    heard: Option<Instant>,
    /// Silence counts from here: since it was heard, or since the start.
    since: Instant,
    polled: Instant,
    next_question: Instant,
    is_lost: bool,
}

impl Liveness {
    /// Nothing was heard yet.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            received: 0,
            heard: None,
            since: now,
            polled: now,
            next_question: now,
            is_lost: false,
        }
    }

    /// When the peer was last heard.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.heard
    }

    /// Whether nothing has come for too long.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// So many authentic datagrams have come by now; what follows from it.
    pub(super) fn poll(&mut self, now: Instant, received: u64) -> Option<Change> {
        // Whoever was stopped for a while has not listened meanwhile.
        let pause = now - std::mem::replace(&mut self.polled, now);
        if pause >= QUIET {
            self.since = (self.since + pause).min(now);
        }
        if received != self.received {
            (self.received, self.heard, self.since) = (received, Some(now), now);
            return std::mem::take(&mut self.is_lost).then_some(Change::Found);
        }
        let is_new = !self.is_lost && now - self.since >= SILENT;
        self.is_lost |= is_new;
        is_new.then_some(Change::Lost)
    }

    /// Whether the peer should be asked now.
    pub(super) fn poll_question(&mut self, now: Instant) -> bool {
        let is_due = now - self.since >= QUIET && now >= self.next_question;
        if is_due {
            self.next_question = now + ASK;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Looks every 50 ms; what has changed when.
    fn changes(heard: impl Fn(u64) -> u64, until: u64) -> (Vec<(u64, Change)>, usize) {
        let mut liveness = Liveness::new(at(0));
        let (mut changes, mut questions) = (Vec::new(), 0);
        for millis in (0..until).step_by(50) {
            questions += usize::from(liveness.poll_question(at(millis)));
            changes.extend(liveness.poll(at(millis), heard(millis)).map(|change| (millis, change)));
        }
        (changes, questions)
    }

    #[test]
    fn a_peer_that_ends_is_lost_within_three_seconds_and_one_that_comes_back_is_found() {
        let heard = |millis: u64| millis.min(10_000) / 100 + millis.saturating_sub(20_000) / 100;
        let (changes, questions) = changes(heard, 30_000);
        assert_eq!(changes, [(12_500, Change::Lost), (20_100, Change::Found)]);
        // From a second of silence on.
        assert_eq!(questions, (11_000..=20_100).step_by(100).count());
    }

    #[test]
    fn a_peer_that_never_came_is_lost_once() {
        assert_eq!(changes(|_| 0, 60_000).0, [(2_500, Change::Lost)]);
    }

    #[test]
    fn whoever_was_stopped_has_not_listened() {
        let mut liveness = Liveness::new(at(0));
        assert_eq!(liveness.poll(at(100), 1), None);
        assert_eq!(liveness.poll(at(9_000), 1), None);
        assert_eq!(liveness.poll(at(9_100), 2), None);
        for millis in (9_100..11_600).step_by(50) {
            assert_eq!(liveness.poll(at(millis), 2), None, "{millis}");
        }
        assert_eq!(liveness.poll(at(11_600), 2), Some(Change::Lost));
        assert_eq!(liveness.heard(), Some(at(9_100)));
    }
}
