//! The published results of experiments.

use super::quantity::{Packets, Quantity};
use super::section::{Point, Section, plain};
use crate::plot::goodput;
use airmend_proto::outcome::TraceKind;
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

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
    /// The packets that the paper counts instead of bytes: in the figure, in windows, and in what
    /// has been received.
    pub(super) packets: Option<Packets>,
    /// The swept setting along the horizontal axis, where it is not the one that fits most results.
    pub(super) along: Option<String>,
    /// Whether the vertical axis begins near the least value.
    #[serde(default)]
    pub(super) near: bool,
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
    x: Option<Value>,
    goodput_bps: Option<f64>,
    /// Another quantity than goodput: a measure of the scenario, `delay_ms` or `packets`; and its
    /// value, of the series or relative to that of the series `over`.
    measure: Option<String>,
    value: Option<f64>,
    over: Option<String>,
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

impl Reference {
    /// What the figure draws.
    pub(super) fn quantity(&self, section: &Section) -> Quantity {
        let is_measured =
            |name: &str| section.points.iter().any(|point| point.measures.contains_key(name));
        match self.draws.as_deref() {
            Some("goodput") => Quantity::Goodput,
            Some(name) if is_measured(name) => Quantity::Measure(name.to_owned()),
            _ if section.is_about_delay() => Quantity::Delay,
            _ => self.packets.map_or(Quantity::Goodput, Quantity::Packets),
        }
    }
}

impl Published {
    /// The mark of the result beside measured points, whose quantity is `drawn`; `place` is where a
    /// swept value stands.
    pub(super) fn mark(
        &self,
        section: &Section,
        drawn: &Quantity,
        place: impl Fn(&Value) -> f64,
    ) -> Option<goodput::Published> {
        let is_drawn = self.over.is_none() && self.quantity(drawn.packets()) == *drawn;
        let is_claim = self.published().is_none();
        Some(goodput::Published {
            x: self.x.as_ref().filter(|_| is_drawn || is_claim).map(place)?,
            y: self.published().map(|value| value * drawn.factor()),
            series: self.series(section),
            label: self.label.clone()?,
        })
    }

    /// The slope of the result beside a sequence trace.
    pub(super) fn slope(&self) -> Option<(String, f64)> {
        Some((self.label.clone()?, self.goodput_bps?))
    }

    /// What was measured at the same place, in words, with its ratio to what was published.
    pub(super) fn measured(&self, section: &Section, packets: Option<Packets>) -> Option<String> {
        let published = self.published()?;
        let quantity = self.quantity(packets);
        let value = |series: Option<&String>| {
            let point = section.points.iter().find(|point| self.is_at(section, point, series))?;
            Some(quantity.of(point)?.mean)
        };
        let measured = value(self.series.as_ref())?;
        let (measured, words) = match &self.over {
            Some(over) => {
                let ratio = measured / value(Some(over))?;
                (ratio, format!("{ratio:.2} times"))
            }
            None => (measured, quantity.words(measured)),
        };
        let published = if self.measure.as_deref() == Some("packets") && self.over.is_none() {
            packets.map_or(published, |packets| packets.bps(published))
        } else {
            published
        };
        Some(format!("{words} ({:.2} of it)", measured / published))
    }

    /// Whether a point is that of this result, of this series. In a trace the agent may be all that
    /// is swept, and then there is one series.
    fn is_at(&self, section: &Section, point: &Point, series: Option<&String>) -> bool {
        let Some(along) = section.along.as_deref() else { return false };
        let value = point.value(along);
        let Some(x) = &self.x else { return value.as_str() == series.map(String::as_str) };
        let is_series = series.is_none_or(|label| section.series.get(point.series) == Some(label));
        let is_near = match (value.as_f64(), x.as_f64()) {
            (Some(value), Some(x)) => (value - x).abs() <= 0.01 * x.abs(),
            _ => plain(&value) == plain(x),
        };
        is_series && is_near
    }

    fn published(&self) -> Option<f64> {
        self.goodput_bps.or(self.value)
    }

    fn quantity(&self, packets: Option<Packets>) -> Quantity {
        match (self.measure.as_deref(), packets) {
            (None, _) => Quantity::Goodput,
            (Some("delay_ms"), _) => Quantity::Delay,
            (Some("packets"), Some(packets)) => Quantity::Packets(packets),
            (Some(name), _) => Quantity::Measure(name.to_owned()),
        }
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
                let is_measured = result.published().is_some() && result.series.is_some();
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
