//! What an agent mends where the MAC retries, over radios with aggregates and without.

mod common;

use common::{load, mean_mbps, measure};

/// C-32: an aggregate loses frames without leaving a gap, which is no congestion.
#[test]
fn losses_of_radios_are_mended_with_aggregates_and_without() {
    let settings = [
        ("runs", "1"),
        ("sweep.agent.values", "[\"snoop\"]"),
        ("sweep.retries.values", "[0, 1, 2]"),
    ];
    let points = measure(&load("wifi/retries", &settings));
    assert_eq!(points.len(), 6);
    for (values, rows) in &points {
        assert!(mean_mbps(rows) > 20.0, "{values:?}: {} Mb/s", mean_mbps(rows));
    }
}
