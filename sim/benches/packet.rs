//! What a data packet costs in the simulator: links, agent and both endpoints, data and ACKs.
//!
//! Every flow has a rate of 1.6 Mb/s to itself, so that more flows change nothing but their number.
//!
//! With the argument `ns2` it compares one flow with the same transfer in ns-2 (`ns2.tcl`).

use airmend_sim::{Experiment, Plan, run};
use nix::sys::resource::{UsageWho, getrusage};
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

const ROUNDS: usize = 7;
/// More of them, because the start of a process is noisier than a call.
const NS2_ROUNDS: usize = 21;
const SEGMENT: u64 = 1460;
const TRANSFER: u64 = 10_000_000;

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => measure_all(),
        ["ns2"] => match compare_with_ns2() {
            Ok(()) => {}
            Err(sentence) => {
                eprintln!("{sentence}");
                return ExitCode::FAILURE;
            }
        },
        ["transfer", agent, packets] => {
            let plan = transfer(agent, 1, 1, packets.parse::<u64>().expect("a number") * SEGMENT);
            let outcome = run(&plan, 1, &AtomicBool::new(false)).expect("a transfer");
            // Without the SYN; the FIN is on the last segment.
            println!("{}", outcome.sender.segments - 1);
        }
        _ => {
            eprintln!("usage: packet [ns2 | transfer AGENT PACKETS]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn measure_all() {
    println!("ns per data packet of a Reno transfer: best and median of {ROUNDS} rounds\n");
    println!("agent     stations    flows   packets    best  median");
    let sizes = [(1, 1, TRANSFER), (1, 100, 1_000_000), (1, 10_000, 100_000)];
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

/// One transfer as a process of its own, ns-2 and this simulator in turn.
fn compare_with_ns2() -> Result<(), String> {
    let packets = TRANSFER.div_ceil(SEGMENT);
    println!(
        "\
µs of CPU time per data packet of a 10 MB Reno transfer: {packets} packets of {SEGMENT} bytes,
every second one acknowledged, no errors, no traces. Median of {NS2_ROUNDS} rounds, in which the
two simulators take turns, each as a process with all packets and as one with a single packet:
the difference counts, so start-up does not. User and system time together, because Linux
measures only their sum. ns-2's snoop works on a local network, so there the last hop is one.
"
    );
    println!("agent       ns-2  airmend  ns-2 / airmend");
    for agent in ["plain", "snoop95"] {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..NS2_ROUNDS {
            theirs.push(micros_per_packet(ns2, agent, packets)?);
            ours.push(micros_per_packet(airmend, agent, packets)?);
        }
        let (theirs, ours) = (median(&mut theirs), median(&mut ours));
        println!("{agent:<9} {theirs:>6.2} {ours:>8.2} {:>15.1}", theirs / ours);
    }
    Ok(())
}

fn ns2(agent: &str) -> Command {
    let mut command = Command::new("ns");
    command.args([concat!(env!("CARGO_MANIFEST_DIR"), "/benches/ns2.tcl"), agent]);
    command
}

fn airmend(agent: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.args(["transfer", agent]);
    command
}

fn micros_per_packet(
    simulator: fn(&str) -> Command,
    agent: &str,
    packets: u64,
) -> Result<f64, String> {
    let startup = cpu_micros(simulator(agent), 1)?;
    let transfer = cpu_micros(simulator(agent), packets)?;
    Ok((transfer - startup) / (packets - 1) as f64)
}

/// CPU time of `command`, whose last argument is how many packets to send and who prints how many
/// it sent. User and system together, because Linux measures only their sum and estimates from
/// timer ticks what part of it was the user's.
fn cpu_micros(mut command: Command, packets: u64) -> Result<f64, String> {
    let so_far = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("getrusage without arguments");
        let (user, system) = (usage.user_time(), usage.system_time());
        (user.tv_sec() + system.tv_sec()) as f64 * 1e6 + (user.tv_usec() + system.tv_usec()) as f64
    };
    let program = command.get_program().display().to_string();
    let before = so_far();
    let output = command.arg(packets.to_string()).output();
    let output = output.map_err(|error| {
        format!("cannot run {program}: {error}; on Debian, apt-get install ns2 installs ns")
    })?;
    let micros = so_far() - before;
    let sent = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || sent.trim() != packets.to_string() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{program} was to send {packets} packets and sent {sent:?}: {errors}"));
    }
    Ok(micros)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
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
        air = 1_600_000 * each,
        wired = 10_000_000u64 * u64::from(each),
    );
    let experiment = Experiment::parse("bench".to_owned(), text, &[]);
    experiment.unwrap_or_else(|error| panic!("{error}")).points.remove(0).plan
}
