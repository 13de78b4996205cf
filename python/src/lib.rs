//! The native part of the Python package `airmend`: scenarios, and their results as JSON lines.
//!
//! What Python sees is documented in `airmend/_airmend.pyi`. Simulations run without the global
//! interpreter lock, and Ctrl-C ends them.

mod interrupt;

use airmend_sim::results;
use airmend_sim::row::{self, Line};
use airmend_sim::{Experiment, RunError, RunId, TraceFiles, TraceWriter};
use interrupt::interruptible;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::path::Path;

pyo3::create_exception!(airmend, Error, PyValueError, "What is wrong, in one sentence.");

/// A scenario file with the settings that take the place of its own.
#[pyclass(frozen, module = "airmend._airmend")]
struct Scenario {
    name: String,
    experiment: Experiment,
}

#[pymethods]
impl Scenario {
    /// Reads a scenario from the text of `file`, in TOML; `settings` are keys and values as those
    /// of `--set`. `files` are the texts of the trace files that it names; without them they are
    /// read beside `file`.
    #[new]
    #[pyo3(signature = (file, text, settings, files = None))]
    #[expect(clippy::needless_pass_by_value, reason = "Python gives a list")]
    fn new(
        file: String,
        text: String,
        settings: Vec<(String, String)>,
        files: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let path = Path::new(&file);
        let name = results::name_of(path);
        let files = files.map_or_else(|| TraceFiles::beside(path), TraceFiles::of);
        let read = Experiment::parse_with(file, text, &settings, files);
        let experiment = read.map_err(|error| {
            // A setting is an argument here, not a flag.
            let sentence = error.to_string();
            Error::new_err(sentence.strip_prefix("--set ").unwrap_or(&sentence).to_owned())
        })?;
        Ok(Self { name, experiment })
    }

    /// The name of the experiment in its results.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// What is measured, in one line.
    #[getter]
    fn title(&self) -> &str {
        &self.experiment.title
    }

    /// The texts of the trace files that it names.
    #[getter]
    fn files(&self) -> BTreeMap<String, String> {
        self.experiment.files.clone()
    }

    /// The names of the swept settings.
    #[getter]
    fn swept(&self) -> Vec<String> {
        self.experiment.swept.clone()
    }

    /// The number of points of the sweep.
    #[getter]
    fn points(&self) -> usize {
        self.experiment.points.len()
    }

    /// The number of runs of each point.
    #[getter]
    fn runs(&self) -> u32 {
        self.experiment.runs
    }

    /// Does all runs; returns the bytes of the files that `airmend sim run` writes: the results,
    /// and the trace, which is compressed.
    #[pyo3(signature = (jobs = 0))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        jobs: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let (lines, trace) = interruptible(py, |stop| {
            let trace = TraceWriter::new(&self.name, &self.experiment, Vec::new());
            let outcomes =
                self.experiment.run_all(jobs, stop, |id, outcome| trace.take(id, outcome))?;
            let lines = results::lines(&self.name, &self.experiment, &outcomes);
            // Memory takes every byte.
            Ok::<_, RunError>((bytes(&lines), trace.finish().unwrap_or_default()))
        })?
        .map_err(|error| failed(&error))?;
        Ok((PyBytes::new(py, &lines), PyBytes::new(py, &trace)))
    }

    /// Does the runs from number `start` to before number `stop`; returns their lines. Runs are
    /// numbered in rounds here: the first repetition of every point, then the second ones, so that
    /// more repetitions change no number.
    #[pyo3(signature = (start, stop, jobs = 0))]
    fn run_rounds<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        stop: usize,
        jobs: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let experiment = &self.experiment;
        if start > stop || stop > experiment.len() {
            let count = experiment.len();
            let sentence = format!("there are runs 0 to {count}, but not {start} to {stop}");
            return Err(Error::new_err(sentence));
        }
        let points = experiment.points.len();
        let id = |number: usize| experiment.run_id(number % points, (number / points) as u32);
        let ids: Vec<RunId> = (start..stop).map(id).collect();
        let lines = interruptible(py, |flag| {
            let outcomes = experiment.run_some(ids.clone(), jobs, flag, |_, outcome| {
                outcome.trace = Vec::new();
            })?;
            let line = |(id, outcome)| results::run_line(&self.name, experiment, id, outcome);
            Ok::<_, RunError>(bytes(&ids.into_iter().zip(&outcomes).map(line).collect::<Vec<_>>()))
        })?;
        Ok(PyBytes::new(py, &lines.map_err(|error| failed(&error))?))
    }
}

fn bytes(lines: &[Line]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        // Memory takes every byte, and a line has nothing that JSON has not.
        let _ = row::write(&mut out, line);
    }
    out
}

fn failed(error: &RunError) -> PyErr {
    Error::new_err(error.to_string())
}

#[pymodule]
mod _airmend {
    #[pymodule_export]
    use super::{Error, Scenario};

    /// The version of the program and of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
