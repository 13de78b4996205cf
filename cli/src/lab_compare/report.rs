//! What a comparison says: table, summary lines, pictures.

use super::{Combination, Comparison};
use crate::plot::goodput::{self, Chart, Point, Series};
use crate::plot::scale::Scale;
use crate::row::{MoreSettings, Setting, Summary, rounded};
use crate::{table, text};
use airmend_live::lab::config::CongestionControl;
use airmend_proto::link::ErrorModel;
use anyhow::Result;
use std::io::{self, Write};
use std::path::Path;

/// Prints the set-up, the table, and what to know about it.
pub(super) fn print(out: &mut impl Write, comparison: &Comparison<'_>) -> io::Result<()> {
    let config = &comparison.cases[0].config;
    let transfer = text::transfer(config);
    let transfer = transfer.strip_prefix(config.cc.name()).unwrap_or(&transfer);
    let transfer = transfer.trim_start_matches([',', ' ']);
    writeln!(out, "{transfer} · {}\n", text::hops(config))?;
    writeln!(out, "{}\n", grid(comparison))?;
    let (done, first) = (comparison.done, comparison.agents[0].name());
    writeln!(
        out,
        "Goodput is mean ± standard deviation of {}; the last columns are the median of the \
         ratios\nto {first} on the same seed and the sender's timeouts in a run.",
        if comparison.args.repeat == 1 { "one run".into() } else { "the runs".to_owned() },
    )?;
    if done < comparison.total() {
        writeln!(out, "Not all was run: {done} of {} runs are done.", comparison.total())?;
    }
    if let Some(worst) = comparison.doubtful.first() {
        let runs = comparison.doubtful.len();
        writeln!(out, "Do not trust {runs} of {done} runs; the first of them is\n{worst}.")?;
    }
    Ok(())
}

/// The JSON line that ends a combination.
pub(super) fn summary(comparison: &Comparison<'_>, combination: &Combination) -> Summary {
    let config = &comparison.cases[combination.case].config;
    let short = |value: Option<f64>| value.map(|value| rounded(value, 4));
    Summary {
        summary: true,
        setting: Setting::new(&comparison.agents[combination.agent], config),
        runs: combination.runs.len(),
        completed: combination.runs.len() - combination.incomplete(),
        goodput_mean_bps: combination.mean_bps(),
        goodput_sd_bps: combination.sd_bps(),
        bound_bps: combination.bound_bps(),
        of_bound: short(combination.of_bound()),
        ratio_median: short(combination.ratio(first(comparison, combination))),
        timeouts_mean: short(combination.mean_timeouts()),
        more: MoreSettings::new(config, &comparison.args.setup.settings),
    }
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

fn grid(comparison: &Comparison<'_>) -> String {
    let ratio = format!("× {}", comparison.agents[0].name());
    let any_incomplete = comparison.combinations.iter().any(|c| c.incomplete() > 0);
    let mut header: Vec<String> =
        ["cc", "air", "agent", "runs", "goodput (Mb/s)", "of bound", &ratio, "timeouts"]
            .map(str::to_owned)
            .to_vec();
    if any_incomplete {
        header.push("incomplete".to_owned());
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for combination in &comparison.combinations {
        let config = &comparison.cases[combination.case].config;
        let is_first = combination.agent == 0;
        let once = |text: String| if is_first { text } else { String::new() };
        let mut row = vec![
            once(config.cc.name().to_owned()),
            once(air(&config.errors)),
            comparison.agents[combination.agent].name().to_owned(),
            combination.runs.len().to_string(),
            goodput_cell(combination),
            cell(combination.of_bound(), text::percent),
            cell(combination.ratio(first(comparison, combination)), |ratio| format!("{ratio:.2}")),
            cell(combination.mean_timeouts(), |mean| format!("{mean:.1}")),
        ];
        if any_incomplete {
            row.push(combination.incomplete().to_string());
        }
        rows.push(row);
    }
    table::render(&header, &rows, 3)
}

/// What the air does, as short as a column needs it.
fn air(errors: &ErrorModel) -> String {
    let text = text::errors(errors).replace("bit error rate", "BER");
    text.trim_end_matches(" each way").to_owned()
}

fn goodput_cell(combination: &Combination) -> String {
    let mean = cell(combination.mean_bps(), |bps| text::significant(bps / 1e6));
    let decimals = mean.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    match combination.sd_bps() {
        Some(sd) => format!("{mean} ± {:.decimals$}", sd / 1e6),
        None => mean,
    }
}

fn cell(value: Option<f64>, words: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), words)
}

/// The first agent in the same case.
fn first<'a>(comparison: &'a Comparison<'_>, combination: &Combination) -> &'a Combination {
    &comparison.combinations[combination.case * comparison.agents.len()]
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
            Some(Point { x, mean, sd: sd.map(|bps| bps / 1e6) })
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
        unit: "goodput (Mb/s)".to_owned(),
        series: series.collect(),
        bounds: vec![bound],
        published: Vec::new(),
    })
}
