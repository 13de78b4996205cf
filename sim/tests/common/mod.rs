//! Experiments of the tree, run with fewer repetitions than their files ask for.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use airmend_sim::{Experiment, Outcome};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Where experiments are.
pub(crate) fn experiments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments")
}

/// An experiment such as `snoop95/fig4` with keys set to other values.
pub(crate) fn load(name: &str, settings: &[(&str, &str)]) -> Experiment {
    let settings: Vec<_> =
        settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let path = experiments().join(name).with_extension("toml");
    Experiment::load(&path, &settings).unwrap_or_else(|error| panic!("{error}"))
}

/// The runs of each point, with the point's values.
pub(crate) fn measure(experiment: &Experiment) -> Vec<(Vec<String>, Vec<Outcome>)> {
    let outcomes = experiment.run_all(2, &AtomicBool::new(false), |_, _| ()).unwrap();
    let runs = outcomes.chunks(experiment.runs as usize).map(<[Outcome]>::to_vec);
    experiment.points.iter().map(|point| point.values.clone()).zip(runs).collect()
}

/// Mean goodput.
pub(crate) fn mean_mbps(runs: &[Outcome]) -> f64 {
    runs.iter().map(|run| run.goodput_bps).sum::<f64>() / runs.len() as f64 / 1e6
}

/// An experiment, whose points are run when they are asked for, and once.
pub(crate) struct Figure {
    experiment: Experiment,
    runs: Vec<OnceCell<Vec<Outcome>>>,
}

impl Figure {
    /// An experiment with keys set to other values.
    pub(crate) fn new(name: &str, settings: &[(&str, &str)]) -> Self {
        let experiment = load(name, settings);
        let runs = vec![OnceCell::new(); experiment.points.len()];
        Self { experiment, runs }
    }

    /// The runs of the point with these values.
    pub(crate) fn runs(&self, values: &[&str]) -> &[Outcome] {
        let number = self.experiment.points.iter().position(|point| point.values == values);
        let number = number.unwrap_or_else(|| panic!("no {values:?}"));
        self.runs[number].get_or_init(|| {
            let ids = (0..self.experiment.runs).map(|run| self.experiment.run_id(number, run));
            self.experiment.run_some(ids.collect(), 2, &AtomicBool::new(false), |_, _| ()).unwrap()
        })
    }

    /// The mean of a measure.
    pub(crate) fn mean(&self, values: &[&str], measure: &str) -> f64 {
        let runs = self.runs(values);
        runs.iter().map(|run| run.measure(measure)).sum::<f64>() / runs.len() as f64
    }
}
