//! Probes of a silent tail [C-5].

use super::rtt::AirPath;
use crate::time::Instant;

/// The most probes without an answer: after them the mobile is gone, or the sender repairs.
const MAX_TIMEOUTS: u8 = 7;

/// Since when a flow is silent, and what was done about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailProbe {
    /// The time of the last transmission or of the last new data acknowledged; `None` if nothing
    /// was left to probe since.
    quiet_since: Option<Instant>,
    /// Probes and timeouts since new data was acknowledged.
    timeouts: u8,
    /// Whether a probe is queued.
    is_queued: bool,
}

impl TailProbe {
    pub(super) const EMPTY: Self = Self { quiet_since: None, timeouts: 0, is_queued: false };

    /// Something departed, or a probe is not needed: the time begins anew.
    pub(super) fn restart(&mut self, now: Instant) {
        self.quiet_since = Some(now);
    }

    /// All that is cached has arrived, or waits to be sent: nothing is probed until something
    /// departs or arrives.
    pub(super) fn rest(&mut self) {
        self.quiet_since = None;
    }

    /// New data was acknowledged, or the sender has sent some again, which may be: probing begins
    /// without backoff.
    pub(super) fn answered(&mut self) {
        self.timeouts = 0;
    }

    /// Counts a probe that is sent, or for which there is no budget.
    pub(super) fn timed_out(&mut self) {
        self.timeouts += 1;
    }

    /// Whether the next probe is the first one.
    pub(super) fn is_first(&self) -> bool {
        self.timeouts == 0
    }

    pub(super) fn set_queued(&mut self, is_queued: bool) {
        self.is_queued = is_queued;
    }

    /// The time of the next probe of a mobile that answers, if there is one.
    pub(super) fn due(&self, air: &AirPath, is_lone_segment: bool) -> Option<Instant> {
        if self.timeouts >= MAX_TIMEOUTS || self.is_queued {
            return None;
        }
        Some(self.quiet_since? + air.probe_timeout(is_lone_segment) * (1 << self.timeouts))
    }
}
