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
    /// [`Experiment::run_ids`], whatever `jobs` is. `ended` is called after each run, on
    /// its thread, and may take the trace out of the outcome, which is large.
    pub fn run_all(
        &self,
        jobs: usize,
        stop: &AtomicBool,
        ended: impl Fn(RunId, &mut Outcome) + Sync,
    ) -> Result<Vec<Outcome>, RunError> {
        self.run_some(self.run_ids().collect(), jobs, stop, ended)
    }

    /// Runs these on `jobs` threads, as [`Experiment::run_all`] does all; results come in their
    /// order.
    pub fn run_some(
        &self,
        ids: Vec<RunId>,
        jobs: usize,
        stop: &AtomicBool,
        ended: impl Fn(RunId, &mut Outcome) + Sync,
    ) -> Result<Vec<Outcome>, RunError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
        let one = |id: RunId| {
            let mut outcome = run(&self.points[id.point].plan, id.seed, stop)?;
            ended(id, &mut outcome);
            Ok(outcome)
        };
        // No threads can be started: sequential runs give the same results.
        let Ok(pool) = pool else { return ids.into_iter().map(one).collect() };
        // The slow runs of a sweep are adjacent: they are distributed one by one, and in their
        // order, so that what is written in order waits for few.
        let numbered = ids.into_iter().enumerate().par_bridge();
        let numbered = numbered.map(|(number, id)| Ok((number, one(id)?)));
        let outcomes: Result<Vec<(usize, Outcome)>, RunError> = pool.install(|| numbered.collect());
        let mut outcomes = outcomes?;
        outcomes.sort_by_key(|(number, _)| *number);
        Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }
}
