//! What the receiver has beyond the cumulative ACK, and what that says of the rest (RFC 6675 §4).

use crate::ranges::{Ranges, Span};

/// The SACKed ranges of one window. Bytes are asked for by position, not by segment.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    sacked: Ranges,
}

impl Scoreboard {
    /// Takes one SACK block; returns whether it had new information. Blocks that reach outside
    /// `una..nxt` are ignored: they report a duplicate (RFC 2883) or are nonsense.
    pub(super) fn update(&mut self, block: Span, una: u64, nxt: u64) -> bool {
        block.start > una && block.end <= nxt && self.sacked.insert(block)
    }

    /// Removes ranges below the cumulative ACK.
    pub(super) fn remove_below(&mut self, una: u64) {
        self.sacked.remove_below(una);
    }

    /// Whether nothing is SACKed.
    pub(super) fn is_empty(&self) -> bool {
        self.sacked.is_empty()
    }

    /// The end of the highest SACKed range.
    pub(super) fn highest(&self) -> Option<u64> {
        self.sacked.end()
    }

    /// Bytes from `start` up to `end` that are not SACKed.
    pub(super) fn unsacked(&self, start: u64, end: u64) -> u64 {
        self.sacked.missing(start, end)
    }

    /// The first hole from `start` on, cut at `end`.
    pub(super) fn hole(&self, start: u64, end: u64) -> Option<Span> {
        self.sacked.gap(start, end)
    }

    /// IsLost (RFC 6675 §4) of all bytes at once: what is not SACKed below this position is lost.
    ///
    /// A byte is lost when `threshold` separate ranges above it, or more than `threshold` − 1 full
    /// segments, are SACKed. That never holds above and fails below, so that a walk over the
    /// highest ranges finds the border.
    pub(super) fn lost_below(&self, threshold: u32, mss: u64) -> Option<u64> {
        let enough = u64::from(threshold.saturating_sub(1)) * mss;
        let (mut ranges, mut bytes) = (0, 0);
        let border = self.sacked.iter().rev().find(|span| {
            ranges += 1;
            bytes += span.len();
            ranges >= threshold || bytes > enough
        });
        border.map(|span| span.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scoreboard(blocks: &[(u64, u64)]) -> Scoreboard {
        let mut scoreboard = Scoreboard::default();
        for &(start, end) in blocks {
            assert!(scoreboard.update(Span { start, end }, 1, 100_000));
        }
        scoreboard
    }

    #[test]
    fn three_ranges_or_more_than_two_segments_make_a_loss() {
        // Two full segments above the hole are not enough, one more byte is.
        assert_eq!(scoreboard(&[(1001, 3001)]).lost_below(3, 1000), None);
        assert_eq!(scoreboard(&[(1001, 3002)]).lost_below(3, 1000), Some(1001));
        // Three short ranges are.
        let short = [(101, 201), (301, 401), (501, 601)];
        assert_eq!(scoreboard(&short[..2]).lost_below(3, 1000), None);
        assert_eq!(scoreboard(&short).lost_below(3, 1000), Some(101));
        // Of several holes, only those with enough above them.
        let holes = scoreboard(&[(1001, 2001), (3001, 4001), (5001, 7001)]);
        assert_eq!(holes.lost_below(3, 1000), Some(3001));
    }

    #[test]
    fn blocks_outside_the_window_are_ignored() {
        let mut scoreboard = Scoreboard::default();
        for (start, end) in [(1, 1001), (900, 900), (5001, 4001), (2001, 9002)] {
            assert!(!scoreboard.update(Span { start, end }, 1001, 9001), "{start}:{end}");
        }
        assert!(scoreboard.is_empty());
    }
}
