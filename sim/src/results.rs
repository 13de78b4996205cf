//! The results of an experiment as JSON lines: one for each run, and a summary for each point.

use crate::batch::RunId;
use crate::outcome::{Delay, Outcome, TracePoint};
use crate::row::{Line, ber_and_loss, line, millis, rounded, sender, short};
use crate::scenario::{Experiment, Point};
use crate::setting::Setting;
use crate::stats;
use airmend_proto::units::{parse_ber, parse_duration, parse_probability, parse_rate, parse_size};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The name of the experiment in a file: its path below `experiments`, or its file's name alone.
pub fn name_of(file: &Path) -> String {
    let stem = file.with_extension("");
    let parts: Vec<_> = stem.iter().map(|part| part.to_string_lossy()).collect();
    let below = parts.iter().rposition(|part| part == "experiments").map(|at| at + 1);
    let from = below.filter(|at| *at < parts.len()).unwrap_or(parts.len().saturating_sub(1));
    parts[from..].join("/")
}

/// The lines of all runs, from their outcomes in the order of [`Experiment::run_ids`]; each point's
/// end with their summary.
pub fn lines(name: &str, experiment: &Experiment, outcomes: &[Outcome]) -> Vec<Line> {
    let mut lines = Vec::new();
    let points = experiment.points.iter().zip(outcomes.chunks(experiment.runs as usize));
    for (index, (point, outcomes)) in points.enumerate() {
        let setting = point.plan.setting();
        for (repetition, outcome) in (0..).zip(outcomes) {
            let seed = experiment.run_id(index, repetition).seed;
            lines.push(run(name, experiment, point, &setting, seed, outcome));
        }
        lines.push(summary(name, experiment, point, &setting, outcomes));
    }
    lines
}

/// The line of one run, as [`lines`] has it.
pub fn run_line(name: &str, experiment: &Experiment, id: RunId, outcome: &Outcome) -> Line {
    let point = &experiment.points[id.point];
    run(name, experiment, point, &point.plan.setting(), id.seed, outcome)
}

/// The lines of the trace of a run.
pub(crate) fn trace_lines(
    name: &str,
    experiment: &Experiment,
    id: RunId,
    points: &[TracePoint],
) -> impl Iterator<Item = Line> {
    let swept = swept(name, experiment, &experiment.points[id.point]);
    points.iter().map(move |point| {
        let packet = json!({
            "seed": id.seed,
            "seconds": rounded(point.seconds, 6),
            "offset": point.offset,
            "kind": point.kind,
        });
        line([swept.clone(), packet])
    })
}

fn run(
    name: &str,
    experiment: &Experiment,
    point: &Point,
    setting: &Setting,
    seed: u64,
    outcome: &Outcome,
) -> Line {
    let bound_bps = point.plan.bound_of_run(outcome.seconds);
    let measured = json!({
        "completed": outcome.completed,
        "seconds": rounded(outcome.seconds, 6),
        "goodput_bps": outcome.goodput_bps.round(),
        "bound_bps": bound_bps.map(f64::round),
        "of_bound": bound_bps.and_then(|bound| share(outcome.goodput_bps, bound)),
        "wire_bytes_per_byte": outcome.wire_bytes_per_byte.map(short),
        "sender": sender(&outcome.sender, Value::Null),
        "agent_counters": outcome.agent_counters,
        "bytes_received": outcome.bytes_received,
    });
    let mut more = json!({"flows": setting.flows});
    if outcome.datagrams.sent > 0 {
        more["datagrams"] = json!(outcome.datagrams);
    }
    if let Some(delay) = &outcome.delay {
        more["delay_ms"] = delay_ms(delay);
    }
    if setting.flows > 1 {
        let goodputs = outcome.flow_goodput_bps.iter().zip(&outcome.flow_begun);
        let goodputs = goodputs.map(|(goodput, begun)| begun.then(|| goodput.round()));
        more["flow_goodput_bps"] = goodputs.collect();
        let delays = outcome.flow_delay.iter();
        more["flow_delay_ms"] = delays.map(|delay| delay.as_ref().map(delay_ms)).collect();
    }
    more["links"] = json!(outcome.links);
    more["each_link"] = json!(outcome.each_link);
    line([settings(setting, seed), measured, swept(name, experiment, point), more])
}

/// The goodput relative to the bound; none where the link carried nothing.
fn share(goodput: f64, bound: f64) -> Option<f64> {
    (bound > 0.0).then(|| short(goodput / bound))
}

fn delay_ms(delay: &Delay) -> Value {
    let Delay { count, mean_ms, sd_ms, p50_ms, p95_ms, p99_ms } = *delay;
    let [mean, sd, p50, p95, p99] = [mean_ms, sd_ms, p50_ms, p95_ms, p99_ms].map(short);
    json!({"count": count, "mean": mean, "sd": sd, "p50": p50, "p95": p95, "p99": p99})
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
    let bounds = outcomes.iter().map(|outcome| point.plan.bound_of_run(outcome.seconds));
    let bound_bps = bounds.collect::<Option<Vec<f64>>>().and_then(|bounds| stats::mean(&bounds));
    let measured = json!({
        "runs": outcomes.len(),
        "completed": outcomes.iter().filter(|outcome| outcome.completed).count(),
        "goodput_mean_bps": goodput.map(f64::round),
        "goodput_sd_bps": stats::standard_deviation(&goodputs).map(f64::round),
        "bound_bps": bound_bps.map(f64::round),
        "of_bound": goodput.zip(bound_bps).and_then(|(mean, bound)| share(mean, bound)),
        "timeouts_mean": mean(&|outcome| outcome.sender.timeouts as f64),
        "retransmits_mean": mean(&|outcome| outcome.sender.retransmits as f64),
    });
    let delays: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.delay).collect();
    let mean_delay = |value: fn(&Delay) -> f64| {
        stats::mean(&delays.iter().map(value).collect::<Vec<_>>()).map(short)
    };
    let delay = match delays[..] {
        [] => Value::Null,
        _ => json!({
            "delay_mean_ms": mean_delay(|delay| delay.mean_ms),
            "delay_sd_ms": mean_delay(|delay| delay.sd_ms),
        }),
    };
    let measures = |value: &dyn Fn(&[f64]) -> Option<f64>| -> BTreeMap<String, Option<f64>> {
        let of = |name: &String| value(&each(&|outcome| outcome.measure(name))).map(short);
        experiment.measure.iter().map(|name| (name.clone(), of(name))).collect()
    };
    let mut more = json!({
        "measures_mean": measures(&stats::mean),
        "measures_sd": measures(&stats::standard_deviation),
        "agent_counters_mean": mean_counters(outcomes),
    });
    let begun = outcomes.iter().flat_map(|outcome| &outcome.flow_begun);
    let not_begun = begun.filter(|begun| !**begun).count();
    if not_begun > 0 {
        more["flows_not_begun_mean"] = short(not_begun as f64 / outcomes.len() as f64).into();
    }
    let settings = settings(setting, experiment.seed);
    let swept = swept(name, experiment, point);
    line([json!({"summary": true}), settings, measured, swept, delay, more])
}

fn mean_counters(outcomes: &[Outcome]) -> BTreeMap<&str, f64> {
    let mut means = BTreeMap::new();
    for (counter, count) in outcomes.iter().flat_map(|outcome| &outcome.agent_counters) {
        *means.entry(*counter).or_default() += *count as f64;
    }
    means.values_mut().for_each(|mean| *mean = short(*mean / outcomes.len() as f64));
    means
}

/// The fields with which every line of every world begins.
fn settings(setting: &Setting, seed: u64) -> Value {
    let [ber, loss] = ber_and_loss(&setting.errors);
    json!({
        "agent": setting.agent,
        "world": "sim",
        "cc": setting.cc,
        "direction": setting.direction,
        "rate_bps": setting.rate_bps,
        "air_delay_ms": millis(setting.air_delay),
        "wired_delay_ms": millis(setting.wired_delay),
        "ber": ber,
        "loss": loss,
        "bytes": setting.bytes,
        "seed": seed,
    })
}

/// The experiment's name, and each swept setting as a field of its own.
fn swept(name: &str, experiment: &Experiment, point: &Point) -> Value {
    let values = experiment.swept.iter().zip(&point.values);
    let values = values.map(|(name, value)| (name.clone(), field(name, value)));
    let name = ("experiment".to_owned(), json!(name));
    Value::Object([name].into_iter().chain(values).collect())
}

/// The name of a field determines the unit of its value.
fn field(name: &str, value: &str) -> Value {
    let number = match name {
        "ber" => parse_ber(value).ok(),
        "loss" => parse_probability(value).ok(),
        _ if name.ends_with("_bytes") => parse_size(value).ok().map(|bytes| bytes as f64),
        _ if name.ends_with("_bps") => parse_rate(value).ok().map(|bps| bps as f64),
        _ if name.ends_with("_ms") => parse_duration(value).ok().map(millis),
        _ => None,
    };
    match (number.or_else(|| value.parse().ok()), value.parse::<bool>()) {
        (Some(number), _) => json!(number),
        (None, Ok(switch)) => json!(switch),
        (None, Err(_)) => json!(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_are_named_by_their_place() {
        let name = |path| name_of(Path::new(path));
        assert_eq!(name("experiments/snoop95/fig4.toml"), "snoop95/fig4");
        assert_eq!(name("/home/me/experiments/x.toml"), "x");
        assert_eq!(name("mine/try.toml"), "try");
    }
}
