//! A status as Prometheus reads it: the OpenMetrics text format.

use super::histogram::Histogram;
use super::status::Status;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::fmt::{self, Debug};

/// The media type of [`text`].
pub(super) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Every metric; `docs/gateway-metrics.md` explains them.
pub(super) fn text(status: &Status) -> Result<String, fmt::Error> {
    let labels = [("interface", &status.interface), ("agent", &status.agent)];
    let labels = labels.map(|(name, value)| (name.into(), value.clone().into()));
    let mut registry = Registry::with_prefix_and_labels("airmend", labels.into_iter());
    registry.register_collector(Box::new(Snapshot(status.clone())));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Snapshot(Status);

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Output(encoder);
        self.process(&mut out)?;
        self.flows(&mut out)?;
        self.air(&mut out)?;
        self.senders(&mut out)?;
        self.packets(&mut out)
    }
}

impl Snapshot {
    fn process(&self, out: &mut Output<'_>) -> fmt::Result {
        let Self(status) = self;
        let labels = [("version", status.version.clone())];
        let help = "The program's version.";
        out.0
            .encode_descriptor("build", help, None, MetricType::Info)?
            .encode_info(&labels.as_slice())?;
        let help = "Whether the gateway touches nothing and only says what it would do.";
        out.gauge("observing", help, None, u64::from(status.observe))?;
        let help = "When the gateway began, since 1970.";
        out.gauge("start_time", help, Some(&Unit::Seconds), status.started_unix_seconds)?;
        let help = "Time on a CPU, in user space and in the kernel.";
        out.counter("cpu", help, Some(&Unit::Seconds), status.cpu_seconds)?;
        let help = "Times that the daemon's heartbeat timed out.";
        out.count("heartbeat_timeouts", help, status.heartbeat_timeouts)?;
        let help = "Panics of the agent: passthrough took its place.";
        out.count("agent_panics", help, status.counters.agent_panics)
    }

    fn flows(&self, out: &mut Output<'_>) -> fmt::Result {
        let Self(status) = self;
        let (limits, counters) = (&status.limits, &status.counters);
        out.gauge("flows", "Flows that the agent keeps state for.", None, status.flows)?;
        let help = "Flows whose data passes here and whose acknowledgments do not.";
        out.gauge("flows_unanswered", help, None, status.flows_unanswered)?;
        out.gauge("flows_limit", "Flows that the agent may keep.", None, limits.flows)?;
        let bytes = Some(&Unit::Bytes);
        let help = "Memory that the agent's caches hold.";
        out.gauge("cache", help, bytes, status.cache_bytes)?;
        let help = "Memory that the agent's caches may hold.";
        out.gauge("cache_limit", help, bytes, limits.cache_bytes)?;
        out.count("flows_opened", "Flows whose state was created.", counters.flows_opened)?;
        let help = "Flows whose state ended, by reason.";
        out.family("flows_ended", help, "reason", &status.flows_ended)?;
        let help = "Packets that passed unmended because the flow table was full.";
        out.count("flow_table_full", help, counters.flow_table_full)?;
        let help = "Packets that were not cached, by reason.";
        out.family("uncached", help, "reason", &status.uncached)
    }

    fn air(&self, out: &mut Output<'_>) -> fmt::Result {
        let Self(status) = self;
        out.histogram("air_rtt", "Round trip of the air hop.", &status.air_rtt_seconds)?;
        let help = "Wait of diverted ACKs for their verdict.";
        out.histogram("ack_wait", help, &status.ack_wait_seconds)?;
        let help = "Packets with data that went on the air, repairs included.";
        out.count("air_packets", help, status.air_packets)?;
        let help = "Packets that the mobile's ACKs proved lost on the air.";
        out.count("air_losses", help, status.air_losses)?;
        let help = "Local retransmissions, by cause.";
        out.family("repairs", help, "cause", &status.repairs)?;
        let help = "What the agent decided on losses, by decision and cause.";
        out.family("decisions", help, "decision", &status.decisions)?;
        let help = "SYNs and SYN-ACKs that were repeated.";
        out.count("repeated_handshakes", help, status.counters.repeated_handshakes)?;
        if let Some(gain) = &status.gain {
            let help = "Bytes per second that mobiles acknowledged while there was data for them.";
            out.gauge("goodput", help, None, gain.goodput_bps / 8.0)?;
            let help = "An estimate of the same without mending.";
            out.gauge("goodput_without", help, None, gain.without_bps / 8.0)?;
        }
        if let Some(rate) = status.shape.as_ref().and_then(|shape| shape.rate_bps) {
            let help = "Bytes per second that the gateway's own queue sends at most.";
            out.gauge("shape_rate", help, None, rate / 8)?;
        }
        if let Some(handoff) = &status.handoff {
            let help = "Other stations that are known.";
            out.gauge("handoff_stations", help, None, handoff.stations_known)?;
            let help = "Mobile hosts that are here.";
            out.gauge("handoff_mobiles", help, None, handoff.mobiles)?;
            let help = "Handoffs, and their packets and messages, by what happened to them.";
            out.family("handoff_events", help, "event", &handoff.counters)?;
        }
        let help = "Packets marked as having met congestion.";
        out.count("congestion_marks", help, status.counters.congestion_marks)
    }

    fn senders(&self, out: &mut Output<'_>) -> fmt::Result {
        let counters = &self.0.counters;
        let help = "Duplicate ACKs kept from senders.";
        out.count("suppressed_dupacks", help, counters.suppressed_dupacks)?;
        let help = "Duplicate ACKs left to senders.";
        out.count("forwarded_dupacks", help, counters.forwarded_dupacks)?;
        let help = "ACKs from which SACK blocks were taken.";
        out.count("stripped_acks", help, counters.stripped_acks)?;
        let help =
            "Suppressed loss signals that were forwarded: the loss was not repaired in time.";
        out.count("forwarded_loss_signals", help, counters.forwarded_loss_signals)?;
        let help = "Packets that senders sent again.";
        out.count("sender_retransmits", help, counters.sender_retransmits)?;
        let help = "Of these, those that left with the timestamp of the lost original.";
        out.count("restored_timestamps", help, counters.restored_timestamps)?;
        let saved = self.0.timeouts_saved;
        let saved = [("tail", saved.tail), ("handshake", saved.handshake)];
        let saved = saved.map(|(kind, count)| (kind.to_owned(), count)).into();
        let help = "Timeouts of senders that did not come, an estimate from above, by kind.";
        out.family("timeouts_saved", help, "kind", &saved)
    }

    fn packets(&self, out: &mut Output<'_>) -> fmt::Result {
        let Self(status) = self;
        out.family("packets", "Packets, by path.", "path", &status.packets)?;
        out.family("bytes", "Their bytes of IP, by path.", "path", &status.bytes)?;
        let goodput = &status.goodput;
        let delivered = [
            ("to_mobiles".to_owned(), goodput.to_mobiles_bytes),
            ("from_mobiles".to_owned(), goodput.from_mobiles_bytes),
        ];
        let help = "Bytes of TCP's payload that arrived, by direction.";
        out.family("payload_bytes", help, "direction", &delivered.into())?;
        let help = "Packets that passed untouched, by reason.";
        out.family("bypasses", help, "reason", &status.bypasses)?;
        let help = "Copies of packets that the daemon was too slow to take.";
        out.count("copies_lost", help, status.copies_lost)?;
        let drops = [
            ("air".to_owned(), status.counters.egress_drops_air),
            ("wired".to_owned(), status.counters.egress_drops_wired),
        ];
        let help = "Packets that the agent's queues refused, by side.";
        out.family("egress_drops", help, "side", &drops.into())
    }
}

/// The writer of metrics.
struct Output<'a>(DescriptorEncoder<'a>);

impl Output<'_> {
    fn count(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.metric(name, help, None, &ConstCounter::new(value))
    }

    fn counter(&mut self, name: &str, help: &str, unit: Option<&Unit>, value: f64) -> fmt::Result {
        self.metric(name, help, unit, &ConstCounter::new(value))
    }

    fn gauge<V>(&mut self, name: &str, help: &str, unit: Option<&Unit>, value: V) -> fmt::Result
    where
        ConstGauge<V>: EncodeMetric,
    {
        self.metric(name, help, unit, &ConstGauge::new(value))
    }

    fn metric(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        metric: &dyn EncodeMetric,
    ) -> fmt::Result {
        metric.encode(self.0.encode_descriptor(name, help, unit, metric.metric_type())?)
    }

    /// Durations in seconds.
    fn histogram(&mut self, name: &str, help: &str, durations: &Histogram) -> fmt::Result {
        let Histogram { bounds, counts, count, sum } = durations;
        let mut buckets: Vec<_> = bounds.iter().copied().zip(counts.iter().copied()).collect();
        let within = counts.iter().sum();
        buckets.push((f64::INFINITY, count.saturating_sub(within)));
        self.0
            .encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(*sum, *count, &buckets, None)
    }

    /// One counter for each value of `label`.
    fn family(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        counts: &BTreeMap<String, u64>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (value, count) in counts {
            let labels = [(label, value.as_str())];
            ConstCounter::new(*count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Goodput, Histogram, ShapeStatus};
    use super::*;
    use std::time::Duration;

    fn status() -> Status {
        let mut rtt = Histogram::default();
        for millis in [3, 4, 9_000] {
            rtt.add(Duration::from_millis(millis));
        }
        Status {
            interface: "wl\"0".into(),
            agent: "snoop".into(),
            version: "1.2.3".into(),
            started_unix_seconds: 1_000.5,
            cpu_seconds: 0.25,
            flows: 3,
            flows_unanswered: 2,
            cache_bytes: 4_096,
            air_packets: 100,
            air_losses: 5,
            goodput: Goodput { from_mobiles_bytes: 7, ..Goodput::default() },
            repairs: [("rack".into(), 4), ("tail_probe".into(), 0)].into(),
            air_rtt_seconds: rtt,
            shape: Some(ShapeStatus { rate_bps: Some(8_000), ..ShapeStatus::default() }),
            ..Status::default()
        }
    }

    #[test]
    fn counters_gauges_and_labels_read_as_prometheus_wants_them() {
        let text = text(&status()).unwrap();
        let same = r#"interface="wl\"0",agent="snoop""#;
        for line in [
            "# TYPE airmend_flows gauge".to_owned(),
            format!("airmend_flows{{{same}}} 3"),
            format!("airmend_flows_unanswered{{{same}}} 2"),
            format!("airmend_cache_bytes{{{same}}} 4096"),
            format!("airmend_build_info{{{same},version=\"1.2.3\"}} 1"),
            format!("airmend_shape_rate{{{same}}} 1000"),
            format!("airmend_start_time_seconds{{{same}}} 1000.5"),
            format!("airmend_cpu_seconds_total{{{same}}} 0.25"),
            "# TYPE airmend_repairs counter".to_owned(),
            format!("airmend_repairs_total{{{same},cause=\"rack\"}} 4"),
            format!("airmend_repairs_total{{{same},cause=\"tail_probe\"}} 0"),
            format!("airmend_air_losses_total{{{same}}} 5"),
            format!("airmend_payload_bytes_total{{{same},direction=\"from_mobiles\"}} 7"),
            "# TYPE airmend_air_rtt_seconds histogram".to_owned(),
            format!("airmend_air_rtt_seconds_count{{{same}}} 3"),
            format!("airmend_air_rtt_seconds_sum{{{same}}} 9.007"),
            format!("airmend_air_rtt_seconds_bucket{{{same},le=\"0.002\"}} 0"),
            format!("airmend_air_rtt_seconds_bucket{{{same},le=\"0.005\"}} 2"),
            format!("airmend_air_rtt_seconds_bucket{{{same},le=\"+Inf\"}} 3"),
        ] {
            assert!(text.lines().any(|found| found == line), "no {line:?} in:\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn every_metric_is_in_the_reference() {
        let reference = include_str!("../../../../docs/gateway-metrics.md");
        let text = text(&status()).unwrap();
        let names: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert!(names.len() > 25, "{names:?}");
        for line in names {
            let (name, kind) = line.split_once(' ').unwrap();
            let suffix = match kind {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            assert!(reference.contains(&format!("`{name}{suffix}`")), "{name}{suffix}");
        }
    }
}
