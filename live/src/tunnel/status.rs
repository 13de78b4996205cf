//! A link's state at one moment, as its clients get it.

use super::Tunnel;
use super::counters::Counters;
use super::peer::Peer;
use crate::gateway::telemetry::server::Reported;
use crate::meter::Transfer;
use crate::tcp_model::TcpPath;
use airmend_proto::agents::Limits;
use airmend_proto::{Instant, PathView};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// What the headers of IPv4, and of TCP with timestamps, have more than those of IPv4 and UDP.
const TCP_OVER_UDP: usize = 24;
/// Bytes of payload in a segment where Ethernet's MTU is the path's.
const USUAL_SEGMENT: usize = 1_448;
/// Bytes of headers of a TCP segment.
const TCP_HEADERS: f64 = 52.0;

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
    /// Bytes of packets that wait, are sent or have arrived, of all peers, and their bound.
    pub memory_bytes: u64,
    /// The bound.
    pub memory_limit_bytes: u64,
    /// The other ends.
    pub peers: Vec<PeerStatus>,
    /// The counters of all of them, and of what is nobody's.
    pub counters: BTreeMap<String, u64>,
}

/// One other end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerStatus {
    /// Its name, else the beginning of its key.
    pub name: String,
    /// Its address, once it is there.
    pub endpoint: Option<String>,
    /// Nothing has come from it for too long.
    pub is_silent: bool,
    /// Seconds since the newest session began.
    pub handshake_seconds_ago: Option<f64>,
    /// Seconds since it was last heard.
    pub heard_seconds_ago: Option<f64>,
    /// The route to it leads into the TUN device, so that nothing reaches it.
    pub route_loop: bool,
    /// The longest packet that crosses its path whole.
    pub mtu: u32,
    /// Bits of IP packets per second that entered here for it and that came out here from it,
    /// lately.
    pub sent_bps: f64,
    /// Those that came out.
    pub received_bps: f64,
    /// What this end has measured of the path to it.
    pub path: Option<PathStatus>,
    /// The share of packets that were sent again, and that of repair frames, of all frames sent.
    pub retransmitted_share: f64,
    /// That of repair frames.
    pub coded_share: f64,
    /// Bytes of IP packets that have entered here for it without a pause of a second, and the time
    /// that they took.
    pub transfer_bytes: u64,
    /// That time.
    pub transfer_seconds: f64,
    /// An estimate of what one TCP flow would have over the path without the link for these bytes,
    /// in bits of payload per second: TCP's model on the measured loss, round trip and rate.
    pub estimated_without_bps: Option<f64>,
    /// Bytes of packets that wait, are sent or have arrived.
    pub memory_bytes: u64,
    /// Its counters.
    pub counters: BTreeMap<String, u64>,
    /// Those of the link protocol.
    pub agent_counters: BTreeMap<String, u64>,
}

/// The path as the link protocol has measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathStatus {
    /// The largest rate at which frames arrived lately.
    pub rate_bps: Option<f64>,
    /// The share of frames that the path lost while its queue was short.
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
            loss: view.loss,
            round_trip_seconds: seconds(view.round_trip),
            deviation_seconds: seconds(view.deviation),
            least_round_trip_seconds: seconds(view.least_round_trip),
            queued_packets: view.queued as u64,
            packets_in_flight: view.in_flight.into(),
        }
    }
}

impl PathStatus {
    /// One TCP flow over this path with segments of so many bytes, in bits of payload per second,
    /// for as much as has crossed; `None` without a loss, and before anything has crossed.
    fn without(&self, segment: usize, transfer: &Transfer) -> Option<f64> {
        let loss = self.loss.filter(|loss| *loss > 0.0)?;
        let packet = segment as f64 + TCP_HEADERS;
        let rate = self.rate_bps.map(|bps| bps / 8.0 / packet);
        // Whoever meets the path's losses fills no queue; but a full packet takes its time, and the
        // least round trip may be that of a short frame.
        let least = self.least_round_trip_seconds.or(self.round_trip_seconds)?;
        let round_trip = least + rate.map_or(0.0, f64::recip);
        let path = TcpPath { loss, round_trip, rate };
        let segments = (transfer.bytes > 0).then(|| transfer.bytes as f64 / packet)?;
        Some(path.rate_of(segments) * segment as f64 * 8.0)
    }
}

impl Tunnel {
    /// The status of the tunnel now.
    pub fn status(&mut self) -> LinkStatus {
        let report = self.report();
        LinkStatus {
            link: true,
            interface: report.device,
            mtu: report.mtu,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: (self.clock.now() - Instant::ZERO).as_secs_f64(),
            memory_bytes: report.peers.iter().map(|peer| peer.memory_bytes).sum(),
            memory_limit_bytes: self.peers.iter().map(|peer| bound(&peer.limits)).sum(),
            peers: report.peers,
            counters: counts(&report.counters),
        }
    }
}

impl PeerStatus {
    /// That of this peer now.
    pub(super) fn of(peer: &Peer, now: Instant) -> Self {
        let view = peer.forwarder.path();
        // A protocol that measures no path knows what it holds.
        let path = view.filter(|view| view.round_trip.is_some()).map(PathStatus::from);
        let count = |name: &str| peer.agent_counters.get(name).copied().unwrap_or(0) as f64;
        let ago = |at: Option<Instant>| at.map(|at| (now - at).as_secs_f64());
        let (counters, channel) = (peer.counters(), &peer.outbound.channel);
        let frames = (counters.frames_sent as f64).max(1.0);
        let (sent_bps, received_bps) = peer.meter.rates();
        let datagram = peer.path.as_ref().map(|(_, path)| path.settled());
        let segment = datagram.map_or(USUAL_SEGMENT, |bytes| bytes.saturating_sub(TCP_OVER_UDP));
        Self {
            name: peer.config.title(),
            endpoint: channel.peer().map(|address| address.to_string()),
            is_silent: peer.liveness.is_lost(),
            handshake_seconds_ago: ago(channel.established()),
            heard_seconds_ago: ago(peer.liveness.heard()),
            route_loop: peer.is_loop,
            mtu: peer.fits as u32,
            sent_bps,
            received_bps,
            transfer_bytes: peer.transfer.bytes,
            transfer_seconds: peer.transfer.seconds(),
            estimated_without_bps: path.and_then(|path| path.without(segment, &peer.transfer)),
            path,
            retransmitted_share: count("link_retransmits") / frames,
            coded_share: count("link_repairs") / frames,
            memory_bytes: view.map_or(0, |view| view.memory as u64) + peer.parts_bytes() as u64,
            counters: counts(&counters),
            agent_counters: named(&peer.agent_counters),
        }
    }
}

/// What a peer's packets take at most: those that are sent, and that have arrived; an eighth each
/// for those that wait, that are kept to recover others, and that are in parts.
fn bound(limits: &Limits) -> u64 {
    (limits.cache_bytes * 2 + limits.cache_bytes / 8 * 3) as u64
}

fn counts(counters: &Counters) -> BTreeMap<String, u64> {
    let counters = serde_json::to_value(counters).unwrap_or_default();
    serde_json::from_value(counters).unwrap_or_default()
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
        let link = format!("interface=\"{}\"", self.interface);
        for (name, help, value) in [
            ("mtu_bytes", "The MTU of the interface.", f64::from(self.mtu)),
            ("uptime_seconds", "Seconds since the start.", self.uptime_seconds),
            ("memory_bytes", "Packets of all peers.", self.memory_bytes as f64),
            ("memory_limit_bytes", "Their bound.", self.memory_limit_bytes as f64),
        ] {
            head(text, name, help, "gauge")?;
            writeln!(text, "airmend_link_{name}{{{link}}} {value}")?;
        }
        for (name, help, value) in GAUGES {
            let mut values = self.peers.iter().filter_map(|peer| Some((peer, value(peer)?)));
            let Some(first) = values.next() else { continue };
            head(text, name, help, "gauge")?;
            for (peer, value) in std::iter::once(first).chain(values) {
                let labels = self.labels(peer);
                writeln!(text, "airmend_link_{name}{{{labels}}} {value}")?;
            }
        }
        Ok(())
    }

    fn counts(&self, text: &mut String) -> std::fmt::Result {
        type Counts = fn(&PeerStatus) -> &BTreeMap<String, u64>;
        let families: [(_, _, Counts); 2] = [
            ("events", "What the tunnel counts of a peer, by name.", |peer| &peer.counters),
            ("protocol_events", "What the link protocol counts.", |peer| &peer.agent_counters),
        ];
        for (family, help, counts) in families {
            head(text, family, help, "counter")?;
            for peer in &self.peers {
                let labels = self.labels(peer);
                for (name, count) in counts(peer) {
                    let labels = format!("{labels},event=\"{name}\"");
                    writeln!(text, "airmend_link_{family}_total{{{labels}}} {count}")?;
                }
            }
        }
        head(text, "all_events", "The same of all peers, and of what is nobody's.", "counter")?;
        for (name, count) in &self.counters {
            let labels = format!("interface=\"{}\",event=\"{name}\"", self.interface);
            writeln!(text, "airmend_link_all_events_total{{{labels}}} {count}")?;
        }
        Ok(())
    }

    fn labels(&self, peer: &PeerStatus) -> String {
        let name = peer.name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("interface=\"{}\",peer=\"{name}\"", self.interface)
    }

    /// Whether packets can cross to one of the peers now.
    pub fn is_up(&self) -> bool {
        self.peers.iter().any(PeerStatus::is_up)
    }
}

impl PeerStatus {
    /// Whether packets can cross to it now.
    pub fn is_up(&self) -> bool {
        self.endpoint.is_some() && !self.is_silent
    }
}

/// The name of a gauge, its meaning, and its value of a peer.
type Gauge = (&'static str, &'static str, fn(&PeerStatus) -> Option<f64>);

/// What is told of each peer.
const GAUGES: [Gauge; 13] = [
    ("up", "Whether the peer is there.", |peer| Some(f64::from(u8::from(peer.is_up())))),
    ("peer_mtu_bytes", "What crosses whole.", |peer| Some(f64::from(peer.mtu))),
    ("peer_memory_bytes", "Its packets.", |peer| Some(peer.memory_bytes as f64)),
    ("handshake_age_seconds", "Age of the session.", |peer| peer.handshake_seconds_ago),
    ("heard_age_seconds", "Since the peer was heard.", |peer| peer.heard_seconds_ago),
    ("sent_bytes_per_second", "What entered here lately.", |peer| Some(peer.sent_bps / 8.0)),
    ("received_bytes_per_second", "What came out lately.", |peer| Some(peer.received_bps / 8.0)),
    ("path_rate_bytes_per_second", "The rate of the path.", |peer| {
        Some(peer.path?.rate_bps? / 8.0)
    }),
    ("path_loss_ratio", "What the path lost while its queue was short.", |peer| peer.path?.loss),
    ("round_trip_seconds", "The smoothed round trip.", |peer| peer.path?.round_trip_seconds),
    ("round_trip_deviation_seconds", "Its deviation.", |peer| peer.path?.deviation_seconds),
    ("queued_packets", "Packets that wait.", |peer| Some(peer.path?.queued_packets as f64)),
    (
        "estimated_without_bytes_per_second",
        "An estimate of one TCP flow without the link.",
        |peer| Some(peer.estimated_without_bps? / 8.0),
    ),
];

fn head(text: &mut String, name: &str, help: &str, kind: &str) -> std::fmt::Result {
    writeln!(text, "# HELP airmend_link_{name} {help}")?;
    writeln!(text, "# TYPE airmend_link_{name} {kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_tcps_model_and_at_most_the_paths_rate() {
        let view = PathView {
            rate: Some(2_500_000),
            loss: Some(0.05),
            round_trip: Some(Duration::from_millis(80)),
            ..PathView::default()
        };
        let path = PathStatus::from(view);
        let transfer = |bytes| {
            let mut transfer = Transfer::default();
            transfer.add(Instant::ZERO, bytes);
            transfer
        };
        let without = |path: PathStatus, bytes| path.without(1_448, &transfer(bytes));
        let long = without(path, 1_000_000_000).unwrap();
        // Mathis et al.: about 1.22 segments for each round trip and root of the loss, less for
        // timeouts.
        let mathis = 1_448.0 * 8.0 / 0.08 * 1.22 / 0.05_f64.sqrt();
        assert!((0.4 * mathis..mathis).contains(&long), "{long} {mathis}");
        let short = without(path, 150_000).unwrap();
        assert!((1.5 * long..4.0 * long).contains(&short), "{short} {long}");
        let slow = PathStatus { rate_bps: Some(1e5), ..path };
        let most = 1e5 * 1_448.0 / 1_500.0;
        assert!((without(slow, 1_000_000).unwrap() / most - 1.0).abs() < 0.01);
        assert_eq!(without(PathStatus { loss: Some(0.0), ..path }, 1_000_000), None);
        assert_eq!(without(path, 0), None);
    }

    #[test]
    fn every_metric_has_a_type_and_a_value() {
        let peer = PeerStatus {
            name: "a \"b\"".into(),
            counters: [("forged".to_owned(), 3)].into(),
            ..PeerStatus::default()
        };
        let (interface, peers) = ("home".into(), vec![peer, PeerStatus::default()]);
        let status = LinkStatus { interface, peers, ..LinkStatus::default() };
        let text = status.open_metrics().unwrap();
        let labels = r#"{interface="home",peer="a \"b\"""#;
        assert!(text.contains(&format!("airmend_link_up{labels}}} 0\n")), "{text}");
        let forged = format!("airmend_link_events_total{labels},event=\"forged\"}} 3\n");
        assert!(text.contains(&forged) && text.ends_with("# EOF\n"), "{text}");
        assert_eq!(text.matches("# TYPE airmend_link_up gauge\n").count(), 1);
    }
}
