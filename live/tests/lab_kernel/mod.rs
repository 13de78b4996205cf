//! A base station whose kernel forwards, alone or with a gateway beside it.

use super::{Scratch, config, failure};
use airmend_live::lab::config::{Amount, Direction, Hop, LabConfig, Path};
use airmend_live::lab::outcome::Outcome;
use airmend_live::lab::{GatewayCommand, LabError, Probe, probe, run};
use airmend_proto::link::ErrorModel;
use airmend_testkit::has_steady_clock;
use std::error::Error;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Both ways and both protocols, and no more than the air can carry, with losses or without.
pub(crate) fn kernel_forwards() -> Result<(), Box<dyn Error>> {
    for (direction, ipv6) in [(Direction::Down, false), (Direction::Up, true)] {
        for errors in [ErrorModel::None, ErrorModel::Loss(0.02)] {
            let amount = Amount::Bytes(300_000);
            let config = LabConfig { direction, ipv6, errors, amount, ..kernel() };
            let outcome = forward(&config, None)?;
            assert!(outcome.completed && outcome.bytes_received == 300_000);
            assert!(outcome.goodput_bps < outcome.bound_bps, "{}", outcome.goodput_bps);
            assert_eq!((outcome.port_drops, outcome.gateway_heartbeat_timeouts), (0, None));
            assert!(outcome.agent_counters.is_empty() && outcome.trace.is_empty());
            let data = if direction == Direction::Down { "air_down" } else { "air_up" };
            let air = outcome.links.get(data).copied().unwrap_or_default();
            assert!(air.frames >= 208 && air.bytes <= air.frames * 1500, "{air:?}");
            assert_eq!(air.lost > 0, errors != ErrorModel::None, "{air:?}");
        }
    }
    Ok(())
}

/// The queue stands in the interface to the air, and hands on as much as the air can carry: what
/// is beyond that never gets to the air's link.
pub(crate) fn kernel_queue() -> Result<(), Box<dyn Error>> {
    let config = LabConfig { queue_frames: 10, ..kernel() };
    let flood = Probe {
        rate_bps: 2 * config.air.rate_bps,
        packet_bytes: 1000,
        duration: Duration::from_millis(500),
    };
    let outcome = probe(&config, &flood, &AtomicBool::new(false))?;
    let link = |name| outcome.links.get(name).copied().unwrap_or_default();
    let air = link("air_down");
    // A sender that had no processor for a while fills the wired link's queue at once, and the
    // kernel's backlog of received packets, whose drops nobody counts here.
    let dropped = link("wired_down").dropped + air.dropped;
    let missing = outcome.sent - outcome.received;
    assert!(dropped == missing || (dropped < missing && !has_steady_clock()), "{outcome:?}");
    assert_eq!((outcome.port_drops, air.frames), (0, outcome.received));
    assert!(air.dropped > 0, "{outcome:?}");
    // At the end, the queue is full, and so is the bucket of 1500 bytes.
    let at_most = config.air.rate_bps as f64 * flood.duration.as_secs_f64() / 8000.0 + 15.0;
    assert!(!has_steady_clock() || (air.frames as f64) < at_most, "{} of {at_most}", air.frames);

    // The other queue is that of the wired link, where a slower wire meets the data.
    let wired = Hop { rate_bps: 5_000_000, delay: Duration::from_millis(5) };
    let up = LabConfig { wired, wired_queue_frames: 5, direction: Direction::Up, ..kernel() };
    let outcome = forward(&LabConfig { amount: Amount::Bytes(300_000), ..up }, None)?;
    assert!(outcome.links.get("wired_up").is_some_and(|link| link.dropped > 0));
    assert!(outcome.completed && outcome.sender.retransmits > 0);
    Ok(())
}

/// Why there are no gateways here: no user namespace may attach BPF programs.
pub(crate) fn lacks_gateways() -> Option<String> {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let is_initial = map.split_whitespace().eq(["0", "0", "4294967295"]);
    (!is_initial).then(|| "only root has gateways".to_owned())
}

/// The opposite, for the test of what others are told.
pub(crate) fn has_gateways() -> Option<String> {
    lacks_gateways().is_none().then(|| "root has gateways".to_owned())
}

/// A user other than root is told what is needed.
pub(crate) fn gateway_needs_root() -> Result<(), Box<dyn Error>> {
    let refused = failure(scripted("good", "exit 1"));
    assert!(refused.to_string().contains("needs root"), "{refused}");
    Ok(())
}

/// A gateway is started, waited for, ended and asked, and one that fails fails the run. These are
/// scripts that do all of it but mending.
pub(crate) fn gateway_process() -> Result<(), Box<dyn Error>> {
    let report = r#"{"agent_counters":{"local_retransmits":3},"heartbeat_timeouts":1}"#;
    let good = format!(
        "echo it is mending with nothing >&2\ntrap 'echo \"$*\" >&2; echo \"$REPORT\"; exit' TERM\n\
         REPORT='{report}'\nwhile :; do sleep 0.01; done\n"
    );
    let outcome = scripted("good", &good)?;
    assert!(outcome.completed && outcome.gateway_heartbeat_timeouts == Some(1));
    assert_eq!(outcome.agent_counters.get("local_retransmits"), Some(&3));
    for (name, script, said) in [
        ("silent", "exit 1", "the gateway did not start: there was nothing on stderr"),
        ("refusing", "echo no such luck >&2; exit 1", "the gateway did not start: no such luck"),
        (
            "dying",
            "echo mending with it >&2; sleep 0.1; echo oh dear >&2; exit 1",
            "the gateway ended in the middle of the run: oh dear",
        ),
        (
            "dumb",
            "echo mending with it >&2; trap exit TERM; while :; do sleep 0.01; done",
            "the gateway ended without a report: mending with it",
        ),
    ] {
        assert!(failure(scripted(name, script)).to_string().starts_with(said), "{name}");
    }
    let missing = GatewayCommand { program: "/nowhere/airmend".into(), arguments: Vec::new() };
    let refused = failure(forward(&gateway(), Some(&missing)));
    assert!(refused.to_string().contains("could not be started"), "{refused}");
    Ok(())
}

/// A run of 100 kB beside a shell script, whose process must be gone afterwards.
fn scripted(name: &str, script: &str) -> Result<Outcome, LabError> {
    let file = |kind| {
        let name = format!("airmend-gateway-{name}-{}.{kind}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    };
    let (program, pid) = (file("sh"), file("pid"));
    let text = format!("#!/bin/sh\necho $$ > {}\n{script}\n", pid.0.display());
    fs::write(&program.0, text).expect("the script is written");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&program.0, executable).expect("the script is made executable");
    let command = GatewayCommand { program: program.0.clone(), arguments: Vec::new() };
    let result = forward(&gateway(), Some(&command));
    match fs::read_to_string(&pid.0) {
        Ok(pid) => {
            let process = fs::metadata(format!("/proc/{}", pid.trim()));
            assert!(process.is_err_and(|error| error.kind() == ErrorKind::NotFound), "{name}");
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
    }
    result
}

/// What a kernel cannot do is refused.
pub(crate) fn kernel_refuses() -> Result<(), Box<dyn Error>> {
    for config in [
        LabConfig { turnaround: Some(Duration::from_micros(10)), ..kernel() },
        LabConfig { pcap: Some("/nowhere".into()), ..kernel() },
        LabConfig { unmended_flows: 1, ..kernel() },
        LabConfig { path: Path::Inline, ..kernel() },
    ] {
        assert!(matches!(forward(&config, None), Err(LabError::Config(_))));
    }
    assert!(matches!(super::run_plain(&kernel()), Err(LabError::Config(_))));
    Ok(())
}

fn kernel() -> LabConfig {
    LabConfig { path: Path::Kernel, ..config() }
}

fn gateway() -> LabConfig {
    LabConfig { path: Path::Gateway, amount: Amount::Bytes(1_000_000), ..config() }
}

fn forward(config: &LabConfig, gateway: Option<&GatewayCommand>) -> Result<Outcome, LabError> {
    run(config, gateway, &AtomicBool::new(false), &mut |_| ())
}
