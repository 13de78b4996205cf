//! The gateway's last words: what it did.

use crate::observation;
use crate::text::counted;
use airmend_live::gateway::telemetry::Status;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::io::Write;

/// One JSON object in one line, or a few lines for people.
pub(super) fn print(out: &mut impl Write, status: &Status, is_json: bool) -> Result<()> {
    if is_json {
        let mut object = serde_json::to_value(status)?;
        if let Value::Object(object) = &mut object {
            object.insert("agent_counters".to_owned(), agent_counters(status)?.into());
            object.insert("heartbeat_timeouts".to_owned(), json!(status.heartbeat_timeouts));
        }
        writeln!(out, "{object}")?;
        return Ok(());
    }
    if let Some(observed) = &status.observation {
        let seen = counted(observed.flows_seen, "flow");
        writeln!(out, "{seen} observed in {:.0} s", status.uptime_seconds)?;
        for (name, words) in observation::lines(observed) {
            writeln!(out, "  {name:<9} {words}")?;
        }
        return Ok(());
    }
    let total = |map: &std::collections::BTreeMap<String, u64>| map.values().sum::<u64>();
    let loss =
        status.air_loss().map_or("unknown".to_owned(), |loss| format!("{:.2} %", 100.0 * loss));
    writeln!(
        out,
        "{} flows mended in {:.0} s: {} repairs, {} duplicate ACKs kept back, {} holes revealed; \
         air loss {loss}, {} heartbeat timeouts",
        status.counters.flows_opened,
        status.uptime_seconds,
        total(&status.repairs),
        status.counters.suppressed_dupacks,
        status.counters.reveals,
        status.heartbeat_timeouts,
    )?;
    Ok(())
}

/// Under the names that every airmend run uses.
fn agent_counters(status: &Status) -> Result<Map<String, Value>> {
    let mut counters = Map::new();
    if let Value::Object(all) = serde_json::to_value(&status.counters)? {
        counters.extend(all.into_iter().filter(|(_, count)| *count != json!(0)));
    }
    let repairs: u64 = status.repairs.values().sum();
    if repairs > 0 {
        counters.insert("local_retransmits".to_owned(), json!(repairs));
    }
    Ok(counters)
}
