//! A replay in words and tables.

use super::replayed::Replayed;
use crate::{table, text};
use airmend_sim::replay::{Check, Encapsulation, FlowReport, LeftOut, Report, Vantage};
use std::cmp::Reverse;
use std::io::{self, Write};
use std::time::Duration;

/// Flows in the table at most.
const MOST_FLOWS: usize = 20;

/// Prints what was replayed, the flows, the agent's counters, and the check.
pub(super) fn write(out: &mut impl Write, replayed: &Replayed<'_>) -> io::Result<()> {
    let Replayed { args, capture, agent, sides, report, check, .. } = *replayed;
    let packets = text::counted(report.packets, "packet");
    let time = text::duration(report.time);
    let name = args.capture.display();
    writeln!(out, "{} · {name}, {packets} in {time} · {sides}\n", agent.name())?;
    if report.flows.is_empty() {
        writeln!(out, "No data to a mobile host is in the capture: there is nothing to mend.")?;
    } else {
        writeln!(out, "{}\n", flows(report))?;
        let seen: Vec<&FlowReport> =
            report.flows.iter().filter(|flow| !flow.is_one_way()).collect();
        if !seen.is_empty() {
            writeln!(out, "{}", losses(&seen))?;
            writeln!(out, "{}", stalls(&seen))?;
        }
        // A recording of ours is made between the hosts, however near they are.
        if let Some(doubts) = doubts(report, capture.agent.is_some()) {
            writeln!(out, "{doubts}")?;
        }
    }
    if !report.counters.is_empty() {
        let row = |(name, value): (&&str, &u64)| vec![name.replace('_', " "), text::count(*value)];
        let rows: Vec<_> = report.counters.iter().map(row).collect();
        let header = ["the agent's events", "count"].map(str::to_owned);
        writeln!(out, "\n{}", table::render(&header, &rows, 1))?;
    }
    if let Some(check) = check {
        writeln!(out, "\n{}", checked(check))?;
    }
    reservations(out, replayed)
}

/// Prints what the capture does not show, or shows in another way than a gateway would see it.
fn reservations(out: &mut impl Write, replayed: &Replayed<'_>) -> io::Result<()> {
    let Replayed { capture, left_out, within, report, .. } = *replayed;
    if report.oversized > 0 {
        let oversized = text::counted(report.oversized, "packet");
        let is = if report.oversized == 1 { "is" } else { "are" };
        writeln!(
            out,
            "\nDo not trust these figures: {oversized} {is} longer than any frame, and each counts \
             as one segment.\nCapture with segmentation offload off (ethtool -K IFACE tso off gso \
             off gro off)."
        )?;
    }
    if !left_out.is_empty() {
        writeln!(out, "\nLeft out: {}.", reasons(left_out))?;
    }
    if let Some(bytes) = left_out.snap_length() {
        writeln!(
            out,
            "\nHeaders are missing, first those of ACKs with SACK blocks, which show losses. \
             Capture at least {bytes} bytes\nof each packet (tcpdump -s {bytes})."
        )?;
    }
    if !within.is_empty() {
        let row = |(outer, packets): (&Encapsulation, &u64)| {
            format!("{} in {outer}", text::counted(*packets, "packet"))
        };
        let rows: Vec<String> = within.iter().map(row).collect();
        let rows = rows.join(", ");
        writeln!(
            out,
            "\nRead as what they carry: {rows}. A gateway mends them only outside of it."
        )?;
    }
    if replayed.open_checksums > 0 {
        let open = text::counted(replayed.open_checksums, "segment");
        writeln!(
            out,
            "\nTaken as right: the checksums of {open}, captured where they are left to the \
             network card."
        )?;
    }
    if capture.is_cut {
        writeln!(
            out,
            "\nThe file ends in the middle of a packet; what is before it was replayed."
        )?;
    }
    if let Some(why) = &capture.damage {
        writeln!(out, "\nThe file is damaged: {why}. What is before that was replayed.")?;
    }
    Ok(())
}

/// How many packets were left out for each reason.
fn reasons(left_out: &LeftOut) -> String {
    let row = |(reason, packets)| format!("{} {reason}", text::counted(packets, "packet"));
    let (most, others) = left_out.commonest();
    let rows: Vec<_> = most.into_iter().map(row).collect();
    let more = match others {
        0 => String::new(),
        more => format!(", {} (--json has all)", text::counted(more, "more packet")),
    };
    rows.join(", ") + &more
}

/// Those with most losses first, where there are too many.
fn flows(report: &Report) -> String {
    let mut flows: Vec<&FlowReport> = report.flows.iter().collect();
    if flows.len() > MOST_FLOWS {
        flows.sort_by_key(|flow| Reverse((flow.lost(), flow.segments)));
    }
    let header = [
        "flow (wired <-> air)",
        "segments",
        "payload",
        "lost",
        "by the agent",
        "by the sender",
        "DUPACKs kept",
        "stalls",
        "saved",
    ];
    let row = |flow: &&FlowReport| {
        vec![
            flow.key.to_string(),
            text::count(flow.segments),
            text::bytes(flow.payload_bytes),
            if flow.is_one_way() { "unknown".to_owned() } else { text::count(flow.lost()) },
            text::count(flow.repaired_locally),
            text::count(flow.repaired_by_sender),
            text::count(flow.suppressed_dupacks),
            text::count(flow.stalls),
            saved(flow.stall_saved),
        ]
    };
    let rows: Vec<_> = flows.iter().take(MOST_FLOWS).map(row).collect();
    let table = table::render(&header.map(str::to_owned), &rows, 1);
    match flows.len().checked_sub(MOST_FLOWS) {
        None | Some(0) => table,
        Some(more) => {
            format!("{table}\nand {} (--json has all)", text::counted(more as u64, "more flow"))
        }
    }
}

/// Why the losses of some flows are not those of the air.
fn doubts(report: &Report, is_recording: bool) -> Option<String> {
    let kinds = [
        (
            Vantage::OneWay,
            "losses are unknown, since no acknowledgment of theirs is in the capture: capture \
             where both directions pass",
        ),
        (
            Vantage::MobileHost,
            "captured at the mobile host itself, which answers within 0.1 ms: what the air lost is \
             not in the capture",
        ),
        (
            Vantage::FixedHost,
            "captured at the fixed host itself, which answers within 0.1 ms: all of the path \
             counts as air",
        ),
    ];
    let doubts = kinds.into_iter().filter_map(|(vantage, why)| {
        let count = report.flows.iter().filter(|flow| flow.vantage() == vantage).count();
        let is_told = count > 0 && (vantage == Vantage::OneWay || !is_recording);
        is_told.then(|| format!("{}: {why}.", text::counted(count as u64, "flow")))
    });
    let doubts: Vec<_> = doubts.collect();
    (!doubts.is_empty()).then(|| doubts.join("\n"))
}

fn losses(flows: &[&FlowReport]) -> String {
    let sum = |field: fn(&FlowReport) -> u64| flows.iter().map(|flow| field(flow)).sum::<u64>();
    let needless = match sum(|flow| flow.needless) {
        0 => String::new(),
        needless => format!("; {} sent again needlessly", text::counted(needless, "more segment")),
    };
    let again = match sum(|flow| flow.sender_retransmits) {
        0 => String::new(),
        again => format!("\nSenders retransmitted what was lost {}.", text::counted(again, "time")),
    };
    let unacknowledged = match sum(|flow| flow.unacknowledged) {
        0 => String::new(),
        lost => format!(
            "\n{} lost and not acknowledged before the connection or the capture ended.",
            text::counted(lost, "segment")
        ),
    };
    format!(
        "{} lost on the air: {} repaired first by the agent, {} by the sender{needless}.\
         {again}{unacknowledged}",
        text::counted(sum(FlowReport::lost), "segment"),
        text::count(sum(|flow| flow.repaired_locally)),
        text::count(sum(|flow| flow.repaired_by_sender)),
    )
}

fn stalls(flows: &[&FlowReport]) -> String {
    let stalls: u64 = flows.iter().map(|flow| flow.stalls).sum();
    let unknown: u64 = flows.iter().map(|flow| flow.stalls_unknown).sum();
    let total: Duration = flows.iter().map(|flow| flow.stall_saved).sum();
    let known = u32::try_from(stalls - unknown).unwrap_or(u32::MAX);
    let mean =
        total.checked_div(known).map_or_else(String::new, |mean| format!(", {} each", saved(mean)));
    let unknown = match unknown {
        0 => String::new(),
        unknown => format!("; {unknown} cannot be estimated from this capture"),
    };
    let stalls = text::counted(stalls, "stall");
    format!("Estimated stall time saved: {} in {stalls}{mean}{unknown}.", saved(total))
}

/// Microseconds are enough.
fn saved(time: Duration) -> String {
    match time.as_micros() {
        0 => "0 ms".to_owned(),
        _ => text::duration(time),
    }
}

fn checked(check: &Check) -> String {
    let late = text::duration(check.timers_late);
    match &check.difference {
        None => format!(
            "Check: the agent sent what was recorded, {} in the same order; its timers had run at \
             most {late} late.",
            text::counted(check.outputs, "packet")
        ),
        Some(difference) => format!(
            "Check: the replay DIFFERS from the recording in {} of {}: {difference}.",
            text::count(check.outputs - check.same),
            text::counted(check.outputs, "packet")
        ),
    }
}
