//! What a data packet costs in the simulator: links, agent and both endpoints together.

use airmend_sim::{Experiment, Plan, run};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

fn scenario(agent: &str, flows: u32, bytes: u64) -> Plan {
    let text = format!(
        r#"
title = "bench"
time_limit = "1h"
[hosts]
fh = {{ profile = "linux", congestion = "reno", sack = false }}
mh = {{ profile = "linux" }}
[stations]
bs = {{ agent = "{agent}" }}
[links.wired]
between = ["fh", "bs"]
rate = "1gbit"
delay = "1ms"
queue = 1000000
[links.air]
between = ["bs", "mh"]
air = true
rate = "20mbit"
delay = "2ms"
queue = 1000000
[flows.transfer]
from = "fh"
to = "mh"
bytes = {bytes}
count = {flows}
"#
    );
    let experiment = Experiment::parse("bench".to_owned(), text, &[]);
    experiment.unwrap_or_else(|error| panic!("{error}")).points.remove(0).plan
}

fn main() {
    println!("nanoseconds per data packet, both directions, links and endpoints included");
    for (agent, flows, bytes) in [
        ("plain", 1, 10_000_000),
        ("snoop95", 1, 10_000_000),
        ("plain", 100, 1_000_000),
        ("plain", 10_000, 10_000),
        ("snoop95", 100, 1_000_000),
        ("snoop95", 10_000, 10_000),
    ] {
        let plan = scenario(agent, flows, bytes);
        let stop = AtomicBool::new(false);
        let mut best = f64::MAX;
        let mut packets = 0;
        let mut steps = 0;
        for _ in 0..10 {
            let begin = Instant::now();
            let outcome = run(&plan, 1, &stop).unwrap_or_else(|error| panic!("{error}"));
            let nanos = begin.elapsed().as_nanos() as f64;
            assert!(outcome.completed);
            packets = outcome.sender.segments;
            steps = outcome.steps;
            best = best.min(nanos / packets as f64);
        }
        println!(
            "{agent:>8} {flows:>6} flows {packets:>8} packets {best:>8.0} ns {:.2} steps",
            steps as f64 / packets as f64
        );
    }
}
