//! `airmend sim`: experiments in virtual time.

mod args;
mod report;
mod store;

pub(crate) use args::Sim;

use crate::process::{BadUsage, files_below, stop_flag};
use crate::{progress, table};
use airmend_sim::results::{lines, name_of};
use airmend_sim::{Experiment, Outcome};
use anyhow::{Context, Result};
use args::{ListArgs, RunArgs};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use store::Store;

/// Runs the command.
pub(crate) fn sim(command: &Sim) -> Result<()> {
    match command {
        Sim::List(args) => list(args),
        Sim::Run(args) => run(args),
    }
}

fn list(args: &ListArgs) -> Result<()> {
    let mut rows = Vec::new();
    for file in scenario_files(&args.files)? {
        let experiment = load(&file, &[])?;
        let paper = experiment.paper.join(", ");
        rows.push(vec![
            name_of(&file),
            experiment.title.clone(),
            paper,
            experiment.len().to_string(),
        ]);
    }
    let header = ["experiment", "what it measures", "paper", "runs"].map(str::to_owned);
    writeln!(io::stdout().lock(), "{}", table::render(&header, &rows, 3))?;
    Ok(())
}

fn run(args: &RunArgs) -> Result<()> {
    // An error in the last file is reported before the first one runs.
    let files = scenario_files(&args.files)?;
    let experiments: Vec<(String, Experiment)> = files
        .iter()
        .map(|file| Ok((name_of(file), load(file, &args.settings)?)))
        .collect::<Result<_>>()?;
    let stop = stop_flag()?;
    for (index, (name, experiment)) in experiments.iter().enumerate() {
        let store = Store::new(&args.out, name, experiment)?;
        let known = if args.again { None } else { store.read()? };
        let results = match known {
            Some(results) => results,
            None => {
                let bar = progress::comparison(experiment.len() as u64).with_message(name.clone());
                store.begin()?;
                let trace = store.trace(name, experiment)?;
                let ended = |id, outcome: &mut Outcome| {
                    if let Some(trace) = &trace {
                        trace.take(id, outcome);
                    }
                    bar.inc(1);
                };
                let outcomes = experiment.run_all(args.jobs.into(), &stop, ended);
                bar.finish_and_clear();
                let outcomes = outcomes.with_context(|| format!("{name} has no results"))?;
                if let Some(trace) = trace {
                    trace.finish().context("the trace cannot be written")?;
                }
                store.write(&lines(name, experiment, &outcomes))?;
                store.finish()?;
                store.read()?.with_context(|| format!("{} is gone", store.results().display()))?
            }
        };
        let mut out = io::stdout().lock();
        if args.json {
            out.write_all(results.as_bytes())?;
        } else {
            let gap = if index > 0 { "\n" } else { "" };
            writeln!(out, "{gap}{}", report::words(name, experiment, &results)?)?;
            writeln!(out, "{}", store.results().display())?;
        }
    }
    Ok(())
}

fn load(file: &Path, settings: &[(String, String)]) -> Result<Experiment> {
    Ok(Experiment::load(file, settings).map_err(|error| BadUsage(error.to_string()))?)
}

/// The scenario files among these, and in the directories among these, by name.
fn scenario_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.exists() {
            let sentence = format!(
                "there is no {} here: name scenario files, or go to a copy of airmend's sources, \
                 whose experiments/ holds them",
                path.display()
            );
            return Err(BadUsage(sentence).into());
        }
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let below = files_below(path, "toml")?;
        if below.is_empty() {
            let sentence = format!("{} holds no scenario file (*.toml)", path.display());
            return Err(BadUsage(sentence).into());
        }
        files.extend(below);
    }
    Ok(files)
}
