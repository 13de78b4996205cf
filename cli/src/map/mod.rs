//! `airmend map`: the share of the bound over two or three settings, for agents side by side, as a
//! heat map.

mod args;
mod grid;

pub(crate) use args::MapArgs;

use crate::plot::heat;
use crate::process::{BadUsage, stop_flag};
use crate::progress;
use airmend_proto::agents::AgentConfig;
use airmend_sim::Experiment;
use anyhow::{Context, Result};
use args::AxisArg;
use grid::Grid;
use serde_json::json;
use std::io::{self, Write};

/// The scenario without a file.
const SCENARIO: &str = include_str!("../../../experiments/modern/map.toml");

/// Runs the command.
pub(crate) fn map(args: &MapArgs) -> Result<()> {
    let axes: Vec<&AxisArg> = [&args.x, &args.y, &args.rows].into_iter().flatten().collect();
    let mut settings = agents(&args.agents);
    settings.extend(axes.iter().flat_map(|axis| axis.settings()));
    settings.extend(args.settings.iter().cloned());
    let experiment = match &args.file {
        Some(file) => Experiment::load(file, &settings),
        None => Experiment::parse("the map's scenario".to_owned(), SCENARIO.to_owned(), &settings),
    };
    let experiment = experiment.map_err(|error| BadUsage(error.to_string()))?;
    let chosen = [&args.x, &args.y, &args.rows].map(|axis| axis.as_ref().map(AxisArg::name));
    let mut grid = Grid::new(&experiment, &chosen).map_err(BadUsage)?;
    let bar = progress::comparison(experiment.len() as u64);
    let stop = stop_flag()?;
    let outcomes = experiment.run_all(args.jobs.into(), &stop, |_, outcome| {
        outcome.trace = Vec::new();
        bar.inc(1);
    });
    bar.finish_and_clear();
    let outcomes = outcomes.context("there is no map")?;
    grid.fill(&experiment, &outcomes);
    if let Some(directory) = args.svg.parent() {
        let describe = || format!("the directory {} cannot be made", directory.display());
        std::fs::create_dir_all(directory).with_context(describe)?;
    }
    heat::write(&args.svg, &grid.picture(&experiment.title))?;
    let mut out = io::stdout().lock();
    if args.json {
        for cell in grid.cells() {
            writeln!(out, "{}", json!(cell))?;
        }
    } else {
        writeln!(out, "{}\n{}", grid.words(&experiment.title), args.svg.display())?;
    }
    Ok(())
}

/// What makes the scenario sweep these agents; of a link protocol one is at each end.
fn agents(agents: &[AgentConfig]) -> Vec<(String, String)> {
    if agents.is_empty() {
        return Vec::new();
    }
    let case = |agent: &AgentConfig| {
        let name = agent.name();
        let far = if agent.is_link() { name } else { "plain" };
        let stations = format!("{{ stations.bs.agent = {name:?}, stations.far.agent = {far:?} }}");
        (format!("sweep.agent.cases.{name}"), stations)
    };
    let none = ("sweep.agent.cases".to_owned(), "{}".to_owned());
    std::iter::once(none).chain(agents.iter().map(case)).collect()
}
