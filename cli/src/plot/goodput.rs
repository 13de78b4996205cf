//! Goodput against the air hop's errors, with the bound drawn in.

use super::look::{Area, BOUND, Entry, FADED, Frame, Key, Marker, SERIES, line, picture, text};
use super::panel::{self, Marks, Panel};
use anyhow::Result;
use plotters::prelude::RGBColor;
use plotters::style::text_anchor::HPos;
use std::path::Path;

/// What is measured against what.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// What is compared.
    pub(crate) title: String,
    /// The set-up.
    pub(crate) subtitle: String,
    /// What the horizontal axis shows.
    pub(crate) axis: Axis,
    /// One for each agent.
    pub(crate) series: Vec<Series>,
    /// What no scheme can pass: probability and bits per second.
    pub(crate) bound: Vec<(f64, f64)>,
}

/// The horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Frame loss probability, linear, in percent.
    Loss,
    /// Bit error probability, logarithmic.
    BitErrors,
}

/// One agent's line.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// The agent.
    pub(crate) label: String,
    /// In the order of the probability.
    pub(crate) points: Vec<Point>,
}

/// All runs of one agent at one probability.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// The probability.
    pub(crate) probability: f64,
    /// Bits per second.
    pub(crate) mean_bps: f64,
    /// Standard deviation; `None` for a single run.
    pub(crate) sd_bps: Option<f64>,
}

/// Draws the chart into an SVG file.
pub(crate) fn write(path: &Path, chart: &Chart) -> Result<()> {
    let mut legend: Vec<Entry> = chart
        .series
        .iter()
        .enumerate()
        .map(|(index, series)| Entry {
            label: series.label.clone(),
            color: color(index),
            key: Key::LineWith(marker(index)),
        })
        .collect();
    legend.push(Entry { label: "bound".into(), color: BOUND, key: Key::DashedLine });
    let frame = Frame { title: &chart.title, subtitle: &chart.subtitle, legend };
    let (low, high) = match chart.axis {
        Axis::Loss => {
            let most = probabilities(chart).fold(0.0, f64::max).max(1e-3) * 100.0;
            (-0.03 * most, 1.04 * most)
        }
        Axis::BitErrors => {
            let most = probabilities(chart).map(|p| position(chart, p)).fold(f64::MIN, f64::max);
            let least = position(chart, 0.0);
            (least - 0.04 * (most - least).max(1.0), most + 0.05 * (most - least).max(1.0))
        }
    };
    let ticks: Vec<(f64, String)> =
        probabilities(chart).map(|p| (position(chart, p), power(p))).collect();
    let (title, marks) = match chart.axis {
        Axis::Loss => ("loss on the air hop, each way (%)", Marks::Numbers),
        Axis::BitErrors => ("bit error rate on the air hop, each way", Marks::Words(&ticks)),
    };
    let x = panel::Axis { title, range: low..high, marks };
    let range = 0.0..top_bps(chart) * 1.08 / 1e6;
    let y = panel::Axis { title: "goodput (Mb/s)", range, marks: Marks::Numbers };
    picture(path, &frame, |root, area| draw(root, &Panel::new(root, area, &x, &y)?, chart))
}

fn draw(root: &Area<'_>, panel: &Panel<'_>, chart: &Chart) -> Result<()> {
    let pixel = |probability: f64, bps: f64| panel.pixel(position(chart, probability), bps / 1e6);
    let bound: Vec<_> = chart.bound.iter().map(|(p, bps)| pixel(*p, *bps)).collect();
    line(root, &bound, BOUND, 4, true)?;
    if let Some((x, y)) = bound.last() {
        text(root, "bound", (*x, y - 36), 25, FADED, HPos::Right)?;
    }
    for (index, series) in chart.series.iter().enumerate() {
        let color = color(index);
        let pixels: Vec<_> =
            series.points.iter().map(|point| pixel(point.probability, point.mean_bps)).collect();
        line(root, &pixels, color, 4, false)?;
        for (point, at) in series.points.iter().zip(&pixels) {
            if let Some(sd) = point.sd_bps {
                let low = pixel(point.probability, point.mean_bps - sd).1;
                let high = pixel(point.probability, point.mean_bps + sd).1;
                error_bar(root, at.0, (low, high), color)?;
            }
            marker(index).draw(root, *at, 9, color)?;
        }
    }
    Ok(())
}

/// Where a probability lies on the axis: in percent, or as the exponent of ten.
fn position(chart: &Chart, probability: f64) -> f64 {
    match chart.axis {
        Axis::Loss => probability * 100.0,
        Axis::BitErrors => probability.max(floor(chart)).log10(),
    }
}

/// The highest thing drawn.
fn top_bps(chart: &Chart) -> f64 {
    let points = chart.series.iter().flat_map(|series| &series.points);
    let highs = points.map(|point| point.mean_bps + point.sd_bps.unwrap_or(0.0));
    highs.chain(chart.bound.iter().map(|(_, bps)| *bps)).fold(1e3, f64::max)
}

fn error_bar(root: &Area<'_>, x: i32, (low, high): (i32, i32), color: RGBColor) -> Result<()> {
    for stroke in
        [[(x, low), (x, high)], [(x - 9, low), (x + 9, low)], [(x - 9, high), (x + 9, high)]]
    {
        line(root, &stroke, color, 3, false)?;
    }
    Ok(())
}

fn probabilities(chart: &Chart) -> impl Iterator<Item = f64> {
    chart.bound.iter().map(|(probability, _)| *probability)
}

/// Where a log axis begins: at the least probability; one third of it stands for zero.
fn floor(chart: &Chart) -> f64 {
    let least = probabilities(chart).filter(|p| *p > 0.0).fold(f64::INFINITY, f64::min);
    let least = if least.is_finite() { least } else { 1e-6 };
    if probabilities(chart).any(|p| p == 0.0) { least / 3.0 } else { least }
}

/// `3.8×10⁻⁶`; the digits above the line, as a formula has them.
fn power(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{value:.1e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    let raised: String = exponent
        .chars()
        .map(|digit| match digit {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            other => other.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(other),
        })
        .collect();
    if mantissa == "1" { format!("10{raised}") } else { format!("{mantissa}×10{raised}") }
}

fn color(index: usize) -> RGBColor {
    SERIES[index % SERIES.len()]
}

fn marker(index: usize) -> Marker {
    Marker::SERIES[index % Marker::SERIES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_are_written_as_in_a_formula() {
        assert_eq!(power(0.0), "0");
        assert_eq!(power(1e-6), "10⁻⁶");
        assert_eq!(power(3.9e-12), "3.9×10⁻¹²");
    }
}
