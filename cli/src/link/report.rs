//! The figures of a link, for people and for programs.

use crate::text;
use airmend_live::tunnel::TunnelReport;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::panic::PanicHookInfo;

/// Prints the figures: as one JSON object on one line, or one figure a line.
pub(super) fn print(out: &mut impl Write, report: &TunnelReport, as_json: bool) -> io::Result<()> {
    if as_json {
        serde_json::to_writer(&mut *out, &object(report))?;
        return writeln!(out);
    }
    let TunnelReport { device, mtu, peer, counters, agent_counters } = report;
    let peer = peer.map_or_else(|| "none yet".to_owned(), |peer| peer.to_string());
    writeln!(out, "{device}: MTU {mtu}, peer {peer}")?;
    let counters = counters.entries();
    let all = counters.iter().map(|(name, value)| (*name, *value));
    for (name, value) in all.chain(agent_counters.iter().map(|(name, value)| (*name, *value))) {
        writeln!(out, "  {:<24} {:>16}", name.replace('_', " "), text::count(value))?;
    }
    out.flush()
}

/// A panic in one sentence.
pub(super) fn defect(defect: &PanicHookInfo<'_>) -> String {
    let what = defect.payload_as_str().unwrap_or("no reason given").replace('\n', " ");
    let at = defect.location().map_or_else(String::new, |at| format!(" at {at}"));
    format!(
        "a defect ended the link ({what}{at}): start it again, and please report this; the peer \
         waits, and connections inside go on"
    )
}

fn object(report: &TunnelReport) -> Value {
    let counters = report.counters.entries();
    let counters: Map<String, Value> =
        counters.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    json!({
        "interface": report.device,
        "mtu": report.mtu,
        "peer": report.peer.map(|peer| peer.to_string()),
        "counters": counters,
        "agent_counters": report.agent_counters,
    })
}
