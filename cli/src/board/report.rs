//! The tables of a board.

use super::cells::Cells;
use super::compare::{Change, Comparison};
use super::figures::{Figure, Figures};
use crate::{stats, table, text};
use std::collections::BTreeMap;

/// So many of the best and of the worst changes are shown.
const SHOWN: usize = 10;
/// An agent harms a cell in which it has less than this share of what plain has.
const HARM: f64 = 0.97;

/// The families with the figures of each agent, and the score.
pub(crate) fn families(families: &[Cells], lines: &[Figures]) -> String {
    let header = [
        "family", "agent", "weight", "cells", "missed", "target", "median", "tenth", "worst",
        "bytes", "ping", "harmed", "of plain", "beside",
    ]
    .map(str::to_owned);
    let mut rows = Vec::new();
    let mut scores: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
    for cells in families {
        for agent in &cells.agents {
            let is_its = |line: &&Figures| line.family == cells.name && line.agent == agent.label;
            let its: Vec<&Figures> = lines.iter().filter(is_its).collect();
            let each = |figure: Figure| -> Vec<f64> {
                its.iter().filter_map(|line| figure.mean(line)).collect()
            };
            let shares = each(Figure::Share);
            let Some(mean) = stats::mean(&capped(&shares)) else { continue };
            let score = scores.entry(&agent.label).or_default();
            score[0] += cells.family.weight * mean;
            score[1] += cells.family.weight;
            let target = cells.family.target;
            let missed = shares.iter().filter(|share| **share < target).count();
            let of_plain = of_plain(&its, lines);
            let harmed = of_plain.iter().filter(|share| **share < HARM).count();
            rows.push(vec![
                cells.name.clone(),
                agent.label.clone(),
                format!("{}", cells.family.weight),
                its.len().to_string(),
                missed.to_string(),
                format!("{target:.2}"),
                number(stats::median(&shares)),
                number(stats::quantile(&shares, 0.1)),
                number(stats::quantile(&shares, 0.0)),
                number(stats::median(&each(Figure::Bytes))),
                number(stats::median(&each(Figure::Ping))),
                if of_plain.is_empty() { "–".to_owned() } else { harmed.to_string() },
                number(stats::quantile(&of_plain, 0.0)),
                number(stats::quantile(&each(Figure::Beside), 0.0)),
            ]);
        }
    }
    let scores: Vec<String> =
        scores.iter().map(|(agent, [sum, of])| format!("{agent} {:.4}", sum / of)).collect();
    let grid = table::render(&header, &rows, 2);
    format!("{grid}\n\nscore (weighted mean of shares, 1 at most): {}\n", scores.join(", "))
}

fn number(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.3}"))
}

/// No cell makes good for another one.
fn capped(shares: &[f64]) -> Vec<f64> {
    shares.iter().map(|share| share.min(1.0)).collect()
}

/// The share of plain's goodput in each cell; nothing for plain itself.
fn of_plain(its: &[&Figures], lines: &[Figures]) -> Vec<f64> {
    let plain: BTreeMap<(&str, &str), f64> = lines
        .iter()
        .filter(|line| line.agent == "plain")
        .filter_map(|line| Some(((line.family.as_str(), line.cell.as_str()), share(line)?)))
        .collect();
    its.iter()
        .filter(|line| line.agent != "plain")
        .filter_map(|line| {
            let plain = plain.get(&(line.family.as_str(), line.cell.as_str()))?;
            (*plain > 0.0).then_some(share(line)? / plain)
        })
        .collect()
}

fn share(line: &Figures) -> Option<f64> {
    Figure::Share.mean(line)
}

/// Each cell with its figures.
pub(crate) fn cells(lines: &[Figures]) -> String {
    let mut header = vec!["cell".to_owned(), "agent".to_owned()];
    header.extend(Figure::ALL.map(|figure| figure.name().to_owned()));
    let row = |line: &Figures| {
        let mut row = vec![format!("{}: {}", line.family, line.cell), line.agent.clone()];
        row.extend(Figure::ALL.map(|figure| number(figure.mean(line))));
        row
    };
    let rows: Vec<Vec<String>> = lines.iter().map(row).collect();
    format!("{}\n", table::render(&header, &rows, 2))
}

/// What moved against another run: by family, the ten best and the ten worst.
pub(crate) fn comparison(against: &str, comparison: &Comparison) -> String {
    let Comparison { changes, compared, same } = comparison;
    let cells = text::counted(compared.values().sum::<usize>() as u64, "cell");
    let mut words = format!("against {against}, {cells} compared: ");
    words += &format!("{same} to the digit, ");
    if changes.is_empty() {
        return words + "none moved by more than its noise\n";
    }
    let worse: Vec<&Change> = changes.iter().rev().filter(|change| change.gain() < 0.0).collect();
    let better: Vec<&Change> = changes.iter().filter(|change| change.gain() > 0.0).collect();
    words += &format!("{} better, {} worse\n", better.len(), worse.len());
    for (title, changes) in [("better", better), ("worse", worse)] {
        if changes.is_empty() {
            continue;
        }
        words += &format!("\n{title} by family: {}\n", by_family(&changes, compared));
        let header = [title, "agent", "figure", "before", "now", "by", "noise"].map(str::to_owned);
        let row = |change: &&Change| {
            vec![
                format!("{}: {}", change.family, change.cell),
                change.agent.clone(),
                change.figure.name().to_owned(),
                format!("{:.3}", change.before),
                format!("{:.3}", change.now),
                format!("{:+.1} %", (change.now / change.before - 1.0) * 100.0),
                text::percent(change.noise),
            ]
        };
        let rows: Vec<Vec<String>> = changes.iter().take(SHOWN).map(row).collect();
        words += &format!("{}\n", table::render(&header, &rows, 3));
    }
    words
}

/// `queue-behind share 5 of 8, objects ping 1 of 4`: in how many of the compared cells each
/// figure moved.
fn by_family(changes: &[&Change], compared: &BTreeMap<String, usize>) -> String {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for change in changes {
        *counts.entry((&change.family, change.figure.name())).or_default() += 1;
    }
    let words = counts.iter().map(|((family, figure), count)| {
        let of = compared.get(*family).copied().unwrap_or(0);
        format!("{family} {figure} {count} of {of}")
    });
    words.collect::<Vec<_>>().join(", ")
}
