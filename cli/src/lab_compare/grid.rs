//! The table of a comparison: one row a combination, with the columns that its set-up has.

use super::combination::Combination;
use super::comparison::Comparison;
use crate::row::Times;
use crate::{table, text};
use airmend_live::lab::Delay;
use airmend_proto::link::ErrorModel;
use std::time::Duration;

/// The whole table.
pub(super) fn render(comparison: &Comparison<'_>) -> String {
    let columns = columns(comparison);
    let mut header = ["cc", "air", "agent"].map(str::to_owned).to_vec();
    header.extend(columns.iter().map(|column| column.header.clone()));
    let rows: Vec<Vec<String>> = comparison
        .combinations
        .iter()
        .map(|combination| {
            let config = &comparison.cases[combination.case].config;
            let once = |text: &str| match combination.agent {
                0 => text.to_owned(),
                _ => String::new(),
            };
            let agent = comparison.agents[combination.agent].name().to_owned();
            let mut row = vec![once(config.cc.name()), once(&air(&config.errors)), agent];
            row.extend(columns.iter().map(|column| (column.cell)(combination)));
            row
        })
        .collect();
    table::render(&header, &rows, 3)
}

/// One column behind the agent's name.
struct Column<'a> {
    header: String,
    cell: Box<dyn Fn(&Combination) -> String + 'a>,
}

fn column<'a>(header: impl Into<String>, cell: impl Fn(&Combination) -> String + 'a) -> Column<'a> {
    Column { header: header.into(), cell: Box::new(cell) }
}

fn columns<'a>(comparison: &'a Comparison<'_>) -> Vec<Column<'a>> {
    let config = &comparison.cases[0].config;
    let any = |has: fn(&Combination) -> bool| comparison.combinations.iter().any(has);
    let ratio = |combination: &Combination| combination.ratio(comparison.first(combination));
    let mut columns = vec![
        column("runs", |combination| combination.runs.len().to_string()),
        column("goodput (Mb/s)", goodput),
        column("median", |combination| {
            cell(combination.median(|run| run.goodput_bps / 1e6), text::significant)
        }),
        column("of bound", |combination| cell(combination.of_bound(), text::percent)),
    ];
    if any(|combination| combination.of_realised_bound().is_some()) {
        columns.push(column("of the run's bound", |combination| {
            cell(combination.of_realised_bound(), text::percent)
        }));
    }
    columns.push(column(format!("× {}", comparison.agents[0].name()), move |combination| {
        cell(ratio(combination), |ratio| format!("{ratio:.2}"))
    }));
    columns.push(column("timeouts", |combination| {
        cell(combination.mean(|run| run.sender.timeouts as f64), |mean| format!("{mean:.1}"))
    }));
    columns.push(column("recoveries", |combination| {
        let standing = combination.mean(|run| run.sender.standing_recoveries() as f64);
        cell(standing, |mean| format!("{mean:.1}"))
    }));
    columns.push(column("on the air", |combination| {
        cell(combination.mean(|run| run.wire_bytes_per_byte), |mean| format!("{mean:.3}"))
    }));
    if config.unmended_flows > 0 {
        for (index, name) in ["mended", "unmended"].into_iter().enumerate() {
            columns.push(column(name, move |combination| {
                let bps = combination.mended_and_unmended_bps(config.flows)[index];
                cell(bps.map(|bps| bps / 1e6), text::significant)
            }));
        }
    }
    if config.all_flows() > 1 {
        columns.push(column("fairness", |combination| {
            cell(combination.median(|run| run.fairness), |index| format!("{index:.3}"))
        }));
    }
    if config.sequential > 1 {
        columns.push(column("completion 50/90/99 % (ms)", |combination| {
            cell(combination.completions().as_ref(), completion)
        }));
    }
    if config.short.is_some() {
        columns.push(column("short flows", short_count));
        columns.push(column("completion 50/90/99 % (ms)", |combination| {
            let flows = combination.short_flows();
            let times = flows.and_then(|flows| Times::of(&flows.completion_seconds));
            cell(times.as_ref(), completion)
        }));
    }
    if config.handoff.is_some() {
        columns.push(column("handoff 50 %/max (ms)", |combination| {
            cell(combination.gaps(), |gaps| format!("{:.1} / {:.1}", gaps.p50, gaps.max))
        }));
    }
    if config.ping {
        columns.extend(ping(comparison));
    }
    if any(|combination| combination.incomplete() > 0) {
        columns.push(column("incomplete", |combination| combination.incomplete().to_string()));
    }
    columns
}

fn ping<'a>(comparison: &'a Comparison<'_>) -> [Column<'a>; 3] {
    let delay = move |name: &str, quantile: fn(&Delay) -> Duration| {
        column(name, move |combination| {
            let first = comparison.first(combination);
            let added = combination.ping_added_millis(first, quantile);
            let added = added.filter(|_| combination.agent > 0);
            let added = added.map_or_else(String::new, |millis| format!(" ({millis:+.1})"));
            cell(combination.ping_millis(quantile), |millis| format!("{millis:.1}{added}"))
        })
    };
    [
        delay("ping 50 % (ms)", |delay| delay.p50),
        delay("99 %", |delay| delay.p99),
        column("lost", |combination| cell(combination.ping_lost(), text::percent)),
    ]
}

/// The error model of the air, in a few characters.
fn air(errors: &ErrorModel) -> String {
    let text = text::errors(errors).replace("bit error rate", "BER");
    text.trim_end_matches(" each way").to_owned()
}

fn goodput(combination: &Combination) -> String {
    let mean = cell(combination.mean_bps(), |bps| text::significant(bps / 1e6));
    let decimals = mean.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    match combination.sd_bps() {
        Some(sd) => format!("{mean} ± {:.decimals$}", sd / 1e6),
        None => mean,
    }
}

fn completion(times: &Times) -> String {
    format!("{:.0} / {:.0} / {:.0}", times.p50, times.p90, times.p99)
}

/// Short flows that completed, and how many were overdue at the end.
fn short_count(combination: &Combination) -> String {
    cell(combination.short_flows(), |flows| match flows.overdue {
        0 => flows.completion_seconds.len().to_string(),
        overdue => format!("{} (+{overdue} overdue)", flows.completion_seconds.len()),
    })
}

fn cell<T>(value: Option<T>, words: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), words)
}
