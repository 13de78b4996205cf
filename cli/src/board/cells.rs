//! The cells of a family: the points of its sweep, each with every agent.

use super::args::AgentArg;
use crate::process::BadUsage;
use airmend_proto::random::{Purpose, Stream};
use airmend_sim::{Experiment, Family, RunId};
use anyhow::Result;
use std::path::Path;

/// The axis of the agents, behind all axes of the scenario, so that it is set last.
const AXIS: &str = "board";
/// `--quick` runs one cell of so many, and of each family at least so many cells.
const QUICK_SHARE: usize = 20;
const QUICK_LEAST: usize = 4;

/// A family with all that is compared in it.
pub(crate) struct Cells {
    pub(crate) name: String,
    pub(crate) family: Family,
    pub(crate) agents: Vec<AgentArg>,
    pub(crate) experiment: Experiment,
    /// The cells to run, by number.
    pub(crate) chosen: Vec<usize>,
}

impl Cells {
    /// The family in a file, with these agents or with its own; `None` if it has no place for
    /// them.
    pub(crate) fn load(file: &Path, asked: &[AgentArg]) -> Result<Option<Self>> {
        let load = |settings: &[(String, String)]| {
            Experiment::load(file, settings).map_err(|error| BadUsage(error.to_string()))
        };
        let Some(family) = load(&[])?.family else {
            let sentence = format!(
                "{} is no family of a board; it needs a table [board] (docs/board.md)",
                file.display()
            );
            return Err(BadUsage(sentence).into());
        };
        let own = family.agents.iter().map(|name| name.parse());
        let own = own.collect::<Result<Vec<AgentArg>, String>>();
        let own = own.map_err(|error| BadUsage(format!("{}: {error}", file.display())))?;
        let is_for_links = !own.iter().any(|agent| !agent.is_link && agent.name != "plain");
        let has_place = |agent: &&AgentArg| {
            let fits = if agent.is_link { !family.far.is_empty() } else { !is_for_links };
            fits || agent.name == "plain"
        };
        let agents: Vec<AgentArg> =
            if asked.is_empty() { own } else { asked.iter().filter(has_place).cloned().collect() };
        if agents.is_empty() || (agents.len() < asked.len() && agents.len() == 1) {
            return Ok(None);
        }
        let mut settings = vec![(format!("sweep.{AXIS}.cases"), "{}".to_owned())];
        let variants = clean(&family).into_iter();
        let variants = variants.chain(agents.iter().map(|agent| variant(&family, agent)));
        settings.extend(
            variants.enumerate().map(|(at, words)| (format!("sweep.{AXIS}.cases.v{at}"), words)),
        );
        let experiment = load(&settings)?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut cells = Self { name, family, agents, experiment, chosen: Vec::new() };
        cells.chosen = (0..cells.experiment.points.len() / cells.variants()).collect();
        Ok(Some(cells))
    }

    /// Whether a run without losses is the reference; it is the first variant of each cell.
    pub(crate) fn has_clean(&self) -> bool {
        !self.family.clean.is_empty()
    }

    /// The runs of one cell, without repetitions.
    pub(crate) fn variants(&self) -> usize {
        self.agents.len() + usize::from(self.has_clean())
    }

    /// The settings of a cell: `queue 1 BDP, loss 5%`.
    pub(crate) fn cell(&self, cell: usize) -> String {
        let values = &self.experiment.points[cell * self.variants()].values;
        let named = self.experiment.swept.iter().zip(values).filter(|(name, _)| *name != AXIS);
        let words: Vec<String> =
            named.map(|(name, value)| format!("{} {value}", name.replace('_', " "))).collect();
        words.join(", ")
    }

    /// Leaves cells whose names, `family: settings`, contain one of these texts.
    pub(crate) fn keep(&mut self, only: &[String]) {
        let is_asked = |cell: &usize| {
            let name = format!("{}: {}", self.name, self.cell(*cell));
            only.is_empty() || only.iter().any(|text| name.contains(text.as_str()))
        };
        self.chosen = self.chosen.iter().copied().filter(is_asked).collect();
    }

    /// Leaves a few cells, by `seed` and the number of the family.
    pub(crate) fn thin(&mut self, seed: u64, family: u32) {
        let mut stream = Stream::new(seed, family, 0, Purpose::Traffic);
        let count = self.chosen.len().div_ceil(QUICK_SHARE).max(QUICK_LEAST);
        let mut drawn: Vec<(f64, usize)> =
            self.chosen.iter().map(|cell| (stream.uniform(), *cell)).collect();
        drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.chosen = drawn.into_iter().take(count).map(|(_, cell)| cell).collect();
        self.chosen.sort_unstable();
    }

    /// The runs of the chosen cells: cell by cell, variant by variant, with all repetitions.
    pub(crate) fn runs(&self) -> Vec<RunId> {
        let points = |cell: &usize| cell * self.variants()..(cell + 1) * self.variants();
        let runs = |point| {
            (0..self.experiment.runs)
                .map(move |repetition| self.experiment.run_id(point, repetition))
        };
        self.chosen.iter().flat_map(points).flat_map(runs).collect()
    }
}

/// What makes the scenario lose nothing, with plain stations.
fn clean(family: &Family) -> Option<String> {
    let stations = family.near.iter().chain(&family.far);
    let plain = stations.map(|name| format!("stations.{name}.agent = \"plain\""));
    let clean = family.clean.iter().map(|(key, words)| format!("{key} = {words}"));
    let words: Vec<String> = plain.chain(clean).collect();
    (!family.clean.is_empty()).then(|| format!("{{ {} }}", words.join(", ")))
}

/// What gives the stations this agent; of a link protocol one is at each end.
fn variant(family: &Family, agent: &AgentArg) -> String {
    let AgentArg { name, settings, is_link, .. } = agent;
    let mut words = Vec::new();
    let far = if *is_link { name.as_str() } else { "plain" };
    for (stations, name) in [(&family.near, name.as_str()), (&family.far, far)] {
        for station in stations {
            words.push(format!("stations.{station}.agent = {name:?}"));
            words.extend(settings.iter().filter(|_| name == agent.name).map(|(key, value)| {
                format!("stations.{station}.settings.{name}.{key} = {value:?}")
            }));
        }
    }
    format!("{{ {} }}", words.join(", "))
}
