//! A replay as JSON lines: each event, each flow, and all together.

use super::replayed::Replayed;
use crate::row::{line, millis, rounded, write as write_line};
use airmend_sim::replay::{Check, Encapsulation, FlowReport, LeftOut, Moment, Vantage};
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::slice;

/// Prints the lines.
pub(super) fn write(out: &mut impl Write, replayed: &Replayed<'_>) -> Result<()> {
    let report = replayed.report;
    for moment in &report.timeline {
        write_line(out, &event(moment))?;
    }
    for flow in &report.flows {
        let own = json!({
            "flow": flow.key.to_string(),
            "segments": flow.segments,
            "payload_bytes": flow.payload_bytes,
            "captured": captured(replayed, flow),
        });
        let round_trips = json!({
            "air_rtt_ms": flow.air_round_trip.map(millis),
            "wired_rtt_ms": flow.wired_round_trip.map(millis),
        });
        write_line(out, &line([own, losses(slice::from_ref(flow)), round_trips]))?;
    }
    let run = json!({
        "summary": true,
        "agent": replayed.agent.name(),
        "world": "replay",
        "capture": replayed.args.capture.display().to_string(),
        "sides": replayed.sides.to_string(),
        "packets": report.packets,
        "left_out": left_out(replayed.left_out),
        "within": within(replayed.within),
        "is_cut": replayed.capture.is_cut,
        "damage": replayed.capture.damage,
        "oversized": report.oversized,
        "open_checksums": replayed.open_checksums,
        "seconds": report.time.as_secs_f64(),
        "flows": report.flows.len(),
        "one_way_flows": report.flows.iter().filter(|flow| flow.is_one_way()).count(),
    });
    let agent = json!({"agent_counters": report.counters, "check": replayed.check.map(check)});
    write_line(out, &line([run, losses(&report.flows), agent]))?;
    Ok(())
}

fn event(moment: &Moment) -> Value {
    json!({
        "seconds": moment.at.as_secs_f64(),
        "flow": moment.flow.map(|flow| flow.to_string()),
        "event": moment.event.counter(),
        "text": moment.event.to_string(),
    })
}

/// The number of packets by reason.
fn left_out(left_out: &LeftOut) -> Value {
    left_out.iter().map(|(reason, packets)| (reason.name(), Value::from(packets))).collect()
}

/// The number of packets by what they were in.
fn within(within: &BTreeMap<Encapsulation, u64>) -> Value {
    within.iter().map(|(outer, packets)| (outer.name(), Value::from(*packets))).collect()
}

/// A recording of ours is made between the hosts, however near they are.
fn captured(replayed: &Replayed<'_>, flow: &FlowReport) -> &'static str {
    match flow.vantage() {
        Vantage::OneWay => "one_way",
        _ if replayed.capture.agent.is_some() => "between",
        Vantage::Between => "between",
        Vantage::MobileHost => "mobile_host",
        Vantage::FixedHost => "fixed_host",
    }
}

/// Of all these flows together; what is lost is that of flows of which both directions were
/// captured, and unknown if there is none.
fn losses(flows: &[FlowReport]) -> Value {
    let sum = |count: fn(&FlowReport) -> u64| flows.iter().map(count).sum::<u64>();
    let saved = flows.iter().map(|flow| millis(flow.stall_saved)).sum();
    json!({
        "lost": flows.iter().any(|flow| !flow.is_one_way())
            .then(|| sum(|flow| if flow.is_one_way() { 0 } else { flow.lost() })),
        "repaired_locally": sum(|flow| flow.repaired_locally),
        "repaired_by_sender": sum(|flow| flow.repaired_by_sender),
        "unacknowledged": sum(|flow| flow.unacknowledged),
        "sender_retransmits": sum(|flow| flow.sender_retransmits),
        "needless": sum(|flow| flow.needless),
        "local_retransmits": sum(|flow| flow.local_retransmits),
        "suppressed_dupacks": sum(|flow| flow.suppressed_dupacks),
        "stalls": sum(|flow| flow.stalls),
        "stalls_unknown": sum(|flow| flow.stalls_unknown),
        "stall_saved_ms": rounded(saved, 6),
    })
}

fn check(check: &Check) -> Value {
    json!({
        "outputs": check.outputs,
        "same": check.same,
        "timers_late_ms": millis(check.timers_late),
        "difference": check.difference.as_ref().map(ToString::to_string),
    })
}
