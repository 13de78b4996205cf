//! RACK (RFC 8985): what was sent is lost when something that was sent later has arrived. It sees
//! a loss where fewer than three segments follow, and the loss of a retransmission.

use super::scoreboard::Scoreboard;
use crate::ranges::Span;
use crate::time::Instant;
use alloc::collections::VecDeque;
use core::time::Duration;

/// When each segment in flight was sent, and the latest of those that arrived.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// Segments as they were sent for the first time, in order of time and of the stream.
    sent: VecDeque<Sent>,
    /// Segments sent again, in order of time.
    resent: VecDeque<Resent>,
    /// When the one sent last among all that arrived was sent, and its end.
    latest: (Instant, u64),
    /// Its round trip, and the least of any.
    round_trip: Duration,
    least: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    at: Instant,
    /// It was sent again: an ACK does not tell which of the two arrived.
    again: bool,
}

#[derive(Clone, Copy, Debug)]
struct Resent {
    span: Span,
    at: Instant,
    is_lost: bool,
}

impl Rack {
    /// Nothing was sent yet.
    pub(super) fn new() -> Self {
        Self {
            sent: VecDeque::new(),
            resent: VecDeque::new(),
            latest: (Instant::ZERO, 0),
            round_trip: Duration::ZERO,
            least: Duration::MAX,
        }
    }

    /// A segment that ends here left for the first time.
    pub(super) fn sent(&mut self, now: Instant, end: u64) {
        self.sent.push_back(Sent { end, at: now, again: false });
    }

    /// This segment left again.
    pub(super) fn resent(&mut self, now: Instant, span: Span) {
        let from = self.sent.partition_point(|sent| sent.end <= span.start);
        let to = self.sent.partition_point(|sent| sent.end <= span.end);
        self.sent.range_mut(from..to).for_each(|sent| sent.again = true);
        self.resent.retain(|resent| resent.span.start != span.start);
        self.resent.push_back(Resent { span, at: now, is_lost: false });
    }

    /// The timer expired: all that was sent again is to be sent once more.
    pub(super) fn timed_out(&mut self) {
        self.resent.clear();
    }

    /// An ACK arrived (§6.2 steps 1 and 2).
    pub(super) fn acknowledged(&mut self, now: Instant, una: u64, scoreboard: &Scoreboard) {
        let mut latest = self.latest;
        let has_arrived = |span: Span| missing(span, una, scoreboard) == 0;
        self.resent.retain(|resent| {
            let arrived = has_arrived(resent.span);
            // An ACK sooner than any round trip is the original's.
            if arrived && now.since(resent.at) >= self.least {
                latest = latest.max((resent.at, resent.span.end));
            }
            !arrived
        });
        let mut original = |sent: &Sent| {
            if !sent.again {
                latest = latest.max((sent.at, sent.end));
            }
        };
        while let Some(first) = self.sent.front().filter(|sent| sent.end <= una) {
            original(first);
            self.sent.pop_front();
        }
        if let Some(highest) = scoreboard.highest() {
            let beyond = self.sent.partition_point(|sent| sent.end <= highest);
            beyond.checked_sub(1).and_then(|index| self.sent.get(index)).map(original);
        }
        if latest > self.latest {
            self.latest = latest;
            self.round_trip = now.since(latest.0);
            self.least = self.least.min(self.round_trip);
        }
    }

    /// When the oldest segment in flight is lost, unless it arrives: a quarter of the least round
    /// trip later than it would have come (§6.2 step 4); none while nothing later has arrived.
    pub(super) fn oldest_is_lost_at(&self) -> Option<Instant> {
        let oldest = self.sent.front().filter(|sent| !sent.again)?;
        let is_late = (oldest.at, oldest.end) < self.latest;
        is_late.then(|| oldest.at + self.round_trip + self.least / 4)
    }

    /// What is not SACKed below this position is lost, once a loss is certain (§6.2 step 5).
    /// Marks what was sent again and is lost again.
    pub(super) fn detect(&mut self) -> Option<u64> {
        for resent in &mut self.resent {
            resent.is_lost |= (resent.at, resent.span.end) < self.latest;
        }
        let late = self.sent.partition_point(|sent| (sent.at, sent.end) < self.latest);
        late.checked_sub(1).and_then(|index| self.sent.get(index)).map(|sent| sent.end)
    }

    /// What was sent again and is lost again, the lowest first to be sent.
    pub(super) fn first_lost_again(&self) -> Option<Span> {
        let lost = self.resent.iter().filter(|resent| resent.is_lost);
        lost.map(|resent| resent.span).min_by_key(|span| span.start)
    }

    /// Bytes sent again and lost again.
    pub(super) fn lost_again(&self, una: u64, scoreboard: &Scoreboard) -> u64 {
        let lost = self.resent.iter().filter(|resent| resent.is_lost);
        lost.map(|resent| missing(resent.span, una, scoreboard)).sum()
    }
}

/// How much of a segment has not arrived.
fn missing(span: Span, una: u64, scoreboard: &Scoreboard) -> u64 {
    if span.end <= una { 0 } else { scoreboard.unsacked(span.start.max(una), span.end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Five segments of 1000 bytes, a millisecond apart.
    fn five() -> Rack {
        let mut rack = Rack::new();
        (0..5).for_each(|index| rack.sent(at(index), 1001 + 1000 * index));
        rack
    }

    #[test]
    fn what_was_sent_before_an_arrival_is_lost() {
        let (mut rack, mut scoreboard) = (five(), Scoreboard::default());
        rack.acknowledged(at(100), 1001, &scoreboard);
        assert_eq!(rack.oldest_is_lost_at(), None);
        // One SACK makes it late, a quarter of the least round trip (100 ms) makes it lost.
        scoreboard.update(Span { start: 3001, end: 4001 }, 1001, 5001);
        rack.acknowledged(at(103), 1001, &scoreboard);
        assert_eq!(rack.oldest_is_lost_at(), Some(at(1 + 100 + 25)));
        assert_eq!(rack.detect(), Some(3001));
    }

    #[test]
    fn a_retransmission_is_lost_when_something_later_arrives() {
        let (mut rack, mut scoreboard) = (five(), Scoreboard::default());
        scoreboard.update(Span { start: 1001, end: 5001 }, 1, 5001);
        rack.acknowledged(at(104), 1, &scoreboard);
        rack.resent(at(104), Span { start: 1, end: 1001 });
        rack.sent(at(104), 6001);
        assert!(rack.detect().is_some());
        assert_eq!(rack.first_lost_again(), None);
        scoreboard.update(Span { start: 5001, end: 6001 }, 1, 6001);
        rack.acknowledged(at(204), 1, &scoreboard);
        rack.detect();
        assert_eq!(rack.first_lost_again(), Some(Span { start: 1, end: 1001 }));
        assert_eq!(rack.lost_again(1, &scoreboard), 1000);
        // Once it is sent for the third time it is in flight again.
        rack.resent(at(204), Span { start: 1, end: 1001 });
        assert_eq!(rack.lost_again(1, &scoreboard), 0);
    }
}
