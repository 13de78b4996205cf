//! `airmend lab run`: one transfer, and what happened.

use crate::args::RunArgs;
use crate::{plot, progress, row, text};
use airmend_live::lab::config::{Amount, LabConfig, Path as BasePath};
use airmend_live::lab::outcome::Outcome;
use airmend_live::lab::{self, GatewayCommand, LabError};
use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::recording::RecordedAgent;
use anyhow::{Context, Result, bail};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

mod describe;

/// Runs one transfer and tells what happened.
pub(crate) fn run(args: &RunArgs) -> Result<()> {
    let mut agents = [args.agent.clone()];
    args.setup.set(&mut agents)?;
    args.output.check(&agents, args.setup.path)?;
    let [agent] = agents;
    let mut config = args.setup.config(args.cc, args.errors.model());
    config.pcap = args.output.pcap.clone();
    if let Some(directory) = &args.output.plot {
        create(directory)?;
    }
    let stop = crate::enter_lab()?;

    let bar = progress::transfer();
    let outcome = transfer(&config, &agent, &stop, &mut |progress| {
        bar.set_position((progress.fraction * 1000.0) as u64);
        bar.set_message(text::bytes(progress.bytes));
    });
    bar.finish_and_clear();
    let outcome = outcome?;

    let mut out = io::stdout().lock();
    if args.output.json {
        row::write(&mut out, &row::lab::run(&agent, &config, &args.setup.settings, &outcome))?;
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

/// One transfer through a new agent, or two where the air needs one at each end.
pub(crate) fn transfer(
    config: &LabConfig,
    agent: &AgentConfig,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(lab::Progress),
) -> Result<Outcome, LabError> {
    let limits = limits(config);
    let recorded_agent = Some(RecordedAgent { config: agent.clone(), limits });
    let config = &LabConfig { recorded_agent, ..config.clone() };
    // The laboratory's hosts are no attackers: the hash seed need not be secret.
    let build = |number| agent.build(limits, config.seed.wrapping_add(number));
    match config.path {
        BasePath::Inline if agent.is_link() => {
            lab::run_link(config, [build(0), build(1)], stop, progress)
        }
        BasePath::Inline => lab::run(config, build(0), stop, progress),
        BasePath::Kernel => lab::run_kernel(config, None, stop, progress),
        BasePath::Gateway => {
            let command = gateway(config, agent).map_err(LabError::OwnProgram)?;
            lab::run_kernel(config, Some(&command), stop, progress)
        }
    }
}

/// This very program as a gateway with this very agent.
fn gateway(config: &LabConfig, agent: &AgentConfig) -> io::Result<GatewayCommand> {
    let settings = agent.settings();
    let settings = settings.split_whitespace().flat_map(|setting| ["--set", setting]);
    let observe = config.observe.then_some("--observe");
    let arguments = ["--agent", agent.name()].into_iter().chain(settings).chain(observe);
    let arguments = arguments.map(str::to_owned).collect();
    Ok(GatewayCommand { program: std::env::current_exe()?, arguments })
}

/// What the agent of a run may take at most.
fn limits(config: &LabConfig) -> Limits {
    Limits { egress: config.egress_limits(), ..Limits::default() }
}

/// Makes the directory of the pictures, before anything is measured.
pub(crate) fn create(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .map_err(|error| anyhow::anyhow!("cannot create {}: {error}", directory.display()))
}

/// Why the figures may not be those of the links, if so.
pub(crate) fn doubts(outcome: &Outcome) -> Vec<String> {
    let mut doubts = Vec::new();
    let late = outcome.lateness_us;
    if late.p99 > LATE_US {
        doubts.push(format!(
            "the emulated link could not keep time: every hundredth frame left more than {} late",
            text::micros(late.p99)
        ));
    }
    if outcome.port_drops > 0 {
        doubts.push(format!(
            "{} lost outside the emulated links",
            text::counted(outcome.port_drops, "packet")
        ));
    }
    if let Some(lapses @ 1..) = outcome.gateway_lapses {
        doubts
            .push(format!("the gateway was late and passed by {}", text::counted(lapses, "time")));
    }
    doubts
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

/// Why the run has failed, if it has.
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

/// From here on the 99th percentile of lateness shows in what is measured.
const LATE_US: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_live::lab::outcome::Lateness;

    #[test]
    fn a_link_out_of_time_is_doubted() {
        let late = |p99| Lateness { p50: 10, p99, max: 9_000 };
        let outcome = |p99| Outcome { lateness_us: late(p99), ..Outcome::default() };
        assert!(doubts(&outcome(LATE_US)).is_empty());
        assert_eq!(doubts(&outcome(LATE_US + 1)).len(), 1);
        let dropped = Outcome { port_drops: 1, ..Outcome::default() };
        assert_eq!(doubts(&dropped), ["1 packet lost outside the emulated links"]);
    }

    #[test]
    fn what_was_not_carried_is_said() {
        let config = LabConfig { flows: 2, ..LabConfig::default() };
        let outcome = Outcome { bytes_received: 3_000_000, seconds: 1.5, ..Outcome::default() };
        let sentence = incomplete(&config, &outcome, true);
        assert_eq!(sentence.as_deref(), Some("interrupted after 1.5 s and 3 MB of 20 MB"));
        assert_eq!(incomplete(&config, &Outcome { completed: true, ..outcome }, true), None);
    }
}
