//! What a data packet costs in the simulator: links, agent and both endpoints, data and ACKs.
//!
//! Every flow has a rate of 2 Mb/s to itself, so that more flows change nothing but their number.

use airmend_sim::{Experiment, Plan, run};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const ROUNDS: usize = 7;

fn main() {
    println!("ns per data packet of a Reno transfer: best and median of {ROUNDS} rounds\n");
    println!("agent     stations    flows   packets    best  median");
    let sizes = [(1, 1, 10_000_000), (1, 100, 1_000_000), (1, 10_000, 100_000)];
    for (stations, flows, bytes) in sizes {
        for agent in ["plain", "snoop95"] {
            measure(agent, stations, flows, bytes);
        }
    }
    measure("snoop95", 1_000, 100_000, 20_000);
}

fn measure(agent: &str, stations: u32, flows: u32, bytes: u64) {
    let plan = transfer(agent, stations, flows, bytes);
    let mut packets = 0;
    let mut nanos: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            let outcome = run(&plan, 1, &AtomicBool::new(false));
            let nanos = begin.elapsed().as_nanos() as f64;
            let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
            assert!(outcome.completed, "{agent}, {flows} flows");
            packets = outcome.sender.segments;
            nanos / packets as f64
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    let (best, median) = (nanos[0], nanos[ROUNDS / 2]);
    println!("{agent:<9} {stations:>8} {flows:>8} {packets:>9} {best:>7.0} {median:>7.0}");
}

/// Flows of `bytes` each, evenly spread over the stations' hosts.
fn transfer(agent: &str, stations: u32, flows: u32, bytes: u64) -> Plan {
    let each = flows / stations;
    let text = format!(
        r#"
title = "bench"
time_limit = "1h"
[hosts]
fh = {{ profile = "bsd95" }}
mh = {{ profile = "bsd95", count = {stations} }}
[stations]
bs = {{ agent = "{agent}", count = {stations} }}
[links.wired]
between = ["fh", "bs"]
rate = {wired}
delay = "1ms"
queue = 1000000
[links.air]
between = ["bs", "mh"]
air = true
rate = {air}
delay = "5ms"
queue = 1000000
[flows.transfer]
from = "fh"
to = "mh"
bytes = {bytes}
count = {each}
stagger = "10us"
"#,
        air = 2_000_000 * each,
        wired = 20_000_000u64 * u64::from(each),
    );
    let experiment = Experiment::parse("bench".to_owned(), text, &[]);
    experiment.unwrap_or_else(|error| panic!("{error}")).points.remove(0).plan
}
