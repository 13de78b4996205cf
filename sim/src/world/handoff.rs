//! Handoffs: regular intervals in which no frame crosses the air.

use crate::plan::Handoff;
use airmend_proto::Instant;
use airmend_proto::link::{ErrorProcess, Fate};
use std::time::Duration;

impl Handoff {
    /// When the next handoff after `now` is over.
    pub(crate) fn next_end(&self, now: Instant) -> Instant {
        let (every, lasts) = (nanos(self.every), nanos(self.lasts));
        let passed = now.as_nanos().saturating_sub(lasts) / every;
        Instant::from_nanos((passed + 1).saturating_mul(every).saturating_add(lasts))
    }

    /// Whether there is a handoff at this time. The first one comes after `every`.
    pub(crate) fn is_under_way(&self, at: Instant) -> bool {
        at.as_nanos() >= nanos(self.every) && at.as_nanos() % nanos(self.every) < nanos(self.lasts)
    }
}

/// An error process that also loses every frame that begins during a handoff.
pub(crate) struct WithHandoffs {
    pub(crate) handoff: Handoff,
    pub(crate) errors: Box<dyn ErrorProcess + Send>,
}

impl ErrorProcess for WithHandoffs {
    fn draw(&mut self, start: Instant, airtime: Duration, bits: u64) -> Fate {
        // The error process advances in any case, so that handoffs do not shift later errors.
        let fate = self.errors.draw(start, airtime, bits);
        if self.handoff.is_under_way(start) { Fate::Lost } else { fate }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handoffs_come_at_regular_distances() {
        let millis = Duration::from_millis;
        let handoff = Handoff { every: millis(1_000), lasts: millis(100), acks: 3 };
        let at = Instant::from_millis;
        for (now, under_way, end) in [
            (0, false, 1_100),
            (50, false, 1_100),
            (1_000, true, 1_100),
            (1_099, true, 1_100),
            (1_100, false, 2_100),
            (1_999, false, 2_100),
            (2_050, true, 2_100),
        ] {
            assert_eq!(handoff.is_under_way(at(now)), under_way, "{now}");
            assert_eq!(handoff.next_end(at(now)), at(end), "{now}");
        }
    }
}
