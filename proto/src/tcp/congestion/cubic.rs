//! CUBIC's congestion avoidance as Linux has it (`tcp_cubic.c`): RFC 9438 in whole segments, with
//! RFC 8312's 0.53 segments a round trip where it gives way to Reno. Times in seconds.

use crate::time::Instant;
use core::time::Duration;

/// C (RFC 9438 §5.1).
const SCALE: f64 = 0.4;
/// β (§4.6), in 1024ths.
const BETA: u64 = 717;
/// 1/α (§4.3): segments acknowledged for each segment that Reno's window would grow by, as a share
/// of the window, in eighths.
const RENO_FRIENDLY: u64 = 15;
/// Before the first loss the window grows by a twentieth a round trip at least.
const UNKNOWN: u64 = 20;
/// A window that did not change is not calculated anew so soon.
const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / 32);
/// Round trips say nothing so soon after a loss.
const UNSETTLED: Duration = Duration::from_secs(1);

/// What CUBIC remembers between ACKs. Windows are in segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cubic {
    /// Window before the last reduction, less what fast convergence gives away; zero if none.
    w_max: u64,
    epoch: Option<Epoch>,
    /// Least round trip since the last timeout.
    least: Option<Duration>,
    /// Segments to be acknowledged for one segment of growth, for which window and when that was
    /// found.
    pace: u64,
    paced: (u64, Instant),
    /// Bytes acknowledged and not yet counted, and segments not yet turned into growth.
    bytes: u64,
    credit: u64,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// Plateau of the cubic function.
    origin: u64,
    /// Time from `start` to the plateau.
    k: f64,
    /// Where Reno would be, and segments acknowledged towards its next.
    w_est: u64,
    acked: u64,
}

impl Cubic {
    /// What an ACK of `bytes` adds to a window of `cwnd` (§4.2 to §4.5), in bytes.
    pub(super) fn increase(&mut self, now: Instant, bytes: u64, cwnd: u64, mss: u64) -> u64 {
        self.bytes += bytes;
        let (acked, cwnd) = (self.bytes / mss, cwnd / mss);
        self.bytes %= mss;
        if acked == 0 {
            return 0;
        }
        self.find_pace(now, acked, cwnd.max(1));
        // Linux `tcp_cong_avoid_ai`: credit of a slower pace is one segment at most.
        let mut grown = 0;
        if self.credit >= self.pace {
            self.credit = 0;
            grown = 1;
        }
        self.credit += acked;
        grown += self.credit / self.pace;
        self.credit %= self.pace;
        grown * mss
    }

    /// Takes a round trip; says whether it is one to go by.
    pub(super) fn measured(&mut self, now: Instant, round_trip: Duration) -> bool {
        if self.epoch.is_some_and(|epoch| now.since(epoch.start) < UNSETTLED) {
            return false;
        }
        self.least = Some(self.least.map_or(round_trip, |least| least.min(round_trip)));
        true
    }

    /// A loss at a window of `cwnd` segments with `in_flight` bytes out: the new threshold in bytes
    /// (§4.6), and the plateau to come back to (§4.7).
    pub(super) fn reduce(&mut self, in_flight: u64, cwnd: u64) -> u64 {
        self.w_max = if cwnd < self.w_max { cwnd * (1024 + BETA) / 2048 } else { cwnd };
        self.epoch = None;
        in_flight * BETA / 1024
    }

    /// After a timeout all is forgotten (§4.8).
    pub(super) fn collapse(&mut self) {
        *self = Self::default();
    }

    /// The next ACK in congestion avoidance begins a new stage.
    pub(super) fn restart(&mut self) {
        self.epoch = None;
    }

    fn find_pace(&mut self, now: Instant, acked: u64, cwnd: u64) {
        if let Some(epoch) = &mut self.epoch {
            epoch.acked += acked;
            let (paced, at) = self.paced;
            if paced == cwnd && now.since(at) <= INTERVAL {
                return;
            }
        }
        self.paced = (cwnd, now);
        let w_max = self.w_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now, acked, cwnd, w_max));
        let elapsed = now.since(epoch.start) + self.least.unwrap_or_default();
        let target = epoch.window(elapsed.as_secs_f64());
        self.pace = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if w_max == 0 {
            self.pace = self.pace.min(UNKNOWN);
        }
        let friendly = (cwnd * RENO_FRIENDLY / 8).max(1);
        while epoch.acked > friendly {
            epoch.acked -= friendly;
            epoch.w_est += 1;
        }
        if epoch.w_est > cwnd {
            self.pace = self.pace.min(cwnd / (epoch.w_est - cwnd));
        }
        // §4.4: at most one and a half windows in a round trip.
        self.pace = self.pace.max(2);
    }
}

impl Epoch {
    /// A stage that begins at a window of `cwnd` segments; `w_max` is zero after a timeout.
    fn new(start: Instant, acked: u64, cwnd: u64, w_max: u64) -> Self {
        let origin = w_max.max(cwnd);
        // §4.2 eq. 2.
        let k = libm::cbrt((origin - cwnd) as f64 / SCALE);
        Self { start, origin, k, w_est: cwnd, acked }
    }

    /// W_cubic (§4.2 eq. 1).
    fn window(&self, elapsed: f64) -> u64 {
        let from_plateau = elapsed - self.k;
        let distance = (SCALE * from_plateau * from_plateau * from_plateau).abs() as u64;
        if from_plateau < 0.0 {
            self.origin.saturating_sub(distance)
        } else {
            self.origin.saturating_add(distance)
        }
    }
}

#[cfg(test)]
mod tests;
