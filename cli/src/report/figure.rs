//! The picture of an experiment.

use super::published::Reference;
use super::quantity::{Packets, Quantity};
use super::section::{self, Measure, Section, plain};
use crate::plot::goodput::{self, Chart, Point, Series};
use crate::plot::scale::Scale;
use crate::plot::steps::{self, InPackets};
use crate::plot::traces::{self, Trace};
use crate::text;
use airmend_proto::units::format_ber;
use anyhow::Result;
use serde_json::Value;

/// Draws the sequence trace if all runs have one, and otherwise a quantity against what was swept.
pub(super) fn svg(section: &Section, known: &Reference) -> Result<String> {
    let title = known.title.clone();
    let subtitle = subtitle(section);
    if !section.traces.is_empty() && section.traces.iter().all(Trace::has_data) {
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
        _ => values.iter().position(|known| plain(known) == plain(value)).unwrap_or(0) as f64,
    };
    let quantity = known.quantity(section);
    let series = shown(section, known).map(|(index, label)| {
        let of_series = section.points.iter().filter(|point| point.series == index);
        let points = of_series.filter_map(|point| {
            let Measure { mean, sd } = quantity.on_axis(point)?;
            let x = place(&point.value(name));
            let runs = point.goodputs.iter().filter_map(|bps| quantity.of_bps(*bps)).collect();
            Some(Point { x, mean, sd, runs })
        });
        Series { label: label.clone(), points: sorted(points.collect(), &scale) }
    });
    let marks = known.results.iter();
    let chart = Chart {
        title,
        subtitle,
        series: series.collect(),
        unit: quantity.unit(),
        may_be_logarithmic: matches!(quantity, Quantity::Measure(_)),
        is_near: known.near,
        bounds: if known.without_bound {
            Vec::new()
        } else {
            bounds(section, &quantity, &scale, &place)
        },
        published: marks
            .filter_map(|result| result.mark(section, &quantity, place))
            .map(|mark| mark.among(shown(section, known).map(|(index, _)| index)))
            .collect(),
        scale,
    };
    goodput::svg(&chart)
}

/// The series in the figure, by index: of those that the reference does not leave out the first
/// [`MOST`].
fn shown<'a>(section: &'a Section, known: &Reference) -> impl Iterator<Item = (usize, &'a String)> {
    let is_shown = |label: &str| !known.leaves_out.iter().any(|words| label.contains(words));
    (0..).zip(&section.series).filter(move |(_, label)| is_shown(label)).take(MOST)
}

/// The number of series that the table has and the figure has not.
pub(super) fn left_out(section: &Section, known: &Reference) -> usize {
    let is_trace = !section.traces.is_empty() && section.traces.iter().all(Trace::has_data);
    if is_trace { 0 } else { section.series.len() - shown(section, known).count() }
}

/// Draws what traces have besides packets, each kind by itself and, where two settings are swept,
/// each value of the one along the axis by itself: its name, and the picture.
pub(super) fn over_time(section: &Section, known: &Reference) -> Result<Vec<(String, String)>> {
    let subtitle = subtitle(section);
    let mut groups: Vec<Option<&String>> = Vec::new();
    for trace in &section.traces {
        let group = Some(&trace.group).filter(|_| !section.by.is_empty());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let along = section.along.as_deref().unwrap_or_default();
    let mut pictures = Vec::new();
    for kind in &known.over_time {
        for group in &groups {
            let name = format!("{kind:?}").to_lowercase();
            let is_in = |trace: &&Trace| group.is_none_or(|group| trace.group == *group);
            let mut traces: Vec<Trace> = section.traces.iter().filter(is_in).cloned().collect();
            let (name, title) = match group {
                Some(group) => {
                    traces.iter_mut().for_each(|trace| ungroup(&mut trace.label, along, group));
                    (format!("{name}-{group}"), headed(&known.title, along, group))
                }
                None => (name, known.title.clone()),
            };
            let packets =
                known.packets.map(|Packets { bytes, window, .. }| InPackets { bytes, window });
            let traces: Vec<&Trace> = traces.iter().collect();
            pictures.push((name, steps::svg((&title, &subtitle), &traces, *kind, packets)?));
        }
    }
    Ok(pictures)
}

/// Takes the value of the swept setting out of a label, in a picture of this value alone.
fn ungroup(label: &mut String, along: &str, value: &str) {
    let number = value.parse::<f64>().map(Value::from);
    let value = number.unwrap_or_else(|_| Value::from(value));
    if let Some(rest) = label.strip_suffix(&format!(", {}", section::words(along, &value))) {
        *label = rest.to_owned();
    }
}

/// The title of a picture that shows one value of the swept setting.
fn headed(title: &str, along: &str, value: &str) -> String {
    match (along, value.parse::<f64>()) {
        ("ber", Ok(ber)) if ber > 0.0 && ber < 1.0 => {
            let kilobits = (1.0 / ber).round() / 1e3;
            format!("{title}, one error in {kilobits} kbit")
        }
        _ => format!("{title}: {value}"),
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
    quantity: &Quantity,
    scale: &Scale,
    place: &impl Fn(&Value) -> f64,
) -> Vec<Vec<(f64, f64)>> {
    let name = section.along.as_deref().unwrap_or_default();
    let mut bounds: Vec<Vec<(f64, f64)>> = Vec::new();
    for index in 0..section.series.len() {
        let of_series = section.points.iter().filter(|point| point.series == index);
        let bound = of_series.filter_map(|point| {
            Some((place(&point.value(name)), quantity.of_bps(point.bound_bps?)?))
        });
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

/// More series than this would be a tangle.
const MOST: usize = 14;
