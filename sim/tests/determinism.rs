//! One seed, one result: to the last bit, on however many threads.

use airmend_sim::{Experiment, Outcome, RunError};
use std::sync::atomic::AtomicBool;

/// Cells with several hosts, every kind of traffic and of error, and three agents' worth of sweep.
const MIXED: &str = r#"
title = "a bit of everything"
runs = 3
time_limit = "5min"
trace = true

[hosts]
fh = { profile = "linux" }
mh = { profile = "bsd95", count = 6 }

[stations]
bs = { agent = "plain", count = 2 }

[links.wired]
between = ["fh", "bs"]
shared = true
rate = "10mbit"
delay = "2ms"

[links.air]
between = ["bs", "mh"]
air = true
shared = true
rate = "2mbit"
delay = "3ms"
queue = 30
down.errors = { ber = "1/256Ki" }
up.errors = { fading = "good=300ms,bad=30ms,loss=0.5" }

[flows.files]
from = "fh"
to = "mh"
bytes = "200kB"
stagger = "100ms"

[flows.uploads]
from = "mh"
to = "fh"
bytes = "50kB"

[flows.calls]
from = "fh"
to = "mh"
packets = { size = 200, interval = "50ms", count = 100 }

[flows.pages]
from = "mh"
to = "fh"
exchange = { request = 300, response = "20kB", think = "200ms", count = 10 }

[sweep]
agent = { key = "stations.bs.agent", values = ["plain", "snoop95"] }
queue = { key = "links.air.queue", from = 10, to = 40, factor = 2 }
"#;

fn outcomes(text: &str, jobs: usize) -> Vec<Outcome> {
    let experiment = Experiment::parse("test".to_owned(), text.to_owned(), &[]);
    let experiment = experiment.unwrap_or_else(|error| panic!("{error}"));
    experiment.run_all(jobs, &AtomicBool::new(false), |_, _| ()).unwrap()
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let alone = outcomes(MIXED, 1);
    assert_eq!(alone.len(), 2 * 3 * 3);
    for jobs in [2, 7] {
        assert!(outcomes(MIXED, jobs) == alone, "{jobs} threads give other results");
    }
    let [first, second] = [&alone[0], &alone[1]];
    assert!(first != second, "the seed makes a difference");
}

#[test]
fn all_kinds_of_flows_complete_and_are_measured() {
    for outcome in outcomes(MIXED, 2) {
        assert!(outcome.completed, "{:?}", outcome.flow_goodput_bps);
        // 6 files, 6 uploads, 6 times 100 packets, 6 times 10 questions and answers.
        let bytes = 6 * (200_000 + 50_000 + 100 * 200 + 10 * 20_300);
        assert_eq!(outcome.bytes_received, bytes);
        let delay = outcome.delay.expect("packets and pages have delays");
        assert_eq!(delay.count, 6 * 100 + 6 * 10);
        assert!(delay.mean_ms > 5.0 && delay.p95_ms > delay.mean_ms, "{delay:?}");
        assert!(!outcome.trace.is_empty());
    }
}

#[test]
fn a_run_can_be_stopped() {
    let experiment = Experiment::parse("test".to_owned(), MIXED.to_owned(), &[]).unwrap();
    let stopped = experiment.run_all(1, &AtomicBool::new(true), |_, _| ()).map(|_| ());
    assert_eq!(stopped, Err(RunError::Stopped));
}

/// Datagrams are counted and timed one by one, at a constant rate and where the link is full.
#[test]
fn datagrams_arrive_without_a_connection() {
    let text = r#"
        title = "datagrams"
        time_limit = "2s"
        hosts = { a = { profile = "linux" }, b = { profile = "linux" } }
        stations = { bs = { agent = "snoop" } }
        [links]
        wired = { between = ["a", "bs"], rate = "8mbit", delay = "10ms" }
        air = { between = ["bs", "b"], air = true, rate = "20mbit", delay = "1ms" }
        [flows]
        even = { from = "a", to = "b", packets = { size = 972, rate = "1mbit" } }
        full = { from = "a", to = "b", count = 2, packets = { size = 972, rate = "saturating" } }
    "#;
    let [outcome] = &outcomes(text, 1)[..] else { panic!("one run") };
    // 8 Mb/s are 1000 packets of 1000 bytes a second.
    let sent = outcome.datagrams.sent;
    assert!((1998..=2002).contains(&sent), "{:?}", outcome.datagrams);
    assert!(sent - outcome.datagrams.received < 20, "{:?}", outcome.datagrams);
    let mbps: Vec<f64> = outcome.flow_goodput_bps.iter().map(|bps| bps / 1e6).collect();
    assert!((0.98..=1.01).contains(&mbps[0]), "{mbps:?}");
    assert!((mbps[1] - mbps[2]).abs() < 0.01 && mbps[1] > 3.2, "{mbps:?}");
    // 1 ms and 0.4 ms of transmission and 11 ms of propagation; two others may be before.
    let delay = outcome.delay.expect("datagrams have delays");
    assert!((12.4..14.5).contains(&delay.p50_ms), "{delay:?}");
}

/// A link that drops all before its queue is never full, and holds up no run.
#[test]
fn a_saturating_source_goes_on_where_everything_is_dropped() {
    let text = r#"
        title = "dropped"
        time_limit = "5ms"
        hosts = { a = { profile = "linux" }, b = { profile = "linux" } }
        [links.air]
        between = ["a", "b"]
        rate = "8mbit"
        delay = "1ms"
        generator = { at = "a", rate = "100%" }
        [flows]
        full = { from = "a", to = "b", packets = { size = 972, rate = "saturating" } }
    "#;
    let [outcome] = &outcomes(text, 1)[..] else { panic!("one run") };
    assert_eq!(outcome.datagrams.received, 0);
    assert!(outcome.datagrams.sent > 1000, "{:?}", outcome.datagrams);
}
