//! The gateway's last words: what it did.

use crate::observation;
use crate::row::{self, Line, line};
use crate::text::counted;
use airmend_live::gateway::telemetry::Status;
use serde_json::json;
use std::io::{self, Write};

/// One JSON object in one line, or a few lines for people.
pub(super) fn print(out: &mut impl Write, status: &Status, is_json: bool) -> io::Result<()> {
    if is_json {
        let more = json!({
            "agent_counters": agent_counters(status),
            "heartbeat_timeouts": status.heartbeat_timeouts,
        });
        return row::write(out, &line([json!(status), more]));
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
    let unanswered = match status.flows_unanswered {
        0 => String::new(),
        flows => format!("; no acknowledgment of {} passes here", counted(flows, "flow")),
    };
    // A flow is one direction of a connection, once more when it goes on after an idle time.
    let followed = status.counters.flows_opened.saturating_sub(status.flows_unanswered);
    writeln!(
        out,
        "{} followed in {:.0} s: {} repairs, {} duplicate ACKs suppressed, \
         {} loss signals forwarded; air loss {loss}, {} heartbeat timeouts{unanswered}",
        counted(followed, "flow"),
        status.uptime_seconds,
        total(&status.repairs),
        status.counters.suppressed_dupacks,
        status.counters.forwarded_loss_signals,
        status.heartbeat_timeouts,
    )?;
    Ok(())
}

/// The counters under the names that all runs of airmend use; zeros are left out.
fn agent_counters(status: &Status) -> Line {
    let repairs = json!({"local_retransmits": status.repairs.values().sum::<u64>()});
    let mut counters = line([json!(status.counters), json!(status.decisions), repairs]);
    counters.retain(|_, count| *count != json!(0));
    counters
}
