//! Hops that vary as files say, and files that say how a hop has varied.

#[path = "kit/doctor.rs"]
mod doctor;

use airmend_testkit::{Suite, lacks_guest};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// They judge figures of time only.
const LABORATORY: [(&str, fn()); 2] = [
    (
        "a_mahimahi_file_of_6_megabits_gives_6_megabits",
        a_mahimahi_file_of_6_megabits_gives_6_megabits,
    ),
    ("a_capture_gives_the_hop_that_it_crossed", a_capture_gives_the_hop_that_it_crossed),
];
const GATEWAY: [(&str, fn()); 1] = [(
    "an_observing_gateway_records_the_hop_beyond_it",
    an_observing_gateway_records_the_hop_beyond_it,
)];
const ANYWHERE: [(&str, fn()); 1] =
    [("what_is_no_trace_ends_in_one_sentence", what_is_no_trace_ends_in_one_sentence)];

fn main() -> ExitCode {
    let [laboratory, gateway] = ["run the laboratory", "run the gateway"]
        .map(|what| doctor::lacks(what).or_else(lacks_guest));
    Suite::default()
        .tests(laboratory.as_deref(), LABORATORY)
        .tests(gateway.as_deref(), GATEWAY)
        .tests(None, ANYWHERE)
        .run(None)
}

/// 1500 bytes of IP every two milliseconds, 1448 of them payload. The queue holds whatever the
/// sender sends, so that nothing is lost and no hole is filled where the measurement begins.
fn a_mahimahi_file_of_6_megabits_gives_6_megabits() {
    let directory = Directory::new("mahimahi");
    let times: String = (1..=500).map(|number| format!("{}\n", 2 * number)).collect();
    let file = directory.file("6mbps", &times);
    let row = lab(
        &["--mahimahi-down", &file, "--mahimahi-up", &file, "--agent", "plain"],
        &["--wired-rate=1gbit", "--wired-delay=5ms", "--seconds=6", "--warmup=2", "--queue=10000"],
    );
    let mbps = number(&row, "goodput_bps") * 1500.0 / 1448.0 / 1e6;
    assert!((mbps / 6.0 - 1.0).abs() < 0.01, "{mbps}: {row}");
    assert_eq!(row["rate_bps"], 6_000_000);
    assert_eq!(row["trace"], format!("{file}, {file}"));
}

const WALK: &str = "time_s,rate_bps,delay_ms,loss
0,6000000,5,0.01
4,2000000,20,0.03
8,4000000,10,0
12,6000000,5,0
";
const FLAGS: [&str; 3] = ["--cc=cubic", "--seconds=24", "--wired-delay=5ms"];

/// The goodput over the hop of a recording is that of the run that was recorded.
fn a_capture_gives_the_hop_that_it_crossed() {
    let directory = Directory::new("capture");
    let walk = directory.file("walk.csv", WALK);
    let [capture, recorded] = ["run.pcapng", "recorded.csv"].map(|name| directory.path(name));
    once_in_three(|seed| {
        fs::remove_file(&recorded).ok();
        let what = ["--trace", &walk, "--agent", "snoop", "--pcap", &capture, "--seed", seed];
        let original = lab(&what, &FLAGS);
        let replayed = airmend(&["replay", &capture, "--trace", &recorded]);
        assert!(replayed.status.success(), "{replayed:?}");
        let rows = fs::read_to_string(&recorded).expect("a trace");
        assert!(rows.lines().count() > 20, "{rows}");
        is_as_fast(&directory, &recorded, "snoop", &FLAGS, &original)
    });
}

/// The queue is the interface's, at the rate of the air; delay and losses vary.
fn an_observing_gateway_records_the_hop_beyond_it() {
    let directory = Directory::new("gateway");
    let trace = "time_s,delay_ms,loss\n0,2,0.001\n4,12,0.004\n8,2,0\n";
    let (varies, recorded) = (directory.file("varies.csv", trace), directory.path("recorded.csv"));
    let flags = ["--cc=cubic", "--rate=10mbit", "--seconds=16", "--wired-delay=5ms"];
    let gateway = ["--path", "gateway", "--observe", "--agent", "plain", "--trace", &varies];
    once_in_three(|seed| {
        fs::remove_file(&recorded).ok();
        let what = [gateway.as_slice(), &["--record-trace", &recorded, "--seed", seed]].concat();
        let original = lab(&what, &flags);
        let rows = fs::read_to_string(&recorded).expect("a trace");
        let delays = rows.lines().skip(1).filter_map(|row| row.split(',').nth(2)?.parse().ok());
        let delays: Vec<f64> = delays.collect();
        let seen = |delay: f64| delays.iter().filter(|seen| (**seen - delay).abs() < 2.0).count();
        assert!(seen(2.0) >= 4 && seen(12.0) >= 4, "{rows}");
        is_as_fast(&directory, &recorded, "plain", &flags, &original)
    });
}

/// One run has few losses, and its goodput is what they happened to cost: one that is off by more
/// than a tenth is tried again with another seed.
fn once_in_three(is_alike: impl Fn(&str) -> bool) {
    assert!(["1", "2", "3"].into_iter().any(is_alike), "not one of three runs is as fast");
}

/// Whether the same transfer over the recorded hop is as fast: in the laboratory, the mean of two
/// seeds, and in the simulator.
fn is_as_fast(
    directory: &Directory,
    recorded: &str,
    agent: &str,
    flags: &[&str],
    original: &Value,
) -> bool {
    let run = |seed| lab(&["--trace", recorded, "--agent", agent, "--seed", seed], flags);
    let goodputs = ["1", "2"].map(|seed| number(&run(seed), "goodput_bps"));
    let in_lab = is_near("the laboratory", (goodputs[0] + goodputs[1]) / 2.0, original);
    is_near("the simulator", simulated(directory, agent, original), original) && in_lab
}

/// The same transfer over `recorded.csv` in virtual time, the mean of five seeds.
fn simulated(directory: &Directory, agent: &str, original: &Value) -> f64 {
    let [seconds, wired_delay] =
        ["send_seconds", "wired_delay_ms"].map(|name| number(original, name));
    let queue = &original["queue_frames"];
    let scenario = format!(
        "title = \"recorded\"
        runs = 5
        time_limit = \"{seconds}s\"
        hosts = {{ fh = {{ profile = \"linux\" }}, mh = {{ profile = \"linux\" }} }}
        stations = {{ bs = {{ agent = \"{agent}\" }} }}
        [links.wired]
        between = [\"fh\", \"bs\"]
        rate = \"100mbit\"
        delay = \"{wired_delay}ms\"
        queue = 1000
        [links.air]
        between = [\"bs\", \"mh\"]
        air = true
        trace = \"recorded.csv\"
        queue = {queue}
        [flows]
        down = {{ from = \"fh\", to = \"mh\" }}
        ",
    );
    let (file, out) = (directory.file("recorded.toml", &scenario), directory.path("out"));
    let run = airmend(&["sim", "run", &file, "--json", "--out", &out]);
    assert!(run.status.success(), "{run:?}");
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    // A line for each run, and the means.
    let summary: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    number(&summary, "goodput_mean_bps")
}

/// Whether a goodput is that of the original within a tenth.
fn is_near(world: &str, goodput: f64, original: &Value) -> bool {
    let wanted = number(original, "goodput_bps");
    let off = goodput / wanted - 1.0;
    println!("{world}: {:.2} Mb/s for {:.2}, {:+.1} %", goodput / 1e6, wanted / 1e6, off * 1e2);
    off.abs() < 0.1
}

fn what_is_no_trace_ends_in_one_sentence() {
    let directory = Directory::new("refused");
    let unknown = directory.file("unknown.csv", "time_s,rate\n0,1\n");
    let order = directory.file("order.csv", "time_s,loss\n1,0\n0,0\n");
    let loss = directory.file("loss.csv", "time_s,loss\n0,0.1\n");
    let rate = directory.file("rate.csv", "time_s,rate_bps\n0,1e6\n");
    let down = directory.file("down", "5\n4\n");
    let steady = directory.file("steady", "1\n");
    let empty = directory.file("empty", "");
    for (flags, words) in [
        (vec!["--trace", "/nowhere.csv"], "--trace: /nowhere.csv cannot be read: No such file"),
        (vec!["--trace", &unknown], "unknown.csv: line 1: unknown column \"rate\""),
        (vec!["--trace", &order], "order.csv: line 3: the times must ascend"),
        (vec!["--trace", &empty], "empty: the file is empty"),
        (vec!["--trace", &loss, "--loss", "1%"], "give no other errors of the air"),
        (vec!["--trace", &loss, "--half-duplex"], "make them full duplex"),
        (vec!["--mahimahi-down", &down, "--mahimahi-up", &down], "the timestamps must not descend"),
        (
            vec!["--trace", &rate, "--mahimahi-down", &steady, "--mahimahi-up", &steady],
            "both say what the rate is",
        ),
        (vec!["--record-trace", "x"], "--observe is missing"),
        (vec!["--mahimahi-up", &steady], "--mahimahi-down is missing"),
    ] {
        for command in ["run", "exec", "compare"] {
            let mut words_of = vec!["lab", command];
            words_of.extend(&flags);
            let output = airmend(&words_of);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{words_of:?}: {stderr}");
            assert!(stderr.contains(words) && stderr.lines().count() == 1, "{stderr}");
        }
    }
    let gateway = airmend(&["gateway", "lo", "--config", "/dev/null", "--trace", "x.csv"]);
    let stderr = String::from_utf8_lossy(&gateway.stderr);
    assert!(gateway.status.code() == Some(2) && stderr.contains("add observe"), "{stderr}");
}

/// The row of one run of the laboratory.
fn lab(what: &[&str], flags: &[&str]) -> Value {
    let output = airmend(&[&["lab", "run", "--json"], what, flags].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn airmend(arguments: &[&str]) -> std::process::Output {
    let mut airmend = Command::new(env!("CARGO_BIN_EXE_airmend"));
    airmend.args(arguments).output().expect("airmend runs")
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name}: {row}"))
}

/// A directory that is removed in the end.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let name = format!("airmend-traces-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).expect("a file");
        self.path(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
