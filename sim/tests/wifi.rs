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

/// However many stations contend for the channel, their TCP does not exceed the bound.
#[test]
fn stations_that_contend_do_not_exceed_the_bound() {
    for [from, to] in [["fh", "mobile"], ["mobile", "fh"]] {
        for (phy, rate) in [("ht", "65mbit"), ("ofdm", "54mbit"), ("dsss", "11mbit")] {
            let settings = [
                ("runs", "1"),
                ("time_limit", "10s"),
                ("links.air.errors", "{}"),
                ("links.air.wifi.phy", phy),
                ("links.air.rate", rate),
                ("flows.bulk.from", from),
                ("flows.bulk.to", to),
                ("flows.probe.from", from),
                ("flows.probe.to", to),
                ("sweep.agent.values", "[\"plain\"]"),
                ("sweep.retries.values", "[7]"),
                ("sweep.stations.values", "[1, 2, 5]"),
            ];
            let experiment = load("wifi/stations", &settings);
            for ((values, runs), point) in measure(&experiment).iter().zip(&experiment.points) {
                let bound = point.plan.bound_of_run(runs[0].seconds).unwrap() / 1e6;
                let share = mean_mbps(runs) / bound;
                let is_right = (0.75..=1.0).contains(&share);
                assert!(is_right, "{phy}, from {from}, {values:?}: {share:.3} of {bound:.2} Mb/s");
            }
        }
    }
}
