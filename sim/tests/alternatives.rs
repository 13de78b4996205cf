//! What stands beside Snoop: the orderings that must be seen, and the model of BBR beside the
//! kernel's.

mod common;

use airmend_sim::Outcome;
use common::{experiments, load, mean_mbps, measure};
use std::collections::BTreeMap;

type Points = Vec<(Vec<String>, Vec<Outcome>)>;

fn at<'a>(points: &'a Points, values: &[&str]) -> &'a [Outcome] {
    let found = points.iter().find(|(found, _)| found == values);
    &found.unwrap_or_else(|| panic!("no point {values:?}")).1
}

/// S0-67: link-level retransmission helps, and its codes where bit errors are many; a code that is
/// not needed is not used.
#[test]
fn codes_of_airmail_pay_where_errors_are_many() {
    let settings = [("runs", "2"), ("flows.transfer.bytes", "2MB"), ("time_limit", "30min")];
    let experiment = load("snoop95/alternatives", &settings);
    let points = measure(&experiment);
    for ((values, runs), point) in points.iter().zip(&experiment.points) {
        let share = mean_mbps(runs) / point.plan.setting().bound_bps.unwrap() * 1e6;
        // The bound is that of the mean errors, and few frames may be lucky.
        assert!(share < 1.02, "{values:?}: {share} of the bound");
    }
    let mbps = |scheme: &str, ber: &str| mean_mbps(at(&points, &[scheme, ber]));
    for ber in ["1/16Ki", "1/64Ki"] {
        let [coded, bare] = [mbps("AIRMAIL", ber), mbps("AIRMAIL, no code", ber)];
        assert!(coded > 1.1 * bare && bare > mbps("reno", ber), "{ber}: {coded} and {bare}");
    }
    let [coded, bare] = [mbps("AIRMAIL", "1/1024Ki"), mbps("AIRMAIL, no code", "1/1024Ki")];
    assert!((0.97..1.03).contains(&(coded / bare)), "{coded} and {bare}");
}

/// S0-67, M-TCP: a mobile that is away for seconds costs the fixed host no timeout, and less time.
#[test]
fn m_tcp_spares_the_sender_the_disconnection() {
    let settings = [("runs", "2"), ("time_limit", "20min")];
    let points = measure(&load("snoop95/disconnection", &settings));
    for away in ["2s", "6s"] {
        let m_tcp = at(&points, &["m-tcp", away, "0"]);
        assert!(m_tcp.iter().all(|run| run.sender.timeouts == 0), "{away}");
        let reno = at(&points, &["reno", away, "0"]);
        assert!(reno.iter().all(|run| run.sender.timeouts > 0), "{away}");
    }
    let mbps = |scheme: &str| mean_mbps(at(&points, &[scheme, "2s", "0"]));
    assert!(mbps("m-tcp") > 1.05 * mbps("reno"), "{} and {}", mbps("m-tcp"), mbps("reno"));
}

/// Goodput within 3 % of the kernel's at each point, in transfers of 15 s with slow start.
#[test]
fn bbr_is_as_fast_as_the_kernels() {
    let mut kernel: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    let text = std::fs::read_to_string(experiments().join("modern/kernel.jsonl")).unwrap();
    for line in text.lines().filter(|line| line.contains("\"experiment\":\"modern/bbr\"")) {
        let field = |name: &str| {
            let (_, rest) = line.split_once(&format!("\"{name}\":")).unwrap();
            rest.split([',', '}']).next().unwrap().trim_matches('"').to_owned()
        };
        let loss = format!("{}%", field("loss").parse::<f64>().unwrap() * 100.0);
        let goodput = field("goodput_bps").parse::<f64>().unwrap() / 1e6;
        kernel.entry((field("agent"), loss)).or_default().push(goodput);
    }
    assert_eq!(kernel.len(), 6, "{kernel:?}");
    let mut experiment = load("modern/split", &[("runs", "3"), ("time_limit", "15s")]);
    let is_measured = |values: &[String]| {
        values[0] == "20 Mb/s, 40 + 2 ms" && ["bbr", "snoop, bbr"].contains(&values[1].as_str())
    };
    experiment.points.retain(|point| is_measured(&point.values));
    let points = measure(&experiment);
    for ((agent, loss), measured) in kernel {
        let scheme = if agent == "snoop" { "snoop, bbr" } else { "bbr" };
        let model = mean_mbps(at(&points, &["20 Mb/s, 40 + 2 ms", scheme, &loss]));
        let kernel = measured.iter().sum::<f64>() / measured.len() as f64;
        assert!((model / kernel - 1.0).abs() < 0.03, "{agent}, {loss}: {model} and {kernel}");
    }
}
