//! BBR on a path of 1000 segments per second and 50 ms, an ACK for each segment.

use super::*;
use crate::tcp::congestion::{Congestion, DeliveryRate};
use alloc::vec::Vec;

const MSS: u64 = 1_000;
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// A sender that has as much in flight as the window and the pacing rate allow; the path has room
/// for all of it, and the bottleneck delivers a segment each millisecond.
struct Path {
    bbr: Bbr,
    now: Instant,
    cwnd: u64,
    total: u64,
    in_flight: f64,
    /// Segments delivered when what now arrives was sent: a round trip ago.
    history: Vec<(Instant, u64)>,
}

impl Path {
    fn new() -> Self {
        let now = Instant::from_millis(1_000);
        let bbr = Bbr::new(now, MSS, 10, Some(ROUND_TRIP));
        Self { bbr, now, cwnd: 10, total: 0, in_flight: 10.0, history: Vec::new() }
    }

    /// An ACK of a segment, with these losses in this phase of recovery. The rate is what the
    /// window allows, up to the bottleneck's.
    fn ack(&mut self, losses: u64, recovery: RecoveryPhase) -> Control {
        let in_flight = self.in_flight as u64;
        let per_second = (self.in_flight * 20.0).clamp(20.0, 1_000.0);
        self.now += Duration::from_nanos((1e9 / per_second) as u64);
        self.total += 1;
        self.history.push((self.now, self.total));
        let sent = self.now.as_nanos() - ROUND_TRIP.as_nanos() as u64;
        let before = self.history.iter().rev().find(|(at, _)| at.as_nanos() <= sent);
        let prior_total = before.map_or(0, |(_, total)| *total);
        let interval = before.map_or(ROUND_TRIP, |(at, _)| self.now.since(*at));
        let rate = DeliveryRate {
            prior_total,
            segments: self.total - prior_total,
            interval,
            is_app_limited: false,
        };
        let sample = RateSample {
            now: self.now,
            total: self.total,
            rate: Some(rate),
            round_trip: Some(ROUND_TRIP),
            is_ack_delayed: false,
            delivered: 1,
            losses,
            prior_in_flight: in_flight,
            in_flight: in_flight.saturating_sub(1),
            recovery,
            srtt: Some(ROUND_TRIP),
        };
        let control = self.bbr.acknowledged(&sample, self.cwnd, self.now);
        self.cwnd = control.cwnd;
        let paced = control.pacing_rate as f64 / MSS as f64 / per_second;
        let left = (self.in_flight - 1.0).max(0.0);
        self.in_flight = (left + paced).min((self.cwnd as f64).max(left));
        control
    }

    /// Until BBR is in its gain cycle.
    fn settled() -> Self {
        let mut path = Self::new();
        while path.bbr.mode != Mode::ProbeBw {
            path.ack(0, RecoveryPhase::None);
            assert!(path.total < 5_000, "still in {:?}", path.bbr.mode);
        }
        path
    }
}

#[test]
fn startup_finds_the_bandwidth_and_drains_its_queue() {
    let mut path = Path::new();
    let mut modes = Vec::new();
    let mut previous = 0;
    for _ in 0..1_500 {
        let control = path.ack(0, RecoveryPhase::None);
        if path.bbr.mode == Mode::Startup {
            assert!(control.pacing_rate >= previous, "in startup the rate never falls");
            previous = control.pacing_rate;
        }
        if modes.last() != Some(&path.bbr.mode) {
            modes.push(path.bbr.mode);
        }
    }
    // The queue of this path is none, so that draining is over at once or soon.
    assert!(modes.starts_with(&[Mode::Startup]) && modes.ends_with(&[Mode::ProbeBw]), "{modes:?}");
    let rate = path.bbr.rate(UNIT);
    assert!((900_000..1_050_000).contains(&rate), "{rate} bytes per second");
    // Twice the bandwidth-delay product of 50 segments, and room for bursts.
    assert!((100..=125).contains(&path.cwnd), "{}", path.cwnd);
}

#[test]
fn the_pacing_rate_follows_the_gain_cycle() {
    let mut path = Path::settled();
    let mut gains = Vec::new();
    for _ in 0..2_000 {
        path.ack(0, RecoveryPhase::None);
        let index = path.bbr.cycle.index;
        if gains.last().is_none_or(|(last, _)| *last != index) {
            gains.push((index, path.bbr.pacing_gain));
        }
    }
    assert!(gains.len() > 24, "{gains:?}");
    for pair in gains.windows(2) {
        assert_eq!(pair[1].0, (pair[0].0 + 1) % 8);
        let expected = [320, 192, 256, 256, 256, 256, 256, 256][pair[1].0];
        assert_eq!(pair[1].1, expected);
    }
}

#[test]
fn a_round_trip_that_is_ten_seconds_old_is_probed_at_the_least_window() {
    let mut path = Path::settled();
    let (began, window) = (path.now, path.cwnd);
    while path.bbr.mode != Mode::ProbeRtt {
        path.ack(0, RecoveryPhase::None);
        assert!(path.now.since(began) < Duration::from_secs(11), "no probe of the round trip");
    }
    assert!(path.now.since(began) > Duration::from_millis(9_000));
    let probe = path.now;
    while path.bbr.mode == Mode::ProbeRtt {
        assert!(path.ack(0, RecoveryPhase::None).cwnd <= window);
        if path.bbr.mode == Mode::ProbeRtt {
            assert_eq!(path.cwnd, MIN_CWND);
        }
        assert!(path.now.since(probe) < Duration::from_secs(1), "the probe does not end");
    }
    assert!(path.now.since(probe) > Duration::from_millis(200));
    // Again twice the bandwidth-delay product.
    assert!(path.cwnd >= 100, "{} after a window of {window}", path.cwnd);
    assert!(path.bbr.mode == Mode::ProbeBw);
}

/// A window with a loss in each round, as at random loss: after each recovery the window is what it
/// was, and the rate stays.
#[test]
fn losses_neither_lower_the_rate_nor_the_window() {
    let mut path = Path::settled();
    (0..500).for_each(|_| _ = path.ack(0, RecoveryPhase::None));
    let (window, rate) = (path.cwnd, path.bbr.rate(UNIT));
    for _ in 0..20 {
        path.bbr.save_cwnd(path.cwnd);
        path.ack(1, RecoveryPhase::Recovery);
        (0..60).for_each(|_| _ = path.ack(0, RecoveryPhase::Recovery));
        path.ack(0, RecoveryPhase::None);
        assert!(path.cwnd + 2 >= window, "{} after a window of {window}", path.cwnd);
    }
    assert!(path.bbr.rate(UNIT) * 100 >= rate * 98);
    // A Reno window would be a segment or two after as many halvings.
    path.bbr.save_cwnd(path.cwnd);
    path.bbr.timeout();
    path.cwnd = 1;
    path.ack(1, RecoveryPhase::Loss);
    assert!(path.cwnd < 10);
    path.ack(0, RecoveryPhase::None);
    assert!(path.cwnd + 2 >= window, "{} after a timeout", path.cwnd);
}

#[test]
fn without_sack_it_is_reno() {
    use crate::tcp::profile::{CongestionControl, Profile};
    let profile = Profile { congestion: CongestionControl::Bbr, ..Profile::linux() };
    let mut congestion = Congestion::new(&profile);
    congestion.start(MSS, 10);
    assert!(!congestion.is_model_based());
    assert!(congestion.start_bbr(Instant::ZERO, Some(ROUND_TRIP)) > 0);
    assert!(congestion.is_model_based());
    congestion.reduce(10 * MSS);
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (10 * MSS, u64::MAX));
}
