//! The table of an experiment: a line for each point, from the summaries.

use crate::{table, text};
use airmend_sim::Experiment;
use anyhow::{Context, Result};
use serde_json::Value;

/// The number of runs that did not complete.
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
    let has_not_begun = any("flows_not_begun_mean");
    let has_incomplete = incomplete(results) > 0;
    let mut header: Vec<String> = experiment.swept.clone();
    header.extend(["goodput (Mb/s)", "of bound", "timeouts"].map(str::to_owned));
    if has_delay {
        header.push("delay (ms)".to_owned());
    }
    header.extend(experiment.measure.iter().map(|name| name.replace('_', " ")));
    if has_not_begun {
        header.push("flows not begun".to_owned());
    }
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
            let value = |of: &str| summary[of][name].as_f64();
            let deviation = value("measures_sd").map(text::significant);
            row.push(cell(value("measures_mean"), &|mean| match &deviation {
                Some(sd) => format!("{} ± {sd}", text::significant(mean)),
                None => text::significant(mean),
            }));
        }
        if has_not_begun {
            row.push(text::significant(number("flows_not_begun_mean").unwrap_or(0.0)));
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
