//! What the server tells of: each kind of daemon has a status of its own.

use crate::gateway::telemetry::{Status, metrics};
use std::fmt::Debug;

/// The status of a daemon at one moment.
pub trait Reported: Debug + Send + Sync {
    /// All of it, as a JSON object; `None` if it cannot be written down.
    fn json(&self) -> Option<String>;

    /// Its figures as OpenMetrics.
    fn open_metrics(&self) -> Option<String>;

    /// Whether the daemon heeds what operators say of mobile hosts.
    fn heeds_words(&self) -> bool {
        false
    }
}

impl Reported for Status {
    fn json(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn open_metrics(&self) -> Option<String> {
        metrics::text(self).ok()
    }

    fn heeds_words(&self) -> bool {
        self.handoff.is_some()
    }
}
