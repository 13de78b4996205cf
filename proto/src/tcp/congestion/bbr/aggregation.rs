//! How many more segments arrive at once than the bandwidth explains, since ACKs are aggregated:
//! the window grows by that.

use super::bandwidth::Bandwidth;
use crate::time::Instant;
use core::time::Duration;

/// Rounds for which a maximum counts; two such windows are kept.
const ROUNDS: u32 = 5;
/// An epoch of more segments begins anew.
const LONGEST_EPOCH: u64 = 1 << 20;
/// What is added to the window is at most what arrives in so long.
const MOST: Duration = Duration::from_millis(100);

/// The most segments beyond the bandwidth in each of two windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    extra: [u64; 2],
    current: usize,
    rounds: u32,
    epoch: Instant,
    acked: u64,
}

impl Aggregation {
    pub(super) fn new(now: Instant) -> Self {
        Self { extra: [0; 2], current: 0, rounds: 0, epoch: now, acked: 0 }
    }

    /// Another epoch begins.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.epoch, self.acked) = (now, 0);
    }

    /// A round trip begins.
    pub(super) fn round(&mut self) {
        self.rounds += 1;
        if self.rounds >= ROUNDS {
            self.rounds = 0;
            self.current = 1 - self.current;
            self.extra[self.current] = 0;
        }
    }

    /// `bbr_update_ack_aggregation`: an ACK delivered so many segments, at most a window.
    pub(super) fn update(&mut self, now: Instant, bandwidth: Bandwidth, delivered: u64, cwnd: u64) {
        let mut expected = bandwidth.segments_in(now.since(self.epoch));
        if self.acked <= expected || self.acked + delivered >= LONGEST_EPOCH {
            self.restart(now);
            expected = 0;
        }
        self.acked += delivered;
        let largest = &mut self.extra[self.current];
        *largest = (self.acked - expected).min(cwnd).max(*largest);
    }

    /// `bbr_ack_aggregation_cwnd`.
    pub(super) fn cwnd(&self, bandwidth: Bandwidth) -> u64 {
        let [first, second] = self.extra;
        first.max(second).min(bandwidth.segments_in(MOST))
    }
}
