//! Measures of a run by their names, for the columns of tables.

use crate::outcome::{DatagramCounters, LinkReport, Outcome, SenderCounters};
use airmend_proto::agents;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// What is no counter, and short names of counters.
const MEASURES: [&str; 18] = [
    "acked_undelivered",
    "delay_mean_ms",
    "delay_p50_ms",
    "delay_p95_ms",
    "delay_p99_ms",
    "delay_sd_ms",
    "fast_retransmits",
    "frames_collided",
    "frames_lost",
    "handoff_p50_ms",
    "handoff_p99_ms",
    "max_cached",
    "packets_given_up",
    "resent_by_both",
    "response_s",
    "seconds",
    "stall_ms",
    "wire_bytes_per_byte",
];
/// Before the name of a direction of a link.
const AIRTIME: &str = "airtime_";
/// Of all directions together, and of all datagrams.
const LINKS: &str = "links";
const DATAGRAMS: &str = "datagrams";

/// The names that [`Outcome::measure`] accepts in a scenario with these tables of links, without
/// `flow_N_s`, the seconds of flow N: the counters of senders and agents, `links.COUNTER`,
/// `LINK_down.COUNTER`, `LINK_up.COUNTER`, `datagrams.COUNTER`, `airtime_LINK_down` and `_up`, the
/// share of the run in which frames were sent in this direction, and some more.
pub(crate) fn names(links: &[&str]) -> BTreeSet<String> {
    let ways: Vec<String> =
        links.iter().flat_map(|link| [format!("{link}_down"), format!("{link}_up")]).collect();
    // Counters that are left out of results at 0 are not 0 here.
    let link = fields(LinkReport { collided: 1, given_up: 1, ..LinkReport::default() });
    let sender = fields(SenderCounters { segments: 1, ..SenderCounters::default() });
    let datagrams = fields(DatagramCounters::default());
    let of_links = ways.iter().map(String::as_str).chain([LINKS]).flat_map(|way| {
        let counter = move |counter: &String| format!("{way}.{counter}");
        link.iter().map(counter)
    });
    let plain = MEASURES.into_iter().chain(agents::counters()).map(str::to_owned);
    plain
        .chain(sender)
        .chain(of_links)
        .chain(datagrams.iter().map(|counter| format!("{DATAGRAMS}.{counter}")))
        .chain(ways.iter().map(|way| format!("{AIRTIME}{way}")))
        .collect()
}

/// The index of the flow in `flow_1_s`.
pub(crate) fn flow_of(measure: &str) -> Option<usize> {
    let number = measure.strip_prefix("flow_")?.strip_suffix("_s")?;
    number.parse::<usize>().ok()?.checked_sub(1)
}

impl Outcome {
    /// A measure by its name; 0 of a counter that counted nothing.
    pub fn measure(&self, name: &str) -> f64 {
        if let Some(flow) = flow_of(name) {
            return self.flow_seconds.get(flow).copied().unwrap_or(0.0);
        }
        if let Some(link) = name.strip_prefix(AIRTIME) {
            let airtime_us = self.each_link.get(link).map_or(0, |link| link.airtime_us);
            return airtime_us as f64 / 1e6 / self.seconds.max(1e-6);
        }
        match name.split_once('.') {
            None => {}
            Some((LINKS, counter)) => return field(self.links, counter),
            Some((DATAGRAMS, counter)) => return field(self.datagrams, counter),
            Some((link, counter)) => {
                return self.each_link.get(link).map_or(0.0, |link| field(link, counter));
            }
        }
        let flows = self.flow_seconds.len().max(1) as f64;
        match name {
            "acked_undelivered" => self.acked_undelivered as f64,
            "delay_mean_ms" => self.delay.map_or(0.0, |delay| delay.mean_ms),
            "delay_p50_ms" => self.delay.map_or(0.0, |delay| delay.p50_ms),
            "delay_p95_ms" => self.delay.map_or(0.0, |delay| delay.p95_ms),
            "delay_p99_ms" => self.delay.map_or(0.0, |delay| delay.p99_ms),
            "delay_sd_ms" => self.delay.map_or(0.0, |delay| delay.sd_ms),
            "fast_retransmits" => self.sender.recoveries as f64,
            "frames_collided" => self.links.collided as f64,
            "frames_lost" => self.links.lost as f64,
            "handoff_p50_ms" => self.handoff.map_or(0.0, |handoff| handoff.p50_ms),
            "handoff_p99_ms" => self.handoff.map_or(0.0, |handoff| handoff.p99_ms),
            "max_cached" => self.max_cached as f64,
            "packets_given_up" => self.links.given_up as f64,
            "response_s" => self.flow_seconds.iter().sum::<f64>() / flows,
            "seconds" => self.seconds,
            "stall_ms" => self.stall_ms,
            "wire_bytes_per_byte" => self.wire_bytes_per_byte.unwrap_or(0.0),
            counter => match self.agent_counters.get(counter) {
                Some(count) => *count as f64,
                None => field(self.sender, counter),
            },
        }
    }
}

/// A counter by its name in results.
fn field(counters: impl Serialize, name: &str) -> f64 {
    let value = serde_json::to_value(counters).unwrap_or_default();
    value[name].as_f64().unwrap_or(0.0)
}

fn fields(counters: impl Serialize) -> Vec<String> {
    match serde_json::to_value(counters) {
        Ok(Value::Object(fields)) => fields.into_iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_of_a_run_has_a_name() {
        let names = names(&["air"]);
        for name in [
            "dsacks",
            "segments",
            "negative_acks",
            "link_copies",
            "num_cached",
            "links.dropped",
            "air_up.collided",
            "datagrams.received",
            "airtime_air_down",
        ] {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn a_measure_is_found_by_its_name() {
        let air = LinkReport { collided: 3, airtime_us: 500_000, ..LinkReport::default() };
        let outcome = Outcome {
            seconds: 2.0,
            each_link: [("air_up".to_owned(), air)].into(),
            sender: SenderCounters { dsacks: 4, ..SenderCounters::default() },
            agent_counters: [("negative_acks", 5)].into(),
            datagrams: DatagramCounters { sent: 7, received: 6 },
            flow_seconds: vec![1.0, 2.0],
            ..Outcome::default()
        };
        let measures = [
            "air_up.collided",
            "airtime_air_up",
            "dsacks",
            "negative_acks",
            "datagrams.received",
            "flow_2_s",
            "response_s",
            "air_down.collided",
            "segments",
        ];
        let values = measures.map(|name| outcome.measure(name));
        assert_eq!(values, [3.0, 0.25, 4.0, 5.0, 6.0, 2.0, 1.5, 0.0, 0.0]);
    }
}
