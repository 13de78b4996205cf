//! TAI64N labels, by which a responder knows a replayed initiation (WireGuard §5.1).

use airmend_proto::Instant;
use std::time::Duration;

/// 8 bytes of seconds and 4 of nanoseconds, big-endian: later ones compare as greater.
pub(super) type Timestamp = [u8; TIMESTAMP_LEN];
pub(super) const TIMESTAMP_LEN: usize = 12;

/// TAI64 of 1970 as everybody writes it: 10 seconds, and leap seconds are not counted.
const EPOCH: u64 = (1 << 62) + 10;

/// Writes labels; each is later than the ones before, whatever happens to the system's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Labels {
    /// The time since 1970 at `Instant::ZERO`.
    origin: Duration,
    /// The next label is not earlier.
    least: Duration,
}

impl Labels {
    pub(super) fn new(origin: Duration) -> Self {
        Self { origin, least: Duration::ZERO }
    }

    pub(super) fn next(&mut self, now: Instant) -> Timestamp {
        let time = self.origin.saturating_add(now - Instant::ZERO).max(self.least);
        self.least = time.saturating_add(Duration::from_nanos(1));
        let mut label = [0; TIMESTAMP_LEN];
        let (seconds, nanoseconds) = label.split_at_mut(8);
        seconds.copy_from_slice(&EPOCH.saturating_add(time.as_secs()).to_be_bytes());
        nanoseconds.copy_from_slice(&time.subsec_nanos().to_be_bytes());
        label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_tai64n_and_always_later() {
        let mut labels = Labels::new(Duration::from_secs(1));
        let first = labels.next(Instant::ZERO);
        // https://cr.yp.to/libtai/tai64.html: 4000000000000000 is 1970 TAI.
        assert_eq!(first, [0x40, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 0]);
        let mut last = first;
        for now in [0, 0, 5, 5, 3, 1_000, 2_000] {
            let next = labels.next(Instant::from_millis(now));
            assert!(next > last, "{now}");
            last = next;
        }
    }
}
