//! RFC 6298, rule by rule, and BSD's ticks.

use super::*;
use crate::tcp::Profile;

fn millis(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// RFC 6298 as it stands: fine clock, at least 1 s, at most 60 s.
fn rfc6298() -> Retransmission {
    Retransmission {
        initial: Duration::from_secs(1),
        min: Duration::from_secs(1),
        max: Duration::from_secs(60),
        tick: Duration::ZERO,
        estimator: Estimator::Rfc6298,
        backoff_reset: BackoffReset::CleanSample,
    }
}

fn measured(rto: &mut Rto, samples: &[u64]) -> (Duration, Duration) {
    for (position, sample) in (1..).zip(samples) {
        rto.measured(Duration::from_millis(*sample), position, position);
    }
    (rto.srtt().unwrap(), rto.current())
}

#[test]
fn before_a_sample_the_timeout_is_the_initial_one() {
    let rto = Rto::new(rfc6298());
    assert_eq!((rto.srtt(), rto.current()), (None, Duration::from_secs(1)));
}

#[test]
fn the_first_sample_is_the_round_trip_and_half_of_it_the_deviation() {
    // 2.2: SRTT = 1000, RTTVAR = 500, RTO = SRTT + 4 RTTVAR.
    let expected = (Duration::from_secs(1), Duration::from_secs(3));
    assert_eq!(measured(&mut Rto::new(rfc6298()), &[1000]), expected);
}

#[test]
fn later_samples_are_smoothed_the_deviation_first() {
    // 2.3: RTTVAR = 3/4 · 500 + 1/4 · |1000 − 1800| = 575, SRTT = 7/8 · 1000 + 1/8 · 1800 = 1100.
    let expected = (Duration::from_millis(1100), Duration::from_millis(1100 + 4 * 575));
    assert_eq!(measured(&mut Rto::new(rfc6298()), &[1000, 1800]), expected);
}

#[test]
fn the_timeout_stays_within_its_limits() {
    // 2.4 and 2.5, and 5.5 with them.
    let mut rto = Rto::new(rfc6298());
    assert_eq!(measured(&mut rto, &[10]).1, Duration::from_secs(1));
    for expected in [2, 4, 8, 16, 32, 60, 60] {
        rto.back_off();
        assert_eq!(rto.current(), Duration::from_secs(expected));
    }
    (0..1_000).for_each(|_| rto.back_off());
    assert_eq!(rto.current(), Duration::from_secs(60));
    assert_eq!(measured(&mut Rto::new(rfc6298()), &[50_000]).1, Duration::from_secs(60));
}

#[test]
fn a_sample_ends_the_backoff_as_the_profile_says() {
    for (reset, after_ack, after_sample) in [
        (BackoffReset::CleanSample, 4, 1),
        (BackoffReset::AnyAck, 1, 1),
        (BackoffReset::Never, 4, 4),
    ] {
        let mut rto = Rto::new(Retransmission { backoff_reset: reset, ..rfc6298() });
        rto.back_off();
        rto.back_off();
        rto.progressed();
        assert_eq!(rto.current(), Duration::from_secs(after_ack), "{reset:?}");
        assert_eq!(measured(&mut rto, &[10]).1, Duration::from_secs(after_sample), "{reset:?}");
    }
}

#[test]
fn a_lost_syn_makes_it_three_seconds() {
    // 5.7, unless there is a sample that knows better.
    let mut rto = Rto::new(rfc6298());
    rto.back_off();
    rto.syn_was_lost();
    assert_eq!(rto.current(), Duration::from_secs(3));
    let mut rto = Rto::new(rfc6298());
    measured(&mut rto, &[10]);
    rto.syn_was_lost();
    assert_eq!(rto.current(), Duration::from_secs(1));
}

#[test]
fn linux_applies_the_minimum_to_the_deviation() {
    let mut rto = Rto::new(Profile::linux().rto);
    assert_eq!(measured(&mut rto, &[40, 40, 40]).1, Duration::from_millis(240));
    let mut rto = Rto::new(Profile::linux().rto);
    assert_eq!(measured(&mut rto, &[400]).1, Duration::from_millis(1200));
}

#[test]
fn a_coarse_clock_measures_ticks_and_fires_on_them() {
    // G of 2.2 is the tick: RTO = max(0 + G, min).
    let mut rto = Rto::new(Profile::opnet02().rto);
    rto.sample(millis(600), millis(999), 1, 1);
    assert_eq!((rto.srtt(), rto.current()), (Some(Duration::ZERO), Duration::from_millis(500)));
    // Never early: 0.6 + 0.5 is at tick 1.5.
    assert_eq!(rto.deadline(millis(600)), millis(1500));
    assert_eq!(rto.deadline(millis(1000)), millis(1500));
    rto.sample(millis(999), millis(1001), 1, 1);
    assert_eq!(rto.srtt(), Some(Duration::from_millis(500) / 8));
}

#[test]
fn bsd_counts_in_whole_ticks() {
    let mut rto = Rto::new(Profile::bsd95().rto);
    assert_eq!(rto.current(), Duration::from_secs(3));
    // A timer of six ticks fires at the sixth tick, up to a tick early.
    assert_eq!(rto.deadline(millis(499)), millis(3000));
    assert_eq!(rto.deadline(millis(500)), millis(3500));
    // Within a tick the clock shows 1: srtt 8/8, rttvar 2, so three ticks.
    rto.sample(millis(0), millis(20), 1, 1);
    assert_eq!(rto.current(), Duration::from_millis(1500));
    // It stays there, whatever the true round trip of a local network: T0 = 1.5 s.
    for at in 1..100 {
        rto.sample(millis(at * 500), millis(at * 500 + 20), 1, 1);
        assert_eq!(rto.current(), Duration::from_millis(1500));
    }
    for expected in [3, 6, 12, 24, 48, 64, 64] {
        rto.back_off();
        assert_eq!(rto.current(), Duration::from_secs(expected));
    }
}

#[test]
fn bsd_smooths_in_eighths_and_fourths_of_a_tick() {
    let mut rto = Rto::new(Profile::bsd95().rto);
    // Four ticks: srtt 5 · 8, rttvar 5 · 2, timeout 5 + 10.
    rto.sample(millis(0), millis(2000), 1, 1);
    assert_eq!(rto.current(), Duration::from_millis(15 * 500));
    // Eight: srtt 40 + 8 − 5 = 43, rttvar 10 + 3 − 2 = 11, timeout 5 + 11.
    rto.sample(millis(0), millis(4000), 1, 1);
    assert_eq!(rto.current(), Duration::from_millis(16 * 500));
}
