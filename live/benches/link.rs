//! Whether the emulated link is true: `cargo bench -p airmend-live`.
//!
//! Each line says what was set, what was measured, and whether the requirement holds: 97 to 100 %
//! of the rate under a flood, loss within three standard deviations, one-way delay within 1 ms.

use airmend_live::lab::config::{Hop, LabConfig};
use airmend_live::lab::{LabError, Probe, ProbeOutcome, enter_user_namespace, probe};
use airmend_proto::link::ErrorModel;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const SECONDS: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    // `cargo test --benches` only wants to know that it builds and starts.
    if std::env::args().any(|argument| argument == "--test") {
        return ExitCode::SUCCESS;
    }
    match measure() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<bool, LabError> {
    enter_user_namespace()?;
    let mut all_true = true;
    for rate_bps in [2_000_000, 20_000_000, 50_000_000] {
        all_true &= flood(rate_bps)?;
    }
    for loss in [0.01, 0.05, 0.2] {
        all_true &= lose(loss)?;
    }
    for rate_bps in [20_000_000, 50_000_000] {
        all_true &= delay(rate_bps)?;
    }
    Ok(all_true)
}

/// Half as much again as the link can carry: what arrives is the link's rate.
fn flood(rate_bps: u64) -> Result<bool, LabError> {
    let outcome = run(rate_bps, ErrorModel::None, rate_bps + rate_bps / 2)?;
    let share = outcome.received_bps / rate_bps as f64;
    let holds = (0.97..=1.0005).contains(&share);
    print("rate", &format!("{} Mb/s", rate_bps / 1_000_000), holds, &outcome);
    println!("    delivered {:.2} % of the rate", share * 100.0);
    Ok(holds)
}

/// Half of what the link can carry: what does not arrive was lost, not queued away.
fn lose(loss: f64) -> Result<bool, LabError> {
    let outcome = run(20_000_000, ErrorModel::Loss(loss), 10_000_000)?;
    let sent = outcome.sent as f64;
    let measured = 1.0 - outcome.received as f64 / sent;
    let sigma = (loss * (1.0 - loss) / sent).sqrt();
    let holds = (measured - loss).abs() <= 3.0 * sigma;
    print("loss", &format!("{} %", loss * 100.0), holds, &outcome);
    println!("    lost {:.3} %, {:+.1} sigma", measured * 100.0, (measured - loss) / sigma);
    Ok(holds)
}

/// One packet every 12 ms: nothing queues.
fn delay(rate_bps: u64) -> Result<bool, LabError> {
    let outcome = run(rate_bps, ErrorModel::None, 1_000_000)?;
    let set = outcome.path_delay.as_secs_f64() * 1e3;
    let [min, p50, p99, max] =
        [outcome.delay.min, outcome.delay.p50, outcome.delay.p99, outcome.delay.max]
            .map(|delay| delay.as_secs_f64() * 1e3);
    let holds = (p50 - set).abs() <= 1.0 && (p99 - set).abs() <= 1.0;
    print("delay", &format!("{set:.3} ms"), holds, &outcome);
    println!("    min {min:.3}, median {p50:.3}, 99 % {p99:.3}, max {max:.3} ms");
    Ok(holds)
}

fn run(rate_bps: u64, errors: ErrorModel, probe_bps: u64) -> Result<ProbeOutcome, LabError> {
    let mut config = LabConfig { errors, ..LabConfig::default() };
    config.air = Hop { rate_bps, ..config.air };
    config.queue_frames = config.default_queue_frames();
    let sent = Probe { rate_bps: probe_bps, packet_bytes: 1500, duration: SECONDS };
    probe(&config, &sent, &AtomicBool::new(false))
}

fn print(what: &str, set: &str, holds: bool, outcome: &ProbeOutcome) {
    let verdict = if holds { "ok" } else { "NOT TRUE" };
    let late = outcome.lateness_us;
    println!(
        "{what} {set}: {verdict} ({} of {} packets, {} dropped at the ports, \
         loop late by {} us median, {} us 99 %)",
        outcome.received, outcome.sent, outcome.port_drops, late.p50, late.p99
    );
}
