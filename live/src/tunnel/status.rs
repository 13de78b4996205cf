//! A link's state at one moment, as its clients get it.

use super::Tunnel;
use crate::gateway::telemetry::server::Reported;
use crate::tcp_model::tcp;
use airmend_proto::{Instant, PathView};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Bytes of payload in a full segment inside.
const SEGMENT: f64 = 1_370.0;

/// Everything that can be seen of a link; counters are since it began. Names are stable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkStatus {
    /// That this is a link's.
    pub link: bool,
    /// The TUN device, or the interface of the LAN.
    pub interface: String,
    /// Its MTU.
    pub mtu: u32,
    /// The program's version.
    pub version: String,
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// The peer's address, once it is there.
    pub peer: Option<String>,
    /// Nothing has come from the peer for too long.
    pub is_silent: bool,
    /// Seconds since the newest session began.
    pub handshake_seconds_ago: Option<f64>,
    /// Seconds since the peer was last heard.
    pub heard_seconds_ago: Option<f64>,
    /// The route to the peer leads into the TUN device, so that nothing reaches it.
    pub route_loop: bool,
    /// Bits of IP packets per second that entered here and that came out here, lately.
    pub sent_bps: f64,
    /// Those that came out.
    pub received_bps: f64,
    /// What this end has measured of the path to the other one.
    pub path: Option<PathStatus>,
    /// The share of packets that were sent again, and that of repair frames, of all frames sent.
    pub retransmitted_share: f64,
    /// That of repair frames.
    pub coded_share: f64,
    /// An estimate of what one TCP flow would carry over the path without the link, in bits per
    /// second: TCP's model on the measured loss and round trip, at most the path's rate.
    pub estimated_without_bps: Option<f64>,
    /// The counters of the tunnel.
    pub counters: BTreeMap<String, u64>,
    /// The counters of the link protocol.
    pub agent_counters: BTreeMap<String, u64>,
}

/// The path as the link protocol has measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathStatus {
    /// The largest rate at which frames arrived lately.
    pub rate_bps: Option<f64>,
    /// The share of frames that the path loses by itself.
    pub loss: Option<f64>,
    /// The smoothed round trip.
    pub round_trip_seconds: Option<f64>,
    /// Its mean deviation.
    pub deviation_seconds: Option<f64>,
    /// The least round trip lately.
    pub least_round_trip_seconds: Option<f64>,
    /// Packets that wait to be sent.
    pub queued_packets: u64,
    /// Packets that are sent and not acknowledged.
    pub packets_in_flight: u64,
}

impl From<PathView> for PathStatus {
    fn from(view: PathView) -> Self {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        Self {
            rate_bps: view.rate.map(|bytes| bytes as f64 * 8.0),
            loss: view.loss.map(|share| share as f64 / 1_024.0),
            round_trip_seconds: seconds(view.round_trip),
            deviation_seconds: seconds(view.deviation),
            least_round_trip_seconds: seconds(view.least_round_trip),
            queued_packets: view.queued as u64,
            packets_in_flight: view.in_flight.into(),
        }
    }
}

impl PathStatus {
    /// One TCP flow over this path, in bits of payload per second; `None` without a loss.
    fn without(&self) -> Option<f64> {
        let (loss, round_trip) = (self.loss?, self.round_trip_seconds?);
        let model = (loss > 0.0).then(|| tcp(loss, round_trip) * SEGMENT * 8.0)?;
        Some(self.rate_bps.map_or(model, |rate| model.min(rate)))
    }
}

impl Tunnel {
    /// The status of the tunnel now.
    pub fn status(&mut self) -> LinkStatus {
        let report = self.report();
        let path = self.forwarder.path().map(PathStatus::from);
        let count = |name: &str| report.agent_counters.get(name).copied().unwrap_or(0) as f64;
        let frames = (report.counters.frames_sent as f64).max(1.0);
        let (sent_bps, received_bps) = self.meter.rates();
        let counters = serde_json::to_value(report.counters).unwrap_or_default();
        LinkStatus {
            link: true,
            interface: report.device,
            mtu: report.mtu,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: (self.clock.now() - Instant::ZERO).as_secs_f64(),
            peer: report.peer.map(|peer| peer.to_string()),
            is_silent: report.is_silent,
            handshake_seconds_ago: report.handshake_seconds_ago,
            heard_seconds_ago: report.heard_seconds_ago,
            route_loop: report.route_loop,
            sent_bps,
            received_bps,
            estimated_without_bps: path.and_then(|path| path.without()),
            path,
            retransmitted_share: count("link_retransmits") / frames,
            coded_share: count("link_repairs") / frames,
            counters: serde_json::from_value(counters).unwrap_or_default(),
            agent_counters: named(&report.agent_counters),
        }
    }

    /// Counts what has crossed so far.
    pub(super) fn measure(&mut self, now: Instant) {
        let own = &self.outbound.own;
        self.meter.add(now, own.bytes_in, own.bytes_out);
    }
}

fn named(counts: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

impl Reported for LinkStatus {
    fn json(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn open_metrics(&self) -> Option<String> {
        let mut text = String::new();
        self.gauges(&mut text).ok()?;
        self.counts(&mut text).ok()?;
        text += "# EOF\n";
        Some(text)
    }
}

impl LinkStatus {
    fn gauges(&self, text: &mut String) -> std::fmt::Result {
        let path = self.path.unwrap_or_default();
        let gauges = [
            ("up", "Whether the peer is there.", Some(f64::from(u8::from(self.is_up())))),
            ("mtu_bytes", "The MTU of the interface.", Some(f64::from(self.mtu))),
            ("uptime_seconds", "Seconds since the start.", Some(self.uptime_seconds)),
            ("handshake_age_seconds", "Age of the session.", self.handshake_seconds_ago),
            ("heard_age_seconds", "Since the peer was heard.", self.heard_seconds_ago),
            ("sent_bits_per_second", "What entered here lately.", Some(self.sent_bps)),
            ("received_bits_per_second", "What came out here lately.", Some(self.received_bps)),
            ("path_rate_bits_per_second", "The rate of the path.", path.rate_bps),
            ("path_loss_ratio", "What the path loses by itself.", path.loss),
            ("round_trip_seconds", "The smoothed round trip.", path.round_trip_seconds),
            ("round_trip_deviation_seconds", "Its mean deviation.", path.deviation_seconds),
            ("queued_packets", "Packets that wait.", Some(path.queued_packets as f64)),
            (
                "estimated_without_bits_per_second",
                "An estimate of one TCP flow without the link.",
                self.estimated_without_bps,
            ),
        ];
        for (name, help, value) in gauges {
            let Some(value) = value else { continue };
            writeln!(text, "# HELP airmend_link_{name} {help}")?;
            writeln!(text, "# TYPE airmend_link_{name} gauge")?;
            writeln!(text, "airmend_link_{name}{{interface=\"{}\"}} {value}", self.interface)?;
        }
        Ok(())
    }

    fn counts(&self, text: &mut String) -> std::fmt::Result {
        for (family, help, counts) in [
            ("events", "What the tunnel counts, by name.", &self.counters),
            ("protocol_events", "What the link protocol counts, by name.", &self.agent_counters),
        ] {
            writeln!(text, "# HELP airmend_link_{family} {help}")?;
            writeln!(text, "# TYPE airmend_link_{family} counter")?;
            for (name, count) in counts {
                let labels = format!("interface=\"{}\",event=\"{name}\"", self.interface);
                writeln!(text, "airmend_link_{family}_total{{{labels}}} {count}")?;
            }
        }
        Ok(())
    }

    /// Whether packets can cross now.
    pub fn is_up(&self) -> bool {
        self.peer.is_some() && !self.is_silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_tcps_model_and_at_most_the_paths_rate() {
        let view = PathView {
            rate: Some(2_500_000),
            loss: Some(51),
            round_trip: Some(Duration::from_millis(80)),
            ..PathView::default()
        };
        let path = PathStatus::from(view);
        let without = path.without().unwrap();
        // Mathis et al.: about 1.22 segments for each round trip and root of the loss, less for
        // timeouts.
        let mathis = SEGMENT * 8.0 / 0.08 * 1.22 / (51.0_f64 / 1_024.0).sqrt();
        assert!((0.4 * mathis..mathis).contains(&without), "{without} {mathis}");
        let slow = PathStatus { rate_bps: Some(1e5), ..path };
        assert_eq!(slow.without(), Some(1e5));
        assert_eq!(PathStatus { loss: Some(0.0), ..path }.without(), None);
    }

    #[test]
    fn every_metric_has_a_type_and_a_value() {
        let status = LinkStatus {
            interface: "home".into(),
            counters: [("forged".to_owned(), 3)].into(),
            ..LinkStatus::default()
        };
        let text = status.open_metrics().unwrap();
        assert!(text.contains("airmend_link_up{interface=\"home\"} 0\n"), "{text}");
        let forged = "airmend_link_events_total{interface=\"home\",event=\"forged\"} 3\n";
        assert!(text.contains(forged) && text.ends_with("# EOF\n"), "{text}");
    }
}
