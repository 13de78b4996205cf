//! The picture of an experiment.

use super::published::Reference;
use super::section::{self, Measure, Section, plain};
use crate::plot::goodput::{self, Chart, Point, Series};
use crate::plot::scale::Scale;
use crate::plot::steps;
use crate::plot::traces::{self, Trace};
use crate::text;
use airmend_proto::outcome::TraceKind;
use airmend_proto::units::format_ber;
use anyhow::Result;
use serde_json::Value;

/// Draws the sequence trace if there is one, and otherwise goodput or delay against what was swept.
pub(super) fn svg(section: &Section, known: &Reference) -> Result<String> {
    let title = known.title.clone();
    let subtitle = subtitle(section);
    if section.traces.iter().any(Trace::has_data) {
        let slopes = known.results.iter().filter_map(|result| result.slope()).collect();
        let traces = section.traces.clone();
        return traces::svg(&traces::Chart { title, subtitle, traces, slopes });
    }
    let values = section.values();
    let numbers: Option<Vec<f64>> = values.iter().map(Value::as_f64).collect();
    let name = section.along.as_deref().unwrap_or_default();
    let scale = match &numbers {
        Some(numbers) => Scale::numbers(name, numbers),
        None => Scale::words(name, &values.iter().map(plain).collect::<Vec<_>>()),
    };
    let place = |value: &Value| match value.as_f64() {
        Some(number) if numbers.is_some() => number,
        _ => values.iter().position(|known| known == value).unwrap_or(0) as f64,
    };
    let quantity = Quantity::new(section, known);
    let is_shown = |label: &str| !known.leaves_out.iter().any(|words| label.contains(words));
    let shown = (0..).zip(&section.series).filter(|(_, label)| is_shown(label));
    let series = shown.map(|(index, label)| {
        let of_series = section.points.iter().filter(|point| point.series == index);
        let points = of_series.filter_map(|point| {
            let (Measure { mean, sd }, factor) = quantity.of(point)?;
            let x = place(&point.value(name));
            Some(Point { x, mean: mean * factor, sd: sd.map(|sd| sd * factor) })
        });
        Series { label: label.clone(), points: sorted(points.collect(), &scale) }
    });
    let is_goodput = quantity == Quantity::Goodput;
    let marks = known.results.iter().filter(|_| is_goodput);
    let chart = Chart {
        title,
        subtitle,
        series: series.collect(),
        unit: quantity.unit(),
        may_be_logarithmic: matches!(quantity, Quantity::Measure(_)),
        bounds: if is_goodput && !known.without_bound {
            bounds(section, &scale, &place)
        } else {
            Vec::new()
        },
        published: marks.filter_map(|result| result.mark(section)).collect(),
        scale,
    };
    goodput::svg(&chart)
}

/// Draws what traces have besides packets, each kind by itself: its name, and the picture.
pub(super) fn over_time(section: &Section, known: &Reference) -> Result<Vec<(String, String)>> {
    let subtitle = subtitle(section);
    let picture = |kind: &TraceKind| {
        let name = format!("{kind:?}").to_lowercase();
        Ok((name, steps::svg(&known.title, &subtitle, &section.traces, *kind)?))
    };
    known.over_time.iter().filter(|_| !section.traces.is_empty()).map(picture).collect()
}

/// The quantity of the vertical axis.
#[derive(PartialEq, Eq)]
enum Quantity<'a> {
    Goodput,
    Delay,
    Measure(&'a str),
}

impl<'a> Quantity<'a> {
    fn new(section: &Section, known: &'a Reference) -> Self {
        match known.draws.as_deref() {
            Some("goodput") => Self::Goodput,
            Some(name) if section.points.iter().any(|point| point.measures.contains_key(name)) => {
                Self::Measure(name)
            }
            _ if section.is_about_delay() => Self::Delay,
            _ => Self::Goodput,
        }
    }

    fn unit(&self) -> String {
        match self {
            Self::Goodput => "goodput (Mb/s)".to_owned(),
            Self::Delay => "delay (ms)".to_owned(),
            Self::Measure(name) => match name.strip_suffix("_s") {
                Some(time) => format!("{} (s)", time.replace('_', " ")),
                None => format!("{} (in a run)", name.replace('_', " ")),
            },
        }
    }

    /// The measure of a point, and its factor to the axis's unit.
    fn of(&self, point: &section::Point) -> Option<(Measure, f64)> {
        match self {
            Self::Goodput => Some((point.goodput, 1e-6)),
            Self::Delay => Some((point.delay?, 1.0)),
            Self::Measure(name) => Some((*point.measures.get(*name)?, 1.0)),
        }
    }
}

/// The common settings of all runs, in a line.
pub(super) fn subtitle(section: &Section) -> String {
    let common = |name: &str| section.common.get(name);
    let number = |name: &str| common(name).and_then(Value::as_f64);
    let word = |name: &str| common(name).and_then(Value::as_str).map(str::to_owned);
    let mut parts = Vec::new();
    let hop = |name: &str, rate: &str, delay: &str| {
        let rate = number(rate).map(|bps| format!("{} Mb/s", bps / 1e6));
        let delay = number(delay).map(|ms| format!("{ms} ms"));
        let words: Vec<String> = rate.into_iter().chain(delay).collect();
        (!words.is_empty()).then(|| format!("{name} {}", words.join(", ")))
    };
    parts.extend(hop("air", "rate_bps", "air_delay_ms"));
    parts.extend(hop("wired", "wired_rate_bps", "wired_delay_ms"));
    parts.extend(word("cc"));
    let no_sack = common("sack") == Some(&Value::Bool(false));
    parts.extend(no_sack.then(|| "no SACK".to_owned()));
    let bytes = common("bytes").and_then(Value::as_u64).map(text::bytes);
    let amount: Vec<String> = bytes.into_iter().chain(word("direction")).collect();
    if !amount.is_empty() {
        parts.push(amount.join(" "));
    }
    if section.along.as_deref() != Some("ber") {
        parts.extend(number("ber").map(|ber| format!("bit error rate {}", format_ber(ber))));
    }
    let fewest = section.points.iter().map(|point| point.runs).min().unwrap_or(0);
    let most = section.points.iter().map(|point| point.runs).max().unwrap_or(0);
    let runs = text::counted(most as u64, "run");
    let runs = if fewest < most { format!("{fewest} to {runs}") } else { runs };
    let bars = if most > 1 { ", bars: standard deviation" } else { "" };
    parts.push(format!("{runs} a point{bars}"));
    parts.join(" · ")
}

/// The bound of each series; one that several share is drawn once.
fn bounds(
    section: &Section,
    scale: &Scale,
    place: &impl Fn(&Value) -> f64,
) -> Vec<Vec<(f64, f64)>> {
    let name = section.along.as_deref().unwrap_or_default();
    let mut bounds: Vec<Vec<(f64, f64)>> = Vec::new();
    for index in 0..section.series.len() {
        let of_series = section.points.iter().filter(|point| point.series == index);
        let bound =
            of_series.filter_map(|point| Some((place(&point.value(name)), point.bound_bps? / 1e6)));
        let mut bound: Vec<(f64, f64)> = bound.collect();
        bound.sort_by(|a, b| scale.position(a.0).total_cmp(&scale.position(b.0)));
        if !bound.is_empty() && !bounds.contains(&bound) {
            bounds.push(bound);
        }
    }
    bounds
}

fn sorted(mut points: Vec<Point>, scale: &Scale) -> Vec<Point> {
    points.sort_by(|a, b| scale.position(a.x).total_cmp(&scale.position(b.x)));
    points
}
