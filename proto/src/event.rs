//! Everything worth counting or tracing, typed.

use crate::invariants::Violation;
use crate::port::Port;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Bypass;
use core::fmt;
use core::time::Duration;

/// The number of a flow: assigned when an agent first sees it, never reused within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId(pub u64);

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow {}", self.0)
    }
}

/// What made an agent retransmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A duplicate ACK that was not expected.
    DupAck,
    /// Something sent later arrived (RFC 8985 §4, "RACK").
    Rack,
    /// Nothing arrived for a while: the tail is probed (RFC 8985 §4, "TLP").
    TailProbe,
    /// Probes were not answered either.
    LocalTimeout,
    /// The round-trip timer.
    RoundTripTimer,
    /// The persist timer.
    PersistTimer,
}

impl Cause {
    /// Whether nothing told of a loss: a silence is probed.
    pub fn is_probe(self) -> bool {
        matches!(self, Self::TailProbe | Self::LocalTimeout)
    }
}

/// Why an agent did not cache a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Uncached {
    /// The flow's cache stands at its high-water mark [snoop95 §4].
    HighWaterMark,
    /// The agent's memory limit is reached.
    MemoryLimit,
}

/// Why a flow's state ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowEnd {
    /// Both directions were closed and acknowledged, or one of them was reset.
    Closed,
    /// A new connection took its addresses and ports.
    Reopened,
    /// Neither host sent anything for the idle time.
    Idle,
    /// It made room for a new flow when the table was full.
    Evicted,
}

/// One thing that an agent did or noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A packet passed untouched because it is nothing that the agent could mend.
    Bypassed(Bypass),
    /// A SYN or RST passed; no state is kept for it, and what there was ends.
    ConnectionChange(Port),
    /// A flow's state was created.
    FlowOpened(FlowId),
    /// A flow's state was freed.
    FlowEnded(FlowId, FlowEnd),
    /// A flow passes unmended: the table is full and nothing in it may be evicted.
    FlowTableFull,
    /// A packet was forwarded without being cached.
    Uncached(FlowId, SeqNumber, Uncached),
    /// A packet was refused by the egress queue towards this side.
    EgressDropped(Port),
    /// A cached packet leaves again.
    LocalRetransmit {
        /// The flow.
        flow: FlowId,
        /// Its first byte.
        seq: SeqNumber,
        /// What made the agent send it.
        cause: Cause,
        /// 1 for the first local retransmission.
        attempt: u32,
    },
    /// The sender sent this packet again; it is forwarded and marked.
    SenderRetransmit(FlowId, SeqNumber),
    /// A duplicate ACK was kept from the sender.
    DupAckSuppressed(FlowId, SeqNumber),
    /// A duplicate ACK went to the sender, whose loss it reports.
    DupAckForwarded(FlowId, SeqNumber),
    /// An ACK below the highest one was discarded.
    SpuriousAckDropped(FlowId, SeqNumber),
    /// The mobile's last ACK was repeated to a sender that resent what had arrived.
    AckRepeated(FlowId, SeqNumber),
    /// SACK blocks that would reveal what is being mended were taken out of an ACK.
    SackStripped(FlowId, SeqNumber),
    /// A hole could not be mended in time: the suppressed loss signal is forwarded to the sender.
    LossSignalForwarded(FlowId, SeqNumber),
    /// The mobile discarded what it had acknowledged selectively.
    Reneged(FlowId, SeqNumber),
    /// A retransmission bears a newer timestamp: the mobile would have refused its own.
    TimestampRenewed(FlowId, SeqNumber),
    /// A SYN or SYN-ACK that the mobile has not answered leaves again.
    HandshakeRepeated {
        /// 1 for the first repetition.
        attempt: u32,
    },
    /// A packet was marked "congestion experienced": the air queue is long.
    CongestionMarked,
    /// The air hop's round trip was measured.
    AirRtt {
        /// The flow.
        flow: FlowId,
        /// This measurement.
        sample: Duration,
        /// The smoothed value after it.
        srtt: Duration,
    },
    /// Something that only one agent does or notices.
    Own(OwnEvent),
    /// A rule of every agent was broken.
    RuleBroken(Violation),
    /// The agent panicked and was replaced by passthrough.
    AgentReplaced(Instant),
}

/// An event that only one agent knows, in the words of that agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OwnEvent {
    /// The name under which runs count it; stable.
    pub counter: &'static str,
    /// The sentence, with `{}` for each of the values in their order.
    pub text: &'static str,
    /// The numbers in the sentence.
    pub values: [u64; 2],
    /// Whether the packet about to leave is a local retransmission.
    pub is_retransmission: bool,
}

impl fmt::Display for OwnEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = self.values.iter();
        let mut parts = self.text.split("{}");
        f.write_str(parts.next().unwrap_or_default())?;
        parts.try_for_each(|part| {
            values.next().map_or(Ok(()), |value| write!(f, "{value}"))?;
            f.write_str(part)
        })
    }
}

impl Event {
    /// Whether the packet about to leave is a local retransmission of data.
    pub fn is_retransmission(&self) -> bool {
        match self {
            Self::LocalRetransmit { .. } => true,
            Self::Own(event) => event.is_retransmission,
            _ => false,
        }
    }

    /// The flow that the event is about, if it is about one.
    pub fn flow(&self) -> Option<FlowId> {
        match *self {
            Self::FlowOpened(flow)
            | Self::FlowEnded(flow, _)
            | Self::Uncached(flow, ..)
            | Self::LocalRetransmit { flow, .. }
            | Self::SenderRetransmit(flow, _)
            | Self::DupAckSuppressed(flow, _)
            | Self::DupAckForwarded(flow, _)
            | Self::SpuriousAckDropped(flow, _)
            | Self::AckRepeated(flow, _)
            | Self::SackStripped(flow, _)
            | Self::LossSignalForwarded(flow, _)
            | Self::Reneged(flow, _)
            | Self::TimestampRenewed(flow, _)
            | Self::AirRtt { flow, .. } => Some(flow),
            Self::Bypassed(_)
            | Self::ConnectionChange(_)
            | Self::FlowTableFull
            | Self::EgressDropped(_)
            | Self::HandshakeRepeated { .. }
            | Self::CongestionMarked
            | Self::Own(_)
            | Self::RuleBroken(_)
            | Self::AgentReplaced(_) => None,
        }
    }

    /// The name under which runs count it (`local_retransmits`); stable.
    pub fn counter(&self) -> &'static str {
        match self {
            Self::Bypassed(reason) => reason.counter(),
            Self::ConnectionChange(_) => "syns_and_rsts",
            Self::FlowOpened(_) => "flows_opened",
            Self::FlowEnded(_, FlowEnd::Evicted) => "flows_evicted",
            Self::FlowEnded(_, FlowEnd::Idle) => "flows_expired",
            Self::FlowEnded(..) => "flows_closed",
            Self::FlowTableFull => "flow_table_full",
            Self::Uncached(_, _, Uncached::HighWaterMark) => "uncached_high_water",
            Self::Uncached(_, _, Uncached::MemoryLimit) => "uncached_memory",
            Self::EgressDropped(Port::Air) => "egress_drops_air",
            Self::EgressDropped(Port::Wired) => "egress_drops_wired",
            Self::LocalRetransmit { .. } => "local_retransmits",
            Self::SenderRetransmit(..) => "sender_retransmits",
            Self::DupAckSuppressed(..) => "suppressed_dupacks",
            Self::DupAckForwarded(..) => "forwarded_dupacks",
            Self::SpuriousAckDropped(..) => "spurious_acks",
            Self::AckRepeated(..) => "repeated_acks",
            Self::SackStripped(..) => "stripped_acks",
            Self::LossSignalForwarded(..) => "forwarded_loss_signals",
            Self::Reneged(..) => "reneged",
            Self::TimestampRenewed(..) => "renewed_timestamps",
            Self::HandshakeRepeated { .. } => "repeated_handshakes",
            Self::CongestionMarked => "congestion_marks",
            Self::AirRtt { .. } => "air_rtt_samples",
            Self::Own(event) => event.counter,
            Self::RuleBroken(_) => "broken_rules",
            Self::AgentReplaced(_) => "agent_panics",
        }
    }
}

/// One short sentence, as a packet comment tells it in Wireshark.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bypassed(reason) => write!(f, "passed untouched: {reason}"),
            Self::ConnectionChange(_) => f.write_str("SYN or RST"),
            Self::FlowOpened(flow) => write!(f, "{flow} is new"),
            Self::FlowEnded(flow, FlowEnd::Closed) => write!(f, "{flow} ended"),
            Self::FlowEnded(flow, FlowEnd::Reopened) => write!(f, "{flow} ended: reopened"),
            Self::FlowEnded(flow, FlowEnd::Idle) => write!(f, "{flow} ended: idle"),
            Self::FlowEnded(flow, FlowEnd::Evicted) => write!(f, "{flow} ended: evicted"),
            Self::FlowTableFull => f.write_str("passed unmended: the flow table is full"),
            Self::Uncached(flow, seq, why) => {
                let why = match why {
                    Uncached::HighWaterMark => "the cache is at its high-water mark",
                    Uncached::MemoryLimit => "the memory limit is reached",
                };
                write!(f, "{flow}: {seq} not cached: {why}")
            }
            Self::EgressDropped(Port::Air) => f.write_str("dropped: the air queue is full"),
            Self::EgressDropped(Port::Wired) => f.write_str("dropped: the wired queue is full"),
            Self::LocalRetransmit { flow, seq, cause, attempt } => {
                let cause = match cause {
                    Cause::DupAck => "duplicate ACK",
                    Cause::Rack => "later data arrived",
                    Cause::TailProbe => "tail probe",
                    Cause::LocalTimeout => "timeout",
                    Cause::RoundTripTimer => "round-trip timer",
                    Cause::PersistTimer => "persist timer",
                };
                write!(f, "{flow}: {seq} retransmitted locally ({cause}, attempt {attempt})")
            }
            Self::SenderRetransmit(flow, seq) => write!(f, "{flow}: {seq} resent by the sender"),
            Self::DupAckSuppressed(flow, ack) => write!(f, "{flow}: DUPACK {ack} suppressed"),
            Self::DupAckForwarded(flow, ack) => {
                write!(f, "{flow}: DUPACK {ack} left to the sender")
            }
            Self::SpuriousAckDropped(flow, ack) => {
                write!(f, "{flow}: spurious ACK {ack} discarded")
            }
            Self::AckRepeated(flow, ack) => write!(f, "{flow}: the mobile's ACK {ack} repeated"),
            Self::SackStripped(flow, ack) => write!(f, "{flow}: SACK stripped from ACK {ack}"),
            Self::LossSignalForwarded(flow, ack) => {
                write!(f, "{flow}: the hole at {ack} is left to the sender")
            }
            Self::Reneged(flow, ack) => write!(f, "{flow}: data above {ack} was reneged"),
            Self::TimestampRenewed(flow, seq) => write!(f, "{flow}: timestamp of {seq} renewed"),
            Self::HandshakeRepeated { attempt } => {
                write!(f, "SYN repeated (attempt {attempt}): the mobile has not answered")
            }
            Self::CongestionMarked => f.write_str("marked: the air queue is long"),
            Self::AirRtt { flow, sample, srtt } => write!(
                f,
                "{flow}: air round trip {:.3} ms, smoothed {:.3} ms",
                sample.as_secs_f64() * 1e3,
                srtt.as_secs_f64() * 1e3
            ),
            Self::Own(event) => event.fmt(f),
            Self::RuleBroken(violation) => write!(f, "broken rule: {violation}"),
            Self::AgentReplaced(at) => write!(f, "agent panicked at {at}, replaced by passthrough"),
        }
    }
}
