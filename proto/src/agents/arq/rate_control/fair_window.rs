//! The window beside loss-based senders: that of CUBIC (RFC 9438), reduced by congestion and grown
//! by the time since. Without it, the model of the path would take more than its share of a queue
//! that others fill.

use crate::time::Instant;
use core::time::Duration;

/// Windows are counted in packets of this length, in bytes.
const PACKET: u64 = 1_500;

/// CUBIC's window; without a bound before the first congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct FairWindow {
    epoch: Option<Epoch>,
    /// That before the last reduction.
    before: Option<Epoch>,
}

/// What follows a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Epoch {
    begin: Instant,
    /// The window before the reduction, less what fast convergence gives away (RFC 9438 §4.7), and
    /// after it, in bytes.
    w_max: u64,
    reduced: u64,
    /// The time until the window is `w_max` again, in milliseconds.
    k: u64,
}

impl FairWindow {
    /// The window, in bytes; `None` for no bound.
    pub(super) fn bytes(&self, now: Instant, round_trip: Duration) -> Option<u64> {
        self.epoch.map(|epoch| epoch.window(now, round_trip))
    }

    /// Whether there is a bound.
    pub(super) fn is_bound(&self) -> bool {
        self.epoch.is_some()
    }

    /// Congestion, with so many bytes in flight (RFC 9438 §4.6: β is 0.7).
    pub(super) fn reduce(&mut self, now: Instant, in_flight: u64) {
        let is_falling = self.epoch.is_some_and(|epoch| in_flight < epoch.w_max);
        let w_max = if is_falling { in_flight * 17 / 20 } else { in_flight };
        let reduced = in_flight * 7 / 10;
        // §4.2 eq. 2, C is 0.4.
        let seconds = libm::cbrt(w_max.saturating_sub(reduced) as f64 / PACKET as f64 / 0.4);
        let k = (seconds * 1e3) as u64;
        self.before = self.epoch;
        self.epoch = Some(Epoch { begin: now, w_max: w_max.max(reduced), reduced, k });
    }

    /// The last reduction was for nothing.
    pub(super) fn undo(&mut self) {
        self.epoch = self.before;
    }
}

impl Epoch {
    fn window(&self, now: Instant, round_trip: Duration) -> u64 {
        let elapsed = now.since(self.begin);
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        // §4.2 eq. 1: 0.4 packets for the cube of a second.
        let distance = u128::from(millis.abs_diff(self.k).min(1 << 24));
        let change = distance.pow(3) * 2 * u128::from(PACKET) / 5_000_000_000;
        let change = u64::try_from(change).unwrap_or(u64::MAX);
        let cubic = match millis < self.k {
            true => self.w_max.saturating_sub(change),
            false => self.w_max.saturating_add(change),
        };
        // §4.3: what Reno would have, 0.53 packets more in each round trip.
        let rounds = elapsed.as_nanos() / round_trip.as_nanos().max(1);
        let reno = u128::from(PACKET) * 53 * rounds / 100;
        let reno = self.reduced.saturating_add(u64::try_from(reno).unwrap_or(u64::MAX));
        cubic.max(reno).max(self.reduced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(100);

    #[test]
    fn the_window_comes_back_after_k() {
        let mut window = FairWindow::default();
        assert_eq!(window.bytes(Instant::ZERO, ROUND_TRIP), None);
        window.reduce(Instant::ZERO, 1_500_000);
        let at = |millis| window.bytes(Instant::from_millis(millis), ROUND_TRIP).unwrap();
        assert_eq!(at(0) / 10_000, 105);
        // cbrt(300 / 0.4) = 9.086 s.
        assert!((1_490_000..=1_500_000).contains(&at(9_086)), "{}", at(9_086));
        assert!(at(5_000) > 1_400_000 && at(12_000) > 1_510_000, "{} {}", at(5_000), at(12_000));
    }

    #[test]
    fn a_small_window_grows_as_renos_does() {
        let mut window = FairWindow::default();
        window.reduce(Instant::ZERO, 15_000);
        let grown = window.bytes(Instant::from_millis(1_000), ROUND_TRIP / 10).unwrap();
        assert_eq!(grown, 10_500 + 53 * PACKET);
    }

    #[test]
    fn a_window_that_falls_gives_room_to_others() {
        let mut window = FairWindow::default();
        window.reduce(Instant::ZERO, 1_000_000);
        window.reduce(Instant::from_millis(100), 900_000);
        assert_eq!(window.epoch.unwrap().w_max, 765_000);
    }

    #[test]
    fn what_was_undone_was_never_there() {
        let mut window = FairWindow::default();
        window.reduce(Instant::ZERO, 1_000_000);
        window.undo();
        assert!(!window.is_bound());
        window.reduce(Instant::ZERO, 1_000_000);
        let before = window;
        window.reduce(Instant::from_millis(100), 700_000);
        window.undo();
        assert_eq!(window.epoch, before.epoch);
    }
}
