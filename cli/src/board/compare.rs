//! Which cells moved against another run, by more than their noise.

use super::figures::{Figure, Figures};
use crate::stats;
use std::collections::BTreeMap;

/// A change is no noise from so many standard errors on.
const ERRORS: f64 = 3.0;
/// Nor is a change noted that is smaller than this, as a share.
const LEAST: f64 = 0.01;

/// A figure of a cell that moved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) family: String,
    pub(crate) cell: String,
    pub(crate) agent: String,
    pub(crate) figure: Figure,
    pub(crate) before: f64,
    pub(crate) now: f64,
    /// What a change must exceed, as a share.
    pub(crate) noise: f64,
}

impl Change {
    /// By what share it is better; worse if negative.
    pub(crate) fn gain(&self) -> f64 {
        (self.now / self.before - 1.0) * self.figure.sign()
    }
}

/// The changes of a run against another one.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// From the best to the worst.
    pub(crate) changes: Vec<Change>,
    /// Cells that both runs have, by family.
    pub(crate) compared: BTreeMap<String, usize>,
    /// How many of these have the same figures.
    pub(crate) same: usize,
}

/// Compares each cell with the one in `before`; `agent` says whose figures are compared with those
/// of an agent.
pub(crate) fn compare(
    now: &[Figures],
    before: &[Figures],
    agent: impl Fn(&Figures) -> String,
) -> Comparison {
    let known: BTreeMap<_, &Figures> =
        before.iter().map(|figures| (figures.key(), figures)).collect();
    let mut comparison = Comparison::default();
    let mut usual = BTreeMap::new();
    for now in now {
        let agent = agent(now);
        let key = (now.family.as_str(), agent.as_str(), now.cell.as_str());
        let Some(before_it) = known.get(&key) else { continue };
        *comparison.compared.entry(now.family.clone()).or_default() += 1;
        let is_same = Figure::ALL.iter().all(|figure| figure.of(now) == figure.of(before_it));
        comparison.same += usize::from(is_same);
        for figure in Figure::ALL {
            let kind = (now.family.clone(), agent.clone(), figure.name());
            let usual = *usual.entry(kind).or_insert_with(|| {
                let of_kind = before.iter();
                let of_kind = of_kind.filter(|f| f.family == now.family && f.agent == agent);
                let variances: Vec<f64> = of_kind.filter_map(|f| variance(figure.of(f))).collect();
                stats::median(&variances).unwrap_or(0.0)
            });
            comparison.changes.extend(change(figure, now, before_it, usual));
        }
    }
    comparison.changes.sort_by(|a, b| b.gain().total_cmp(&a.gain()));
    comparison
}

/// The change of one figure, if it is more than noise. Few seeds tell a variance badly, so that
/// the usual one of the family counts as much as that of the cell.
fn change(figure: Figure, now: &Figures, before: &Figures, usual: f64) -> Option<Change> {
    let error = |figures: &Figures| {
        let own = variance(figure.of(figures)).unwrap_or(usual);
        f64::midpoint(own, usual) / figure.of(figures).len() as f64
    };
    let means = (figure.mean(before)?, figure.mean(now)?);
    let noise = (ERRORS * (error(now) + error(before)).sqrt()).max(LEAST);
    let change = Change {
        family: now.family.clone(),
        cell: now.cell.clone(),
        agent: now.agent.clone(),
        figure,
        before: means.0,
        now: means.1,
        noise,
    };
    (change.gain().abs() > noise).then_some(change)
}

/// The variance of a figure relative to its mean.
fn variance(values: &[f64]) -> Option<f64> {
    let mean = stats::mean(values).filter(|mean| *mean > 0.0)?;
    stats::standard_deviation(values).map(|deviation| (deviation / mean).powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str, share: &[f64], bytes: &[f64]) -> Figures {
        Figures {
            family: "f".into(),
            cell: name.into(),
            agent: "snoop".into(),
            share: share.into(),
            bytes: bytes.into(),
            ping: Vec::new(),
            beside: Vec::new(),
            steps: 0,
            at: String::new(),
        }
    }

    fn same(figures: &Figures) -> String {
        figures.agent.clone()
    }

    #[test]
    fn the_same_run_moved_nothing_and_a_new_cell_is_not_compared() {
        let before = [cell("a", &[0.9, 0.5], &[1.0])];
        let now = [before[0].clone(), cell("b", &[0.1], &[])];
        let comparison = compare(&now, &before, same);
        assert_eq!(comparison.changes, []);
        assert_eq!(comparison.compared["f"], 1);
    }

    #[test]
    fn what_moves_less_than_its_seeds_differ_is_noise() {
        let before = [
            cell("quiet", &[0.90, 0.91, 0.90], &[]),
            cell("wild", &[0.9, 0.5, 0.7], &[]),
            cell("third", &[0.9; 3], &[]),
        ];
        let now = [cell("quiet", &[0.80, 0.81, 0.80], &[]), cell("wild", &[0.8, 0.4, 0.6], &[])];

        let moved = compare(&now, &before, same).changes;
        assert_eq!(moved.len(), 1, "{moved:?}");
        assert_eq!(moved[0].cell, "quiet");
    }

    #[test]
    fn more_bytes_are_worse_and_the_worst_is_last() {
        let before = [cell("a", &[0.5, 0.5], &[1.0, 1.0])];
        let now = [cell("a", &[0.6, 0.6], &[1.3, 1.3])];
        let moved = compare(&now, &before, same).changes;
        let figures: Vec<Figure> = moved.iter().map(|change| change.figure).collect();
        assert_eq!(figures, [Figure::Share, Figure::Bytes]);
        assert!(moved[0].gain() > 0.0 && moved[1].gain() < 0.0);
    }
}
