//! Measurements against a swept setting, with the bound and published points.

use super::look::{
    Area, BOUND, Entry, FADED, Frame, INK, Key, Marker, SERIES, line, picture, save, text,
};
use super::panel::{self, Marks, Panel};
use super::scale::Scale;
use anyhow::Result;
use plotters::prelude::RGBColor;
use plotters::style::text_anchor::HPos;
use std::path::Path;

/// A chart of measurements against a swept value.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// The series that are compared.
    pub(crate) title: String,
    /// The set-up.
    pub(crate) subtitle: String,
    /// The horizontal axis.
    pub(crate) scale: Scale,
    /// The title of the vertical axis, such as `goodput (Mb/s)`; all its values are in its unit.
    pub(crate) unit: String,
    /// Whether the vertical axis is logarithmic where its values span more than 50 times.
    pub(crate) may_be_logarithmic: bool,
    /// Whether the vertical axis begins near the least value instead of at 0.
    pub(crate) is_near: bool,
    /// One for each agent.
    pub(crate) series: Vec<Series>,
    /// The upper bounds: swept value and goodput. One for each kind of network.
    pub(crate) bounds: Vec<Vec<(f64, f64)>>,
    /// The published results.
    pub(crate) published: Vec<Published>,
}

/// One agent's line.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// The agent.
    pub(crate) label: String,
    /// In the order of the swept value.
    pub(crate) points: Vec<Point>,
}

/// All runs of one agent at one swept value.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// The swept value.
    pub(crate) x: f64,
    /// The mean.
    pub(crate) mean: f64,
    /// Standard deviation; `None` for a single run.
    pub(crate) sd: Option<f64>,
    /// The single runs, to be drawn where they scatter too much for mean and deviation to tell of
    /// them.
    pub(crate) runs: Vec<f64>,
}

/// A published result.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    /// The swept value.
    pub(crate) x: f64,
    /// The published measurement; a claim about the value as such has none.
    pub(crate) y: Option<f64>,
    /// The index of the series that it belongs to, if any.
    pub(crate) series: Option<usize>,
    /// A few words.
    pub(crate) label: String,
}

impl Published {
    /// The same where only these series are drawn, by index.
    pub(crate) fn among(self, mut drawn: impl Iterator<Item = usize>) -> Self {
        let series = self.series.and_then(|series| drawn.position(|index| index == series));
        Self { series, ..self }
    }
}

/// Draws the chart into an SVG file.
pub(crate) fn write(path: &Path, chart: &Chart) -> Result<()> {
    save(path, &svg(chart)?)
}

/// The chart as SVG.
pub(crate) fn svg(chart: &Chart) -> Result<String> {
    let mut legend: Vec<Entry> = (0..)
        .zip(&chart.series)
        .map(|(index, series)| Entry {
            label: series.label.clone(),
            color: color(index),
            key: Key::LineWith(marker(index)),
        })
        .collect();
    if !chart.bounds.is_empty() {
        legend.push(Entry { label: "bound".into(), color: BOUND, key: Key::DashedLine });
    }
    if chart.published.iter().any(|published| published.y.is_some()) {
        let label = "published".to_owned();
        legend.push(Entry { label, color: INK, key: Key::Point(Marker::Cross) });
    }
    let frame = Frame { title: &chart.title, subtitle: &chart.subtitle, legend };
    let (title, range) = (chart.scale.title.as_str(), chart.scale.range());
    let x = panel::Axis { title, range, marks: chart.scale.marks() };
    let Some(least) = logarithmic_from(chart) else {
        let y = panel::Axis {
            title: &chart.unit,
            range: bottom(chart)..top(chart) + (top(chart) - bottom(chart)) * 0.08,
            marks: Marks::Numbers,
        };
        return picture(&frame, |root, area| {
            draw(root, &Panel::new(root, area, &x, &y)?, chart, |y| y)
        });
    };
    let title = format!("{} (log scale)", chart.unit);
    let range = (least * 0.7).log10()..(top(chart) * 1.3).log10();
    let y = panel::Axis { title: &title, range, marks: Marks::PowersOfTen };
    let place = |y: f64| y.max(least * 0.7).log10();
    picture(&frame, |root, area| draw(root, &Panel::new(root, area, &x, &y)?, chart, place))
}

/// The least value above 0, if the vertical axis is logarithmic: a fiftieth of the largest.
fn logarithmic_from(chart: &Chart) -> Option<f64> {
    let means = || chart.series.iter().flat_map(|series| &series.points).map(|point| point.mean);
    let least = means().filter(|mean| *mean > 0.0).fold(f64::MAX, f64::min);
    let is_wide = means().fold(0.0, f64::max) > 50.0 * least;
    (chart.may_be_logarithmic && is_wide).then_some(least)
}

/// Draws the data; `place` is where a value is on the vertical axis.
fn draw(
    root: &Area<'_>,
    panel: &Panel<'_>,
    chart: &Chart,
    place: impl Fn(f64) -> f64,
) -> Result<()> {
    claims(root, panel, chart)?;
    for bound in &chart.bounds {
        draw_bound(root, panel, chart, bound, &place)?;
    }
    for (index, series) in chart.series.iter().enumerate() {
        let color = color(index);
        let pixel = |point: &Point, y: f64| {
            panel.pixel(chart.scale.position(point.x) + aside(chart, index), place(y))
        };
        let pixels: Vec<_> = series.points.iter().map(|point| pixel(point, point.mean)).collect();
        if !chart.scale.is_words() {
            let joined = series.points.iter().zip(&pixels);
            let joined = joined.filter(|(point, _)| !chart.scale.is_apart(point.x));
            let joined: Vec<_> = joined.map(|(_, at)| *at).collect();
            line(root, &joined, color, 4, false)?;
        }
        for (point, at) in series.points.iter().zip(&pixels) {
            if let Some(sd) = point.sd {
                let ends = (pixel(point, point.mean - sd).1, pixel(point, point.mean + sd).1);
                error_bar(root, at.0, ends, color)?;
            }
            marker(index).draw(root, *at, 9, color)?;
            if point.sd.is_some_and(|sd| sd > point.mean * SCATTERED) {
                for run in &point.runs {
                    Marker::Dot.draw(root, (at.0 + 14, pixel(point, *run).1), 6, color)?;
                }
            }
        }
    }
    for published in &chart.published {
        let Some(y) = published.y else { continue };
        let index = published.series.unwrap_or(0);
        let x = chart.scale.position(published.x) + aside(chart, index);
        let at = panel.pixel(x, place(y));
        Marker::Cross.draw(root, at, 15, INK)?;
        Marker::Cross.draw(root, at, 13, published.series.map_or(INK, color))?;
        text(root, &published.label, (at.0 + 26, at.1 - 12), 24, INK, HPos::Left)?;
    }
    Ok(())
}

/// A thin line at each value with a label.
fn claims(root: &Area<'_>, panel: &Panel<'_>, chart: &Chart) -> Result<()> {
    for claim in chart.published.iter().filter(|published| published.y.is_none()) {
        let x = chart.scale.position(claim.x);
        let ends = [panel.pixel(x, 0.0), panel.pixel(x, f64::MAX)];
        line(root, &ends, FADED, 2, true)?;
        text(root, &claim.label, (ends[0].0 + 10, ends[0].1 - 40), 24, FADED, HPos::Left)?;
    }
    Ok(())
}

fn draw_bound(
    root: &Area<'_>,
    panel: &Panel<'_>,
    chart: &Chart,
    bound: &[(f64, f64)],
    place: impl Fn(f64) -> f64,
) -> Result<()> {
    let at =
        |(x, y): &(f64, f64), aside: f64| panel.pixel(chart.scale.position(*x) + aside, place(*y));
    if chart.scale.is_words() {
        for place in bound {
            line(root, &[at(place, -0.4), at(place, 0.4)], BOUND, 4, true)?;
        }
        return Ok(());
    }
    let joined = bound.iter().filter(|(x, _)| !chart.scale.is_apart(*x));
    let pixels: Vec<_> = joined.map(|place| at(place, 0.0)).collect();
    line(root, &pixels, BOUND, 4, true)?;
    for place in bound.iter().filter(|(x, _)| chart.scale.is_apart(*x)) {
        let (x, y) = at(place, 0.0);
        line(root, &[(x - 20, y), (x + 20, y)], BOUND, 4, true)?;
    }
    Ok(())
}

/// Where words stand, series lie beside each other.
fn aside(chart: &Chart, index: usize) -> f64 {
    let count = chart.series.len().max(1) as f64;
    if chart.scale.is_words() { ((index as f64 + 0.5) / count - 0.5) * 0.5 } else { 0.0 }
}

/// Where the vertical axis begins.
fn bottom(chart: &Chart) -> f64 {
    let points = chart.series.iter().flat_map(|series| &series.points);
    let points = points.map(|point| point.mean - point.sd.unwrap_or(0.0));
    let least = points.chain(chart.published.iter().filter_map(|published| published.y));
    let least = least.fold(f64::MAX, f64::min);
    if chart.is_near && least > 0.0 { (least - (top(chart) - least) * 0.1).max(0.0) } else { 0.0 }
}

/// The highest thing drawn.
fn top(chart: &Chart) -> f64 {
    let points = chart.series.iter().flat_map(|series| &series.points);
    let points = points.map(|point| point.mean + point.sd.unwrap_or(0.0));
    let bounds = chart.bounds.iter().flatten().map(|(_, y)| *y);
    let published = chart.published.iter().filter_map(|published| published.y);
    points.chain(bounds).chain(published).fold(1e-3, f64::max)
}

fn error_bar(root: &Area<'_>, x: i32, (low, high): (i32, i32), color: RGBColor) -> Result<()> {
    for stroke in
        [[(x, low), (x, high)], [(x - 9, low), (x + 9, low)], [(x - 9, high), (x + 9, high)]]
    {
        line(root, &stroke, color, 3, false)?;
    }
    Ok(())
}

fn color(index: usize) -> RGBColor {
    SERIES[index % SERIES.len()]
}

fn marker(index: usize) -> Marker {
    Marker::of_series(index)
}

/// The deviation relative to the mean from which on single runs are drawn.
const SCATTERED: f64 = 0.25;
