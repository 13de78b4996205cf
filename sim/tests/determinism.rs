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
    experiment.run_all(jobs, &AtomicBool::new(false), || ()).unwrap()
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
    let stopped = experiment.run_all(1, &AtomicBool::new(true), || ()).map(|_| ());
    assert_eq!(stopped, Err(RunError::Stopped));
}
