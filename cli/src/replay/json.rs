//! A replay as JSON lines: each event, each flow, and all together.

use super::replayed::Replayed;
use crate::row::rounded;
use airmend_sim::replay::{Check, FlowReport, Moment};
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

#[derive(Serialize)]
struct EventLine {
    seconds: f64,
    flow: Option<String>,
    event: &'static str,
    text: String,
}

#[derive(Serialize)]
struct FlowLine {
    flow: String,
    segments: u64,
    payload_bytes: u64,
    #[serde(flatten)]
    losses: Losses,
    wired_rtt_ms: Option<f64>,
}

#[derive(Default, Serialize)]
struct Losses {
    lost: u64,
    repaired_locally: u64,
    repaired_by_sender: u64,
    needless: u64,
    local_retransmits: u64,
    suppressed_dupacks: u64,
    stalls: u64,
    stalls_unknown: u64,
    stall_saved_ms: f64,
}

#[derive(Serialize)]
struct SummaryLine<'a> {
    summary: bool,
    agent: &'static str,
    world: &'static str,
    capture: String,
    sides: String,
    packets: u64,
    oversized: u64,
    seconds: f64,
    flows: usize,
    #[serde(flatten)]
    losses: Losses,
    agent_counters: &'a BTreeMap<&'static str, u64>,
    check: Option<CheckObject>,
}

#[derive(Serialize)]
struct CheckObject {
    outputs: u64,
    same: u64,
    timers_late_ms: f64,
    difference: Option<String>,
}

/// Prints the lines.
pub(super) fn write(out: &mut impl Write, replayed: &Replayed<'_>) -> Result<()> {
    let report = replayed.report;
    for moment in &report.timeline {
        line(out, &EventLine::of(moment))?;
    }
    let mut total = Losses::default();
    for flow in &report.flows {
        total.add(flow);
        line(out, &FlowLine::of(flow))?;
    }
    let summary = SummaryLine {
        summary: true,
        agent: replayed.agent.name(),
        world: "replay",
        capture: replayed.args.capture.display().to_string(),
        sides: replayed.sides.to_string(),
        packets: report.packets,
        oversized: report.oversized,
        seconds: report.time.as_secs_f64(),
        flows: report.flows.len(),
        losses: total,
        agent_counters: &report.counters,
        check: replayed.check.map(CheckObject::of),
    };
    line(out, &summary)
}

fn line(out: &mut impl Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    Ok(writeln!(out)?)
}

impl EventLine {
    fn of(moment: &Moment) -> Self {
        Self {
            seconds: moment.at.as_secs_f64(),
            flow: moment.flow.map(|flow| flow.to_string()),
            event: moment.event.counter(),
            text: moment.event.to_string(),
        }
    }
}

impl FlowLine {
    fn of(flow: &FlowReport) -> Self {
        let mut losses = Losses::default();
        losses.add(flow);
        Self {
            flow: flow.key.to_string(),
            segments: flow.segments,
            payload_bytes: flow.payload_bytes,
            losses,
            wired_rtt_ms: flow.wired_round_trip.map(millis),
        }
    }
}

impl Losses {
    fn add(&mut self, flow: &FlowReport) {
        self.lost += flow.lost();
        self.repaired_locally += flow.repaired_locally;
        self.repaired_by_sender += flow.repaired_by_sender;
        self.needless += flow.needless;
        self.local_retransmits += flow.local_retransmits;
        self.suppressed_dupacks += flow.suppressed_dupacks;
        self.stalls += flow.stalls;
        self.stalls_unknown += flow.stalls_unknown;
        self.stall_saved_ms = rounded(self.stall_saved_ms + millis(flow.stall_saved), 6);
    }
}

impl CheckObject {
    fn of(check: &Check) -> Self {
        Self {
            outputs: check.outputs,
            same: check.same,
            timers_late_ms: millis(check.timers_late),
            difference: check.difference.as_ref().map(ToString::to_string),
        }
    }
}

fn millis(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64() * 1e3, 6)
}
