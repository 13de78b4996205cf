//! Links that vary as files say.

use airmend_sim::{Experiment, Outcome, results, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const SCENARIO: &str = r#"
title = "traces"
time_limit = "30s"
hosts = { fh = { profile = "linux" }, mh = { profile = "linux" } }
stations = { bs = { agent = "plain" } }
[links.wired]
between = ["fh", "bs"]
rate = "1gbit"
delay = "5ms"
[links.air]
between = ["bs", "mh"]
air = true
"#;
const FLOW: &str = "\n[flows]\ndown = { from = \"fh\", to = \"mh\" }\n";

/// A directory of a test.
fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// A scenario with these keys of its air.
fn load(directory: &Path, keys: &str) -> Result<Experiment, String> {
    let path = directory.join("scenario.toml");
    fs::write(&path, format!("{SCENARIO}{keys}{FLOW}")).unwrap();
    Experiment::load(&path, &[]).map_err(|error| error.to_string())
}

fn outcome(experiment: &Experiment) -> Outcome {
    run(&experiment.points[0].plan, 1, &AtomicBool::new(false)).unwrap()
}

/// The rate of IP on the air.
fn air_bps(outcome: &Outcome) -> f64 {
    outcome.each_link["air_down"].bytes as f64 * 8.0 / outcome.seconds
}

#[test]
fn a_mahimahi_file_of_12_megabits_gives_12_megabits() {
    let directory = directory("mahimahi12");
    let times: String = (1..=1_000).map(|time| format!("{time}\n")).collect();
    fs::write(directory.join("12mbps.down"), times).unwrap();
    let keys = "rate = \"1gbit\"\ndelay = \"5ms\"\nmahimahi = { down = \"12mbps.down\" }";
    let experiment = load(&directory, keys).unwrap();
    assert_eq!(experiment.points[0].plan.setting().rate_bps, 12_000_000);
    let outcome = outcome(&experiment);
    let mbps = air_bps(&outcome) / 1e6;
    assert!((mbps / 12.0 - 1.0).abs() < 0.01, "{mbps}");
    let goodput = outcome.goodput_bps * 1500.0 / 1448.0 / 1e6;
    assert!((goodput / 12.0 - 1.0).abs() < 0.01, "{goodput}");
}

/// Half of the time 4 Mb/s, half of the time 12; and what arrives is what the bound says.
#[test]
fn a_link_has_the_rates_of_its_trace() {
    let directory = directory("rates");
    fs::write(directory.join("walk.csv"), "time_s,rate_bps\n0,4000000\n1,12000000\n2,0\n").unwrap();
    // A queue that bridges the slow second: the air is always busy.
    let experiment =
        load(&directory, "delay = \"5ms\"\nqueue = 2000\ntrace = \"walk.csv\"").unwrap();
    let outcome = outcome(&experiment);
    let mbps = air_bps(&outcome) / 1e6;
    assert!((mbps / 8.0 - 1.0).abs() < 0.02, "{mbps}");
    let bound = experiment.points[0].plan.setting().bound_bps.unwrap();
    assert!((bound - 8e6 * 1448.0 / 1500.0).abs() < 1.0, "{bound}");
}

/// A file whose first seconds are slow and whose rest is fast says nothing of a run that ends
/// before: as in public traces of cellular hops, which last for minutes.
#[test]
fn the_bound_is_that_of_the_time_of_the_run() {
    let directory = directory("part");
    let text = "time_s,rate_bps\n0,1000000\n60,12000000\n120,0\n";
    fs::write(directory.join("part.csv"), text).unwrap();
    let experiment = load(&directory, "delay = \"5ms\"\ntrace = \"part.csv\"").unwrap();
    let plan = &experiment.points[0].plan;
    let useful = 1448.0 / 1500.0;
    assert!((plan.setting().bound_bps.unwrap() - 6.5e6 * useful).abs() < 1.0);
    for (seconds, mbps) in [(30.0, 1.0), (60.0, 1.0), (120.0, 6.5), (90.0, 14.0 / 3.0)] {
        let bound = plan.bound_of_run(seconds).unwrap();
        assert!((bound - mbps * 1e6 * useful).abs() < 1.0, "{seconds} {bound}");
    }
    let outcome = outcome(&experiment);
    let lines = results::lines("part", &experiment, &[outcome]);
    for line in &lines {
        let share = line["of_bound"].as_f64().unwrap();
        assert!((0.9..=1.0).contains(&share), "{share}");
    }
}

/// What most public traces of rates are: seconds and Mbit/s.
#[test]
fn a_trace_may_be_seconds_and_megabits() {
    let directory = directory("pairs");
    fs::write(directory.join("bus.log"), "10 4.0\n11 12.0\n12 0\n").unwrap();
    let keys = "delay = \"5ms\"\nqueue = 2000\ntrace = \"bus.log\"";
    let experiment = load(&directory, keys).unwrap();
    assert_eq!(experiment.points[0].plan.setting().rate_bps, 8_000_000);
    let mbps = air_bps(&outcome(&experiment)) / 1e6;
    assert!((mbps / 8.0 - 1.0).abs() < 0.02, "{mbps}");
}

/// Questions and answers over an air of 10 Mb/s that varies by this trace.
fn pings(test: &str, trace: &str) -> Experiment {
    let directory = directory(test);
    fs::write(directory.join("sat.csv"), trace).unwrap();
    let flow = "exchange = { request = \"1\", response = \"1\", think = \"100ms\" } }";
    let flow = FLOW.replace("\"mh\" }", &format!("\"mh\", {flow}"));
    let path = directory.join("scenario.toml");
    let keys = "rate = \"10mbit\"\ndelay = \"5ms\"\ntrace = \"sat.csv\"\n";
    fs::write(&path, format!("{SCENARIO}{keys}{flow}")).unwrap();
    Experiment::load(&path, &[]).unwrap()
}

/// To and fro over 5 ms of wire and 20 or 60 ms of air.
#[test]
fn a_link_has_the_delays_of_its_trace() {
    let experiment = pings("delays", "time_s,delay_ms\n0,20\n12,60\n30,0\n");
    assert_eq!(experiment.points[0].plan.setting().air_delay.as_millis(), 44);
    let delay = outcome(&experiment).flow_delay[0].unwrap();
    assert!((50.0..52.0).contains(&delay.p50_ms), "{delay:?}");
    assert!((130.0..132.0).contains(&delay.p99_ms), "{delay:?}");
}

/// For four seconds everything is lost, and the retransmissions of 0.2, 0.4 s and so on after it.
#[test]
fn a_link_has_the_losses_of_its_trace() {
    let experiment = pings("losses", "time_s,loss\n0,0\n20,1\n24,0\n30,0\n");
    assert_eq!(experiment.points[0].plan.setting().errors.frame_error(1), 4.0 / 30.0);
    let outcome = outcome(&experiment);
    assert!((3_900.0..9_000.0).contains(&outcome.stall_ms), "{}", outcome.stall_ms);
    let lost = ["air_down", "air_up"].map(|link| outcome.each_link[link].lost);
    assert!(lost[0] > 2 && lost[1] <= 1, "{lost:?}");
}

#[test]
fn results_are_of_the_contents_of_the_files_that_a_scenario_names() {
    let directory = directory("contents");
    let file = directory.join("walk.csv");
    let fingerprint = |text: &str| {
        fs::write(&file, text).unwrap();
        load(&directory, "delay = \"5ms\"\ntrace = \"walk.csv\"").unwrap().fingerprint
    };
    let first = fingerprint("time_s,rate_bps\n0,4000000\n");
    assert_ne!(fingerprint("time_s,rate_bps\n0,4000001\n"), first);
    assert_eq!(fingerprint("time_s,rate_bps\n0,4000000\n"), first);
}

/// Each in one sentence with the line of the scenario.
#[test]
fn what_a_link_cannot_follow_is_refused() {
    let directory = directory("refused");
    let files = [
        ("loss.csv", "time_s,loss\n0,0.1\n"),
        ("delay.csv", "time_s,delay_ms\n0,1\n"),
        ("rate.csv", "time_s,rate_bps\n0,5e6\n"),
        ("order.csv", "time_s,loss\n1,0\n1,0\n"),
        ("down", "1\n"),
    ];
    for (name, text) in files {
        fs::write(directory.join(name), text).unwrap();
    }
    fs::create_dir_all(directory.join("folder")).unwrap();
    for (keys, words) in [
        ("trace = \"none.csv\"", "none.csv cannot be read: No such file"),
        ("trace = \"folder\"", "folder cannot be read: it is no file"),
        ("trace = \"order.csv\"", "order.csv: line 3: the times must ascend, and 1 s does not"),
        ("trace = \"down\"", "down: line 1: the header is missing"),
        ("mahimahi = \"rate.csv\"", "rate.csv: line 1: a line must be a whole number"),
        ("trace = 5", "the name of a file, or a table with `down` and `up`"),
        ("trace = { sideways = \"rate.csv\" }", "unknown key `sideways`"),
        ("trace = \"loss.csv\"", "the key `rate` is missing"),
        ("trace = \"rate.csv\"", "the key `delay` is missing"),
        ("delay = \"1ms\"\ntrace = { down = \"rate.csv\" }", "the key `rate` is missing"),
        ("trace = \"rate.csv\"\nmahimahi = \"down\"", "both say what the rate is: leave one out"),
        (
            "trace = \"loss.csv\"\nrate = \"1mbit\"\nerrors = { loss = \"1%\" }",
            "a link whose trace has the column loss has no `errors`",
        ),
        (
            "trace = \"delay.csv\"\nrate = \"1mbit\"\nvariation = { jitter = \"1ms\" }",
            "a link whose trace has the column delay_ms has no `variation`",
        ),
        (
            "trace = \"rate.csv\"\narq = { retries = 1 }",
            "has no `mac`, `wifi`, `arq` and `airmail`",
        ),
    ] {
        let sentence = load(&directory, keys).err().unwrap_or_else(|| panic!("{keys} is right"));
        assert!(sentence.contains(words), "{keys}: {sentence}");
        assert!(sentence.contains("scenario.toml:") && sentence.lines().count() == 1, "{sentence}");
    }
    let text = format!("{SCENARIO}trace = \"rate.csv\"{FLOW}");
    let error = Experiment::parse("text".to_owned(), text, &[]).unwrap_err().to_string();
    assert!(error.ends_with("rate.csv is beside no file: this scenario is none"), "{error}");
}

/// The made-up hops of `tools/traces`: mending pays on each.
#[test]
fn a_walk_a_satellite_and_a_cell_are_mended() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/modern/traces.toml");
    let settings = [("runs", "1"), ("time_limit", "62s")];
    let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let experiment = Experiment::load(&path, &settings).unwrap();
    for hop in experiment.points.chunks(3) {
        let mbps: Vec<f64> = hop
            .iter()
            .map(|point| run(&point.plan, 1, &AtomicBool::new(false)).unwrap().goodput_bps / 1e6)
            .collect();
        println!("{}: {mbps:.2?} Mb/s of {:?}", hop[0].values[0], ["plain", "snoop", "tulip"]);
        assert!(mbps[1] > 2.0 * mbps[0], "{:?}: {mbps:?}", hop[0].values);
        let bound = hop[2].plan.setting().bound_bps.unwrap() / 1e6;
        assert!(mbps[2] > 0.85 * bound, "{:?}: {mbps:?} of {bound}", hop[0].values);
    }
}
