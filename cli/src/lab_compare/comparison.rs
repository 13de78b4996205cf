//! All runs of a comparison, in an order that is fair to all agents.

use super::combination::{Case, Combination};
use crate::args::CompareArgs;
use crate::lab_run::{transfer, warnings};
use crate::process::BadUsage;
use crate::{progress, row};
use airmend_live::lab::config::LabConfig;
use airmend_live::lab::outcome::Outcome;
use airmend_proto::agents::AgentConfig;
use anyhow::{Result, anyhow, bail};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A comparison and what it has measured so far.
pub(super) struct Comparison<'a> {
    pub(super) args: &'a CompareArgs,
    /// The first is what the others are compared to.
    pub(super) agents: Vec<AgentConfig>,
    /// Congestion controls and error processes.
    pub(super) cases: Vec<Case>,
    /// Every agent in every case: those of the first case, in the order of `agents`, come first.
    pub(super) combinations: Vec<Combination>,
    pub(super) warnings: Vec<String>,
    pub(super) done: usize,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(
        args: &'a CompareArgs,
        mut agents: Vec<AgentConfig>,
    ) -> Result<Self, BadUsage> {
        let mut seen = Vec::new();
        agents.retain(|agent| {
            let is_new = !seen.contains(&agent.name());
            seen.push(agent.name());
            is_new
        });
        let mut cases: Vec<Case> = Vec::new();
        for cc in &args.cc {
            for errors in args.errors.models() {
                let config = args.setup.config(*cc, errors)?;
                if !cases.iter().any(|case| case.is_same(&config)) {
                    cases.push(Case { config });
                }
            }
        }
        let combinations = (0..cases.len())
            .flat_map(|case| (0..agents.len()).map(move |agent| Combination::new(case, agent)))
            .collect();
        Ok(Self { args, agents, cases, combinations, warnings: Vec::new(), done: 0 })
    }

    /// The first agent in the same case.
    pub(super) fn first(&self, combination: &Combination) -> &Combination {
        &self.combinations[combination.case * self.agents.len()]
    }

    pub(super) fn total(&self) -> usize {
        self.combinations.len() * self.args.repeat as usize
    }

    /// Runs until everything is done, a run fails, or `stop` is raised; what was measured stays.
    pub(super) fn run(&mut self, stop: &AtomicBool) -> Result<()> {
        let bar = progress::comparison(self.total() as u64);
        for (repetition, case, agent) in
            order(self.args.repeat, self.cases.len(), self.agents.len())
        {
            let mut config = self.cases[case].config.clone();
            config.seed = config.seed.wrapping_add(u64::from(repetition));
            let name = self.agents[agent].name();
            bar.set_message(format!("{name}, {}", self.cases[case].label()));
            let outcome = match self.one(&mut config, agent, stop) {
                Ok(outcome) if !stop.load(Ordering::SeqCst) => outcome,
                Ok(_) => {
                    bar.finish_and_clear();
                    bail!("interrupted after {} of {} runs", self.done, self.total());
                }
                Err(why) => {
                    bar.finish_and_clear();
                    let label = self.cases[case].label();
                    return Err(anyhow!("{why} ({name}, {label}, seed {})", config.seed));
                }
            };
            if self.args.output.json {
                bar.suspend(|| self.line(&config, agent, &outcome))?;
            }
            self.keep(repetition, case, agent, outcome);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn one(&self, config: &mut LabConfig, agent: usize, stop: &AtomicBool) -> Result<Outcome> {
        let agent = &self.agents[agent];
        if let Some(path) = &self.args.output.pcap {
            let case = Case { config: config.clone() };
            config.pcap = Some(with_label(
                path,
                &format!("{}-{}-seed{}", agent.name(), case.slug(), config.seed),
            ));
        }
        Ok(transfer(config, agent, stop, &mut |_| {})?)
    }

    fn line(&self, config: &LabConfig, agent: usize, outcome: &Outcome) -> Result<()> {
        let mut out = io::stdout().lock();
        let settings = &self.args.setup.network.settings;
        row::write(&mut out, &row::lab::run(&self.agents[agent], config, settings, outcome))?;
        Ok(out.flush()?)
    }

    fn keep(&mut self, repetition: u32, case: usize, agent: usize, outcome: Outcome) {
        self.done += 1;
        let label = format!("{}, {}", self.agents[agent].name(), self.cases[case].label());
        let warnings = warnings(&outcome);
        self.warnings.extend(warnings.iter().map(|warning| format!("{label}: {warning}")));
        let index = case * self.agents.len() + agent;
        // Packets and windows over time are for pictures of one run, and large.
        let outcome = Outcome { samples: Vec::new(), trace: Vec::new(), ..outcome };
        self.combinations[index].runs.push((repetition, outcome));
    }
}

/// Repetition, case and agent of each run. Repetitions are the outermost loop, so that an
/// interrupted comparison has measured all combinations equally often; agents are the innermost
/// loop and rotate, so that drift of the machine affects all of them alike.
fn order(repeat: u32, cases: usize, agents: usize) -> impl Iterator<Item = (u32, usize, usize)> {
    (0..repeat).flat_map(move |repetition| {
        (0..cases).flat_map(move |case| {
            (0..agents).map(move |turn| (repetition, case, (turn + repetition as usize) % agents))
        })
    })
}

/// `run.pcapng` becomes `run-plain-….pcapng`.
fn with_label(path: &Path, label: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or("pcapng".into(), |text| text.to_string_lossy());
    path.with_file_name(format!("{stem}-{label}.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_take_turns_at_going_first() {
        let runs: Vec<_> = order(2, 1, 2).collect();
        assert_eq!(runs, [(0, 0, 0), (0, 0, 1), (1, 0, 1), (1, 0, 0)]);
        assert_eq!(order(3, 4, 5).count(), 60);
    }

    #[test]
    fn recordings_are_named_after_their_run() {
        let path = with_label(Path::new("a/run.pcapng"), "plain-reno-loss0.05-seed1");
        assert_eq!(path, Path::new("a/run-plain-reno-loss0.05-seed1.pcapng"));
    }
}
