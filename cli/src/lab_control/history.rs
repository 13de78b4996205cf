//! What was changed of a laboratory while it ran, for the report at its end.

use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};

/// The changes that are kept; of more the first ones.
const LIMIT: usize = 1000;

/// A change that was made.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Made {
    /// Seconds since the beginning.
    pub(crate) seconds: f64,
    /// The words of `airmend lab set`.
    pub(crate) set: String,
}

/// The changes so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(Arc<Mutex<Vec<Made>>>);

impl History {
    pub(super) fn add(&self, made: Made) {
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.len() < LIMIT {
            changes.push(made);
        }
    }

    /// All of them, the first one first.
    pub(crate) fn changes(&self) -> Vec<Made> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
