//! All runs of an experiment on several cores, with results in the order of the runs.

use crate::outcome::Outcome;
use crate::scenario::Experiment;
use crate::world::{RunError, run};
use rayon::prelude::*;
use std::sync::atomic::AtomicBool;

/// One run of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunId {
    /// Index of the point.
    pub point: usize,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The seed of all its random streams: the same for all points, so that agents meet the same
    /// errors.
    pub seed: u64,
}

impl Experiment {
    /// All runs: point by point, each with all its repetitions.
    pub fn run_ids(&self) -> impl Iterator<Item = RunId> {
        (0..self.points.len()).flat_map(move |point| {
            (0..self.runs).map(move |repetition| self.run_id(point, repetition))
        })
    }

    /// The run of this repetition at this point.
    pub fn run_id(&self, point: usize, repetition: u32) -> RunId {
        RunId { point, repetition, seed: self.seed.wrapping_add(repetition.into()) }
    }

    /// Runs everything on `jobs` threads (0: one for each core). Results come in the order of
    /// [`Experiment::run_ids`], whatever `jobs` is. `done` is called after each run.
    pub fn run_all(
        &self,
        jobs: usize,
        stop: &AtomicBool,
        done: impl Fn() + Sync,
    ) -> Result<Vec<Outcome>, RunError> {
        self.run_some(self.run_ids().collect(), jobs, stop, done)
    }

    /// Runs these on `jobs` threads, as [`Experiment::run_all`] does all; results come in their
    /// order.
    pub fn run_some(
        &self,
        ids: Vec<RunId>,
        jobs: usize,
        stop: &AtomicBool,
        done: impl Fn() + Sync,
    ) -> Result<Vec<Outcome>, RunError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
        let one = |id: RunId| {
            let outcome = run(&self.points[id.point].plan, id.seed, stop);
            done();
            outcome
        };
        match pool {
            // The slow runs of a sweep are adjacent: distribute runs one by one.
            Ok(pool) => pool.install(|| ids.into_par_iter().with_max_len(1).map(one).collect()),
            // No threads can be started: sequential runs give the same results.
            Err(_) => ids.into_iter().map(one).collect(),
        }
    }
}
