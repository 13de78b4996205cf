//! Made by `tools/tcp-rates` of `experiments/modern/cubic-rate.toml`: do not edit.

/// Round trips of the rows, in seconds.
pub(super) const ROUND_TRIPS: [f64; 7] = [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32];
/// Shares of lost packets of the columns.
pub(super) const LOSSES: [f64; 9] = [0.0005, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2];
/// Segments that are delivered in a round trip.
#[allow(clippy::approx_constant, reason = "a value may happen to be near one")]
#[rustfmt::skip]
pub(super) const SEGMENTS: [[f64; 9]; 7] = [
    [53.84, 25.30, 14.46, 9.60, 6.05, 4.39, 2.49, 0.73, 0.04],
    [54.77, 25.94, 15.00, 10.08, 6.52, 4.84, 3.13, 1.19, 0.05],
    [55.74, 26.89, 15.86, 10.83, 7.04, 5.29, 3.65, 1.61, 0.12],
    [57.16, 27.36, 16.13, 11.07, 7.26, 5.51, 3.83, 2.09, 0.16],
    [63.67, 28.61, 16.80, 11.42, 7.51, 5.68, 4.02, 2.28, 0.14],
    [93.50, 34.41, 18.85, 12.46, 8.22, 6.28, 4.48, 2.65, 0.36],
    [158.99, 55.19, 27.69, 16.67, 10.12, 7.47, 5.08, 2.97, 0.46],
];
