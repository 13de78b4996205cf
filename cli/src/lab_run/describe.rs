//! One run in words.

use super::{doubts, limits};
use crate::text;
use airmend_live::lab::config::LabConfig;
use airmend_live::lab::outcome::{LinkReport, Outcome};
use airmend_proto::agents::AgentConfig;
use std::io::{self, Write};

/// Prints the set-up, what was measured, and how to do it again.
pub(super) fn describe(
    out: &mut impl Write,
    agent: &AgentConfig,
    config: &LabConfig,
    outcome: &Outcome,
) -> io::Result<()> {
    writeln!(
        out,
        "{} · {} · {} · {}\n",
        agent.name(),
        text::transfer(config),
        text::errors(&config.errors),
        text::hops(config)
    )?;
    let mut line = |name: &str, words: String| writeln!(out, "  {name:<11}{words}");
    line(
        "goodput",
        format!(
            "{}, {} of the bound ({})",
            text::rate(outcome.goodput_bps),
            text::percent(outcome.goodput_bps / outcome.bound_bps),
            text::rate(outcome.bound_bps)
        ),
    )?;
    if outcome.flow_goodput_bps.len() > 1 {
        line("flows", flows(&outcome.flow_goodput_bps))?;
    }
    let arrived = if outcome.completed { "every byte checked" } else { "NOT complete" };
    line(
        "transfer",
        format!(
            "{} in {:.2} s, {arrived}; {:.3} bytes on the air for each",
            text::bytes(outcome.bytes_received),
            outcome.seconds,
            outcome.wire_bytes_per_byte
        ),
    )?;
    let sender = outcome.sender;
    line(
        "sender",
        format!(
            "{}, {}, {}",
            text::counted(sender.retransmits, "retransmission"),
            text::counted(sender.timeouts, "timeout"),
            text::counted(sender.cwnd_reductions, "reduction") + " of the window"
        ),
    )?;
    line("agent", counters(outcome))?;
    line("limits", limits(config).to_string())?;
    for (name, report) in &outcome.links {
        line(&name.replace('_', " "), link(report))?;
    }
    let late = outcome.lateness_us;
    line(
        "lateness",
        format!(
            "median {}, 99 % within {}, at most {}",
            text::micros(late.p50),
            text::micros(late.p99),
            text::micros(late.max)
        ),
    )?;
    line("seed", config.seed.to_string())?;
    line("again", command_line(config.seed))?;
    for doubt in doubts(outcome) {
        writeln!(out, "\nDo not trust these figures: {doubt}.")?;
    }
    Ok(())
}

fn link(report: &LinkReport) -> String {
    format!(
        "{}, {} lost ({}), {} dropped by the full queue",
        text::counted(report.frames, "frame"),
        text::count(report.lost),
        text::percent(report.lost as f64 / report.frames.max(1) as f64),
        text::count(report.dropped)
    )
}

fn flows(goodputs: &[f64]) -> String {
    let least = goodputs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = goodputs.iter().copied().fold(0.0, f64::max);
    format!("{}: from {} to {}", goodputs.len(), text::rate(least), text::rate(most))
}

fn counters(outcome: &Outcome) -> String {
    if outcome.agent_counters.is_empty() {
        return "passed every packet untouched".to_owned();
    }
    let words = outcome.agent_counters.iter();
    let words =
        words.map(|(name, value)| format!("{} {}", text::count(*value), name.replace('_', " ")));
    wrapped(words, 76, "\n             ")
}

/// Joins words with commas; those beyond `width` columns begin a new line.
fn wrapped(words: impl Iterator<Item = String>, width: usize, newline: &str) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in words {
        let length = word.chars().count();
        match column {
            0 => {}
            _ if column + 2 + length > width => {
                text.push(',');
                text.push_str(newline);
                column = 0;
            }
            _ => text.push_str(", "),
        }
        text.push_str(&word);
        column += length + 2;
    }
    text
}

/// The command as it was given, with the seed.
fn command_line(seed: u64) -> String {
    let mut words = vec!["airmend".to_owned()];
    words.extend(std::env::args().skip(1).map(|word| quoted(&word)));
    if !words.iter().any(|word| word == "--seed" || word.starts_with("--seed=")) {
        words.push(format!("--seed {seed}"));
    }
    words.join(" ")
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted("--loss=0.05"), "--loss=0.05");
        assert_eq!(quoted("my file's"), r"'my file'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn long_lists_are_wrapped() {
        let words = ["1 abc", "2 de", "3 fgh", "4 i"].map(str::to_owned);
        assert_eq!(wrapped(words.into_iter(), 14, "\n "), "1 abc, 2 de,\n 3 fgh, 4 i");
    }
}
