//! The results of an experiment: common settings, swept settings, and the measurements at each
//! point.

use super::read::{Experiment, Fields};
use crate::plot::traces::Trace;
use crate::stats;
use crate::text;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

type Settings = BTreeMap<String, Value>;

/// One experiment, ready to be shown.
#[derive(Debug)]
pub(super) struct Section {
    /// The name of the experiment, or its file.
    pub(super) name: String,
    /// Whether the results have a name, so that a scenario file has made them.
    pub(super) is_named: bool,
    /// The settings that all runs share.
    pub(super) common: Settings,
    /// The settings in which the series differ.
    pub(super) by: Vec<String>,
    /// The horizontal axis: the swept setting that the figure is drawn against.
    pub(super) along: Option<String>,
    /// In the order of the results.
    pub(super) points: Vec<Point>,
    /// Labels of the series, in the order of the results.
    pub(super) series: Vec<String>,
    /// One for each run that has a trace.
    pub(super) traces: Vec<Trace>,
}

/// All runs with the same settings.
#[derive(Debug)]
pub(super) struct Point {
    settings: Settings,
    /// Index of its series.
    pub(super) series: usize,
    pub(super) runs: usize,
    pub(super) completed: usize,
    /// Bits per second.
    pub(super) goodput: Measure,
    /// That of each run; none where only the summary is known.
    pub(super) goodputs: Vec<f64>,
    /// Milliseconds, with the deviation within a run; none of bulk transfers.
    pub(super) delay: Option<Measure>,
    pub(super) bound_bps: Option<f64>,
    pub(super) timeouts: Option<f64>,
    /// The further measures of the scenario, by name.
    pub(super) measures: BTreeMap<String, Measure>,
}

/// Mean and standard deviation of runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measure {
    pub(super) mean: f64,
    pub(super) sd: Option<f64>,
}

impl Section {
    /// `None` if there is only a trace.
    pub(super) fn new(experiment: &Experiment, along: Option<&String>) -> Option<Self> {
        let names = setting_names(experiment);
        let mut points = points(experiment, &names);
        let first = points.first()?;
        let is_common = |name: &&String| {
            points.iter().all(|point| point.settings.get(*name) == first.settings.get(*name))
        };
        let common: Settings = names
            .iter()
            .filter(is_common)
            .map(|name| (name.clone(), value(&first.settings, name)))
            .collect();
        let mut by = varying(&points, &names);
        let wanted = along.filter(|name| by.contains(name)).cloned();
        let along = wanted.or_else(|| axis(&points, &by));
        by.retain(|name| Some(name) != along.as_ref());
        let mut series = Vec::new();
        for point in &mut points {
            let label = label(&by, &point.settings, &common);
            point.series = series.iter().position(|known| *known == label).unwrap_or(series.len());
            if point.series == series.len() {
                series.push(label);
            }
        }
        let traces = traces(experiment, &by, along.as_ref(), &common);
        let is_named = experiment.name.is_some();
        let name = experiment.title().to_owned();
        Some(Self { name, is_named, common, by, along, points, series, traces })
    }

    /// The values of the swept setting, in the order of the results.
    pub(super) fn values(&self) -> Vec<Value> {
        let mut values = Vec::new();
        for point in &self.points {
            let value = self.along.as_ref().map_or(Value::Null, |along| point.value(along));
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    }

    /// Whether the results are about delays rather than goodput.
    pub(super) fn is_about_delay(&self) -> bool {
        self.points.iter().all(|point| point.delay.is_some())
    }
}

impl Point {
    /// A setting; null if it is not set.
    pub(super) fn value(&self, name: &str) -> Value {
        value(&self.settings, name)
    }
}

/// A setting in words: `snoop95`, `fast queue true`.
pub(super) fn words(name: &str, value: &Value) -> String {
    match (value, value.as_f64()) {
        (Value::String(text), _) => text.clone(),
        (_, Some(ber)) if name == "ber" => format!("bit error rate {}", text::bit_errors(ber)),
        (value, _) => format!("{} {}", name.replace('_', " "), plain(value)),
    }
}

/// A value in words.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let words = fields.iter().map(|(name, value)| words(name, value));
            words.collect::<Vec<_>>().join(", ")
        }
        value => value.to_string(),
    }
}

fn value(settings: &Settings, name: &str) -> Value {
    settings.get(name).cloned().unwrap_or_default()
}

/// The names of settings: the fields of summaries, or without summaries those of runs.
fn setting_names(experiment: &Experiment) -> Vec<String> {
    let names = |lines: &[Fields]| -> BTreeSet<String> {
        lines.iter().flat_map(|line| line.keys().cloned()).collect()
    };
    let known =
        if experiment.summaries.is_empty() { &experiment.runs } else { &experiment.summaries };
    let mut names = names(known);
    names.retain(|name| {
        let is_measured = is_among(MEASURED, name);
        !is_measured && !name.ends_with("_mean") && !name.contains("_mean_")
    });
    names.into_iter().collect()
}

/// The lines with the same settings.
struct Group<'a> {
    settings: Settings,
    runs: Vec<&'a Fields>,
    summary: Option<&'a Fields>,
}

fn points(experiment: &Experiment, names: &[String]) -> Vec<Point> {
    let settings = |line: &Fields| -> Settings {
        names.iter().filter_map(|name| Some((name.clone(), line.get(name)?.clone()))).collect()
    };
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut group = |line| {
        let settings = settings(line);
        let key = Value::from_iter(settings.clone()).to_string();
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group { settings, runs: Vec::new(), summary: None });
        }
        place
    };
    let runs: Vec<usize> = experiment.runs.iter().map(&mut group).collect();
    let summaries: Vec<usize> = experiment.summaries.iter().map(&mut group).collect();
    for (place, line) in runs.into_iter().zip(&experiment.runs) {
        groups[place].runs.push(line);
    }
    for (place, line) in summaries.into_iter().zip(&experiment.summaries) {
        groups[place].summary = Some(line);
    }
    groups.into_iter().map(Group::point).collect()
}

impl Group<'_> {
    /// The measurements of the runs, or of the summary where there are no runs.
    fn point(self) -> Point {
        let completed = |run: &&&Fields| run.get("completed") != Some(&Value::Bool(false));
        let count = |name| self.summarised(name).unwrap_or(0.0) as usize;
        let is_alone = self.runs.is_empty();
        Point {
            series: 0,
            runs: if is_alone { count("runs") } else { self.runs.len() },
            completed: if is_alone {
                count("completed")
            } else {
                self.runs.iter().filter(completed).count()
            },
            goodput: self
                .measure(&["goodput_bps"], "goodput_mean_bps", "goodput_sd_bps")
                .unwrap_or(Measure { mean: 0.0, sd: None }),
            goodputs: self.each(&["goodput_bps"]),
            delay: self.delay(),
            bound_bps: stats::mean(&self.each(&["bound_bps"]))
                .or_else(|| self.summarised("bound_bps")),
            timeouts: stats::mean(&self.each(&["sender", "timeouts"]))
                .or_else(|| self.summarised("timeouts_mean")),
            measures: self.measures(),
            settings: self.settings,
        }
    }

    fn summarised(&self, name: &str) -> Option<f64> {
        self.summary?.get(name)?.as_f64()
    }

    /// A field of each run, or a field within it.
    fn each(&self, path: &[&str]) -> Vec<f64> {
        let field = |run: &&Fields| {
            let (first, inner) = path.split_first()?;
            inner.iter().try_fold(run.get(*first)?, |value, name| value.get(name))?.as_f64()
        };
        self.runs.iter().filter_map(field).collect()
    }

    fn measure(&self, path: &[&str], mean: &str, sd: &str) -> Option<Measure> {
        let values = self.each(path);
        match stats::mean(&values) {
            Some(mean) => Some(Measure { mean, sd: stats::standard_deviation(&values) }),
            None => Some(Measure { mean: self.summarised(mean)?, sd: self.summarised(sd) }),
        }
    }

    /// Mean delay, and the deviation of the delays of a run in the mean of the runs.
    fn delay(&self) -> Option<Measure> {
        let value = |field: &str, summary: &str| {
            stats::mean(&self.each(&["delay_ms", field])).or_else(|| self.summarised(summary))
        };
        let mean = value("mean", "delay_mean_ms")?;
        Some(Measure { mean, sd: value("sd", "delay_sd_ms") })
    }

    /// The measures of the scenario.
    fn measures(&self) -> BTreeMap<String, Measure> {
        let of = |field: &str| self.summary.and_then(|line| line.get(field)?.as_object());
        let deviations = of("measures_sd");
        let measure = |(name, mean): (&String, &Value)| {
            let sd = deviations.and_then(|deviations| deviations.get(name)?.as_f64());
            Some((name.clone(), Measure { mean: mean.as_f64()?, sd }))
        };
        of("measures_mean").into_iter().flatten().filter_map(measure).collect()
    }
}

/// The settings that differ, without those that follow from another one of them.
fn varying(points: &[Point], names: &[String]) -> Vec<String> {
    let distinct = |names: &[&String]| {
        let values = |point: &Point| {
            names.iter().map(|name| point.value(name).to_string()).collect::<Vec<_>>()
        };
        points.iter().map(values).collect::<BTreeSet<_>>().len()
    };
    let mut candidates: Vec<&String> = names.iter().filter(|name| distinct(&[name]) > 1).collect();
    // Stable: among equals the order of the names holds.
    candidates.sort_by_key(|name| (std::cmp::Reverse(distinct(&[name])), rank(name)));
    let mut kept: Vec<&String> = Vec::new();
    for name in candidates {
        if !kept.iter().any(|known| distinct(&[known, name]) == distinct(&[known])) {
            kept.push(name);
        }
    }
    kept.sort_by_key(|name| rank(name));
    kept.into_iter().cloned().collect()
}

/// The most important setting comes first: the errors, the scenario's own names, the agent.
fn rank(name: &str) -> usize {
    match name {
        "ber" | "loss" => 0,
        "agent" => 2,
        name if is_among(STANDARD, name) => 3,
        _ => 1,
    }
}

/// The horizontal axis: the error rate, or the number with the most values, or the words with most.
fn axis(points: &[Point], varying: &[String]) -> Option<String> {
    let is_number = |name: &&String| points.iter().all(|point| point.value(name).is_number());
    let count = |name: &String| {
        let values = points.iter().map(|point| point.value(name).to_string());
        values.collect::<BTreeSet<_>>().len()
    };
    let numbers = varying.iter().filter(is_number);
    numbers
        .min_by_key(|name| (rank(name), std::cmp::Reverse(count(name))))
        .or_else(|| {
            let others = varying.iter().filter(|name| *name != "agent");
            others.min_by_key(|name| std::cmp::Reverse(count(name)))
        })
        .or_else(|| varying.first())
        .cloned()
}

fn label(by: &[String], settings: &Settings, common: &Settings) -> String {
    let parts: Vec<String> = by.iter().map(|name| words(name, &value(settings, name))).collect();
    match common.get("agent") {
        Some(Value::String(agent)) if parts.is_empty() => agent.clone(),
        _ if parts.is_empty() => "goodput".to_owned(),
        _ => parts.join(", "),
    }
}

/// The traces of the first run of each combination.
fn traces(
    experiment: &Experiment,
    by: &[String],
    along: Option<&String>,
    common: &Settings,
) -> Vec<Trace> {
    let names: Vec<String> = by.iter().chain(along).cloned().collect();
    let mut traces: Vec<Trace> = Vec::new();
    for (fields, packets) in &experiment.traces {
        let settings: Settings =
            fields.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let label = label(&names, &settings, common);
        let group = along.map_or_else(String::new, |name| plain(&value(&settings, name)));
        match traces.iter_mut().find(|trace| trace.label == label) {
            Some(trace) => trace.packets.extend(packets),
            None => traces.push(Trace { label, group, packets: packets.clone() }),
        }
    }
    traces
}

fn is_among(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

/// Fields that no one sets.
const MEASURED: &str = "\
    summary experiment seed runs completed seconds goodput_bps overall_goodput_bps \
    realised_bound_bps of_realised_bound fairness completion_ms ping goodput_sd_bps \
    bound_bps of_bound wire_bytes_per_byte sender agent_counters bytes_received delay_ms \
    delay_sd_ms measures_sd links ratio_median flow_goodput_bps port_drops lateness_us tcp_ext \
    short_completion_ms mobile_counters gateway_heartbeat_timeouts";

/// Settings that every line has, swept or not.
const STANDARD: &str = "\
    world cc direction rate_bps air_delay_ms wired_delay_ms bytes flows send_seconds sack \
    timestamps ipv6 wired_rate_bps queue_frames window_segments port burst fading \
    unmended_flows sequential warmup_seconds wired_queue_frames path place air_queue";
