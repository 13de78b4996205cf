//! Scenario files: one experiment in one short TOML file.
//!
//! Every value can be swept or set from the command line by its key, such as `links.air.rate`: the
//! file is read into a tree, keys are set in the tree, and the tree is read as a scenario. A wrong
//! value therefore gets the same sentence wherever it came from.

mod airmail;
mod board;
mod build;
mod count;
mod document;
mod error;
mod generator;
mod host;
mod link_ends;
mod moves;
mod named;
mod radio;
mod roaming;
mod spec;
mod sweep;
mod topology;
mod trace;
mod traffic;
mod value;
mod variation;
mod way_files;

pub use board::Family;
pub use document::to_text;
pub use error::ScenarioError;
pub use trace::TraceFiles;

use crate::measure;
use crate::plan::Plan;
use error::{Fault, Source};
use serde::Deserialize;
use spec::ScenarioSpec;
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::Path;
use sweep::{Axis, Case};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

/// Bytes of a scenario file at most.
const MAX_BYTES: usize = 16 << 20;

/// An experiment: a scenario at every point of its sweep.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What is measured, in one line.
    pub title: String,
    /// Lines of the papers that it is about, such as `S0-60`.
    pub paper: Vec<String>,
    /// Runs of each point.
    pub runs: u32,
    /// Seed of the first run of each point; the others count up.
    pub seed: u64,
    /// What else the table of results shows, by the names of
    /// [`Outcome::measure`](crate::Outcome::measure).
    pub measure: Vec<String>,
    /// How it is judged as a family of the board, if it is one.
    pub family: Option<Family>,
    /// Names of the swept settings, the one that varies fastest last.
    pub swept: Vec<String>,
    /// All combinations of swept settings.
    pub points: Vec<Point>,
    /// The texts of the trace files that it names, by the names that it has for them.
    pub files: BTreeMap<String, String>,
    /// A number that changes with the content of the file, with that of the files that it names,
    /// and with what was set.
    pub fingerprint: u64,
}

/// One combination of swept settings.
#[derive(Clone, Debug)]
pub struct Point {
    /// The values of the swept settings, in the order of [`Experiment::swept`].
    pub values: Vec<String>,
    /// What to run.
    pub plan: Plan,
}

impl Experiment {
    /// Reads a scenario file and sets keys in it, such as `links.air.rate` to `2mbit`.
    pub fn load(path: &Path, settings: &[(String, String)]) -> Result<Self, ScenarioError> {
        let name = path.display().to_string();
        let mut text = String::new();
        let read = File::open(path)
            .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_string(&mut text));
        read.map_err(|error| Source::unreadable(&name, &error))?;
        Self::parse_with(name, text, settings, TraceFiles::beside(path))
    }

    /// Reads a scenario from text, which names no files; `name` stands for it in errors.
    pub fn parse(
        name: String,
        text: String,
        settings: &[(String, String)],
    ) -> Result<Self, ScenarioError> {
        Self::parse_with(name, text, settings, TraceFiles::default())
    }

    /// The same for text that names these files.
    pub fn parse_with(
        name: String,
        text: String,
        settings: &[(String, String)],
        files: TraceFiles,
    ) -> Result<Self, ScenarioError> {
        let source = Source { name, text, settings: settings.to_vec() };
        if source.text.len() > MAX_BYTES {
            let message = format!("a scenario has at most {} MiB", MAX_BYTES >> 20);
            return Err(source.error(Fault::new(0..0, message)));
        }
        Self::read(&source, files).map_err(|fault| source.error(fault))
    }

    /// How many runs it has.
    pub fn len(&self) -> usize {
        self.points.len() * self.runs as usize
    }

    /// Whether runs note a trace.
    pub fn has_trace(&self) -> bool {
        self.points.iter().any(|point| point.plan.trace)
    }

    /// Whether it has none: never, since a sweep has at least one value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read(source: &Source, mut files: TraceFiles) -> Result<Self, Fault> {
        let mut table = DeTable::parse(&source.text)?.into_inner();
        for (index, (key, words)) in source.settings.iter().enumerate() {
            let value = document::from_words(words, source.setting_span(index));
            document::set(&mut table, key, value)?;
        }
        let family = Family::take(&mut table)?;
        let axes = match table.remove("sweep") {
            None => Vec::new(),
            Some(sweep) => match sweep.get_ref() {
                DeValue::Table(sweep) => sweep::axes(sweep)?,
                _ => return Err(Fault::new(sweep.span(), "`sweep` must be a table")),
            },
        };
        let combinations = combinations(&axes)?;
        let mut points = Vec::new();
        let mut first = None;
        for combination in &combinations {
            let spec = read_point(source, &table, combination)?;
            if points.is_empty() {
                check_runs(&spec.runs, combinations.len())?;
                check_measures(&spec)?;
            }
            let values = combination.iter().map(|case| case.label.clone()).collect();
            points.push(Point { values, plan: build::plan(&spec, &mut files)? });
            first.get_or_insert(spec);
        }
        // There is always one combination, even of no axes.
        let spec = first.ok_or_else(|| Fault::new(0..0, "there is nothing to run"))?;
        let mut hasher = DefaultHasher::new();
        let files = files.into_texts();
        (&source.text, &source.settings, &files).hash(&mut hasher);
        Ok(Self {
            title: spec.title,
            paper: spec.paper,
            runs: *spec.runs.get_ref(),
            seed: spec.seed,
            measure: spec.measure.into_iter().map(Spanned::into_inner).collect(),
            family,
            swept: axes.into_iter().map(|axis| axis.name).collect(),
            points,
            files,
            fingerprint: hasher.finish(),
        })
    }
}

/// The scenario at one point of the sweep.
fn read_point(
    source: &Source,
    table: &DeTable<'_>,
    combination: &[&Case],
) -> Result<ScenarioSpec, Fault> {
    let mut table = table.clone();
    for assignment in combination.iter().flat_map(|case| &case.sets) {
        let value = document::from_words(&assignment.words, assignment.span.clone());
        document::set(&mut table, &assignment.key, value)?;
    }
    document::inherit(&mut table)?;
    let whole = Spanned::new(0..source.text.len(), table);
    Ok(ScenarioSpec::deserialize(Deserializer::from(whole))?)
}

/// One case of each axis, in all combinations; the last axis varies fastest.
fn combinations(axes: &[Axis]) -> Result<Vec<Vec<&Case>>, Fault> {
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.cases.len()));
    if count.is_none_or(|count| count > sweep::MAX_RUNS) {
        let at = axes.first().and_then(|axis| axis.cases.first()?.sets.first());
        let span = at.map_or(0..0, |assignment| assignment.span.clone());
        let count = count.map_or("far more".to_owned(), |count| count.to_string());
        return Err(too_many(span, &count));
    }
    let mut all: Vec<Vec<&Case>> = vec![Vec::new()];
    for axis in axes {
        let longer = |shorter: Vec<_>| {
            axis.cases.iter().map(move |case| {
                let mut longer = shorter.clone();
                longer.push(case);
                longer
            })
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    Ok(all)
}

fn check_runs(runs: &Spanned<u32>, points: usize) -> Result<(), Fault> {
    match (*runs.get_ref() as usize).checked_mul(points) {
        Some(0) => Err(Fault::new(runs.span(), "`runs` must be at least 1")),
        Some(1..=sweep::MAX_RUNS) => Ok(()),
        count => {
            let count = count.map_or("far more".to_owned(), |count| count.to_string());
            Err(too_many(runs.span(), &count))
        }
    }
}

fn check_measures(spec: &ScenarioSpec) -> Result<(), Fault> {
    if spec.measure.is_empty() {
        return Ok(());
    }
    let links: Vec<&str> = spec.links.keys().map(|name| name.get_ref().as_str()).collect();
    let known = measure::names(&links);
    let is_known = |name: &str| known.contains(name) || measure::flow_of(name).is_some();
    match spec.measure.iter().find(|name| !is_known(name.get_ref())) {
        None => Ok(()),
        Some(name) => {
            let near = error::three_nearest(name.get_ref(), known.iter().map(String::as_str));
            let message = format!("unknown measure `{}`; the nearest are {near}", name.get_ref());
            Err(Fault::new(name.span(), message))
        }
    }
}

fn too_many(span: std::ops::Range<usize>, count: &str) -> Fault {
    let most = sweep::MAX_RUNS;
    Fault::new(span, format!("the sweep has {count} runs; {most} are the most at a time"))
}
