//! `airmend lab watch`: a line a second.

use super::client::{Selection, WATCH, ask};
use crate::process::stop_flag;
use crate::text::significant;
use crate::values::interval;
use anyhow::{Context, Result};
use clap::Args;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// Lines between two heads.
const HEAD_EVERY: usize = 20;
const POLL: Duration = Duration::from_millis(50);

/// `airmend lab watch`.
#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    which: Selection,
    /// The time between two lines, from 100ms.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Print one JSON object for each line: all counters since the beginning.
    #[arg(long)]
    json: bool,
}

/// What has happened since the beginning, and what is in force.
#[derive(Debug, Deserialize)]
struct Seen {
    agent: String,
    air: String,
    ping_ms: Option<f64>,
    seconds: f64,
    links: BTreeMap<String, Link>,
    repairs: u64,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Link {
    frames: u64,
    lost: u64,
    dropped: u64,
    bytes: u64,
}

/// Prints a line for each interval, until the laboratory ends or a signal ends it.
pub(crate) fn watch(args: &WatchArgs) -> Result<()> {
    let socket = args.which.socket()?;
    let stop = stop_flag()?;
    let mut out = io::stdout();
    let mut before: Option<Seen> = None;
    let mut lines = 0;
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        // Who watched until the end has seen all.
        let answer = match ask(&socket, WATCH) {
            Err(_) if before.is_some() => return Ok(()),
            answer => answer?,
        };
        let seen: Seen = serde_json::from_str(&answer.text)
            .context("the laboratory is one of another version")?;
        if args.json {
            writeln!(out, "{}", answer.text.trim_end())?;
        } else if let Some(before) = &before {
            let has_changed = (&before.agent, &before.air) != (&seen.agent, &seen.air);
            if lines % HEAD_EVERY == 0 || has_changed {
                writeln!(out, "{} · {}\n{HEAD}", seen.agent, seen.air)?;
                lines = 0;
            }
            writeln!(out, "{}", line(before, &seen))?;
            lines += 1;
        }
        out.flush()?;
        before = Some(seen);
        next += args.interval;
        while !stop.load(Ordering::Relaxed) && Instant::now() < next {
            thread::sleep(POLL.min(next.saturating_duration_since(Instant::now())));
        }
    }
    Ok(())
}

const HEAD: &str = "  time s  down Mb/s   lost  dropped    up Mb/s   lost  repairs   ping ms";

/// What has happened between two times; rates are those of the air, repairs included.
fn line(before: &Seen, now: &Seen) -> String {
    let time = (now.seconds - before.seconds).max(1e-3);
    let way = |name: &str| {
        let [old, new] =
            [before, now].map(|seen| seen.links.get(name).copied().unwrap_or_default());
        let frames = new.frames.saturating_sub(old.frames);
        let lost = new.lost.saturating_sub(old.lost);
        let rate = new.bytes.saturating_sub(old.bytes) as f64 * 8e-6 / time;
        let share = if frames > 0 { lost as f64 / frames as f64 * 100.0 } else { 0.0 };
        (significant(rate), format!("{share:.1}%"), new.dropped.saturating_sub(old.dropped))
    };
    let ((down, down_lost, dropped), (up, up_lost, _)) = (way("air_down"), way("air_up"));
    let ping = now.ping_ms.map_or_else(|| "-".to_owned(), significant);
    let repaired = now.repairs.saturating_sub(before.repairs);
    format!(
        "{:>8.1} {down:>10} {down_lost:>6} {dropped:>8} {up:>10} {up_lost:>6} {repaired:>8} \
         {ping:>9}",
        now.seconds
    )
}
