//! The tables of a scenario file.

use super::airmail::AirmailTable;
use super::error::{Fault, unknown};
use super::generator::GeneratorTable;
use super::host::HostSpec;
use super::named::Named;
use super::radio::{MacTable, WifiTable};
use super::roaming::RoamingTable;
use super::value::{Pace, Queue, Rate, Scalar, Size, Time};
use super::variation::VariationTable;
use super::way_files::WayFiles;
use airmend_proto::link::ErrorModel;
use serde::Deserialize;
use toml::Spanned;

/// A scenario file without its sweep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioSpec {
    /// What is measured, in one line.
    pub(super) title: String,
    /// Lines of the papers that it is about.
    #[serde(default)]
    pub(super) paper: Vec<String>,
    /// Runs of each point, each with a seed of its own.
    #[serde(default = "one")]
    pub(super) runs: Spanned<u32>,
    /// Seed of the first run; the others count up. Every point has the same seeds, so that agents
    /// meet the same errors.
    #[serde(default = "first_seed")]
    pub(super) seed: u64,
    /// In virtual time.
    pub(super) time_limit: Time,
    /// What else the table of results shows.
    #[serde(default)]
    pub(super) measure: Vec<Spanned<String>>,
    /// Whether to note the packets of the first flow.
    #[serde(default)]
    pub(super) trace: bool,
    /// Whether delays are those of the senders' packets.
    #[serde(default)]
    pub(super) packet_delays: bool,
    pub(super) hosts: Named<HostSpec>,
    #[serde(default)]
    pub(super) stations: Named<StationSpec>,
    pub(super) links: Named<LinkSpec>,
    pub(super) flows: Named<FlowSpec>,
    /// Hosts that go from one station to another.
    #[serde(default)]
    pub(super) moves: Vec<MoveSpec>,
    /// Hosts that move all the time.
    #[serde(default)]
    pub(super) roaming: Named<RoamingTable>,
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

fn first_seed() -> u64 {
    1
}

/// One base station, or a number of like ones.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StationSpec {
    pub(super) agent: Spanned<String>,
    /// Settings of agents by their name; those of other agents than `agent` wait for a sweep.
    #[serde(default)]
    pub(super) settings: Named<Named<Spanned<Scalar>>>,
    /// The TCP of a split connection towards the wired hosts and towards the mobiles.
    pub(super) wired: Option<HostSpec>,
    pub(super) air: Option<HostSpec>,
    /// With M-TCP: the silence after which a mobile is taken for disconnected.
    pub(super) silence: Option<Spanned<Time>>,
    pub(super) count: Option<Spanned<u32>>,
    /// When it falls silent for good.
    pub(super) dies: Option<Time>,
    /// Whether it hands over mobile hosts to other such stations.
    #[serde(default)]
    pub(super) handoff: bool,
    /// Whether its queues let repairs go first.
    #[serde(default = "yes")]
    pub(super) fast_band: bool,
    /// The station with the other end of its link protocol, if that is not its neighbour by air.
    pub(super) peer: Option<Spanned<String>>,
}

/// A link between two hosts or stations, or between as many as its ends have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkSpec {
    /// First the end that is nearer to the fixed hosts: down is from the first to the second.
    pub(super) between: [Spanned<String>; 2],
    /// Whether this is the air side of the stations that it joins.
    #[serde(default)]
    pub(super) air: bool,
    /// Whether all that meet at an end share one channel, as in a radio cell.
    #[serde(default)]
    pub(super) shared: bool,
    /// The link on whose channel this one is, and whose keys it has unless it sets them.
    pub(super) channel: Option<Spanned<String>>,
    /// Needed unless a trace says it; the same of the delay.
    pub(super) rate: Option<Rate>,
    pub(super) delay: Option<Time>,
    /// Files by which rate, delay and losses vary.
    pub(super) trace: Option<Spanned<WayFiles>>,
    /// Packet-delivery traces of Mahimahi.
    pub(super) mahimahi: Option<Spanned<WayFiles>>,
    /// How the delay of both directions varies.
    pub(super) variation: Option<Spanned<VariationTable>>,
    #[serde(default = "queue")]
    pub(super) queue: Queue,
    /// Which frame leaves the queue next, and which ones it drops.
    pub(super) discipline: Option<Spanned<String>>,
    /// The two parameters of CoDel.
    pub(super) codel: Option<CoDelTable>,
    pub(super) errors: Option<ErrorsSpec>,
    /// Whether the link layer repeats lost frames.
    pub(super) arq: Option<ArqTable>,
    /// The link layer of AIRMAIL.
    pub(super) airmail: Option<Spanned<AirmailTable>>,
    /// Half-duplex radios that acquire the floor for each packet.
    pub(super) mac: Option<Spanned<MacTable>>,
    /// 802.11 stations.
    pub(super) wifi: Option<Spanned<WifiTable>>,
    /// A packet error generator above the radio of one end.
    pub(super) generator: Option<GeneratorTable>,
    /// Times when nothing crosses the link.
    pub(super) handoff: Option<Spanned<HandoffTable>>,
    /// What differs from the first end to the second.
    #[serde(default)]
    pub(super) down: WaySpec,
    /// What differs from the second end to the first.
    #[serde(default)]
    pub(super) up: WaySpec,
}

fn queue() -> Queue {
    Queue::Frames(100)
}

/// Parameters of CoDel, also in FQ-CoDel.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CoDelTable {
    pub(super) target: Option<Time>,
    pub(super) interval: Option<Time>,
}

/// Link-level retransmission.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArqTable {
    pub(super) retries: u32,
    #[serde(default = "yes")]
    pub(super) ordered: bool,
}

/// Handoffs at regular distances.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HandoffTable {
    pub(super) every: Time,
    pub(super) lasts: Time,
    /// Duplicate ACKs that receiving hosts send when it is over.
    #[serde(default)]
    pub(super) acks: u32,
}

fn yes() -> bool {
    true
}

/// What differs in one direction of a link.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WaySpec {
    pub(super) rate: Option<Rate>,
    pub(super) delay: Option<Time>,
    pub(super) queue: Option<Queue>,
    pub(super) discipline: Option<Spanned<String>>,
    pub(super) errors: Option<ErrorsSpec>,
}

/// An error process by its name, or none.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct ErrorsSpec(Named<Spanned<Scalar>>);

impl ErrorsSpec {
    /// The process.
    pub(super) fn model(&self) -> Result<ErrorModel, Fault> {
        let mut model = ErrorModel::None;
        for (name, value) in &self.0 {
            let Scalar(text) = value.get_ref();
            let Some(parsed) = ErrorModel::parse(name.get_ref(), text) else {
                let message = unknown("key", name.get_ref(), &ErrorModel::NAMES);
                return Err(Fault::new(name.span(), message));
            };
            if model != ErrorModel::None {
                let known = ErrorModel::NAMES.join(", ");
                let message = format!("`errors` must be one of {known}, not several");
                return Err(Fault::new(name.span(), message));
            }
            model = parsed.map_err(|why| Fault::new(value.span(), why.to_string()))?;
        }
        Ok(model)
    }
}

/// A flow, or a number of like ones. Without an amount it sends without end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowSpec {
    pub(super) from: Spanned<String>,
    pub(super) to: Spanned<String>,
    /// Flows between each pair of hosts.
    pub(super) count: Option<Spanned<u32>>,
    /// A bulk transfer of this size.
    pub(super) bytes: Option<Spanned<Size>>,
    /// With `bytes`: they are written in messages of this size, each when all before it has been
    /// acknowledged.
    pub(super) message: Option<Spanned<Size>>,
    /// With `message`: the flows take turns, as those of a server that writes one message at a
    /// time and waits until it has been acknowledged.
    #[serde(default)]
    pub(super) serial: bool,
    /// Packets at random times.
    pub(super) packets: Option<PacketsSpec>,
    /// Questions and answers.
    pub(super) exchange: Option<ExchangeSpec>,
    pub(super) start: Option<Time>,
    /// From the start of one flow to the start of the next.
    pub(super) stagger: Option<Time>,
    /// Whether a flow is done only when both ends have closed the connection.
    #[serde(default)]
    pub(super) until_closed: bool,
}

/// From a time on, a host has no link but that to one station.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveSpec {
    pub(super) at: Time,
    pub(super) host: Spanned<String>,
    pub(super) to: Spanned<String>,
}

/// Packets at the times of a Poisson process over TCP, or datagrams at a rate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PacketsSpec {
    pub(super) size: Spanned<Size>,
    pub(super) interval: Option<Spanned<Time>>,
    pub(super) rate: Option<Spanned<Pace>>,
    pub(super) count: Option<u64>,
}

/// Questions and answers, one after the other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExchangeSpec {
    pub(super) request: Spanned<Size>,
    pub(super) response: Spanned<Size>,
    pub(super) think: Option<Time>,
    pub(super) count: Option<u64>,
}
