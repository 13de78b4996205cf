//! The results that a comparison keeps of its runs.

use crate::row::Times;
use crate::row::lab::gaps;
use crate::{stats, text};
use airmend_live::lab::Delay;
use airmend_live::lab::config::LabConfig;
use airmend_live::lab::outcome::{Outcome, ShortFlows};
use airmend_proto::link::ErrorModel;
use std::time::Duration;

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
            model => model.to_string().replace(", ", "-").replace(' ', "-"),
        };
        format!("{}-{errors}", self.config.cc.name())
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
    pub(crate) runs: Vec<(u32, Outcome)>,
}

impl Combination {
    /// No runs yet.
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

    /// The mean of something in a run.
    pub(crate) fn mean(&self, value: impl Fn(&Outcome) -> f64) -> Option<f64> {
        stats::mean(&self.each(value))
    }

    /// The median of something in a run.
    pub(crate) fn median(&self, value: impl Fn(&Outcome) -> f64) -> Option<f64> {
        stats::median(&self.each(value))
    }

    /// Median goodput of the first `mended` flows together, and of the others.
    pub(crate) fn mended_and_unmended_bps(&self, mended: u32) -> [Option<f64>; 2] {
        let flows = mended as usize;
        [
            self.median(|run| run.flow_goodput_bps.iter().take(flows).sum()),
            self.median(|run| run.flow_goodput_bps.iter().skip(flows).sum()),
        ]
    }

    /// Median of the runs' shares of the bound with their own fades.
    pub(crate) fn of_realised_bound(&self) -> Option<f64> {
        let bounds =
            self.runs.iter().map(|(_, run)| Some(run.goodput_bps / run.realised_bound_bps?));
        stats::median(&bounds.collect::<Option<Vec<f64>>>()?)
    }

    /// The completion times of all flows of all runs.
    pub(crate) fn completions(&self) -> Option<Times> {
        let times = self.runs.iter().flat_map(|(_, run)| run.completion_seconds.iter().copied());
        Times::of(&times.collect::<Vec<_>>())
    }

    /// The short flows of all runs; `None` without any.
    pub(crate) fn short_flows(&self) -> Option<ShortFlows> {
        let runs = self.runs.iter().filter_map(|(_, run)| run.short.as_ref());
        runs.cloned().reduce(|mut all, run| {
            all.completion_seconds.extend(run.completion_seconds);
            all.overdue += run.overdue;
            all
        })
    }

    /// The times from the mobile host's moves to new data in order, of all runs.
    pub(crate) fn gaps(&self) -> Option<Times> {
        gaps(self.runs.iter().filter_map(|(_, run)| run.handoffs.as_ref()))
    }

    /// Median of a quantile of the ping's round trips, in milliseconds.
    pub(crate) fn ping_millis(&self, quantile: fn(&Delay) -> Duration) -> Option<f64> {
        let runs = self.runs.iter().map(|(_, run)| ping_seconds(run, quantile));
        Some(stats::median(&runs.collect::<Option<Vec<f64>>>()?)? * 1e3)
    }

    /// The increase of that over `first` in the same repetition, median, in milliseconds.
    pub(crate) fn ping_added_millis(
        &self,
        first: &Self,
        quantile: fn(&Delay) -> Duration,
    ) -> Option<f64> {
        let pairs = self.pairs(first);
        let added = pairs.filter_map(|(run, other)| {
            Some(ping_seconds(run, quantile)? - ping_seconds(other, quantile)?)
        });
        Some(stats::median(&added.collect::<Vec<_>>())? * 1e3)
    }

    /// The share of pings that did not come back.
    pub(crate) fn ping_lost(&self) -> Option<f64> {
        let pings = self.runs.iter().filter_map(|(_, run)| run.ping);
        let (sent, received) = pings
            .fold((0, 0), |(sent, received), ping| (sent + ping.sent, received + ping.received));
        (sent > 0).then(|| 1.0 - received as f64 / sent as f64)
    }

    /// Median of the ratios to `first` in the same repetition, where both met the same channel.
    pub(crate) fn ratio(&self, first: &Self) -> Option<f64> {
        let pairs = self.pairs(first).filter(|(_, other)| other.goodput_bps > 0.0);
        let ratios = pairs.map(|(run, other)| run.goodput_bps / other.goodput_bps);
        stats::median(&ratios.collect::<Vec<_>>())
    }

    /// Runs of the same repetition.
    fn pairs<'a>(&'a self, first: &'a Self) -> impl Iterator<Item = (&'a Outcome, &'a Outcome)> {
        self.runs.iter().filter_map(|(repetition, run)| {
            let (_, other) = first.runs.iter().find(|(other, _)| other == repetition)?;
            Some((run, other))
        })
    }

    fn each(&self, value: impl Fn(&Outcome) -> f64) -> Vec<f64> {
        self.runs.iter().map(|(_, run)| value(run)).collect()
    }
}

/// A quantile of the ping's round trip, in seconds.
fn ping_seconds(run: &Outcome, quantile: fn(&Delay) -> Duration) -> Option<f64> {
    run.ping.map(|ping| quantile(&ping.round_trip).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_live::lab::outcome::{Ping, SenderCounters};

    fn combination(agent: usize, goodputs: &[(u32, f64)]) -> Combination {
        let run = |goodput_bps| Outcome {
            completed: goodput_bps > 0.0,
            goodput_bps,
            bound_bps: 100.0,
            sender: SenderCounters { timeouts: 2, ..SenderCounters::default() },
            ..Outcome::default()
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
    fn added_delay_is_of_the_same_repetition() {
        let combination = |agent, runs: &[(u32, u64)]| {
            let run = |millis| {
                let p50 = Duration::from_millis(millis);
                let round_trip = Delay { p50, ..Delay::default() };
                Outcome {
                    ping: Some(Ping { sent: 100, received: 95, round_trip }),
                    ..Outcome::default()
                }
            };
            let runs = runs.iter().map(|(repetition, millis)| (*repetition, run(*millis)));
            Combination { case: 0, agent, runs: runs.collect() }
        };
        let p50 = |delay: &Delay| delay.p50;
        let first = combination(0, &[(0, 80), (1, 90)]);
        let second = combination(1, &[(1, 96), (0, 82), (2, 500)]);
        let near = |value: Option<f64>, expected: f64| {
            assert!(value.is_some_and(|value| (value - expected).abs() < 1e-9), "{value:?}");
        };
        near(second.ping_added_millis(&first, p50), 4.0);
        near(first.ping_millis(p50), 85.0);
        near(first.ping_lost(), 0.05);
        assert_eq!(Combination::new(0, 0).ping_millis(p50), None);
    }

    #[test]
    fn shares_are_of_the_mean() {
        let runs = combination(0, &[(0, 40.0), (1, 60.0), (2, 0.0)]);
        assert_eq!(runs.incomplete(), 1);
        assert_eq!(runs.of_bound(), Some(100.0 / 3.0 / 100.0));
        assert_eq!(runs.mean(|run| run.sender.timeouts as f64), Some(2.0));
        assert_eq!(combination(0, &[]).of_bound(), None);
    }
}
