//! What a status frame says.

use airmend_proto::Instant;
use std::collections::BTreeSet;

/// The frames that had arrived at a time.
pub(super) struct Report {
    taken_at: Instant,
    /// The first number that is missing, and those beyond it that are not.
    expected: u64,
    beyond: BTreeSet<u64>,
}

impl Report {
    pub(super) fn new<'a>(
        taken_at: Instant,
        expected: u64,
        beyond: impl Iterator<Item = &'a u64>,
    ) -> Self {
        Self { taken_at, expected, beyond: beyond.copied().collect() }
    }

    pub(super) fn taken_at(&self) -> Instant {
        self.taken_at
    }

    /// Whether this frame had arrived.
    pub(super) fn names(&self, number: u64) -> bool {
        number < self.expected || self.beyond.contains(&number)
    }
}
