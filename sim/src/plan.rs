//! A network as the world runs it: numbered nodes, links with two directions, channels
//! that links share, and flows.

use crate::graph::Graph;
use airmend_proto::agents::AgentConfig;
use airmend_proto::link::mac::{DcfParams, MacParams};
use airmend_proto::link::trace::WayTrace;
use airmend_proto::link::{CoDelParams, DelayVariation, DropRates, ErrorModel, QueueDiscipline};
use airmend_proto::tcp::Profile;
use std::time::Duration;

/// The plan of a run: everything but the seed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Hosts are the first nodes.
    pub(crate) hosts: u32,
    /// Base stations and routers, which are the nodes after the hosts.
    pub(crate) stations: Vec<Station>,
    /// Two for each link: `2n` from its first end to its second, `2n + 1` back.
    pub(crate) directions: Vec<Direction>,
    /// What varies of links, down and up.
    pub(crate) traces: Vec<[WayTrace; 2]>,
    /// The name of each table of links, and its first direction; in the order of these.
    pub(crate) link_names: Vec<(String, u32)>,
    /// The links on each channel, which share its air.
    pub(crate) channels: Vec<Vec<u32>>,
    /// As it is when the run begins.
    pub(crate) graph: Graph,
    /// In the order of time.
    pub(crate) moves: Vec<Move>,
    /// Flows; the number of a flow determines its ports.
    pub(crate) flows: Vec<Flow>,
    /// The run ends here, whatever is still to be sent.
    pub(crate) time_limit: Duration,
    /// Whether the first flow's packets are noted as they leave its first station.
    pub(crate) trace: bool,
    /// Whether delays are those of the senders' packets instead of what applications exchange.
    pub(crate) packet_delays: bool,
}

/// A step of a host that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) at: Duration,
    pub(crate) host: u32,
    pub(crate) event: MoveEvent,
}

/// What happens to a host that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MoveEvent {
    /// The station of this number expects it.
    Approaches(u32),
    /// It has no link.
    Detaches,
    /// It has no link but one.
    Attaches {
        /// The direction from the host into that link.
        outbound: u32,
        /// Duplicate ACKs that it then sends [CI94].
        acks: u32,
    },
}

/// A base station: an agent between wired links and air links; or a router.
#[derive(Clone, Debug)]
pub(crate) struct Station {
    pub(crate) agent: StationAgent,
    /// The time from which on the station forwards nothing.
    pub(crate) dies: Option<Duration>,
    /// Directions that lead away: over wired links and over the air.
    pub(crate) outbound: [Vec<u32>; 2],
    /// Flows that may pass.
    pub(crate) flows: usize,
    /// Whether it hands over mobile hosts to other such stations.
    pub(crate) handoff: bool,
    /// Whether its queues let repairs go first.
    pub(crate) fast_band: bool,
    /// The station with the other end of its link protocol, if that is not its neighbour by air:
    /// frames go there as UDP packets.
    pub(crate) peer: Option<u32>,
}

/// The function of a station.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StationAgent {
    /// One of the agents that run in every world.
    Everywhere(AgentConfig),
    /// A split connection, which needs the TCP model and hence virtual time.
    Split(Box<SplitSpec>),
}

/// A split connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SplitSpec {
    /// The TCP of the station towards the wired hosts and towards the mobiles.
    pub(crate) profiles: [Profile; 2],
    /// M-TCP: hosts get no ACK of what the other end of the connection has not acknowledged, and
    /// a mobile that is silent for so long is taken for disconnected.
    pub(crate) silence: Option<Duration>,
}

impl StationAgent {
    /// The names of [`StationAgent::Split`], without and with `silence`.
    pub(crate) const SPLIT: &'static str = "split";
    pub(crate) const M_TCP: &'static str = "m-tcp";

    /// The name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Everywhere(config) => config.name(),
            Self::Split(spec) if spec.silence.is_none() => Self::SPLIT,
            Self::Split(_) => Self::M_TCP,
        }
    }
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Direction {
    pub(crate) rate_bps: u64,
    pub(crate) delay: Duration,
    pub(crate) variation: DelayVariation,
    /// The number of what varies otherwise of the link; rate, delay and losses are then the means.
    pub(crate) trace: Option<u32>,
    /// The limit of the queue at its beginning, in frames.
    pub(crate) queue_frames: usize,
    /// The queue's discipline, and what CoDel aims at.
    pub(crate) discipline: (QueueDiscipline, CoDelParams),
    pub(crate) errors: ErrorModel,
    /// Whether the link layer repeats lost frames.
    pub(crate) arq: Option<ArqSpec>,
    /// Whether the link layer is that of AIRMAIL; the same in both directions.
    pub(crate) airmail: Option<AirmailSpec>,
    pub(crate) handoff: Option<Handoff>,
    /// How stations share the channel; `None` for full duplex.
    pub(crate) access: Option<Access>,
    /// What packet error generators at both ends drop.
    pub(crate) generator: DropRates,
    pub(crate) air: bool,
    pub(crate) channel: u32,
    /// The node where it ends.
    pub(crate) to: u32,
}

/// The medium access method of a channel on which one station sends at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Access {
    /// Half-duplex radios that acquire the floor.
    FamaNcs(MacParams),
    /// 802.11.
    Dcf(DcfParams),
}

/// Link-level retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArqSpec {
    /// The most retransmissions of a frame.
    pub(crate) retries: u32,
    /// Whether frames are released in the order in which they were first sent.
    pub(crate) ordered: bool,
}

/// The link layer of AIRMAIL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AirmailSpec {
    /// From one report of the mobile to the next.
    pub(crate) status: Duration,
    /// Frames from the oldest that is not known to have arrived on that may have been sent.
    pub(crate) window: u32,
    /// Whether frames bear a code.
    pub(crate) fec: bool,
}

impl AirmailSpec {
    /// The largest window.
    pub(crate) const MOST_WINDOW: u32 = 64;
}

/// Intervals in which no frame crosses a link, and the reaction of hosts after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handoff {
    /// From the beginning of one to the beginning of the next.
    pub(crate) every: Duration,
    pub(crate) lasts: Duration,
    /// Duplicate ACKs that a receiving host then sends, so that its sender retransmits at once.
    pub(crate) acks: u32,
}

/// A connection and its applications, or a source of datagrams.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// The sending and the receiving host, by number.
    pub(crate) hosts: [u32; 2],
    /// The TCP profiles of these hosts.
    pub(crate) profiles: [Profile; 2],
    /// The directions from the sender to the receiver when the run begins. Those back are their
    /// opposites.
    pub(crate) route: Vec<u32>,
    /// Stations on the route.
    pub(crate) stations: Vec<u32>,
    pub(crate) traffic: Traffic,
    pub(crate) start: Duration,
    /// Whether the flow is done only when both ends have closed the connection.
    pub(crate) until_closed: bool,
    /// The number of the flow table, if its flows take turns: their host writes a message when all
    /// messages of all of them have been acknowledged.
    pub(crate) turns: Option<u32>,
}

/// The application at the sending end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Traffic {
    /// Writes as fast as it can: so many bytes, or without end.
    Bulk(Option<u64>),
    /// Writes messages of this size, each when all before it has been acknowledged.
    Messages {
        /// Bytes of each.
        size: u64,
        /// Bytes of all; the last message has the rest.
        bytes: u64,
    },
    /// Writes packets of this size at random times.
    Poisson {
        /// Bytes of each.
        size: u64,
        /// Mean time between two.
        interval: Duration,
        /// How many; without end if none.
        count: Option<u64>,
    },
    /// UDP datagrams at a constant rate, or whenever the link can take one, without end.
    Datagrams {
        /// Bytes of payload of each.
        size: u32,
        /// Bits of payload per second; none of a saturating source.
        rate_bps: Option<u64>,
    },
    /// Sends a request, waits for the whole response and a think time, and repeats.
    Exchange {
        /// Bytes of a question.
        request: u64,
        /// Bytes of an answer.
        response: u64,
        /// Time between an answer and the next question.
        think: Duration,
        /// How many; without end if none.
        count: Option<u64>,
    },
}

impl Plan {
    /// The name of a direction in results: that of its table of links, and `down` or `up`.
    pub(crate) fn link_name(&self, direction: u32) -> String {
        let after = self.link_names.partition_point(|(_, first)| *first <= direction);
        let name = after.checked_sub(1).map_or("", |table| &self.link_names[table].0);
        format!("{name}_{}", if direction.is_multiple_of(2) { "down" } else { "up" })
    }

    /// What varies of both directions of a link.
    pub(crate) fn varies(&self, direction: &Direction) -> Option<&[WayTrace; 2]> {
        self.traces.get(direction.trace? as usize)
    }

    /// The number of a station by that of its node; none of a host.
    pub(crate) fn station(&self, node: u32) -> Option<u32> {
        node.checked_sub(self.hosts)
    }
}
