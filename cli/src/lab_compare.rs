//! `airmend lab compare`: every combination of agents, congestion controls and errors.

use crate::args::CompareArgs;
use crate::lab_run::create;
use crate::process::enter_lab;
use crate::{row, text};
use anyhow::{Result, bail};
use combination::Combination;
use comparison::Comparison;
use std::io;

mod combination;
mod comparison;
mod grid;
mod report;

/// Runs every combination and compares.
pub(crate) fn compare(args: &CompareArgs) -> Result<()> {
    let mut agents = args.agents.clone();
    args.setup.set(&mut agents)?;
    args.output.check(&agents, args.setup.network.path)?;
    let mut comparison = Comparison::new(args, agents)?;
    if let Some(directory) = &args.output.plot {
        create(directory)?;
    }
    let stop = enter_lab()?;
    let failure = comparison.run(&stop);

    let mut out = io::stdout().lock();
    if args.output.json {
        for combination in &comparison.combinations {
            row::write(&mut out, &report::summary(&comparison, combination))?;
        }
    } else {
        report::print(&mut out, &comparison)?;
    }
    if let Some(directory) = &args.output.plot {
        report::draw(directory, &comparison)?;
    }
    failure?;
    let incomplete: usize = comparison.combinations.iter().map(Combination::incomplete).sum();
    if incomplete > 0 {
        bail!(
            "{} did not complete within {}: \
             allow more with --time-limit, or carry less with --bytes",
            text::counted(incomplete as u64, "transfer"),
            text::duration(comparison.cases[0].config.time_limit)
        );
    }
    Ok(())
}
