//! The outcome of a finished run.

use super::World;
use super::connection::Connection;
use super::flow::{Flow, Transport};
use super::station::RESENT_BY_BOTH;
use crate::outcome::{DatagramCounters, Delay, LinkReport, Outcome, SenderCounters};
use airmend_proto::{Instant, agents};
use std::collections::BTreeMap;

impl World<'_> {
    pub(super) fn report(self) -> Outcome {
        let first = self.flows.iter().map(|flow| flow.start).min().unwrap_or_default();
        let end = self.flows.iter().map(|flow| flow.end(self.now)).max().unwrap_or_default();
        let seconds = end.since(first).as_secs_f64();
        let bytes_received = self.flows.iter().map(Flow::received).sum::<u64>();
        let delays = self.flows.iter().flat_map(Flow::delays_ms);
        let traces = self.stations.iter().filter_map(|station| station.trace.as_ref());
        let mut trace = traces.map(|trace| &trace.points).next().cloned().unwrap_or_default();
        trace.extend(self.progress.iter().flat_map(|progress| &progress.points));
        trace.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let mut agent_counters = BTreeMap::new();
        for station in &self.stations {
            for (name, count) in &station.counters {
                *agent_counters.entry(*name).or_default() += count;
            }
        }
        debug_assert_eq!(
            agent_counters.keys().find(|name| {
                **name != RESENT_BY_BOTH && !agents::counters().any(|known| known == **name)
            }),
            None,
            "a counter that its agent does not register"
        );
        let mut sender = SenderCounters::default();
        let mut datagrams = DatagramCounters::default();
        for flow in &self.flows {
            match &flow.transport {
                Transport::Tcp(connection) => sender += connection.ends[0].stats().sender,
                Transport::Datagrams(source) => datagrams += source.counters,
            }
        }
        let mut links = LinkReport { lost: self.left_behind, ..LinkReport::default() };
        let mut each_link: BTreeMap<String, LinkReport> = BTreeMap::new();
        for (direction, counters) in (0u32..).zip(self.medium.counters()) {
            links += counters.into();
            *each_link.entry(self.plan.link_name(direction)).or_default() += counters.into();
        }
        let stall = self.flows.iter().map(|flow| flow.delivery.longest_stall).max();
        let handoffs = self.flows.iter().flat_map(|flow| &flow.delivery.handoffs);
        let connections = self.flows.iter().filter_map(Flow::connection);
        Outcome {
            stall_ms: stall.unwrap_or_default().as_secs_f64() * 1e3,
            handoff: Delay::of(handoffs.map(|handoff| handoff.as_secs_f64() * 1e3).collect()),
            completed: self.open == 0,
            seconds,
            bytes_received,
            acked_undelivered: connections.map(Connection::acked_undelivered).sum(),
            goodput_bps: rate(bytes_received, seconds),
            flow_goodput_bps: self.flows.iter().map(|flow| flow.goodput_bps(self.now)).collect(),
            flow_begun: self.flows.iter().map(|flow| flow.start < self.now).collect(),
            flow_seconds: self.flows.iter().map(|flow| flow.seconds(self.now)).collect(),
            flow_delay: self.flows.iter().map(|flow| Delay::of(flow.delays_ms().into())).collect(),
            wire_bytes_per_byte: self.wire_bytes_per_byte(bytes_received),
            sender,
            datagrams,
            agent_counters,
            links,
            each_link,
            delay: Delay::of(delays.copied().collect()),
            max_cached: self.stations.iter().map(|station| station.max_cached).max().unwrap_or(0),
            steps: self.steps,
            trace,
        }
    }

    fn wire_bytes_per_byte(&self, bytes_received: u64) -> Option<f64> {
        let bytes = |(number, counters): (u32, airmend_proto::link::LinkCounters)| {
            if self.air_routes.contains(&number) { counters.bytes } else { 0 }
        };
        let sent: u64 = (0u32..).zip(self.medium.counters()).map(bytes).sum();
        (sent > 0 && bytes_received > 0).then(|| sent as f64 / bytes_received as f64)
    }
}

impl Flow {
    /// The time at which the flow was done, or the end of the run.
    fn end(&self, now: Instant) -> Instant {
        self.done.unwrap_or(now)
    }

    fn seconds(&self, now: Instant) -> f64 {
        self.end(now).since(self.start).as_secs_f64()
    }

    fn goodput_bps(&self, now: Instant) -> f64 {
        rate(self.received(), self.seconds(now))
    }
}

fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}
