//! `airmend link`: a virtual interface between two machines, whose packets cross a lossy path
//! mended.

mod args;
mod config;
mod report;

pub(crate) use args::{KeygenArgs, LinkArgs};

use crate::log_lines::{self, LogLines, say};
use crate::process::{self, BadUsage, stop_flag};
use airmend_live::tunnel::Tunnel;
use airmend_proto::agents::{AgentConfig, Limits};
use anyhow::Result;
use signal_hook::consts::SIGUSR1;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// Longer frames carry no link ACK: so long a frame fits the narrowest path of IPv6 also with one
/// and encrypted.
const SHORT_FRAME: u32 = 1_200;

/// Runs until SIGINT or SIGTERM; SIGUSR1 prints the figures so far.
pub(crate) fn link(args: &LinkArgs) -> Result<()> {
    let config = config::config(args)?;
    let stop = stop_flag()?;
    let wants_report = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGUSR1, Arc::clone(&wants_report))?;
    let agent = configured(args).map_err(BadUsage)?;
    // Nothing can take the place of one end of a link, so a panic ends the process.
    std::panic::set_hook(Box::new(|defect| process::complain(&report::defect(defect))));
    log_lines::start(log_lines::lost)?;
    let _end = log_lines::End;
    let figures = LogLines::new(io::stdout(), |_| String::new())?;
    let mut tunnel = Tunnel::open(&config, agent.build(Limits::default(), seed()), agent.link())?;
    say(&config::begins(&config, tunnel.mtu()));
    while !stop.load(Ordering::Relaxed) {
        tunnel.step()?;
        while let Some(told) = tunnel.poll_notice() {
            say(&told.to_string());
        }
        if wants_report.swap(false, Ordering::Relaxed) {
            figures.push(report::lines(&tunnel.report(), args.json)?);
        }
    }
    figures.push(report::lines(&tunnel.report(), args.json)?);
    // Its interface goes before anybody waits for a reader.
    drop(tunnel);
    Ok(figures.finish()?)
}

/// The link protocol.
fn configured(args: &LinkArgs) -> Result<AgentConfig, String> {
    let mut config = args.arq.clone();
    if config.is_plain() {
        return match args.class.is_some() || !args.set.is_empty() {
            true => {
                let why = "--arq plain mends nothing: --class and --set are for --arq tulip, lack \
                           or lack-flow";
                Err(why.into())
            }
            false => Ok(config),
        };
    }
    config.set("max_frame", &SHORT_FRAME.to_string())?;
    config.lose_damaged();
    config.control_rate();
    for (name, value) in &args.set {
        if name == "half_duplex" {
            return Err("--set half_duplex: UDP and Ethernet are full duplex here".into());
        }
        let refused = |sentence| format!("--set {name}={value}: {sentence}");
        config.set(name, value).map_err(refused)?;
    }
    if let Some(rules) = &args.class {
        config.set("classes", rules).map_err(|sentence| format!("--class: {sentence}"))?;
    }
    // Also in the paper's profile.
    config.follow_radio(None);
    Ok(config)
}

/// A secret number, by which flows are distinguished; one half XOR the other is the epoch.
fn seed() -> u64 {
    let secret = RandomState::new().hash_one(()) as u32;
    u64::from(secret) << 32 | u64::from(secret ^ epoch())
}

/// A number that no recent run of this end has used, and a later one than theirs: milliseconds
/// since 1970, which come around in 49 days.
fn epoch() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u32
}
