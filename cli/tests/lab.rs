//! The laboratory through the command line, where this machine can run it.

#[path = "kit/doctor.rs"]
mod doctor;

use airmend_testkit::{Suite, has_steady_clock, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

const TESTS: [(&str, fn()); 11] = [
    (
        "a_run_prints_one_json_line_and_draws_two_pictures",
        a_run_prints_one_json_line_and_draws_two_pictures,
    ),
    (
        "a_comparison_measures_two_mobiles_a_ping_and_the_start_apart",
        a_comparison_measures_two_mobiles_a_ping_and_the_start_apart,
    ),
    ("short_flows_have_completion_times", short_flows_have_completion_times),
    ("a_run_in_words_says_how_to_replay_it", a_run_in_words_says_how_to_replay_it),
    ("a_comparison_ends_in_a_table_and_a_picture", a_comparison_ends_in_a_table_and_a_picture),
    (
        "an_interrupted_comparison_reports_what_was_done",
        an_interrupted_comparison_reports_what_was_done,
    ),
    ("a_reader_that_has_seen_enough_is_no_failure", a_reader_that_has_seen_enough_is_no_failure),
    ("a_program_keeps_its_exit_status", a_program_keeps_its_exit_status),
    ("nobody_else_writes_the_names_of_hosts", nobody_else_writes_the_names_of_hosts),
    ("an_interrupted_program_ends_with_its_server", an_interrupted_program_ends_with_its_server),
    (
        "what_takes_too_long_fails_with_its_figures_printed",
        what_takes_too_long_fails_with_its_figures_printed,
    ),
];

fn main() -> ExitCode {
    let lacks = doctor::lacks("run the laboratory");
    let has_python = Command::new("python3").arg("--version").output().is_ok();
    let lacks_python = lacks.clone().or((!has_python).then(|| "python3 is not there".to_owned()));
    Suite::default()
        .tests(lacks.as_deref(), TESTS)
        .tests(
            lacks_python.as_deref(),
            [
                ("a_program_runs_over_the_hop", a_program_runs_over_the_hop as fn()),
                ("a_packet_that_is_too_long_is_lost", a_packet_that_is_too_long_is_lost),
            ],
        )
        .run(None)
}

fn a_run_prints_one_json_line_and_draws_two_pictures() {
    let directory = Directory::new("run");
    let output = airmend()
        .args(["lab", "run", "--agent", "snoop95", "--bytes", "300kB", "--loss", "0.02"])
        .args(["--seed", "7", "--json", "--plot"])
        .arg(&directory.0)
        .output()
        .expect("airmend runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    let lines: Vec<Value> = json_lines(&String::from_utf8_lossy(&output.stdout));
    let [row] = lines.as_slice() else { panic!("not one line: {lines:?}") };
    assert_eq!((&row["agent"], &row["seed"]), (&"snoop95".into(), &7.into()));
    assert_eq!((&row["completed"], &row["bytes_received"]), (&true.into(), &300_000.into()));
    let (goodput, bound) = (row["goodput_bps"].as_f64(), row["bound_bps"].as_f64());
    assert!(goodput > Some(0.0) && goodput < bound, "{goodput:?} {bound:?}");
    for name in ["sequence.svg", "cwnd.svg"] {
        assert_is_picture(&directory.0.join(name));
    }
}

/// Every set-up's flags at once, as far as they go together, and what they print.
fn a_comparison_measures_two_mobiles_a_ping_and_the_start_apart() {
    let command = ["lab", "compare", "--agents", "plain,snoop95", "--repeat", "1", "--burst"];
    let flags = ["2/64Ki,4/64Ki", "--rate", "50mbit", "--wired-rate", "10mbit", "--wired-delay"];
    let more = ["5ms", "--wired-queue", "65kB", "--seconds", "1", "--warmup", "400ms", "--ping"];
    let output = airmend()
        .args(command)
        .args(flags)
        .args(more)
        .args(["--unmended-flows", "1", "--json"])
        .output()
        .expect("airmend runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
    let lines = json_lines(&String::from_utf8_lossy(&output.stdout));
    let (summaries, rows): (Vec<Value>, Vec<Value>) =
        lines.into_iter().partition(|line| line["summary"] == true);
    assert_eq!((rows.len(), summaries.len()), (4, 4));
    let bursts: Vec<_> = summaries.iter().map(|line| line["burst"]["frames"].as_u64()).collect();
    assert_eq!(bursts, [Some(2), Some(2), Some(4), Some(4)]);
    for row in &rows {
        assert_eq!((&row["wired_queue_frames"], &row["warmup_seconds"]), (&43.into(), &0.4.into()));
        assert_eq!(row["flow_goodput_bps"].as_array().map(Vec::len), Some(2), "{row}");
        assert!(row["ping"]["received"].as_u64() > Some(0), "{row}");
        assert!(row["fairness"].as_f64() > Some(0.0), "{row}");
        assert_eq!(row["bound_bps"], 9_653_333);
    }
    for line in &summaries {
        let added = &line["ping"]["added_p50_ms"];
        assert_eq!(added == 0, line["agent"] == "plain", "{line}");
        // In one second a flow may stand in a timeout for the whole measured part.
        let goodput = |name: &str| line[name].as_u64().unwrap_or_else(|| panic!("{name}: {line}"));
        let flows = goodput("mended_goodput_median_bps") + goodput("unmended_goodput_median_bps");
        assert!(flows.abs_diff(goodput("goodput_mean_bps")) <= 1, "{line}");
    }
}

fn short_flows_have_completion_times() {
    let command = ["lab", "compare", "--agents", "plain", "--repeat", "2", "--sequential", "4"];
    let output = airmend()
        .args(command)
        .args(["--bytes", "10kB", "--wired-delay", "5ms"])
        .args(["--flows", "2", "--pairs", "2", "--short", "1kB,1ms"])
        .output()
        .expect("airmend runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let transfer = "2 flows of 10 kB down, 2 pairs of hosts, beside short flows of 1 kB, \
                    1 ms apart, 4 times in sequence";
    assert!(text.contains(transfer), "{text}");
    assert_eq!(text.matches("completion 50/90/99 % (ms)").count(), 2, "{text}");
    assert!(text.contains("short flows") && text.contains(" / "), "{text}");
}

fn a_run_in_words_says_how_to_replay_it() {
    let output = airmend()
        .args(["lab", "run", "--agent", "plain", "--bytes", "100kB"])
        .output()
        .expect("airmend runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for words in
        ["goodput", "of the bound", "every byte checked", "0 timeouts", "lateness", "undone"]
    {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    let replay = "airmend lab run --agent plain --bytes 100kB --seed 1";
    assert!(text.contains(replay), "{text}");
}

fn a_comparison_ends_in_a_table_and_a_picture() {
    let directory = Directory::new("compare");
    let output = airmend()
        .args(["lab", "compare", "--cc", "reno", "--loss", "0,0.01", "--bytes", "100kB"])
        .args(["--repeat", "2", "--plot"])
        .arg(&directory.0)
        .output()
        .expect("airmend runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text.matches("snoop ").count(), 2, "{text}");
    assert!(text.contains("× plain") && text.contains("1 % loss"), "{text}");
    assert_is_picture(&directory.0.join("goodput-reno.svg"));
}

fn an_interrupted_comparison_reports_what_was_done() {
    let mut child = airmend()
        .args(["lab", "compare", "--bytes", "50kB", "--repeat", "100000", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("airmend starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut text = String::new();
    stdout.read_line(&mut text).expect("the first row arrives");
    let pid = Pid::from_raw(child.id().try_into().expect("a process id"));
    kill(pid, Signal::SIGINT).expect("the process still runs");
    stdout.read_to_string(&mut text).expect("the rest arrives");
    let output = child.wait_with_output().expect("airmend ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("airmend: interrupted after "), "{stderr}");
    let lines = json_lines(&text);
    let summaries: Vec<_> = lines.iter().filter(|line| line["summary"] == true).collect();
    assert_eq!(summaries.len(), 2, "{text}");
    let runs: u64 = summaries.iter().filter_map(|line| line["runs"].as_u64()).sum();
    assert_eq!(runs, lines.len() as u64 - 2, "every run is in a summary: {text}");
}

fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut child = airmend()
        .args(["lab", "compare", "--bytes", "50kB", "--repeat", "100000", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("airmend starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    stdout.read_line(&mut line).expect("the first row arrives");
    drop(stdout);
    let output = child.wait_with_output().expect("airmend ends");
    assert_eq!(json_lines(&line).len(), 1);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
}

fn what_takes_too_long_fails_with_its_figures_printed() {
    let output = airmend()
        .args(["lab", "run", "--bytes", "1GB", "--time-limit", "0.5", "--json"])
        .output()
        .expect("airmend runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("--time-limit"), "{stderr}");
    let lines = json_lines(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(lines.first().map(|row| &row["completed"]), Some(&false.into()));
}

fn airmend() -> Command {
    Command::new(env!("CARGO_BIN_EXE_airmend"))
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

fn assert_is_picture(path: &PathBuf) {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{path:?}");
    assert!(!text.contains("NaN"), "{path:?}");
}

/// A directory of its own that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("airmend-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The hosts reach each other by name; what arrives is whole, in the time that a run needs.
fn a_program_runs_over_the_hop() {
    let server = "import socket; s = socket.create_server(('', 7000)); \
                  s.accept()[0].sendall(b'x' * 1000000)";
    let client = "import socket, time; t = time.time(); \
                  s = socket.create_connection(('fh', 7000)); \
                  n = 0\nwhile (b := s.recv(65536)): n += len(b)\nprint(n, time.time() - t)";
    let server = format!("python3 -c \"{server}\"");
    let output = airmend()
        .args(["lab", "exec", "--loss", "0.02", "--wired-delay", "10ms", "--json"])
        .args(["--serve", &server, "--", "python3", "-c", client])
        .output()
        .expect("airmend runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let (bytes, seconds) = stdout.trim().split_once(' ').expect("bytes and a time");
    let [row] = &json_lines(&String::from_utf8_lossy(&output.stderr))[..] else {
        panic!("not one line: {output:?}")
    };
    assert_eq!((bytes, &row["exit_status"]), ("1000000", &0.into()));
    assert!(row["agent_counters"]["local_retransmits"].as_u64() > Some(0), "{row}");
    let run = airmend()
        .args(["lab", "run", "--loss", "0.02", "--wired-delay", "10ms", "--bytes", "1MB", "--json"])
        .output()
        .expect("airmend runs");
    let [run] = &json_lines(&String::from_utf8_lossy(&run.stdout))[..] else {
        panic!("not one line: {run:?}")
    };
    // The same losses of the same frames; a handshake more.
    let (own, exec) = (run["seconds"].as_f64(), seconds.parse::<f64>().ok());
    println!("run {own:?}, exec {exec:?}");
    let ratio = exec.zip(own).map(|(exec, own)| exec / own);
    let is_alike = ratio.is_some_and(|ratio| (0.5..2.0).contains(&ratio));
    assert!(!has_steady_clock() || is_alike, "{own:?} {exec:?}");
}

fn a_program_keeps_its_exit_status() {
    let run = |arguments: &[&str]| {
        let exec = ["lab", "exec", "--agent", "plain", "--wired-delay", "1ms"];
        let output = airmend().args(exec).args(arguments).output().expect("airmend runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), stderr)
    };
    let (code, said, report) = run(&["--at", "fh", "--", "sh", "-c", "getent hosts mh fh; exit 7"]);
    assert_eq!((code, said.matches("10.77.0.").count()), (Some(7), 2), "{said} {report}");
    assert!(report.contains("exit status: 7"), "{report}");
    assert_eq!(run(&["--", "sh", "-c", "kill -9 $$"]).0, Some(128 + 9));
    let (code, _, why) = run(&["--", "/no/such/program"]);
    assert_eq!((code, why.lines().count()), (Some(1), 1), "{why}");
    assert!(why.contains("cannot start /no/such/program"), "{why}");
    let (code, _, why) = run(&["--place", "mobile", "--pairs", "2", "--", "true"]);
    assert_eq!((code, why.lines().count()), (Some(2), 1), "{why}");
}

/// Whatever this user's umask is; and no file is needed where others could take its name.
fn nobody_else_writes_the_names_of_hosts() {
    for mask in ["0", "777"] {
        let line = format!("umask {mask}; TMPDIR=/nonexistent exec \"$@\"");
        let output = Command::new("sh")
            .args(["-c", &line, "sh", env!("CARGO_BIN_EXE_airmend")])
            .args(["lab", "exec", "--agent", "plain", "--"])
            .args(["sh", "-c", "stat -c %a /etc/hosts; cat /etc/hosts; ls -A /proc/self"])
            .output()
            .expect("sh runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.starts_with("644\n"), "{output:?}");
        assert!(said.contains(" fh\n") && said.contains("status\n"), "{said}");
    }
}

/// What a host sends that another interface does not take is lost, and no more.
fn a_packet_that_is_too_long_is_lost() {
    // The refusal has crossed the hop behind the packet.
    let program = "import socket, subprocess\n\
         subprocess.run(['ip', 'link', 'set', 'eth0', 'mtu', '9000'], check=True)\n\
         s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)\n\
         s.sendto(b'E' * 1503, ('eth0', 0x800, 0, 0, b'\\xff' * 6))\n\
         try: socket.create_connection(('fh', 9))\n\
         except ConnectionRefusedError: print('refused')\n";
    let exec = ["lab", "exec", "--agent", "plain", "--", "python3", "-c", program];
    let output = airmend().args(exec).output().expect("airmend runs");
    assert!(output.status.success() && output.stdout == b"refused\n", "{output:?}");
}

fn an_interrupted_program_ends_with_its_server() {
    // One that ignores the signal to end, as some servers do; other tests may have theirs.
    let loops = format!("trap : TERM; : {}; while :; do", std::process::id());
    let mut child = airmend()
        .args(["lab", "exec", "--serve"])
        .arg(format!("sh -c '{loops} sleep 0.01; done' & wait"))
        .arg("--")
        .args(["sh", "-c", "echo begun; exec sleep 7777"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("airmend runs");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("text");
    assert_eq!(line, "begun\n");
    let pid = Pid::from_raw(child.id().cast_signed());
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let children = tasks.map(|task| {
        let children = fs::read_to_string(task.expect("a task").path().join("children"));
        children.unwrap_or_default().split_whitespace().count()
    });
    assert_eq!(children.sum::<usize>(), 2);
    let is_left = || {
        let output =
            Command::new("sh").args(["-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]).output();
        String::from_utf8_lossy(&output.expect("sh runs").stdout).contains(&loops)
    };
    assert!(is_left());
    kill(pid, Signal::SIGINT).expect("it runs");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(128 + 9), "it did not end by itself");
    // It was killed, and may still have to wait for a processor to die on.
    until("its server's end", || (!is_left()).then_some(())).expect("it is not left behind");
}
