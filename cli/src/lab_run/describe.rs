//! One run in words.

use super::transfer::{limits, warnings};
use crate::row::Times;
use crate::row::lab::gaps;
use crate::text;
use airmend_live::lab::config::LabConfig;
use airmend_live::lab::outcome::{
    Handoffs, Lateness, LinkReport, Outcome, Ping, SenderCounters, ShortFlows,
};
use airmend_proto::agents::AgentConfig;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

/// Prints the set-up, the measurements, and the command that repeats the run.
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
    for (name, words) in further(config, outcome) {
        line(name, words)?;
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
    line("sender", self::sender(outcome.sender))?;
    line("", recovery(outcome))?;
    line("agent", counters(&outcome.agent_counters))?;
    if agent.is_link() {
        line("at mobile", counters(&outcome.mobile_counters))?;
    }
    line("limits", limits(config).to_string())?;
    for (name, report) in &outcome.links {
        line(&name.replace('_', " "), link(report))?;
    }
    line("lateness", lateness(outcome.lateness_us))?;
    line("seed", config.seed.to_string())?;
    line("again", command_line(config.seed))?;
    for warning in warnings(outcome) {
        writeln!(out, "\nDo not trust these figures: {warning}.")?;
    }
    Ok(())
}

/// What a sending TCP went through.
pub(crate) fn sender(sender: SenderCounters) -> String {
    format!(
        "{}, {}, {}",
        text::counted(sender.retransmits, "retransmission"),
        text::counted(sender.timeouts, "timeout"),
        text::counted(sender.cwnd_reductions(), "reduction") + " of the window"
    )
}

pub(crate) fn lateness(late: Lateness) -> String {
    format!(
        "median {}, 99 % within {}, at most {}",
        text::micros(late.p50),
        text::micros(late.p99),
        text::micros(late.max)
    )
}

pub(crate) fn link(report: &LinkReport) -> String {
    format!(
        "{}, {} lost ({}), {} dropped by the full queue",
        text::counted(report.frames, "frame"),
        text::count(report.lost),
        text::percent(report.lost as f64 / report.frames.max(1) as f64),
        text::count(report.dropped)
    )
}

/// The results that only some set-ups have.
fn further(config: &LabConfig, outcome: &Outcome) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(bound) = outcome.realised_bound_bps {
        let share = text::percent(outcome.goodput_bps / bound);
        lines.push((
            "",
            format!("{share} of {}, the bound with the air of this run", text::rate(bound)),
        ));
    }
    if config.warmup > Duration::ZERO {
        let overall = text::rate(outcome.overall_goodput_bps);
        lines.push(("", format!("{overall} with the first {}", text::duration(config.warmup))));
    }
    let (mended, unmended) =
        outcome.flow_goodput_bps.split_at_checked(config.flows as usize).unwrap_or_default();
    if mended.len() + unmended.len() > 1 {
        let fairness = format!("fairness {:.3} (Jain's index)", outcome.fairness);
        lines.push(("flows", format!("{}; {fairness}", flows(mended))));
    }
    if !unmended.is_empty() {
        lines.push(("unmended", flows(unmended)));
    }
    if config.sequential > 1
        && let Some(times) = Times::of(&outcome.completion_seconds)
    {
        lines.push(("completion", distribution(times.p50, Some(times.p90), times.p99, times.max)));
    }
    if let Some(short) = &outcome.short {
        lines.push(("short", short_flows(short)));
    }
    if let Some(handoffs) = &outcome.handoffs {
        lines.push(("handoffs", moves(handoffs)));
    }
    if let Some(Ping { sent, received, round_trip }) = outcome.ping {
        let [p50, p99, max] =
            [round_trip.p50, round_trip.p99, round_trip.max].map(|time| time.as_secs_f64() * 1e3);
        let lost = text::count(sent.saturating_sub(received));
        let words = distribution(p50, None, p99, max);
        lines.push(("ping", format!("{words}; {lost} of {} lost", text::count(sent))));
    }
    lines
}

/// How often the mobile host moved, and how long it then got nothing new.
fn moves(handoffs: &Handoffs) -> String {
    let gaps = gaps([handoffs]).map_or_else(String::new, |gaps| {
        let (p50, max) = (gaps.p50, gaps.max);
        format!("; to new data in order median {p50:.1} ms, at most {max:.1} ms")
    });
    let intruded = handoffs.intruded.map_or_else(String::new, |count| {
        format!("; {} repeated by an intruder", text::counted(count, "message"))
    });
    format!("{}{gaps}{intruded}", text::counted(handoffs.moves, "move"))
}

/// Their completion times, and how many the end of the run found overdue.
fn short_flows(short: &ShortFlows) -> String {
    let count = text::counted(short.completion_seconds.len() as u64, "flow");
    let times = Times::of(&short.completion_seconds).map_or_else(String::new, |times| {
        format!(": {}", distribution(times.p50, Some(times.p90), times.p99, times.max))
    });
    let overdue = match short.overdue {
        0 => String::new(),
        overdue => format!("; {} overdue at the end", text::count(overdue)),
    };
    format!("{count}{times}{overdue}")
}

/// A distribution of times in milliseconds.
fn distribution(p50: f64, p90: Option<f64>, p99: f64, max: f64) -> String {
    let p90 = p90.map_or_else(String::new, |p90| format!("90 % within {p90:.1} ms, "));
    format!("median {p50:.1} ms, {p90}99 % within {p99:.1} ms, at most {max:.1} ms")
}

fn flows(goodputs: &[f64]) -> String {
    let least = goodputs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = goodputs.iter().copied().fold(0.0, f64::max);
    match goodputs {
        [one] => text::rate(*one),
        _ => format!("{}: from {} to {}", goodputs.len(), text::rate(least), text::rate(most)),
    }
}

/// The recoveries and timeouts of the sender's TCP.
fn recovery(outcome: &Outcome) -> String {
    let sender = outcome.sender;
    let recoveries = if sender.recoveries == 1 { "recovery" } else { "recoveries" };
    let mut words = vec![
        format!(
            "{} {recoveries}, {} undone",
            text::count(sender.recoveries),
            text::count(sender.undone_recoveries)
        ),
        format!(
            "{}, {} found a loss",
            text::counted(sender.loss_probes, "loss probe"),
            text::count(sender.loss_probe_recoveries)
        ),
    ];
    let (undone, spurious) = (sender.undone_timeouts, sender.spurious_timeouts);
    if undone + spurious > 0 {
        words.push(format!("{} undone", text::counted(undone.max(spurious), "timeout")));
    }
    if sender.reorderings > 0 {
        words.push(format!(
            "{} (of {})",
            text::counted(sender.reorderings, "reordering"),
            outcome.reordering
        ));
    }
    words.join("; ")
}

pub(crate) fn counters(counters: &BTreeMap<String, u64>) -> String {
    if counters.is_empty() {
        return "passed every packet untouched".to_owned();
    }
    let words = counters
        .iter()
        .map(|(name, value)| format!("{} {}", text::count(*value), name.replace('_', " ")));
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
