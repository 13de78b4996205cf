//! A status for people.

use crate::observation;
use crate::table;
use crate::text::{bytes, count, counted, percent, rate, significant};
use airmend_live::gateway::observe::Gain;
use airmend_live::gateway::telemetry::{FlowStatus, Goodput, HandoffStatus, ShapeStatus, Status};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Flows that are listed; `--json` names more.
const FLOWS: usize = 20;

/// Prints everything that matters.
pub(super) fn print(out: &mut impl Write, status: &Status) -> io::Result<()> {
    writeln!(out, "{}", headline(status))?;
    for (name, words) in lines(status) {
        writeln!(out, "  {name:<9} {words}")?;
    }
    if let Some(flows) = status.observation.as_ref().and_then(observation::flows) {
        return writeln!(out, "\n{flows}");
    }
    let mended: Vec<_> = status.top.iter().filter(|flow| flow.repairs > 0).take(FLOWS).collect();
    if mended.is_empty() {
        return Ok(());
    }
    let header = ["fixed host", "mobile", "sent", "loss", "repairs", "suppressed", "air RTT"];
    let rows: Vec<_> = mended.into_iter().map(row).collect();
    writeln!(out, "\n{}", table::render(&header.map(str::to_owned), &rows, 2))
}

/// `wlan0: snoop (airmend 0.1.0), up 2:13:05`.
fn headline(status: &Status) -> String {
    let Status { interface, agent, version, .. } = status;
    let observe = if status.observe { ", only observing" } else { "" };
    let up = clock(status.uptime_seconds);
    format!("{interface}: {agent} (airmend {version}){observe}, up {up}")
}

fn lines(status: &Status) -> Vec<(&'static str, String)> {
    let mut lines = vec![(
        "flows",
        format!(
            "{} of at most {}, caches {} of {}",
            count(status.flows),
            count(status.limits.flows),
            bytes(status.cache_bytes),
            bytes(status.limits.cache_bytes)
        ),
    )];
    match &status.observation {
        Some(observed) => lines.extend(observation::lines(observed)),
        None => lines.extend(mending(status)),
    }
    lines.push(("goodput", goodput(&status.goodput)));
    lines.extend(status.gain.as_ref().map(|gain| ("gain", gained(gain))));
    lines.extend(status.shape.as_ref().map(|shape| ("shape", shaping(shape))));
    lines.extend(status.handoff.as_ref().map(|handoff| ("handoff", stations(handoff))));
    lines.extend([
        ("packets", by_name(&status.packets)),
        ("bytes", by_name(&status.bytes)),
        ("CPU", percent(status.cpu_seconds / status.uptime_seconds.max(1e-9)) + " of a core"),
    ]);
    let trouble = trouble(status);
    if !trouble.is_empty() {
        lines.push(("trouble", trouble.join(", ")));
    }
    lines
}

/// The work of the agent.
fn mending(status: &Status) -> [(&'static str, String); 4] {
    let counters = &status.counters;
    [
        ("air", air(status)),
        ("repairs", by_name(&status.repairs)),
        ("losses", decisions(status)),
        (
            "senders",
            format!(
                "{} suppressed, {} stripped, {} forwarded, at most {} saved",
                counted(counters.suppressed_dupacks, "DUPACK"),
                counted(counters.stripped_acks, "ACK"),
                counted(counters.forwarded_loss_signals, "loss signal"),
                counted(status.timeouts_saved.tail + status.timeouts_saved.handshake, "timeout")
            ),
        ),
    ]
}

/// `17.20 Mb/s to mobiles, 0.310 Mb/s from them`.
pub(crate) fn goodput(goodput: &Goodput) -> String {
    let [to, from] = [goodput.to_mobiles_bps, goodput.from_mobiles_bps].map(rate);
    format!("{to} to mobiles, {from} from them")
}

/// `18.10 Mb/s to mobiles while there is data, about 1.20 Mb/s without (an estimate)`.
fn gained(gain: &Gain) -> String {
    let goodput = rate(gain.goodput_bps);
    match gain.gain {
        Some(_) => {
            let without = rate(gain.without_bps);
            format!(
                "{goodput} to mobiles while there is data, about {without} without (an estimate)"
            )
        }
        None => "nothing has arrived yet".to_owned(),
    }
}

fn air(status: &Status) -> String {
    let rtt = &status.air_rtt_seconds;
    let loss = match status.air_loss() {
        Some(loss) => percent(loss) + " loss",
        None if status.air_packets > 0 => "loss unknown: nothing is acknowledged here".to_owned(),
        None => "nothing sent".to_owned(),
    };
    match rtt.quantile(0.9) {
        None => loss,
        Some(most) => {
            let mean = significant(rtt.sum / rtt.count as f64 * 1e3);
            let most = match most.is_finite() {
                true => format!(", nine of ten within {} ms", most * 1e3),
                false => String::new(),
            };
            format!("{loss}, round trip {mean} ms on average{most}")
        }
    }
}

/// What the agent decided on losses: `left to senders: 12 full queue, 3 budget; masked: 90 better`.
pub(crate) fn decisions(status: &Status) -> String {
    let groups = [("left_", "left to senders"), ("masked_", "masked"), ("shown_", "shown")];
    let group = |(prefix, words): (&str, &str)| {
        let causes = status.decisions.iter();
        let mut causes: Vec<_> =
            causes.filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, *value))).collect();
        causes.sort_by_key(|(_, value)| Reverse(*value));
        let causes = causes.iter().map(|(cause, value)| {
            let cause = cause.replace('_', " ");
            format!("{} {cause}", count(*value))
        });
        let causes = causes.collect::<Vec<_>>().join(", ");
        (!causes.is_empty()).then(|| format!("{words}: {causes}"))
    };
    let groups: Vec<_> = groups.into_iter().filter_map(group).collect();
    if groups.is_empty() { "none".to_owned() } else { groups.join("; ") }
}

/// `19.2 Mb/s (auto), fq_codel`.
fn shaping(shape: &ShapeStatus) -> String {
    let rate = shape.rate_bps.map_or("no limit".to_owned(), |rate| crate::text::rate(rate as f64));
    format!("{rate}{}, {}", if shape.is_auto { " (auto)" } else { "" }, shape.queue)
}

/// `3 other stations, 2 mobile hosts here; handoffs_claimed 2, handoffs_completed 1`.
fn stations(handoff: &HandoffStatus) -> String {
    let others = counted(handoff.stations_known, "other station");
    let mobiles = counted(handoff.mobiles, "mobile host");
    format!("{others}, {mobiles} here; {}", by_name(&handoff.counters))
}

/// `rack 1,180, tail_probe 24`; zeros are left out.
fn by_name(counts: &BTreeMap<String, u64>) -> String {
    let parts = counts.iter().filter(|(_, value)| **value > 0);
    let parts: Vec<_> = parts.map(|(name, value)| format!("{name} {}", count(*value))).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

/// Problems that an operator can solve.
fn trouble(status: &Status) -> Vec<String> {
    let memory = status.uncached.get("memory").copied().unwrap_or(0);
    [
        (status.counters.agent_panics, "panic of the agent", "panics of the agent"),
        (status.heartbeat_timeouts, "heartbeat timeout", "heartbeat timeouts"),
        (status.copies_lost, "copy lost", "copies lost"),
        (
            status.counters.flow_table_full,
            "packet unmended for want of a place in the flow table",
            "packets unmended for want of a place in the flow table",
        ),
        (
            status.flows_unanswered,
            "flow of which no acknowledgment passes here (asymmetric route?)",
            "flows of which no acknowledgment passes here (asymmetric routes?)",
        ),
        (memory, "packet not cached for want of memory", "packets not cached for want of memory"),
    ]
    .into_iter()
    .filter(|(value, ..)| *value > 0)
    .map(|(value, one, more)| format!("{} {}", count(value), if value == 1 { one } else { more }))
    .collect()
}

fn row(flow: &FlowStatus) -> Vec<String> {
    let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    vec![
        flow.wired.clone(),
        flow.air.clone(),
        known(flow.bytes.map(bytes)),
        known(flow.loss.map(percent)),
        count(flow.repairs),
        count(flow.suppressed_dupacks),
        known(flow.air_rtt_ms.map(|rtt| significant(rtt) + " ms")),
    ]
}

/// Hours, minutes and seconds, after days if there are any: `2 d 3:04:05`.
pub(crate) fn clock(seconds: f64) -> String {
    let seconds = seconds as u64;
    let time = format!("{}:{:02}:{:02}", seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    match seconds / 86_400 {
        0 => time,
        days => format!("{days} d {time}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(status: &Status) -> String {
        let mut text = Vec::new();
        print(&mut text, status).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_quiet_gateway_takes_few_lines() {
        let status = Status {
            interface: "wlan0".into(),
            agent: "snoop".into(),
            version: "1.2.3".into(),
            observe: true,
            uptime_seconds: 90_061.5,
            ..Status::default()
        };
        let expected = "\
wlan0: snoop (airmend 1.2.3), only observing, up 1 d 1:01:01
  flows     0 of at most 0, caches 0 bytes of 0 bytes
  air       nothing sent
  repairs   none
  losses    none
  senders   0 DUPACKs suppressed, 0 ACKs stripped, 0 loss signals forwarded, \
at most 0 timeouts saved
  goodput   0.00 Mb/s to mobiles, 0.00 Mb/s from them
  packets   none
  bytes     none
  CPU       0 % of a core
";
        assert_eq!(printed(&status), expected);
    }

    #[test]
    fn what_nobody_acknowledges_here_has_no_loss_rate() {
        let status =
            Status { air_packets: 1_000, flows: 3, flows_unanswered: 2, ..Status::default() };
        let text = printed(&status);
        for words in [
            "  air       loss unknown: nothing is acknowledged here\n",
            "  trouble   2 flows of which no acknowledgment passes here (asymmetric routes?)\n",
        ] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
    }

    #[test]
    fn what_was_mended_and_what_is_wrong_is_said() {
        let flow = FlowStatus {
            wired: "10.0.0.1:80".into(),
            air: "10.0.1.2:5000".into(),
            bytes: Some(1_500_000),
            loss: Some(0.051),
            repairs: 1_204,
            suppressed_dupacks: 3_000,
            air_rtt_ms: Some(4.25),
            ..FlowStatus::default()
        };
        let mut status = Status {
            air_packets: 1_000,
            air_losses: 51,
            copies_lost: 1,
            heartbeat_timeouts: 2,
            repairs: [("rack".to_owned(), 1_180), ("dup_ack".to_owned(), 0)].into(),
            top: vec![flow, FlowStatus { wired: "clean".into(), ..FlowStatus::default() }],
            ..Status::default()
        };
        let rate_bps = Some(19_200_000);
        status.shape = Some(ShapeStatus { is_auto: true, queue: "cake".into(), rate_bps });
        status.air_rtt_seconds.counts[4] = 2;
        status.air_rtt_seconds.count = 2;
        status.air_rtt_seconds.sum = 0.0085;
        let text = printed(&status);
        for words in [
            "5.1 % loss, round trip 4.25 ms on average, nine of ten within 5 ms\n",
            "  repairs   rack 1,180\n",
            "  shape     19.20 Mb/s (auto), cake\n",
            "  trouble   2 heartbeat timeouts, 1 copy lost\n",
            "10.0.0.1:80",
        ] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
        assert!(!text.contains("clean"), "{text}");
    }
}
