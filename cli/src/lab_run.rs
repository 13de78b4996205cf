//! `airmend lab run`: one transfer and its report.

use crate::args::RunArgs;
use crate::process::{BadUsage, enter_lab};
use crate::{plot, progress, row, text};
use airmend_live::lab::config::{Amount, LabConfig};
use airmend_live::lab::outcome::Outcome;
use airmend_proto::agents::AgentConfig;
use anyhow::{Context, Result, bail};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

pub(crate) mod describe;
mod transfer;

pub(crate) use transfer::{forwarding, limits, transfer, warnings};

/// Runs one transfer and reports the outcome.
pub(crate) fn run(args: &RunArgs) -> Result<()> {
    let mut agents = [args.agent.clone()];
    args.setup.set(&mut agents)?;
    args.output.check(&agents, args.setup.network.path)?;
    let [agent] = agents;
    let mut config = args.setup.config(args.cc, args.errors.model())?;
    config.pcap = args.output.pcap.clone();
    if config.handoff.is_some() && (config.pcap.is_some() || args.output.plot.is_some()) {
        let why = "--handoff cannot take --pcap or --plot: they show one agent, and each base \
                   station has one";
        return Err(BadUsage(why.to_owned()).into());
    }
    if let Some(directory) = &args.output.plot {
        create(directory)?;
    }
    let stop = enter_lab()?;

    let bar = progress::transfer();
    let outcome = transfer(&config, &agent, &stop, &mut |progress| {
        bar.set_position((progress.fraction * 1000.0) as u64);
        bar.set_message(text::bytes(progress.bytes));
    });
    bar.finish_and_clear();
    let outcome = outcome?;

    let mut out = io::stdout().lock();
    if args.output.json {
        row::write(
            &mut out,
            &row::lab::run(&agent, &config, &args.setup.network.settings, &outcome),
        )?;
    } else {
        describe::describe(&mut out, &agent, &config, &outcome)?;
    }
    if let Some(directory) = &args.output.plot {
        draw(directory, &agent, &config, &outcome)?;
    }
    match incomplete(&config, &outcome, stop.load(Ordering::SeqCst)) {
        Some(sentence) => bail!(sentence),
        None => Ok(()),
    }
}

/// Makes the directory of the pictures, before anything is measured.
pub(crate) fn create(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .map_err(|error| anyhow::anyhow!("cannot create {}: {error}", directory.display()))
}

fn draw(
    directory: &Path,
    agent: &AgentConfig,
    config: &LabConfig,
    outcome: &Outcome,
) -> Result<()> {
    let subtitle = format!(
        "{} · {} · {}",
        text::transfer(config),
        text::errors(&config.errors),
        text::hops(config)
    );
    let measured = format!(
        "{} at {}, {} of the bound",
        agent.name(),
        text::rate(outcome.goodput_bps),
        text::percent(outcome.goodput_bps / outcome.bound_bps)
    );
    let flow = if config.flows > 1 { " of flow 1" } else { "" };
    let title = format!("Sequence and time{flow}: {measured}");
    plot::sequence::write(&directory.join("sequence.svg"), &title, &subtitle, &outcome.trace)?;
    let title = format!("Congestion window: {measured}");
    plot::cwnd::write(&directory.join("cwnd.svg"), &title, &subtitle, &outcome.samples)
        .context("the run itself is done")
}

/// The reason why the run has failed, if it has.
fn incomplete(config: &LabConfig, outcome: &Outcome, interrupted: bool) -> Option<String> {
    if outcome.completed {
        return None;
    }
    let arrived = text::bytes(outcome.bytes_received);
    let wanted = match config.amount {
        Amount::Bytes(each) => {
            let transfers = u64::from(config.all_flows()) * u64::from(config.sequential);
            format!(" of {}", text::bytes(each.saturating_mul(transfers)))
        }
        Amount::Time(_) => String::new(),
    };
    Some(if interrupted {
        format!("interrupted after {:.1} s and {arrived}{wanted}", outcome.seconds)
    } else {
        format!(
            "the transfer was stopped after {} with {arrived}{wanted}: \
             give it more time with --time-limit, or less to carry with --bytes",
            text::duration(config.time_limit)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_carried_is_said() {
        let config = LabConfig { flows: 2, ..LabConfig::default() };
        let outcome = Outcome { bytes_received: 3_000_000, seconds: 1.5, ..Outcome::default() };
        let sentence = incomplete(&config, &outcome, true);
        assert_eq!(sentence.as_deref(), Some("interrupted after 1.5 s and 3 MB of 20 MB"));
        assert_eq!(incomplete(&config, &Outcome { completed: true, ..outcome }, true), None);
    }
}
