//! CUBIC's congestion avoidance (RFC 9438). Windows are in segments, times in seconds.

use crate::time::Instant;
use core::time::Duration;

/// C (§5.1).
const SCALE: f64 = 0.4;
/// β (§4.6).
const BETA: f64 = 0.7;
/// α, with which the Reno-friendly window grows as fast as Reno's on average (§4.3).
const RENO_FRIENDLY: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// What CUBIC remembers between ACKs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cubic {
    /// Window before the last reduction, less what fast convergence gives away; zero if none.
    w_max: f64,
    /// Window before the last reduction.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    /// Bytes of growth below one byte.
    fraction: f64,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Plateau of the cubic function.
    origin: f64,
    /// Time from `start` to the plateau.
    k: f64,
    /// Where Reno would be.
    w_est: f64,
}

impl Cubic {
    /// What an ACK of `bytes` adds to a window of `cwnd` (§4.2 to §4.5), in bytes.
    pub(super) fn increase(
        &mut self,
        now: Instant,
        bytes: u64,
        cwnd: u64,
        mss: u64,
        srtt: Duration,
    ) -> u64 {
        let acked = bytes as f64 / mss as f64;
        let cwnd = cwnd as f64 / mss as f64;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now, cwnd, self.w_max));
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { RENO_FRIENDLY };
        epoch.w_est += alpha * acked / cwnd;
        let elapsed = now.since(epoch.start).as_secs_f64();
        let growth = if epoch.window(elapsed) < epoch.w_est {
            (epoch.w_est - cwnd).max(0.0)
        } else {
            let target = epoch.window(elapsed + srtt.as_secs_f64());
            (target.clamp(cwnd, 1.5 * cwnd) - cwnd) / cwnd * acked
        };
        self.fraction += growth * mss as f64;
        let whole = self.fraction as u64;
        self.fraction -= whole as f64;
        whole
    }

    /// A loss at a window of `cwnd` segments with `in_flight` bytes out: the new threshold in bytes
    /// (§4.6), and the plateau to come back to (§4.7).
    pub(super) fn reduce(&mut self, in_flight: u64, cwnd: f64) -> u64 {
        self.cwnd_prior = cwnd;
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.restart();
        (in_flight as f64 * BETA) as u64
    }

    /// After a timeout the next stage begins on its plateau (§4.8).
    pub(super) fn collapse(&mut self) {
        self.w_max = 0.0;
        self.restart();
    }

    /// The next ACK in congestion avoidance begins a new stage.
    pub(super) fn restart(&mut self) {
        self.epoch = None;
        self.fraction = 0.0;
    }
}

impl Epoch {
    /// A stage that begins at a window of `cwnd` segments; `w_max` is zero after a timeout.
    fn new(start: Instant, cwnd: f64, w_max: f64) -> Self {
        let origin = w_max.max(cwnd);
        // §4.2 eq. 2.
        Self { start, origin, k: libm::cbrt((origin - cwnd) / SCALE), w_est: cwnd }
    }

    /// W_cubic (§4.2 eq. 1).
    fn window(&self, elapsed: f64) -> f64 {
        let from_plateau = elapsed - self.k;
        SCALE * from_plateau * from_plateau * from_plateau + self.origin
    }
}

#[cfg(test)]
mod tests;
