//! `airmend board`: families of scenarios in virtual time, judged by one measure each and compared
//! with a recorded run (`docs/board.md`).

mod args;
mod cells;
mod compare;
mod draw;
mod figures;
mod record;
mod report;

pub(crate) use args::BoardArgs;

use crate::process::{BadUsage, files_below, stop_flag};
use crate::{progress, row};
use anyhow::{Context, Result};
use cells::Cells;
use figures::{Figures, judge};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

const DAY: u64 = 24 * 60 * 60;

/// Runs the command.
pub(crate) fn board(args: &BoardArgs) -> Result<()> {
    // What cannot be read is found before the first run.
    let baseline = args.baseline.as_deref().map(record::read).transpose()?;
    let old = match &args.record {
        Some(file) if file.exists() => record::read(file)?,
        _ => Vec::new(),
    };
    let seed = args.seed.unwrap_or_else(day);
    let families = families(args, seed, baseline.as_deref())?;
    let lines = simulate(args, &families)?;
    record::write(&args.out, &lines)?;
    if let Some(file) = &args.record {
        let is_whole = !args.quick && !args.check && args.only.is_empty() && args.agents.is_empty();
        let names = families.iter().map(|cells| cells.name.clone());
        let whole: Vec<String> = if is_whole { names.collect() } else { Vec::new() };
        record::write(file, &record::merge(old, &lines, &whole))?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        for line in &lines {
            row::write(&mut out, line)?;
        }
        return Ok(());
    }
    if args.quick || args.check {
        writeln!(out, "cells of seed {seed}:\n")?;
    }
    if args.quick || args.check || !args.only.is_empty() {
        writeln!(out, "{}", report::cells(&lines))?;
    }
    writeln!(out, "{}", report::families(&families, &lines))?;
    let mut worse = 0;
    if let (Some(file), Some(before)) = (&args.baseline, &baseline) {
        // An agent with settings is compared with what is recorded of it.
        let name = |line: &Figures| line.agent.split(':').next().unwrap_or_default().to_owned();
        let comparison = compare::compare(&lines, before, name);
        writeln!(out, "{}", report::comparison(&file.display().to_string(), &comparison))?;
        worse = comparison.changes.iter().filter(|change| change.gain() < 0.0).count();
    }
    if let [first, others @ ..] = &args.agents[..] {
        for other in others.iter().filter(|_| first.name != "plain") {
            let its = lines.iter().filter(|line| line.agent == other.label).cloned();
            let its: Vec<Figures> = its.collect();
            let comparison = compare::compare(&its, &lines, |_| first.label.clone());
            let title = format!("{} ({})", first.label, other.label);
            writeln!(out, "{}", report::comparison(&title, &comparison))?;
        }
    }
    writeln!(out, "{}", args.out.display())?;
    anyhow::ensure!(
        worse == 0 || !args.check,
        "{worse} figures are worse than recorded by more than their noise; if that is wanted, \
         record these cells anew (docs/board.md)"
    );
    Ok(())
}

/// The families with the cells to run.
fn families(args: &BoardArgs, seed: u64, record: Option<&[Figures]>) -> Result<Vec<Cells>> {
    let mut files = Vec::new();
    for path in &args.files {
        if path.is_dir() {
            files.extend(files_below(path, "toml")?);
        } else {
            files.push(path.clone());
        }
    }
    let loaded = files.iter().map(|file: &PathBuf| Cells::load(file, &args.agents));
    let mut families = Vec::new();
    for (number, cells) in (0..).zip(loaded) {
        let Some(mut cells) = cells? else { continue };
        cells.keep(&args.only);
        if args.quick {
            cells.thin(seed, number);
        }
        families.push(cells);
    }
    if let (true, Some(record)) = (args.check, record) {
        draw::draw(&mut families, record, seed);
    }
    families.retain(|cells| !cells.chosen.is_empty());
    if families.is_empty() {
        let sentence = if files.is_empty() {
            "there is no family here; name scenarios with a table [board], or go to the directory \
             that has experiments/board"
        } else {
            "no cell has such a name and a place for these agents"
        };
        return Err(BadUsage(sentence.to_owned()).into());
    }
    Ok(families)
}

fn simulate(args: &BoardArgs, families: &[Cells]) -> Result<Vec<Figures>> {
    let runs = families.iter().map(|cells| cells.runs().len() as u64).sum();
    let bar = progress::comparison(runs);
    let stop = stop_flag()?;
    let mut lines = Vec::new();
    for cells in families {
        bar.set_message(cells.name.clone());
        let outcomes =
            cells.experiment.run_some(cells.runs(), args.jobs.into(), &stop, |_, outcome| {
                outcome.trace = Vec::new();
                bar.inc(1);
            });
        let describe = || format!("the board has not come beyond {}", cells.name);
        lines.extend(judge(cells, &outcomes.with_context(describe)?, &args.revision));
    }
    bar.finish_and_clear();
    Ok(lines)
}

/// The number of the day, in UTC.
fn day() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / DAY)
}
