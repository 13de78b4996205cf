//! Disjoint ranges of stream positions, in order.

use crate::rare::Empty;
use alloc::collections::VecDeque;

/// Positions from `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first position.
    pub start: u64,
    /// The position after the last one.
    pub end: u64,
}

impl Span {
    /// The number of positions.
    pub(crate) fn len(self) -> u64 {
        self.end - self.start
    }
}

/// A set of positions, as few spans as possible. Growth at the end and removal at the beginning,
/// the operations of a transfer, take constant time.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    spans: VecDeque<Span>,
    total: u64,
}

impl Empty for Ranges {
    const EMPTY: &'static Self = &Self { spans: VecDeque::new(), total: 0 };
}

impl Ranges {
    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The number of spans.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The number of positions.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The spans, lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Span> {
        self.spans.iter().copied()
    }

    /// The end of the highest span.
    pub fn end(&self) -> Option<u64> {
        self.spans.back().map(|span| span.end)
    }

    /// The span that holds `position`.
    pub fn span_at(&self, position: u64) -> Option<Span> {
        self.spans.get(self.first_beyond(position)).copied().filter(|span| span.start <= position)
    }

    /// Adds `span`; returns whether any of it was new.
    pub fn insert(&mut self, span: Span) -> bool {
        if span.start >= span.end {
            return false;
        }
        if self.end().is_none_or(|end| end < span.start) {
            self.total += span.len();
            self.spans.push_back(span);
            return true;
        }
        self.total += self.missing(span.start, span.end);
        // The first span that touches the new one, and the first that no longer does.
        let from = self.spans.partition_point(|other| other.end < span.start);
        let to = self.spans.partition_point(|other| other.start <= span.end);
        let (Some(first), true) = (self.spans.get(from).copied(), from < to) else {
            self.spans.insert(from, span);
            return true;
        };
        let last = self.spans.get(to - 1).copied().unwrap_or(first);
        if to - from == 1 && first.start <= span.start && span.end <= first.end {
            return false;
        }
        if to - from > 1 {
            self.spans.drain(from + 1..to);
        }
        if let Some(merged) = self.spans.get_mut(from) {
            merged.start = first.start.min(span.start);
            merged.end = last.end.max(span.end);
        }
        true
    }

    /// Removes every position below `position`.
    pub fn remove_below(&mut self, position: u64) {
        while let Some(first) = self.spans.front_mut() {
            if first.end > position {
                let start = first.start.max(position);
                self.total -= start - first.start;
                first.start = start;
                break;
            }
            self.total -= first.len();
            self.spans.pop_front();
        }
    }

    /// The number of positions from `start` up to `end` that are not in the set.
    pub fn missing(&self, start: u64, end: u64) -> u64 {
        let spans = self.spans.iter().skip(self.first_beyond(start));
        let held: u64 = spans
            .take_while(|span| span.start < end)
            .map(|span| span.end.min(end) - span.start.max(start))
            .sum();
        end.saturating_sub(start) - held
    }

    /// The first gap from `start` on, cut at `end`.
    pub fn gap(&self, start: u64, end: u64) -> Option<Span> {
        let mut at = self.first_beyond(start);
        let mut start = start;
        if let Some(span) = self.spans.get(at).filter(|span| span.start <= start) {
            start = span.end;
            at += 1;
        }
        let end = self.spans.get(at).map_or(end, |span| span.start.min(end));
        (start < end).then_some(Span { start, end })
    }

    /// The index of the first span that ends above `position`.
    fn first_beyond(&self, position: u64) -> usize {
        self.spans.partition_point(|span| span.end <= position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn ranges(spans: &[(u64, u64)]) -> Ranges {
        let mut ranges = Ranges::default();
        for &(start, end) in spans {
            ranges.insert(Span { start, end });
        }
        ranges
    }

    #[test]
    fn neighbours_merge() {
        let held = ranges(&[(10, 20), (30, 40), (20, 30)]);
        assert!(held.iter().eq([Span { start: 10, end: 40 }]));
        assert_eq!(held.span_at(39), Some(Span { start: 10, end: 40 }));
        assert_eq!(held.span_at(40), None);
    }

    proptest! {
        #[test]
        fn behaves_as_a_set_of_positions(
            spans in prop::collection::vec((0_u64..60, 0_u64..12), 0..20),
            (cut, start, len) in (0_u64..70, 0_u64..70, 0_u64..30),
        ) {
            let mut held = Ranges::default();
            let mut set = BTreeSet::new();
            for (start, len) in spans {
                let positions = start..start + len;
                let grew = positions.clone().any(|position| !set.contains(&position));
                set.extend(positions);
                prop_assert_eq!(held.insert(Span { start, end: start + len }), grew);
            }
            held.remove_below(cut);
            set.retain(|position| *position >= cut);
            let all: Vec<u64> = held.iter().flat_map(|span| span.start..span.end).collect();
            prop_assert!(all.iter().eq(set.iter()));
            prop_assert_eq!(held.total(), set.len() as u64);
            let spans: Vec<Span> = held.iter().collect();
            prop_assert!(spans.windows(2).all(|pair| pair[0].end < pair[1].start));

            let end = start + len;
            let missing: Vec<u64> = (start..end).filter(|p| !set.contains(p)).collect();
            prop_assert_eq!(held.missing(start, end), missing.len() as u64);
            let gap = held.gap(start, end);
            prop_assert_eq!(gap.map(|gap| gap.start), missing.first().copied());
            if let Some(gap) = gap {
                prop_assert!((gap.start..gap.end).all(|p| !set.contains(&p)));
                prop_assert!(gap.end == end || set.contains(&gap.end));
            }
        }
    }
}
