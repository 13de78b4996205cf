//! The laboratory with the gateway on its production path: the very program, BPF and all.

#[path = "kit/doctor.rs"]
mod doctor;

use airmend_testkit::{Suite, has_steady_clock};
use serde_json::Value;
use std::process::{Command, ExitCode};

const TESTS: [(&str, fn()); 1] =
    [("a_gateway_mends_what_a_kernel_forwards", a_gateway_mends_what_a_kernel_forwards)];
const ANYWHERE: [(&str, fn()); 1] =
    [("what_a_kernel_cannot_do_is_refused", what_a_kernel_cannot_do_is_refused)];

fn main() -> ExitCode {
    let lacks = doctor::lacks("run the gateway");
    Suite::default().tests(lacks.as_deref(), TESTS).tests(None, ANYWHERE).run(None)
}

/// Where a kernel alone makes TCP crawl, a gateway beside it does not; and every byte is right,
/// which the receivers check.
fn a_gateway_mends_what_a_kernel_forwards() {
    let run = |path: &str, agent: &str| {
        let what = ["lab", "run", "--path", path, "--agent", agent, "--loss", "0.05"];
        Command::new(env!("CARGO_BIN_EXE_airmend"))
            .args(what)
            .args(["--bytes", "1MB", "--seed", "1", "--json"])
            .output()
            .expect("airmend runs")
    };
    let gateway = run("gateway", "snoop");
    let stderr = String::from_utf8_lossy(&gateway.stderr);
    assert!(gateway.status.success() && stderr.is_empty(), "{stderr}");
    let row = |stdout: &[u8]| -> Value { serde_json::from_slice(stdout).expect("one JSON object") };
    let gateway = row(&gateway.stdout);
    assert_eq!((&gateway["path"], &gateway["agent"]), (&"gateway".into(), &"snoop".into()));
    assert_eq!(gateway["completed"], true, "{gateway}");
    assert_eq!(gateway["bytes_received"], 1_000_000, "{gateway}");
    assert!(gateway["agent_counters"]["local_retransmits"].as_u64() > Some(10), "{gateway}");
    assert!(gateway["gateway_heartbeat_timeouts"].is_u64(), "{gateway}");
    let kernel = row(&run("kernel", "plain").stdout);
    assert_eq!((&kernel["path"], &kernel["completed"]), (&"kernel".into(), &true.into()));
    let [mended, plain] = [&gateway, &kernel].map(|row| row["goodput_bps"].as_f64().unwrap_or(0.0));
    println!("{mended} bit/s, without a gateway {plain}");
    // How much faster it is, `fast_band` and `queues` of `--test gateway` judge in a guest.
    assert!(!has_steady_clock() || mended > 2.0 * plain, "{mended} and {plain} bit/s");
}

/// What the path cannot take is bad usage, in one sentence.
fn what_a_kernel_cannot_do_is_refused() {
    let refused = [
        (&["gateway", "--agent", "tulip"][..], "--agent tulip"),
        (&["kernel", "--agent", "snoop"], "--agent plain"),
        (&["gateway", "--half-duplex"], "--half-duplex"),
        (&["gateway", "--unmended-flows", "1"], "--unmended-flows"),
        (&["gateway", "--pcap", "/nowhere"], "--pcap"),
        (&["wire"], "inline, kernel or gateway"),
    ];
    for (flags, words) in refused {
        let mut airmend = Command::new(env!("CARGO_BIN_EXE_airmend"));
        let output = airmend.args(["lab", "run", "--path"]).args(flags).output();
        let output = output.expect("airmend runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {stderr}");
        assert!(stderr.contains(words) && stderr.lines().count() == 1, "{stderr}");
    }
}
