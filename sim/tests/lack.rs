//! What must be seen in the experiments of the Local Acknowledgment paper, on the set-up of S1-30.

mod common;

use airmend_sim::{Outcome, TraceKind};
use common::{load, measure};

const TCP: &str = "tcp";
const LACK: &str = "lack";
const FLOW: &str = "lack-flow";
/// Payload of a packet of 4000 bits.
const PAYLOAD: f64 = 460.0;

/// An experiment, with few runs of each point.
struct Figure(Vec<(Vec<String>, Vec<Outcome>)>);

impl Figure {
    fn new(name: &str, settings: &[(&str, &str)]) -> Self {
        Self(measure(&load(&format!("lack/{name}"), settings)))
    }

    fn runs(&self, values: &[&str]) -> &[Outcome] {
        let found = self.0.iter().find(|(known, _)| known == values);
        &found.unwrap_or_else(|| panic!("no {values:?}")).1
    }

    /// The packets that the destination received in a run, on average.
    fn packets(&self, values: &[&str]) -> f64 {
        let runs = self.runs(values);
        let bytes = runs.iter().map(|run| run.bytes_received as f64).sum::<f64>();
        bytes / PAYLOAD / runs.len() as f64
    }

    fn print(&self) {
        for (values, runs) in &self.0 {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            let packets = self.packets(&values);
            println!("{values:?}: {packets:.0} packets, {:?}", runs[0].agent_counters);
        }
    }
}

/// The packets that 200 s of the link carry where each packet needs a CACK of its own: independent
/// bit errors on 4000 bits of a packet, and on 200 bits of a CACK (limits.md D.3).
fn cack_bound(ber: &str) -> f64 {
    let ber = 1.0 / (1e3 * ber[2..].trim_end_matches('k').parse::<f64>().unwrap());
    200.0 * 500.0 * (1.0 - ber).powi(4_000) * (1.0 - ber).powi(200)
}

fn check_shares(figure: &Figure, least: &[(&str, f64)]) {
    let shares = least.iter().map(|(ber, least)| {
        let share = figure.packets(&[LACK, ber]) / cack_bound(ber);
        println!("lack at {ber}: {share:.3} of the bound with CACKs, at least {least}");
        share
    });
    let shares: Vec<f64> = shares.collect();
    for ((ber, least), share) in least.iter().zip(shares) {
        assert!(share >= *least, "{ber}: {share} of the bound");
    }
}

/// S1-40, S1-41: far more than TCP where errors are many. In-order release holds a TCP window of
/// 50 packets back.
#[test]
fn figure_7_with_physical_errors() {
    let figure = Figure::new("fig7-physical", &[("runs", "1")]);
    figure.print();
    for (ber, times) in [("1/4k", 2.0), ("1/10k", 2.0), ("1/20k", 2.0), ("1/100k", 1.2)] {
        let [tcp, lack] = [TCP, LACK].map(|scheme| figure.packets(&[scheme, ber]));
        assert!(lack > times * tcp, "{ber}: {lack} and {tcp}");
    }
    let least = [
        ("1/4k", 0.55),
        ("1/10k", 0.75),
        ("1/20k", 0.9),
        ("1/40k", 0.95),
        ("1/100k", 0.95),
        ("1/400k", 0.95),
    ];
    check_shares(&figure, &least);
}

/// S1-40: with a TCP window of 400 packets nothing but the CACKs is lost.
#[test]
fn figure_7_with_a_window_of_400() {
    let figure = Figure::new("fig7-window-400", &[("runs", "1")]);
    figure.print();
    let bers = ["1/4k", "1/10k", "1/20k", "1/40k", "1/100k", "1/400k"];
    check_shares(&figure, &bers.map(|ber| (ber, 0.95)));
}

/// S1-41, S1-42: the same as TCP below 1/400k, more above.
#[test]
fn figure_7_with_calibrated_errors() {
    let figure = Figure::new("fig7-calibrated", &[("runs", "1")]);
    figure.print();
    for ber in ["1/4k", "1/10k", "1/20k", "1/40k", "1/100k"] {
        let [tcp, lack] = [TCP, LACK].map(|scheme| figure.packets(&[scheme, ber]));
        assert!(lack > tcp, "{ber}: {lack} and {tcp}");
    }
    let [tcp, lack, flow] = [TCP, LACK, FLOW].map(|scheme| figure.packets(&[scheme, "1/400k"]));
    println!("1/400k: {tcp} {lack} {flow}");
}

/// The maximum and the mean over time of the window that a sender used, in packets; the receiver
/// offers 50.
fn window(run: &Outcome) -> (f64, f64) {
    let points = run.trace.iter().filter(|point| point.kind == TraceKind::Window);
    let points: Vec<(f64, f64)> =
        points.map(|point| (point.seconds, (point.offset as f64 / PAYLOAD).min(50.0))).collect();
    let last = points.last().map_or(0.0, |(_, window)| *window);
    let ends = points.iter().skip(1).map(|(at, _)| *at).chain([200.0]);
    let area: f64 = points.iter().zip(ends).map(|((at, window), end)| window * (end - at)).sum();
    (points.iter().map(|(_, window)| *window).fold(last, f64::max), area / 200.0)
}

/// S1-43, S1-44, S1-45: Figs 8 to 17.
#[test]
fn windows_with_calibrated_errors() {
    let figure = Figure::new("windows-calibrated", &[]);
    let of = |scheme, ber| window(&figure.runs(&[scheme, ber])[0]);
    for ber in ["1/4k", "1/10k", "1/20k", "1/40k", "1/100k"] {
        println!("{ber}: tcp {:?}, lack {:?}", of(TCP, ber), of(LACK, ber));
    }
    for ber in ["1/20k", "1/40k", "1/100k"] {
        assert!(of(LACK, ber).0 >= 50.0, "{ber}: {:?}", of(LACK, ber));
    }
    assert!(of(TCP, "1/20k").0 <= 35.0, "{:?}", of(TCP, "1/20k"));
    assert!(of(LACK, "1/10k").0 > of(TCP, "1/10k").0);
    // S1-45: LACK is above TCP at any time.
    for ber in ["1/4k", "1/10k", "1/20k", "1/40k"] {
        let received = |scheme, at: f64| {
            let points = figure.runs(&[scheme, ber])[0].trace.iter();
            let points = points.filter(|point| point.kind == TraceKind::Received);
            points.take_while(|point| point.seconds <= at).map(|point| point.offset).max()
        };
        for at in [20.0, 50.0, 100.0, 150.0, 200.0] {
            assert!(received(LACK, at) > received(TCP, at), "{ber} after {at} s");
        }
    }
}
