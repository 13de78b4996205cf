//! When the mobile host moves, and what the base stations do about it.

use std::time::Duration;

/// The moves of the mobile host between base stations, and what the stations do about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoffPlan {
    /// Base stations, which the mobile host visits in turn.
    pub stations: u32,
    /// The time from one move to the next.
    pub every: Duration,
    /// The time without any link at each move.
    pub outage: Duration,
    /// How long before a move the next station joins, so that it is primed; zero for never.
    pub ahead: Duration,
    /// Whether the stations hand flows over [snoop95 §3.3]; otherwise each goes on alone.
    pub has_state: bool,
    /// A host without the key on the backbone repeats each message, also with a bit changed.
    pub has_intruder: bool,
}
