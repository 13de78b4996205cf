//! What must be seen in the experiments of the TULIP paper, on the set-up of S2-20, S2-21 and
//! S2-22.

mod common;

use airmend_sim::Outcome;
use common::{load, mean_mbps, measure};

const PLAIN: &str = "no link layer";
const SNOOP: &str = "snoop with fix";
const TULIP: &str = "tulip";
const SNOOP_PUBLISHED: &str = "snoop as published";
const SNOOP_ACCELERATED: &str = "snoop with fix, accelerated";
const UNACCELERATED: &str = "tulip, no acceleration";

/// An experiment, with few runs of each point.
struct Figure(common::Figure);

impl Figure {
    fn new(name: &str, runs: &str) -> Self {
        let settings = [("runs", runs), ("time_limit", "20min")];
        Self(common::Figure::new(&format!("tulip99/{name}"), &settings))
    }

    fn kbps(&self, values: &[&str]) -> f64 {
        mean_mbps(self.0.runs(values)) * 1e3
    }

    /// Means over the runs of the mean delay and of the deviation of delays.
    fn delay_ms(&self, values: &[&str]) -> [f64; 2] {
        let runs = self.0.runs(values);
        let mean = |of: fn(&Outcome) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        [mean(|run| run.delay.unwrap().mean_ms), mean(|run| run.delay.unwrap().sd_ms)]
    }
}

/// S2-40. The cell of Snoop with bursts of 2 set the turn-around; the others are results.
#[test]
fn table_1_is_the_paper_s_within_five_percent() {
    let table = Figure::new("table1", "3");
    for (burst, tulip, snoop) in [("2", 587.3, 562.6), ("4", 550.0, 527.6), ("6", 516.1, 496.4)] {
        let [mended, snooped] = [TULIP, SNOOP].map(|scheme| table.kbps(&[scheme, burst]));
        for (measured, published) in [(mended, tulip), (snooped, snoop)] {
            let ratio = measured / published;
            assert!((0.95..1.05).contains(&ratio), "bursts of {burst}: {measured} of {published}");
        }
        // The effect is 4 %, less than that tolerance: of the differences the paper has 24.7, 22.4
        // and 19.7 kb/s.
        let (ahead, published) = (mended - snooped, tulip - snoop);
        assert!((0.6..1.8).contains(&(ahead / published)), "{burst}: {ahead} of {published}");
        let [tulip, snoop] = [TULIP, SNOOP].map(|scheme| table.delay_ms(&[scheme, burst]));
        assert!(tulip[0] < snoop[0] && tulip[1] < snoop[1], "{burst}: {tulip:?}, {snoop:?}");
    }
}

/// S2-22, S2-31 and S2-40: which turn and window the schemes of the figures have, and why.
#[test]
fn a_turn_of_one_packet_makes_all_windows_alike() {
    let figure = Figure::new("strobe", "1");
    let kbps = |mac, strobe, window| figure.kbps(&[mac, strobe, window, "none"]);
    for mac in ["accelerated", "not accelerated"] {
        let one = ["1", "2", "8"].map(|window| kbps(mac, "1", window));
        assert!(one.iter().all(|kbps| (kbps / one[0] - 1.0).abs() < 1e-3), "{mac}: {one:?}");
    }
    let [one, two, four, eight] =
        ["1", "2", "4", "8"].map(|strobe| kbps("not accelerated", strobe, "8"));
    assert!(two > one.max(four).max(eight), "{one}, {two}, {four}, {eight}");
    let (one, two) = (kbps("accelerated", "1", "8"), kbps("accelerated", "2", "8"));
    assert!((1.0..1.02).contains(&(two / one)), "{one}, {two}");
}

/// S2-40: longer bursts cost either more, and TULIP less than Snoop.
#[test]
fn table_1_has_the_order_of_the_paper() {
    let table = Figure::new("table1", "3");
    let of = |scheme| ["2", "4", "6"].map(|burst| table.kbps(&[scheme, burst]));
    let (tulip, snoop) = (of(TULIP), of(SNOOP));
    for kbps in [tulip, snoop] {
        assert!(kbps[0] > kbps[1] && kbps[1] > kbps[2], "{kbps:?}");
    }
    assert!(tulip[0] - tulip[2] < snoop[0] - snoop[2], "{tulip:?}, {snoop:?}");
}

/// S2-31, S2-37: an ACK for each packet moves the comparison most, since each acquires the channel.
#[test]
fn an_ack_for_each_packet_moves_the_comparison() {
    let figure = Figure::new("acks", "2");
    let ahead = |acks| figure.kbps(&[TULIP, acks, "0"]) / figure.kbps(&[SNOOP, acks, "0"]);
    let [second, each] = ["2", "1"].map(ahead);
    assert!((1.0..1.03).contains(&second) && (1.07..1.13).contains(&each), "{second}, {each}");
}

/// S2-01: TULIP does not repeat TCP's ACKs, so that where they alone are lost it has no more than
/// plain TCP, and Snoop, which resends before the sender's timer, far more.
#[test]
fn losses_of_acks_alone_are_not_mended_by_tulip() {
    let figure = Figure::new("ack-loss", "2");
    let kbps = |scheme, loss| figure.kbps(&[scheme, loss]);
    assert!(kbps(TULIP, "40%") < 1.2 * kbps(PLAIN, "40%"), "{}", kbps(TULIP, "40%"));
    assert!(kbps(SNOOP, "40%") > 0.9 * kbps(SNOOP, "0%"));
    assert!(kbps(SNOOP, "40%") > 2.0 * kbps(TULIP, "40%"));
}

/// S2-08: over two half-duplex hops TULIP mends each by itself.
#[test]
fn two_hops_are_mended_one_by_one() {
    let figure = Figure::new("two-hops", "2");
    let kbps = |scheme, ber| figure.kbps(&[scheme, ber]);
    for ber in ["5e-6", "15e-6"] {
        let [plain, snoop, tulip] = [PLAIN, SNOOP, TULIP].map(|scheme| kbps(scheme, ber));
        assert!(tulip > snoop && snoop > plain, "{ber}: {plain}, {snoop}, {tulip}");
    }
    assert!(kbps(TULIP, "15e-6") > 0.75 * kbps(TULIP, "0"));
}

/// S2-30, S2-31, S2-32, and S2-37 where errors are few; S2-06 is what acceleration gives.
#[test]
fn figure_2a_at_low_error_rates() {
    let figure = Figure::new("fig2a", "3");
    let gain = figure.kbps(&[SNOOP_ACCELERATED, "0"]) / figure.kbps(&[SNOOP, "0"]);
    assert!((1.04..1.051).contains(&gain), "acceleration gives the same link layer {gain}");
    let gain = figure.kbps(&[TULIP, "0"]) / figure.kbps(&[UNACCELERATED, "0"]);
    assert!((1.04..1.055).contains(&gain), "acceleration gives TULIP {gain}");
    assert!(figure.kbps(&[UNACCELERATED, "0"]) < figure.kbps(&[PLAIN, "0"]));
    for ber in ["0", "0.5e-6", "1e-6", "2e-6", "5e-6", "10e-6", "15e-6"] {
        let [snoop, tulip] = [SNOOP_ACCELERATED, TULIP].map(|scheme| figure.kbps(&[scheme, ber]));
        assert!(snoop > tulip, "both accelerated, {ber}: {snoop}, {tulip}");
    }
    let kept = |ber: &str| figure.kbps(&[PLAIN, ber]) / figure.kbps(&[PLAIN, "0"]);
    assert!(kept("0.5e-6") > 0.95 && kept("5e-6") < 0.5, "{} {}", kept("0.5e-6"), kept("5e-6"));
    for ber in ["0", "0.5e-6", "1e-6", "2e-6", "5e-6", "10e-6", "15e-6"] {
        let [plain, snoop, tulip] = [PLAIN, SNOOP, TULIP].map(|scheme| figure.kbps(&[scheme, ber]));
        assert!(tulip > snoop && snoop > 0.999 * plain, "{ber}: {plain}, {snoop}, {tulip}");
    }
    let share = of_bound(&figure, "15e-6");
    assert!(share > 0.9, "{share} of the bound at 15e-6");
}

/// S2-33. Where errors are rare, TULIP's mean delay is a percent above Snoop's: see
/// docs/conformance.md.
#[test]
fn figure_2b_delays_at_low_error_rates() {
    let figure = Figure::new("fig2b", "3");
    for ber in ["0", "1e-6", "5e-6", "10e-6", "15e-6"] {
        let delay = |scheme, window| figure.delay_ms(&[scheme, window, ber]);
        let [narrow, wide] = ["16KiB", "42KiB"].map(|window| delay(TULIP, window)[0]);
        assert!(narrow < 0.5 * wide, "{ber}: {narrow} and {wide}");
        for window in ["16KiB", "42KiB"] {
            let [tulip, snoop] = [TULIP, SNOOP].map(|scheme| delay(scheme, window));
            assert!(tulip[1] < snoop[1], "{window}, {ber}: {tulip:?} and {snoop:?}");
            let allowed = if ["0", "1e-6"].contains(&ber) { 1.05 } else { 1.0 };
            assert!(tulip[0] < allowed * snoop[0], "{window}, {ber}: {tulip:?} and {snoop:?}");
        }
    }
}

/// S2-34, S2-35, S2-36 and S2-37.
#[test]
fn figure_3_at_high_error_rates() {
    let figure = Figure::new("fig3a", "3");
    for ber in ["15e-6", "30e-6", "45e-6", "60e-6", "75e-6"] {
        let [plain, snoop, tulip] = [PLAIN, SNOOP, TULIP].map(|scheme| figure.kbps(&[scheme, ber]));
        assert!(tulip > snoop && tulip > 3.0 * plain, "{ber}: {plain}, {snoop}, {tulip}");
        assert!(snoop >= figure.kbps(&[SNOOP_PUBLISHED, ber]), "{ber}: the fix helps");
        let [tulip, snoop] = [TULIP, SNOOP].map(|scheme| figure.delay_ms(&[scheme, ber]));
        assert!(tulip[0] < snoop[0] && 2.0 * tulip[1] < snoop[1], "{ber}: {tulip:?}, {snoop:?}");
    }
    assert!(figure.kbps(&[PLAIN, "45e-6"]) < 5.0, "plain stands still");
    assert!(figure.kbps(&[TULIP, "75e-6"]) > 3.0 * figure.kbps(&[SNOOP, "75e-6"]));
    let share = of_bound(&figure, "75e-6");
    assert!(share > 0.85, "{share} of the bound at 75e-6");
}

/// S2-45, S2-46 and S2-47.
#[test]
fn figure_4_over_a_fading_channel() {
    let figure = Figure::new("fig4a", "3");
    let kbps = |scheme, ber| figure.kbps(&[scheme, ber]);
    assert!(kbps(PLAIN, "1e-7") > 0.9 * kbps(SNOOP, "1e-7"));
    assert!(kbps(PLAIN, "1e-6") < 0.9 * kbps(PLAIN, "1e-7"));
    for ber in ["1e-8", "1e-7", "1e-6", "1e-5"] {
        let ratio = kbps(TULIP, ber) / kbps(SNOOP, ber);
        assert!((1.0..1.06).contains(&ratio), "together at {ber}: {ratio}");
    }
    for ber in ["3e-5", "1e-4"] {
        assert!(kbps(TULIP, ber) > 2.0 * kbps(SNOOP, ber), "apart at {ber}");
    }
    for ber in ["1e-8", "1e-7", "1e-6", "1e-5", "3e-5", "1e-4"] {
        let [tulip, snoop] = [TULIP, SNOOP].map(|scheme| figure.delay_ms(&[scheme, ber]));
        assert!(tulip[1] < snoop[1] && tulip[0] < 1.02 * snoop[0], "{ber}: {tulip:?}, {snoop:?}");
    }
}

/// The share of the calibrated bound (1 - p) x 630 kb/s: what this channel carries without errors,
/// with acceleration and an ACK for every second packet, times the packets of 11,520 bits that
/// arrive.
fn of_bound(figure: &Figure, ber: &str) -> f64 {
    let passes = (1.0 - ber.parse::<f64>().unwrap()).powi(11_520);
    figure.kbps(&[TULIP, ber]) / (630.0 * passes)
}

/// A table to the last digit: a change of any model shows here first, and must be explained.
#[test]
fn a_small_table_gives_these_figures() {
    let settings = [("runs", "1"), ("flows.file.packets.count", "500")];
    let mut table = String::new();
    for (values, runs) in measure(&load("tulip99/table1", &settings)) {
        let Outcome { seconds, sender, links, delay, .. } = &runs[0];
        let delay = delay.unwrap();
        table += &format!(
            "{}: {seconds:.6} s, {} again, {} lost, {:.3} ± {:.3} ms\n",
            values.join(" "),
            sender.retransmits,
            links.lost,
            delay.mean_ms,
            delay.sd_ms
        );
    }
    assert_eq!(table, GOLDEN, "\n{table}");
}

const GOLDEN: &str = "\
no link layer 2: 22.036864 s, 22 again, 22 lost, 211.842 ± 400.006 ms
no link layer 4: 23.691574 s, 73 again, 48 lost, 248.127 ± 427.401 ms
no link layer 6: 23.336145 s, 77 again, 66 lost, 277.829 ± 463.978 ms
snoop as published 2: 9.996714 s, 0 again, 22 lost, 517.774 ± 141.671 ms
snoop as published 4: 10.899975 s, 0 again, 44 lost, 587.692 ± 265.922 ms
snoop as published 6: 11.407391 s, 0 again, 66 lost, 610.390 ± 303.786 ms
snoop with fix 2: 10.008420 s, 0 again, 22 lost, 518.395 ± 141.894 ms
snoop with fix 4: 10.775750 s, 0 again, 44 lost, 580.238 ± 248.689 ms
snoop with fix 6: 11.301088 s, 0 again, 66 lost, 604.012 ± 293.455 ms
snoop with fix, accelerated 2: 9.455471 s, 0 again, 22 lost, 497.672 ± 126.769 ms
snoop with fix, accelerated 4: 9.859182 s, 0 again, 44 lost, 520.344 ± 151.551 ms
snoop with fix, accelerated 6: 10.409090 s, 0 again, 66 lost, 546.439 ± 196.036 ms
tulip 2: 9.794339 s, 0 again, 22 lost, 517.224 ± 125.740 ms
tulip 4: 10.171423 s, 0 again, 44 lost, 537.852 ± 132.633 ms
tulip 6: 10.567441 s, 0 again, 66 lost, 559.521 ± 142.241 ms
tulip, no acceleration 2: 10.305901 s, 0 again, 22 lost, 532.858 ± 130.880 ms
tulip, no acceleration 4: 10.722055 s, 0 again, 44 lost, 553.366 ± 140.701 ms
tulip, no acceleration 6: 11.183244 s, 0 again, 66 lost, 579.426 ± 154.248 ms
";
