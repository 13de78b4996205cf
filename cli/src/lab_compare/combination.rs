//! What a comparison keeps of its runs.

use crate::{stats, text};
use airmend_live::lab::config::LabConfig;
use airmend_live::lab::outcome::Outcome;
use airmend_proto::link::ErrorModel;

/// One congestion control and one error process; the seed is that of the first repetition.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) config: LabConfig,
}

impl Case {
    /// Whether a run would be of this case.
    pub(crate) fn is_same(&self, config: &LabConfig) -> bool {
        self.config.cc == config.cc && self.config.errors == config.errors
    }

    /// For people: `reno, 5 % loss each way`.
    pub(crate) fn label(&self) -> String {
        format!("{}, {}", self.config.cc.name(), text::errors(&self.config.errors))
    }

    /// For file names: `reno-loss0.05`.
    pub(crate) fn slug(&self) -> String {
        let errors = match self.config.errors {
            ErrorModel::None => "noloss".to_owned(),
            ErrorModel::Loss(p) => format!("loss{p}"),
            ErrorModel::Ber(p) => format!("ber{p:e}"),
            ErrorModel::Burst { frames, every_bytes } => format!("burst{frames}-{every_bytes}"),
            ErrorModel::Fading { .. } => "fading".to_owned(),
        };
        format!("{}-{errors}", self.config.cc.name())
    }
}

/// What a comparison needs of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) completed: bool,
    pub(crate) goodput_bps: f64,
    pub(crate) bound_bps: f64,
    pub(crate) timeouts: u64,
}

impl From<&Outcome> for Measured {
    fn from(outcome: &Outcome) -> Self {
        Self {
            completed: outcome.completed,
            goodput_bps: outcome.goodput_bps,
            bound_bps: outcome.bound_bps,
            timeouts: outcome.sender.timeouts,
        }
    }
}

/// All runs of one agent in one case.
#[derive(Clone, Debug)]
pub(crate) struct Combination {
    /// Index of the case.
    pub(crate) case: usize,
    /// Index of the agent.
    pub(crate) agent: usize,
    /// With the number of the repetition.
    pub(crate) runs: Vec<(u32, Measured)>,
}

impl Combination {
    /// Nothing measured yet.
    pub(crate) fn new(case: usize, agent: usize) -> Self {
        Self { case, agent, runs: Vec::new() }
    }

    /// Runs that were stopped before everything had arrived.
    pub(crate) fn incomplete(&self) -> usize {
        self.runs.iter().filter(|(_, run)| !run.completed).count()
    }

    /// Mean goodput.
    pub(crate) fn mean_bps(&self) -> Option<f64> {
        stats::mean(&self.each(|run| run.goodput_bps))
    }

    /// Standard deviation of goodput.
    pub(crate) fn sd_bps(&self) -> Option<f64> {
        stats::standard_deviation(&self.each(|run| run.goodput_bps))
    }

    /// The bound of its links.
    pub(crate) fn bound_bps(&self) -> Option<f64> {
        stats::mean(&self.each(|run| run.bound_bps))
    }

    /// Mean goodput over the bound.
    pub(crate) fn of_bound(&self) -> Option<f64> {
        Some(self.mean_bps()? / self.bound_bps()?)
    }

    /// Timeouts in a run.
    pub(crate) fn mean_timeouts(&self) -> Option<f64> {
        stats::mean(&self.each(|run| run.timeouts as f64))
    }

    /// Median of the ratios to `first` in the same repetition, where both met the same channel.
    pub(crate) fn ratio(&self, first: &Self) -> Option<f64> {
        let pairs = self.runs.iter().filter_map(|(repetition, run)| {
            let (_, other) = first.runs.iter().find(|(other, _)| other == repetition)?;
            (other.goodput_bps > 0.0).then(|| run.goodput_bps / other.goodput_bps)
        });
        stats::median(&pairs.collect::<Vec<_>>())
    }

    fn each(&self, value: impl Fn(&Measured) -> f64) -> Vec<f64> {
        self.runs.iter().map(|(_, run)| value(run)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combination(agent: usize, goodputs: &[(u32, f64)]) -> Combination {
        let run = |goodput_bps| Measured {
            completed: goodput_bps > 0.0,
            goodput_bps,
            bound_bps: 100.0,
            timeouts: 2,
        };
        let runs = goodputs.iter().map(|(repetition, bps)| (*repetition, run(*bps))).collect();
        Combination { case: 0, agent, runs }
    }

    #[test]
    fn ratios_pair_runs_of_the_same_repetition() {
        let first = combination(0, &[(0, 10.0), (1, 20.0), (2, 0.0)]);
        let second = combination(1, &[(1, 80.0), (0, 20.0), (2, 50.0), (3, 1.0)]);
        // 20/10 and 80/20; the others have no partner to be divided by.
        assert_eq!(second.ratio(&first), Some(3.0));
        assert_eq!(first.ratio(&first), Some(1.0));
        assert_eq!(combination(1, &[]).ratio(&first), None);
    }

    #[test]
    fn shares_are_of_the_mean() {
        let runs = combination(0, &[(0, 40.0), (1, 60.0), (2, 0.0)]);
        assert_eq!(runs.incomplete(), 1);
        assert_eq!(runs.of_bound(), Some(100.0 / 3.0 / 100.0));
        assert_eq!(runs.mean_timeouts(), Some(2.0));
        assert_eq!(combination(0, &[]).of_bound(), None);
    }
}
