//! RFC 9438 by its own numbers, and Linux where it differs.

use super::*;

const MSS: u64 = 1000;
const RTT: Duration = Duration::from_millis(100);

/// Feeds ACKs of full windows, one a round trip in a hundred parts, from `cwnd` on until `until`.
fn windows(cubic: &mut Cubic, mut cwnd: u64, start: Instant, until: Duration) -> u64 {
    let mut now = start;
    while now.since(start) < until {
        let bytes = cwnd / 100;
        cwnd += cubic.increase(now, bytes, cwnd, MSS);
        now += RTT / 100;
    }
    cwnd
}

fn close(actual: f64, expected: f64, within: f64) {
    assert!((actual / expected - 1.0).abs() < within, "{actual} instead of {expected}");
}

#[test]
fn a_loss_leaves_seven_tenths_and_a_plateau_at_the_old_window() {
    let mut cubic = Cubic::default();
    assert_eq!(cubic.reduce(1_000 * MSS, 1_000) / MSS, 700);
    cubic.increase(Instant::ZERO, MSS, 700 * MSS, MSS);
    let epoch = cubic.epoch.unwrap();
    // Eq. 2: K = cbrt(1000 · 0.3 / 0.4) = 9.0856.
    close(epoch.k, 9.0856, 1e-4);
    assert_eq!(epoch.window(0.0), 701);
    assert_eq!(epoch.window(epoch.k), 1_000);
    // Eq. 1 beyond the plateau: 0.4 · 5³ more, less what is no whole segment.
    assert!((1_049..=1_050).contains(&epoch.window(epoch.k + 5.0)));
}

#[test]
fn the_window_follows_the_cubic_function() {
    let start = Instant::from_millis(7);
    for (seconds, expected) in [(3, 909.7), (9, 1_000.0), (15, 1_082.7)] {
        let mut cubic = Cubic::default();
        cubic.reduce(1_000 * MSS, 1_000);
        let until = Duration::from_secs(seconds);
        let cwnd = windows(&mut cubic, 700 * MSS, start, until);
        close(cwnd as f64 / MSS as f64, expected, 0.01);
    }
}

#[test]
fn small_windows_grow_by_half_a_segment_a_round_trip() {
    // Linux keeps 0.53 segments a round trip also beyond the window before the loss (RFC 8312 §4.2,
    // where RFC 9438 §4.3 has one). The plateau is not far above: the cubic function adds little.
    for before in [20, 14] {
        let mut cubic = Cubic::default();
        cubic.reduce(before * MSS, before);
        let cwnd = windows(&mut cubic, 14 * MSS, Instant::ZERO, RTT * 16);
        close(cwnd as f64 / MSS as f64, 14.0 + 16.0 / 1.875, 0.05);
    }
}

#[test]
fn before_the_first_loss_a_window_grows_by_a_twentieth() {
    let mut cubic = Cubic::default();
    let cwnd = windows(&mut cubic, 100 * MSS, Instant::ZERO, RTT * 2);
    close(cwnd as f64 / MSS as f64, 110.0, 0.01);
}

#[test]
fn growth_is_at_most_half_a_window_in_a_round_trip() {
    // §4.4: the target is at most 1.5 windows.
    let mut cubic = Cubic::default();
    cubic.increase(Instant::ZERO, MSS, 10 * MSS, MSS);
    let grown = cubic.increase(Instant::from_millis(60_000), 10 * MSS, 10 * MSS, MSS);
    assert_eq!(grown, 5 * MSS);
}

#[test]
fn fast_convergence_gives_way_to_new_flows() {
    // §4.7: a window that shrank from loss to loss aims at 0.85 of itself.
    let mut cubic = Cubic::default();
    cubic.reduce(100 * MSS, 100);
    cubic.reduce(80 * MSS, 80);
    assert_eq!(cubic.w_max, 68);
    cubic.reduce(90 * MSS, 90);
    assert_eq!(cubic.w_max, 90);
}

#[test]
fn after_a_timeout_the_plateau_is_where_avoidance_begins() {
    // §4.8: K = 0 and W_max is the window then.
    let mut cubic = Cubic::default();
    cubic.reduce(100 * MSS, 100);
    cubic.collapse();
    cubic.increase(Instant::ZERO, MSS, 70 * MSS, MSS);
    let epoch = cubic.epoch.unwrap();
    assert_eq!((epoch.k, epoch.origin), (0.0, 70));
}

#[test]
fn round_trips_say_nothing_in_the_first_second_after_a_loss() {
    let mut cubic = Cubic::default();
    assert!(cubic.measured(Instant::ZERO, RTT));
    cubic.reduce(10 * MSS, 10);
    cubic.increase(Instant::ZERO, MSS, 7 * MSS, MSS);
    assert!(!cubic.measured(Instant::from_millis(999), RTT));
    assert!(cubic.measured(Instant::from_millis(1_000), RTT));
}
