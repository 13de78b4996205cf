//! Retransmissions that wait to be sent.

use alloc::collections::VecDeque;

/// A queue of retransmissions, at most so many.
#[derive(Debug)]
pub(super) struct Repairs<R> {
    waiting: VecDeque<R>,
    pub(super) limit: usize,
}

impl<R> Repairs<R> {
    pub(super) fn new(limit: usize) -> Self {
        Self { waiting: VecDeque::new(), limit }
    }

    /// Whether nothing waits, the common case.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= self.limit
    }

    /// Adds one; the caller has asked whether the queue is full, and counts what it refuses.
    pub(super) fn push(&mut self, repair: R) {
        self.waiting.push_back(repair);
    }

    /// Puts back the rest of the one that was taken last.
    pub(super) fn put_back(&mut self, rest: R) {
        self.waiting.push_front(rest);
    }

    pub(super) fn pop(&mut self) -> Option<R> {
        self.waiting.pop_front()
    }
}
