//! The report of a comparison: table, summary lines, pictures.

use super::combination::Combination;
use super::comparison::Comparison;
use super::grid;
use crate::plot::goodput::{self, Chart, Point, Series};
use crate::plot::scale::Scale;
use crate::row::{Line, lab, line, rounded, short};
use crate::text;
use airmend_live::lab::Delay;
use airmend_live::lab::config::CongestionControl;
use airmend_proto::link::ErrorModel;
use anyhow::Result;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Prints the set-up, the table, and what to know about it.
pub(super) fn print(out: &mut impl Write, comparison: &Comparison<'_>) -> io::Result<()> {
    let config = &comparison.cases[0].config;
    let transfer = text::transfer(config);
    let transfer = transfer.strip_prefix(config.cc.name()).unwrap_or(&transfer);
    let transfer = transfer.trim_start_matches([',', ' ']);
    writeln!(out, "{transfer} · {}\n", text::hops(config))?;
    writeln!(out, "{}\n", grid::render(comparison))?;
    let (done, first) = (comparison.done, comparison.agents[0].name());
    writeln!(
        out,
        "Goodput is mean ± standard deviation of {}; × {first} is the median of the ratios on the\n\
         same seed. Timeouts, and recoveries that were not undone, are the sender's in a run.",
        if comparison.args.repeat == 1 { "one run" } else { "the runs" },
    )?;
    if config.ping {
        writeln!(
            out,
            "Ping: medians of the runs' quantiles, and what they add to those of {first}."
        )?;
    }
    if done < comparison.total() {
        writeln!(out, "Not all was run: {done} of {} runs are done.", comparison.total())?;
    }
    if let Some(worst) = comparison.warnings.first() {
        let runs = comparison.warnings.len();
        writeln!(out, "Do not trust {runs} of {done} runs; the first of them is\n{worst}.")?;
    }
    Ok(())
}

/// The JSON line that ends a combination; `seed` is the first run's.
pub(super) fn summary(comparison: &Comparison<'_>, combination: &Combination) -> Line {
    let config = &comparison.cases[combination.case].config;
    let first = comparison.first(combination);
    let whole = |value: Option<f64>| value.map(f64::round);
    let four = |value: Option<f64>| value.map(short);
    let [mended, unmended] = match config.unmended_flows {
        0 => [None; 2],
        _ => combination.mended_and_unmended_bps(config.flows),
    };
    let measured = json!({
        "runs": combination.runs.len(),
        "completed": combination.runs.len() - combination.incomplete(),
        "goodput_mean_bps": whole(combination.mean_bps()),
        "goodput_sd_bps": whole(combination.sd_bps()),
        "bound_bps": whole(combination.bound_bps()),
        "of_bound": four(combination.of_bound()),
        "goodput_median_bps": whole(combination.median(|run| run.goodput_bps)),
        "of_bound_median": four(combination.median(|run| run.goodput_bps / run.bound_bps)),
        "of_realised_bound_median": four(combination.of_realised_bound()),
        // Of the paired ratios to the first agent.
        "ratio_median": four(combination.ratio(first)),
        "timeouts_mean": four(combination.mean(|run| run.sender.timeouts as f64)),
        "standing_recoveries_mean":
            four(combination.mean(|run| run.sender.standing_recoveries() as f64)),
        "wire_bytes_per_byte_mean": four(combination.mean(|run| run.wire_bytes_per_byte)),
        "mended_goodput_median_bps": whole(mended),
        "unmended_goodput_median_bps": whole(unmended),
        "fairness_median": four(combination.median(|run| run.fairness)),
        "completion_ms": combination.completions(),
        "short_completion_ms": combination.short_flows().as_ref().map(lab::short_flows),
        "handoff_ms": combination.gaps(),
        "ping": ping(combination, first),
    });
    let setting = lab::setting(&comparison.agents[combination.agent], config);
    let more = lab::more_settings(config, &comparison.args.setup.network.settings);
    line([json!({"summary": true}), setting, measured, more])
}

/// Medians of the runs' quantiles, and how much more they are than with the first agent.
fn ping(combination: &Combination, first: &Combination) -> Option<Value> {
    let p50: fn(&Delay) -> Duration = |delay| delay.p50;
    let p99: fn(&Delay) -> Duration = |delay| delay.p99;
    let three = |millis: f64| rounded(millis, 3);
    Some(json!({
        "p50_ms": three(combination.ping_millis(p50)?),
        "p99_ms": three(combination.ping_millis(p99)?),
        "added_p50_ms": combination.ping_added_millis(first, p50).map(three),
        "added_p99_ms": combination.ping_added_millis(first, p99).map(three),
        "lost": short(combination.ping_lost()?),
    }))
}

/// Draws goodput against loss or bit error rate, one picture for each congestion control.
pub(super) fn draw(directory: &Path, comparison: &Comparison<'_>) -> Result<()> {
    let mut controls: Vec<CongestionControl> = Vec::new();
    for case in &comparison.cases {
        if !controls.contains(&case.config.cc) {
            controls.push(case.config.cc);
        }
    }
    for cc in controls {
        if let Some(chart) = chart(comparison, cc) {
            goodput::write(&directory.join(format!("goodput-{}.svg", cc.name())), &chart)?;
        }
    }
    Ok(())
}

/// `None` where there is nothing to draw against: bursts and fading have no one probability.
fn chart(comparison: &Comparison<'_>, cc: CongestionControl) -> Option<Chart> {
    let of_cc = |combination: &&Combination| {
        comparison.cases[combination.case].config.cc == cc && !combination.runs.is_empty()
    };
    let probability =
        |combination: &Combination| match comparison.cases[combination.case].config.errors {
            ErrorModel::Loss(p) => Some(("loss", p)),
            ErrorModel::Ber(p) => Some(("ber", p)),
            _ => None,
        };
    let combinations: Vec<&Combination> = comparison.combinations.iter().filter(of_cc).collect();
    let (name, _) = probability(combinations.first()?)?;
    let series = comparison.agents.iter().enumerate().map(|(index, agent)| {
        let of_agent = combinations.iter().filter(|combination| combination.agent == index);
        let points = of_agent.filter_map(|combination| {
            let (_, x) = probability(combination)?;
            let (mean, sd) = (combination.mean_bps()? / 1e6, combination.sd_bps());
            let runs = combination.runs.iter().map(|(_, run)| run.goodput_bps / 1e6).collect();
            Some(Point { x, mean, sd: sd.map(|bps| bps / 1e6), runs })
        });
        let mut points: Vec<Point> = points.collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series { label: agent.name().to_owned(), points }
    });
    let mut bound: Vec<(f64, f64)> = combinations
        .iter()
        .filter_map(|combination| {
            Some((probability(combination)?.1, combination.bound_bps()? / 1e6))
        })
        .collect();
    bound.sort_by(|a, b| a.0.total_cmp(&b.0));
    bound.dedup_by(|a, b| a.0 == b.0);
    let config = &comparison.cases[combinations[0].case].config;
    let runs = text::counted(u64::from(comparison.args.repeat), "run");
    let noted = if comparison.args.repeat > 1 { ", bars: standard deviation" } else { "" };
    Some(Chart {
        title: "Goodput of kernel TCP over a lossy air hop".to_owned(),
        subtitle: format!("{} · {} · {runs}{noted}", text::transfer(config), text::hops(config)),
        scale: Scale::numbers(name, &bound.iter().map(|(x, _)| *x).collect::<Vec<f64>>()),
        may_be_logarithmic: false,
        is_near: false,
        unit: "goodput (Mb/s)".to_owned(),
        series: series.collect(),
        bounds: vec![bound],
        published: Vec::new(),
    })
}
