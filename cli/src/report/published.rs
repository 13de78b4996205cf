//! The published results of experiments.

use super::section::Section;
use crate::plot::goodput;
use airmend_proto::outcome::TraceKind;
use anyhow::{Context, Result};
use serde::Deserialize;

/// The reference data of an experiment: title, figure and published results.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Reference {
    name: String,
    /// A heading.
    pub(super) title: String,
    /// The result to look for.
    pub(super) shows: String,
    /// The measure that the figure draws, or `goodput`. Without one it is the delay if all results
    /// have delays, and goodput otherwise.
    pub(super) draws: Option<String>,
    /// What further pictures of traces show against time.
    #[serde(default)]
    pub(super) over_time: Vec<TraceKind>,
    /// Whether the figure leaves the bound out, which would flatten all that lies far below it.
    #[serde(default)]
    pub(super) without_bound: bool,
    /// Series whose labels hold one of these words are in the table, but not in the figure.
    #[serde(default)]
    pub(super) leaves_out: Vec<String>,
    /// The published results.
    #[serde(default, rename = "result")]
    pub(super) results: Vec<Published>,
}

/// A published result.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Published {
    /// The finding.
    pub(super) finding: String,
    /// The source of the finding.
    pub(super) source: String,
    /// Label of the series that it belongs to.
    series: Option<String>,
    /// The swept value that it was measured at.
    x: Option<f64>,
    goodput_bps: Option<f64>,
    /// The few words beside it in the figure.
    label: Option<String>,
}

#[derive(Deserialize)]
struct Book {
    experiment: Vec<Reference>,
}

/// All that is known about the experiment of this name; its name is the title of an unknown one.
pub(super) fn known(name: &str) -> Result<Reference> {
    let book: Book =
        toml::from_str(include_str!("published.toml")).context("published.toml is broken")?;
    let known = book.experiment.into_iter().find(|known| known.name == name);
    Ok(known.unwrap_or_else(|| Reference { title: name.to_owned(), ..Reference::default() }))
}

impl Published {
    /// The mark of the result beside measured points.
    pub(super) fn mark(&self, section: &Section) -> Option<goodput::Published> {
        Some(goodput::Published {
            x: self.x?,
            y: self.goodput_bps.map(|bps| bps / 1e6),
            series: self.series(section),
            label: self.label.clone()?,
        })
    }

    /// The slope of the result beside a sequence trace.
    pub(super) fn slope(&self) -> Option<(String, f64)> {
        Some((self.label.clone()?, self.goodput_bps?))
    }

    /// The measurement at the same place: mean goodput and its ratio to the published one.
    pub(super) fn measured(&self, section: &Section) -> Option<(f64, f64)> {
        let published = self.goodput_bps?;
        let series = self.series(section);
        // In a trace the agent may be all that is swept, and then there is one series.
        let is_it = |along: &str, point: &super::section::Point| match self.x {
            Some(x) => {
                let value = point.value(along).as_f64();
                series == Some(point.series)
                    && value.is_some_and(|value| (value / x - 1.0).abs() < 0.01)
            }
            None => point.value(along).as_str() == self.series.as_deref(),
        };
        let along = section.along.as_deref()?;
        let point = section.points.iter().find(|point| is_it(along, point))?;
        Some((point.goodput.mean, point.goodput.mean / published))
    }

    fn series(&self, section: &Section) -> Option<usize> {
        section.series.iter().position(|label| Some(label) == self.series.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::readings;
    use super::*;

    #[test]
    fn every_result_has_what_was_found_here_beside_it() {
        let book: Book = toml::from_str(include_str!("published.toml")).unwrap();
        for experiment in &book.experiment {
            for result in &experiment.results {
                let is_measured = result.goodput_bps.is_some() && result.series.is_some();
                let has_reading = !readings(&result.source).is_empty();
                assert!(is_measured || has_reading, "{}: {}", experiment.name, result.finding);
            }
        }
    }

    #[test]
    fn the_papers_results_can_be_read() {
        let fig4 = known("snoop95/fig4").unwrap();
        assert_eq!(fig4.results.len(), 3);
        let mine = known("mine/try").unwrap();
        assert_eq!((mine.title.as_str(), mine.results.len()), ("mine/try", 0));
    }
}
