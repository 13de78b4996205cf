//! Pacing: segments leave at a rate (Linux `tcp_update_skb_after_send`, without the bursts of
//! super-packets).

use crate::time::Instant;

/// Segments that leave at once at the beginning of a connection.
const INITIAL_BURST: u64 = 10;

/// The times at which segments may leave; at once without a rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    /// In payload bytes per second.
    rate: Option<u64>,
    /// When the next segment may leave.
    next: Instant,
    sent: u64,
    /// Whether a segment waits for its time.
    waits: bool,
}

impl Pacing {
    /// From now on segments leave at this rate, in payload bytes per second.
    pub(super) fn set_rate(&mut self, rate: u64) {
        self.rate = Some(rate.max(1));
    }

    /// When the next segment may leave.
    pub(super) fn departure(&self) -> Instant {
        self.next
    }

    /// Nothing waits any more, until [`Self::may_leave`] says so again.
    pub(super) fn stop_waiting(&mut self) {
        self.waits = false;
    }

    /// Whether a segment may leave now; otherwise it waits.
    pub(super) fn may_leave(&mut self, now: Instant) -> bool {
        self.waits = self.next > now;
        !self.waits
    }

    /// A segment leaves.
    pub(super) fn sent(&mut self, now: Instant, bytes: u64) {
        self.sent += u64::from(bytes > 0);
        let (Some(rate), true) = (self.rate, self.sent > INITIAL_BURST) else { return };
        let length = bytes.saturating_mul(1_000_000_000) / rate;
        let (now, next) = (now.as_nanos(), self.next.as_nanos());
        // A segment that left late lets the next one follow earlier, by half of its time at most.
        let credit = now.saturating_sub(next).min(length / 2);
        self.next = Instant::from_nanos(now.max(next).saturating_add(length - credit));
    }

    /// When a waiting segment may leave.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waits.then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// When each of 40 segments of 1000 bytes leaves at 1 MB/s.
    fn departures(rate: Option<u64>) -> Vec<u64> {
        let mut pacing = Pacing::default();
        if let Some(rate) = rate {
            pacing.set_rate(rate);
        }
        let mut now = Instant::from_millis(1);
        (0..40)
            .map(|_| {
                if !pacing.may_leave(now) {
                    now = pacing.deadline().unwrap();
                }
                assert!(pacing.may_leave(now) && pacing.deadline().is_none());
                pacing.sent(now, 1_000);
                now.as_nanos() / 1_000
            })
            .collect()
    }

    #[test]
    fn after_ten_segments_they_leave_at_the_rate() {
        let times = departures(Some(1_000_000));
        assert!(times[..11].iter().all(|at| *at == 1_000), "{times:?}");
        // The first one that is paced left late.
        assert_eq!(times[11], 1_500);
        assert!(times[11..].windows(2).all(|pair| pair[1] - pair[0] == 1_000), "{times:?}");
        assert!(departures(None).iter().all(|at| *at == 1_000));
    }
}
