//! RFC 9438 by its own numbers.

use super::*;

const MSS: u64 = 1000;
const RTT: Duration = Duration::from_millis(100);

/// Feeds ACKs of full windows, one a round trip in a hundred parts, from `cwnd` on until `until`.
fn windows(cubic: &mut Cubic, mut cwnd: u64, start: Instant, until: Duration) -> u64 {
    let mut now = start;
    while now.since(start) < until {
        let bytes = cwnd / 100;
        cwnd += cubic.increase(now, bytes, cwnd, MSS, RTT);
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
    assert_eq!(cubic.reduce(1_000 * MSS, 1_000.0), 700 * MSS);
    cubic.increase(Instant::ZERO, MSS, 700 * MSS, MSS, RTT);
    let epoch = cubic.epoch.unwrap();
    // Eq. 2: K = cbrt(1000 · 0.3 / 0.4) = 9.0856.
    close(epoch.k, 9.0856, 1e-4);
    close(epoch.window(0.0), 700.0, 1e-9);
    close(epoch.window(epoch.k), 1_000.0, 1e-9);
    // Eq. 1 beyond the plateau: 0.4 · 5³ more.
    close(epoch.window(epoch.k + 5.0), 1_050.0, 1e-9);
}

#[test]
fn the_window_follows_the_cubic_function() {
    let start = Instant::from_millis(7);
    for (seconds, expected) in [(3, 909.7), (9, 1_000.0), (15, 1_082.7)] {
        let mut cubic = Cubic::default();
        cubic.reduce(1_000 * MSS, 1_000.0);
        let until = Duration::from_secs(seconds);
        let cwnd = windows(&mut cubic, 700 * MSS, start, until);
        close(cwnd as f64 / MSS as f64, expected, 0.01);
    }
}

#[test]
fn small_windows_grow_as_renos_would_on_average() {
    // §4.3: α = 0.529 segments a round trip until the window before the loss, then one.
    let mut cubic = Cubic::default();
    cubic.reduce(20 * MSS, 20.0);
    let cwnd = windows(&mut cubic, 14 * MSS, Instant::ZERO, RTT * 8);
    close(cwnd as f64 / MSS as f64, 14.0 + 8.0 * 9.0 / 17.0, 0.02);
    let mut cubic = Cubic::default();
    cubic.reduce(4 * MSS, 4.0);
    let cwnd = windows(&mut cubic, 5 * MSS, Instant::ZERO, RTT * 4);
    close(cwnd as f64 / MSS as f64, 9.0, 0.03);
}

#[test]
fn growth_is_at_most_half_a_window_in_a_round_trip() {
    // §4.2: the target is at most 1.5 windows.
    let mut cubic = Cubic::default();
    cubic.increase(Instant::ZERO, MSS, 10 * MSS, MSS, RTT);
    let grown = cubic.increase(Instant::from_millis(60_000), 10 * MSS, 10 * MSS, MSS, RTT);
    assert!(grown <= 5 * MSS + 1, "{grown}");
}

#[test]
fn fast_convergence_gives_way_to_new_flows() {
    // §4.7: a window that shrank from loss to loss aims at 0.85 of itself.
    let mut cubic = Cubic::default();
    cubic.reduce(100 * MSS, 100.0);
    cubic.reduce(80 * MSS, 80.0);
    close(cubic.w_max, 68.0, 1e-9);
    cubic.reduce(90 * MSS, 90.0);
    close(cubic.w_max, 90.0, 1e-9);
}

#[test]
fn after_a_timeout_the_plateau_is_where_avoidance_begins() {
    // §4.8: K = 0 and W_max is the window then.
    let mut cubic = Cubic::default();
    cubic.reduce(100 * MSS, 100.0);
    cubic.collapse();
    cubic.increase(Instant::ZERO, MSS, 70 * MSS, MSS, RTT);
    let epoch = cubic.epoch.unwrap();
    assert_eq!((epoch.k, epoch.origin), (0.0, 70.0));
}
