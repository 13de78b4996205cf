//! What an agent mends where the MAC retries, over radios with aggregates and without.

mod common;

use airmend_proto::link::mac::{DcfParams, Phy};
use common::{load, mean_mbps, measure};
use std::time::Duration;

/// An aggregate loses frames without leaving a gap, which is no congestion.
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

/// Stations that always have a datagram to send, without TCP, have the throughput of Bianchi's
/// model.
#[test]
fn saturated_stations_have_the_throughput_of_bianchi() {
    let experiment = load("wifi/saturated", &[("runs", "1")]);
    let points = measure(&experiment);
    assert_eq!(points.len(), 4 * 7);
    for (values, runs) in &points {
        let [phy, stations] = &values[..] else { panic!("{values:?}") };
        let (constants, rate_bps) = match phy.as_str() {
            "802.11, 1 Mb/s" => (Phy::FHSS, 1_000_000),
            "802.11b, 11 Mb/s" => (Phy::DSSS, 11_000_000),
            _ => (Phy::OFDM, 54_000_000),
        };
        let rts_threshold = phy.ends_with("RTS").then_some(500);
        let params = DcfParams::new(constants, rate_bps, Duration::from_micros(1), 100);
        let params = DcfParams { rts_threshold, ..params };
        let time = params.mean_exchange(1500, 1, stations.parse().unwrap());
        let expected = 8.0 * 1472.0 / time.as_secs_f64() / 1e6;
        let ratio = mean_mbps(runs) / expected;
        assert!((ratio - 1.0).abs() < 0.05, "{values:?}: {ratio:.3} of {expected:.2} Mb/s");
    }
}

/// However many stations contend for the channel, their TCP does not exceed the bound.
#[test]
fn stations_that_contend_do_not_exceed_the_bound() {
    for [from, to] in [["fh", "mobile"], ["mobile", "fh"]] {
        for (phy, rate) in [("ht", "65mbit"), ("ofdm", "54mbit"), ("dsss", "11mbit")] {
            let settings = [
                ("runs", "1"),
                ("time_limit", "20s"),
                ("links.wired.delay", "5ms"),
                ("flows.probe.start", "1h"),
                ("links.air.errors", "{}"),
                ("links.air.wifi.phy", phy),
                ("links.air.rate", rate),
                ("flows.bulk.from", from),
                ("flows.bulk.to", to),
                ("flows.probe.from", from),
                ("flows.probe.to", to),
                ("sweep.agent.values", "[\"plain\"]"),
                ("sweep.retries.values", "[7]"),
                ("sweep.stations.values", "[1, 2, 10]"),
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
