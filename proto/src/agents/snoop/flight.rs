//! The transmissions of one flow in their order: what was overtaken is found without a walk over
//! the cache [C-4, C-26].

use crate::ranges::Span;
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
#[derive(Clone, Debug)]
pub(super) struct Flight {
    /// Those that no later transmission is known to have overtaken.
    sent: VecDeque<Transmission>,
    /// Segments that were overtaken, and may still arrive within the reordering window.
    pub(super) overtaken: VecDeque<Transmission>,
    /// The number of the last transmission.
    last: u64,
}

impl Flight {
    pub(super) const EMPTY: Self =
        Self { sent: VecDeque::new(), overtaken: VecDeque::new(), last: 0 };

    /// Notes a transmission of so many segments; returns the number of the first one.
    pub(super) fn depart(&mut self, span: Span, segments: u64) -> u64 {
        let order = self.last + 1;
        self.last += segments;
        self.sent.push_back(Transmission { order, span });
        order
    }

    /// The first transmission that was not judged.
    pub(super) fn first(&mut self) -> Option<&mut Transmission> {
        self.sent.front_mut()
    }

    /// Removes the first transmission.
    pub(super) fn remove_first(&mut self) {
        self.sent.pop_front();
    }

    /// Removes transmissions below the ACK number from the beginning.
    pub(super) fn remove_below(&mut self, ack: u64) {
        while self.sent.pop_front_if(|first| first.span.end <= ack).is_some() {}
        while self.overtaken.pop_front_if(|first| first.span.end <= ack).is_some() {}
    }

    /// Removes the void transmissions if they are more than the `segments` in the cache, so that
    /// the list is bounded and a removal costs each transmission a constant time.
    pub(super) fn compact(&mut self, segments: usize, is_valid: impl Fn(&Transmission) -> bool) {
        if self.sent.len() + self.overtaken.len() > 2 * segments.max(IDLE_CAPACITY) {
            self.sent.retain(&is_valid);
            self.overtaken.retain(is_valid);
        }
    }

    /// Forgets all transmissions; little of the buffers stays.
    pub(super) fn begin_anew(&mut self) {
        self.sent.clear();
        self.sent.shrink_to(IDLE_CAPACITY);
        self.overtaken = VecDeque::new();
        self.last = 0;
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.sent.len() + self.overtaken.len()
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
        assert_eq!((flight.depart(span(0), 1), flight.depart(span(10), 3)), (1, 2));
        assert_eq!(flight.depart(span(20), 1), 5);
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
