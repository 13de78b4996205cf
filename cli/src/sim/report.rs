//! What an experiment says: a line for each run, a summary for each point, and a table of these.

use super::line::{Field, Line, short};
use crate::row::rounded;
use crate::{stats, table, text};
use airmend_proto::link::ErrorModel;
use airmend_proto::units::{parse_ber, parse_duration, parse_probability, parse_rate, parse_size};
use airmend_sim::{Experiment, Outcome, Point, Setting, TraceKind};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The lines of all runs; each point's end with their summary.
pub(crate) fn lines(name: &str, experiment: &Experiment, outcomes: &[Outcome]) -> Vec<Line> {
    let mut lines = Vec::new();
    let points = experiment.points.iter().zip(outcomes.chunks(experiment.runs as usize));
    for (point, outcomes) in points {
        let setting = point.plan.setting();
        for (repetition, outcome) in (0..).zip(outcomes) {
            let seed = experiment.seed.wrapping_add(repetition);
            lines.push(run(name, experiment, point, &setting, seed, outcome));
        }
        lines.push(summary(name, experiment, point, &setting, outcomes));
    }
    lines
}

/// The traces of all runs that have one.
pub(crate) fn trace_lines(name: &str, experiment: &Experiment, outcomes: &[Outcome]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (id, outcome) in experiment.run_ids().zip(outcomes) {
        let mut common = Line::default();
        common.set("experiment", name);
        swept(&mut common, experiment, &experiment.points[id.point]);
        common.set("seed", id.seed);
        lines.extend(outcome.trace.iter().map(|point| {
            let mut line = common.clone();
            line.set("seconds", rounded(point.seconds, 6)).set("offset", point.offset);
            line.set("kind", kind(point.kind));
            line
        }));
    }
    lines
}

/// How many runs of these results did not complete.
fn incomplete(results: &str) -> u64 {
    let summaries = summaries(results).unwrap_or_default();
    let count = |summary: &Value, name: &str| summary[name].as_u64().unwrap_or(0);
    summaries.iter().map(|summary| count(summary, "runs") - count(summary, "completed")).sum()
}

/// The table for people.
pub(crate) fn words(name: &str, experiment: &Experiment, results: &str) -> Result<String> {
    let summaries = summaries(results)?;
    let any = |name: &str| summaries.iter().any(|summary| !summary[name].is_null());
    let has_delay = any("delay_mean_ms");
    let has_incomplete = incomplete(results) > 0;
    let mut header: Vec<String> = experiment.swept.clone();
    header.extend(["goodput (Mb/s)", "of bound", "timeouts"].map(str::to_owned));
    if has_delay {
        header.push("delay (ms)".to_owned());
    }
    header.extend(experiment.measure.iter().map(|name| name.replace('_', " ")));
    if has_incomplete {
        header.push("incomplete".to_owned());
    }
    let mut rows = Vec::new();
    for (summary, point) in summaries.iter().zip(&experiment.points) {
        let number = |name: &str| summary[name].as_f64();
        let cell = |value: Option<f64>, words: &dyn Fn(f64) -> String| {
            value.map_or_else(|| "–".to_owned(), words)
        };
        let mbps = |bps: f64| text::significant(bps / 1e6);
        let mut row = point.values.clone();
        let mean = cell(number("goodput_mean_bps"), &mbps);
        row.push(match number("goodput_sd_bps") {
            Some(sd) => format!("{mean} ± {}", mbps(sd)),
            None => mean,
        });
        row.push(cell(number("of_bound"), &text::percent));
        row.push(cell(number("timeouts_mean"), &|mean| format!("{mean:.1}")));
        if has_delay {
            row.push(cell(number("delay_mean_ms"), &|mean| format!("{mean:.1}")));
        }
        for name in &experiment.measure {
            let mean = summary["measures_mean"][name].as_f64();
            row.push(cell(mean, &|mean| rounded(mean, 2).to_string()));
        }
        if has_incomplete {
            let runs = number("runs").unwrap_or(0.0) - number("completed").unwrap_or(0.0);
            row.push(format!("{runs}"));
        }
        rows.push(row);
    }
    let runs = text::counted(experiment.runs.into(), "run");
    let left = experiment.swept.len();
    let grid = table::render(&header, &rows, left);
    Ok(format!("{name}: {} · {runs} a point\n\n{grid}\n", experiment.title))
}

fn summaries(results: &str) -> Result<Vec<Value>> {
    let mut summaries = Vec::new();
    for line in results.lines() {
        let line: Value = serde_json::from_str(line).context("the results are damaged")?;
        if line["summary"] == Value::Bool(true) {
            summaries.push(line);
        }
    }
    Ok(summaries)
}

fn run(
    name: &str,
    experiment: &Experiment,
    point: &Point,
    setting: &Setting,
    seed: u64,
    outcome: &Outcome,
) -> Line {
    let mut line = Line::default();
    settings(&mut line, setting, seed);
    line.set("completed", outcome.completed)
        .set("seconds", rounded(outcome.seconds, 6))
        .set("goodput_bps", outcome.goodput_bps.round())
        .set("bound_bps", setting.bound_bps.map(f64::round))
        .set("of_bound", setting.bound_bps.map(|bound| short(outcome.goodput_bps / bound)))
        .set("wire_bytes_per_byte", outcome.wire_bytes_per_byte.map(short));
    let mut sender = Line::default();
    let counters = outcome.sender;
    sender
        .set("retransmits", counters.retransmits)
        .set("timeouts", counters.timeouts)
        .set("cwnd_reductions", counters.recoveries + counters.timeouts)
        .set("recoveries", counters.recoveries)
        .set("undone_recoveries", counters.undone_recoveries)
        .set("undone_timeouts", counters.undone_timeouts)
        .set("spurious_timeouts", counters.spurious_timeouts)
        .set("loss_probes", counters.loss_probes)
        .set("loss_probe_recoveries", counters.loss_probe_recoveries)
        .set("reorderings", counters.reorderings)
        .set("dsacks", counters.dsacks)
        .set("segments", counters.segments);
    line.set("sender", sender);
    let mut agent = Line::default();
    for (counter, count) in &outcome.agent_counters {
        agent.set(*counter, *count);
    }
    line.set("agent_counters", agent).set("bytes_received", outcome.bytes_received);
    line.set("experiment", name);
    swept(&mut line, experiment, point);
    line.set("flows", setting.flows as u64);
    if let Some(delay) = outcome.delay {
        let mut fields = Line::default();
        fields
            .set("count", delay.count as u64)
            .set("mean", short(delay.mean_ms))
            .set("sd", short(delay.sd_ms))
            .set("p95", short(delay.p95_ms));
        line.set("delay_ms", fields);
    }
    let mut links = Line::default();
    links
        .set("frames", outcome.links.frames)
        .set("lost", outcome.links.lost)
        .set("dropped", outcome.links.dropped);
    line.set("links", links);
    line
}

fn summary(
    name: &str,
    experiment: &Experiment,
    point: &Point,
    setting: &Setting,
    outcomes: &[Outcome],
) -> Line {
    let each = |value: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(value).collect::<Vec<f64>>();
    let mean = |value: &dyn Fn(&Outcome) -> f64| stats::mean(&each(value)).map(short);
    let goodputs = each(&|outcome| outcome.goodput_bps);
    let goodput = stats::mean(&goodputs);
    let completed = outcomes.iter().filter(|outcome| outcome.completed).count();
    let mut line = Line::default();
    line.set("summary", true);
    settings(&mut line, setting, experiment.seed);
    line.set("runs", outcomes.len() as u64)
        .set("completed", completed as u64)
        .set("goodput_mean_bps", goodput.map(f64::round))
        .set("goodput_sd_bps", stats::standard_deviation(&goodputs).map(f64::round))
        .set("bound_bps", setting.bound_bps.map(f64::round))
        .set("of_bound", goodput.zip(setting.bound_bps).map(|(mean, bound)| short(mean / bound)))
        .set("timeouts_mean", mean(&|outcome| outcome.sender.timeouts as f64))
        .set("retransmits_mean", mean(&|outcome| outcome.sender.retransmits as f64))
        .set("experiment", name);
    swept(&mut line, experiment, point);
    let delays: Vec<f64> =
        outcomes.iter().filter_map(|outcome| Some(outcome.delay?.mean_ms)).collect();
    if let Some(delay) = stats::mean(&delays) {
        let sds: Vec<f64> =
            outcomes.iter().filter_map(|outcome| Some(outcome.delay?.sd_ms)).collect();
        line.set("delay_mean_ms", short(delay));
        line.set("delay_sd_ms", stats::mean(&sds).map(short));
    }
    let mut measures = Line::default();
    for name in &experiment.measure {
        measures.set(name.as_str(), mean(&|outcome| outcome.measure(name)));
    }
    line.set("measures_mean", measures).set("agent_counters_mean", mean_counters(outcomes));
    line
}

fn mean_counters(outcomes: &[Outcome]) -> Line {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (counter, count) in outcomes.iter().flat_map(|outcome| &outcome.agent_counters) {
        *sums.entry(counter).or_default() += count;
    }
    let mut line = Line::default();
    for (counter, sum) in sums {
        line.set(counter, short(sum as f64 / outcomes.len() as f64));
    }
    line
}

/// The fields with which every line of every world begins.
fn settings(line: &mut Line, setting: &Setting, seed: u64) {
    let (ber, loss) = match setting.errors {
        ErrorModel::Ber(ber) => (Some(ber), None),
        ErrorModel::Loss(loss) => (None, Some(loss)),
        ErrorModel::None => (None, Some(0.0)),
        _ => (None, None),
    };
    line.set("agent", setting.agent)
        .set("world", "sim")
        .set("cc", setting.cc)
        .set("direction", setting.direction)
        .set("rate_bps", setting.rate_bps)
        .set("air_delay_ms", millis(setting.air_delay))
        .set("wired_delay_ms", millis(setting.wired_delay))
        .set("ber", ber)
        .set("loss", loss)
        .set("bytes", setting.bytes)
        .set("seed", seed);
}

/// Each swept setting as a field of its own.
fn swept(line: &mut Line, experiment: &Experiment, point: &Point) {
    for (name, value) in experiment.swept.iter().zip(&point.values) {
        line.set(name.as_str(), field(name, value));
    }
}

/// The name of a field says what its value's unit means.
fn field(name: &str, value: &str) -> Field {
    let number = match name {
        "ber" => parse_ber(value).ok(),
        "loss" => parse_probability(value).ok(),
        _ if name.ends_with("_bytes") => parse_size(value).ok().map(|bytes| bytes as f64),
        _ if name.ends_with("_bps") => parse_rate(value).ok().map(|bps| bps as f64),
        _ if name.ends_with("_ms") => parse_duration(value).ok().map(millis),
        _ => None,
    };
    let plain = || value.parse::<f64>().ok().map(Field::from);
    let switch = || value.parse::<bool>().ok().map(Field::from);
    number.map(Field::from).or_else(plain).or_else(switch).unwrap_or_else(|| value.into())
}

fn kind(kind: TraceKind) -> &'static str {
    match kind {
        TraceKind::Data => "data",
        TraceKind::LocalRetransmit => "local_retransmit",
        TraceKind::SenderRetransmit => "sender_retransmit",
        TraceKind::Ack => "ack",
    }
}

fn millis(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64() * 1e3, 6)
}
