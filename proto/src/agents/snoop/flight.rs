//! The transmissions of one flow in their order: what was overtaken is found without a walk over
//! the cache [C-4, C-26].

use crate::ranges::Span;
use crate::rare::{Empty, Rare};
use alloc::collections::VecDeque;

/// The capacity that an empty buffer keeps: enough for a small exchange, little for 100,000 idle
/// flows.
pub(super) const IDLE_CAPACITY: usize = 4;

/// One transmission: the number of its first segment within the flow, and its positions.
///
/// It is void once the range was acknowledged, or sent again with a higher number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    pub(super) order: u64,
    pub(super) span: Span,
}

/// All transmissions that may still be judged, lowest number first.
///
/// Data that was sent once is in the order of the stream: the cache is its list, and only a
/// position is kept here. What was sent again has a list.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    /// Of the data that was sent once, no later transmission is known to have overtaken what lies
    /// at this position or above.
    pub(super) once: u64,
    /// The number of the last transmission.
    last: u64,
    pub(super) lists: Rare<Lists>,
}

/// The transmissions that the cache does not list. Few flows have any.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    /// What was sent again, and no later transmission is known to have overtaken.
    pub(super) again: VecDeque<Transmission>,
    /// Segments that were overtaken, and may still arrive within the reordering window.
    pub(super) overtaken: VecDeque<Transmission>,
}

impl Empty for Lists {
    const EMPTY: &'static Self = &Self { again: VecDeque::new(), overtaken: VecDeque::new() };
}

impl Flight {
    pub(super) const EMPTY: Self = Self { once: 0, last: 0, lists: Rare::NONE };

    /// Counts a transmission of so many segments; returns the number of the first one.
    pub(super) fn number(&mut self, segments: u64) -> u64 {
        let order = self.last + 1;
        self.last += segments;
        order
    }

    /// Notes a transmission, of so many segments, that is not in the order of the stream; returns
    /// the number of the first one.
    pub(super) fn depart(&mut self, span: Span, segments: u64) -> u64 {
        let order = self.number(segments);
        self.lists.again.push_back(Transmission { order, span });
        order
    }

    /// Removes transmissions below the ACK number from the beginning.
    pub(super) fn remove_below(&mut self, ack: u64) {
        let Some(Lists { again, overtaken }) = self.lists.there() else { return };
        while again.pop_front_if(|first| first.span.end <= ack).is_some() {}
        while overtaken.pop_front_if(|first| first.span.end <= ack).is_some() {}
    }

    /// Removes the void transmissions if they are more than the `segments` in the cache, so that
    /// the list is bounded and a removal costs each transmission a constant time.
    pub(super) fn compact(&mut self, segments: usize, is_valid: impl Fn(&Transmission) -> bool) {
        let Some(Lists { again, overtaken }) = self.lists.there() else { return };
        if again.len() + overtaken.len() > 2 * segments.max(IDLE_CAPACITY) {
            again.retain(&is_valid);
            overtaken.retain(is_valid);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lists.again.len() + self.lists.overtaken.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn span(start: u64) -> Span {
        Span { start, end: start + 10 }
    }

    #[test]
    fn numbers_count_segments() {
        let mut flight = Flight::EMPTY;
        assert_eq!((flight.number(1), flight.depart(span(10), 3)), (1, 2));
        assert_eq!(flight.number(1), 5);
    }

    #[test]
    fn void_transmissions_are_dropped_before_they_are_many() {
        let mut flight = Flight::EMPTY;
        for _ in 0..1_000 {
            let order = flight.depart(span(0), 1);
            flight.compact(1, |transmission| transmission.order == order);
            assert!(flight.len() <= 2 * IDLE_CAPACITY);
        }
        flight.remove_below(10);
        assert_eq!(flight.len(), 0);
    }
}
