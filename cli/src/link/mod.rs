//! `airmend link`: a virtual interface between two machines, whose packets cross a lossy path
//! mended.

mod args;
mod config;
mod report;

pub(crate) use args::{KeygenArgs, LinkArgs};

use airmend_live::tunnel::Tunnel;
use airmend_proto::Agent;
use airmend_proto::agents::Limits;
use airmend_proto::agents::plain::Plain;
use anyhow::Result;
use args::Arq;
use signal_hook::consts::SIGUSR1;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs until SIGINT or SIGTERM; SIGUSR1 prints the figures so far.
pub(crate) fn link(args: &LinkArgs) -> Result<()> {
    let config = config::config(args)?;
    let stop = crate::stop_flag()?;
    let wants_report = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGUSR1, Arc::clone(&wants_report))?;
    let (agent, overhead) = agent(args);
    let mut tunnel = Tunnel::open(&config, agent, overhead)?;
    say(&config::begins(&config, tunnel.mtu()));
    while !stop.load(Ordering::Relaxed) {
        tunnel.step()?;
        while let Some(notice) = tunnel.poll_notice() {
            say(&notice.to_string());
        }
        if wants_report.swap(false, Ordering::Relaxed) {
            report::print(&mut io::stdout().lock(), &tunnel.report(), args.json)?;
        }
    }
    report::print(&mut io::stdout().lock(), &tunnel.report(), args.json)?;
    Ok(())
}

/// What mends the path, and how many bytes it adds to a packet.
fn agent(args: &LinkArgs) -> (Box<dyn Agent + Send>, usize) {
    match args.arq {
        Arq::Plain => (Box::new(Plain::new(Limits::default().egress)), 0),
    }
}

fn say(sentence: &str) {
    // A link must not end because nobody reads its messages.
    let _ = writeln!(io::stderr(), "airmend: {sentence}");
}
