//! What TCP would have without mending, as gateway and link tell it, beside the simulator's Linux
//! over the same path: the model alone, with the path's own loss, round trip and rate.

use airmend_live::tcp_model::TcpPath;
use airmend_sim::{Experiment, run};
use std::sync::atomic::AtomicBool;

/// Runs of each path. One alone varies by half of its mean.
const SEEDS: u64 = 48;
/// The model is right within this factor.
const WITHIN: f64 = 1.1;
/// Bits of a frame and of its payload.
const FRAME: f64 = 1_500.0 * 8.0;
const PAYLOAD: f64 = 1_448.0 * 8.0;

/// Milliseconds of wire and air one way, frames in the queue before the air, and megabytes.
type Setup = (&'static str, [u32; 2], u32, f64);

const SETUPS: [Setup; 6] = [
    ("gateway, 2 ms of air and 40 ms of wire", [40, 2], 100, 3.0),
    ("gateway, 20 ms of each", [20, 20], 100, 3.0),
    ("gateway, 70 ms of air and 5 ms of wire", [5, 70], 100, 3.0),
    ("gateway, a far queue behind 10 ms of wire", [10, 2], 140, 3.0),
    ("link, 40 ms", [0, 20], 67, 3.0),
    ("link, 140 ms", [0, 70], 233, 10.0),
];

#[test]
fn the_model_is_what_the_simulators_linux_has() {
    let mut wrong = Vec::new();
    for setup in SETUPS {
        for loss in [0.01, 0.03, 0.1] {
            let (told, seen) = (told(setup, loss), seen(setup, loss));
            let ratio = told / seen;
            let line = format!("{}, {loss}: {told:.0} b/s told, {seen:.0} seen", setup.0);
            println!("{line}: {ratio:.3}");
            if !(1.0 / WITHIN..WITHIN).contains(&ratio) {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn told((_, [wire, air], _, megabytes): Setup, loss: f64) -> f64 {
    let rate = Some(20e6 / FRAME);
    // A frame takes its time on the air, too.
    let round_trip = f64::from(2 * (wire + air)) / 1e3 + FRAME / 20e6;
    let path = TcpPath { loss, round_trip, rate };
    path.rate_of(megabytes * 8e6 / PAYLOAD) * PAYLOAD
}

/// The mean rate: that of the mean time, since the bytes are the same.
fn seen((_, [wire, air], queue, megabytes): Setup, loss: f64) -> f64 {
    let percent = loss * 100.0;
    let text = format!(
        r#"
        title = "Linux without mending"
        time_limit = "1h"
        hosts = {{ fh = {{ profile = "linux" }}, mh = {{ profile = "linux" }} }}
        stations = {{ bs = {{ agent = "plain" }} }}
        [links]
        wired = {{ between = ["fh", "bs"], rate = "1gbit", delay = "{wire}ms" }}
        air = {{ between = ["bs", "mh"], air = true, rate = "20mbit", delay = "{air}ms",
                queue = {queue}, errors = {{ loss = "{percent}%" }} }}
        [flows]
        download = {{ from = "fh", to = "mh", bytes = "{megabytes}MB" }}
        "#
    );
    let experiment = Experiment::parse("told".to_owned(), text, &[]).expect("a scenario");
    let plan = &experiment.points[0].plan;
    let times = (1..=SEEDS).map(|seed| {
        let outcome = run(plan, seed, &AtomicBool::new(false)).expect("a run");
        assert!(outcome.completed, "seed {seed}");
        1.0 / outcome.goodput_bps
    });
    SEEDS as f64 / times.sum::<f64>()
}
