//! What a mobile host sends over an air hop that loses: which place of the agent gives how much.

mod common;

use common::{load, mean_mbps, measure};

/// S0-40, C-27 to C-30: the order of the places at 5 % each way, and their shares of the bound.
#[test]
fn the_nearer_to_the_sender_an_agent_is_the_more_it_mends() {
    let settings = [("runs", "2"), ("time_limit", "20s")];
    let mut experiment = load("modern/uplink", &settings);
    experiment.points.retain(|point| point.values[1..] == ["5%", "40ms"]);
    let points = measure(&experiment);
    // The air's rate less headers and lost frames.
    let bound = 20.0 * 0.95 * 1448.0 / 1500.0;
    let share = |scheme: &str| {
        let found = points.iter().find(|(values, _)| values[0] == scheme);
        mean_mbps(&found.unwrap_or_else(|| panic!("no {scheme}")).1) / bound
    };
    let [plain, station] = [share("plain"), share("base station: timestamps")];
    assert!(plain < 0.06 && station > 1.8 * plain, "{plain} and {station}");
    let [host, both] = [share("mobile host"), share("mobile host, reports of the base station")];
    assert!(host > 0.95 && both > 0.95, "{host} and {both}");
    assert!(share("base station: reports") < 0.2 * host, "reports alone are little help for Linux");
    let [tulip, lack] = [share("tulip"), share("lack")];
    assert!(tulip > 0.95 && lack > 0.93, "{tulip} and {lack}");
}

/// C-27 to C-30: the same order over round trips of 20 and 200 ms.
#[test]
fn the_order_of_the_places_is_that_of_any_round_trip() {
    let settings = [("runs", "2"), ("time_limit", "20s")];
    let schemes = [
        "plain",
        "base station: timestamps",
        "mobile host",
        "mobile host, reports of the base station",
    ];
    let bound = 20.0 * 0.95 * 1448.0 / 1500.0;
    for delay in ["8ms", "98ms"] {
        let mut experiment = load("modern/uplink", &settings);
        experiment.points.retain(|point| {
            point.values[1..] == ["5%", delay] && schemes.contains(&point.values[0].as_str())
        });
        let points = measure(&experiment);
        let [plain, station, host, both] = schemes.map(|scheme| {
            let found = points.iter().find(|(values, _)| values[0] == scheme);
            mean_mbps(&found.unwrap_or_else(|| panic!("no {scheme}")).1) / bound
        });
        assert!(station > 1.8 * plain, "{delay}: {station} and {plain}");
        assert!(host > 0.8 && both > 0.85, "{delay}: {host} and {both}");
    }
}
