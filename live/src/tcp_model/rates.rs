//! Made by `tools/tcp-rates` of `experiments/modern/cubic-rate.toml`: do not edit.

/// Round trips of the rows, in seconds.
pub(super) const ROUND_TRIPS: [f64; 7] = [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32];
/// Shares of lost packets of the columns.
pub(super) const LOSSES: [f64; 8] = [0.0005, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];
/// Segments that are delivered in a round trip.
#[allow(clippy::approx_constant, reason = "a value may happen to be near one")]
#[rustfmt::skip]
pub(super) const SEGMENTS: [[f64; 8]; 7] = [
    [53.05, 24.41, 14.19, 9.36, 5.99, 2.58, 0.66, 0.03],
    [54.65, 24.90, 14.80, 9.91, 6.49, 3.14, 1.14, 0.04],
    [55.74, 26.89, 15.86, 10.83, 7.04, 3.65, 1.61, 0.12],
    [59.76, 28.78, 16.64, 11.27, 7.45, 3.87, 2.18, 0.19],
    [72.17, 33.47, 17.86, 12.03, 7.64, 4.16, 2.46, 0.30],
    [110.25, 43.47, 20.22, 13.74, 8.65, 4.78, 2.88, 0.73],
    [188.11, 69.68, 29.83, 19.20, 10.99, 5.67, 3.18, 0.95],
];
