//! The events of agents and queues, for counters and traces.

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

/// The cause of a local retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A duplicate ACK that was not expected.
    DupAck,
    /// Loss detection by transmit order: a packet sent later arrived (RFC 8985 §4, "RACK").
    Rack,
    /// The sender has forgotten a loss that was left to it.
    Forgotten,
    /// A second copy of a repair, since the repair of a lost repair would come too late.
    SecondCopy,
    /// Tail loss probe: no ACK arrived within the probe timeout (RFC 8985 §4, "TLP").
    TailProbe,
    /// A timeout after an unanswered probe.
    LocalTimeout,
    /// The round-trip timer.
    RoundTripTimer,
    /// The persist timer.
    PersistTimer,
    /// A negative acknowledgment of the agent at the other end of the air.
    Nack,
}

impl Cause {
    /// Whether the retransmission is a probe: no ACK has shown a loss.
    pub fn is_probe(self) -> bool {
        matches!(self, Self::TailProbe | Self::LocalTimeout)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DupAck => "duplicate ACK",
            Self::Rack => "later data arrived",
            Self::Forgotten => "the sender has forgotten it",
            Self::SecondCopy => "second copy",
            Self::TailProbe => "tail probe",
            Self::LocalTimeout => "timeout",
            Self::RoundTripTimer => "round-trip timer",
            Self::PersistTimer => "persist timer",
            Self::Nack => "negative acknowledgment",
        })
    }
}

/// What an agent decided on a range of data that is missing, with the cause: a name and words that
/// only this agent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The name of the counter, such as `left_budget`: what was decided, and the cause; stable.
    pub counter: &'static str,
    /// Both in words, behind the range.
    pub words: &'static str,
}

/// The reason why an agent did not cache a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Uncached {
    /// The flow's cache is at its high-water mark [snoop95 §4].
    HighWaterMark,
    /// The agent's memory limit, or the share of the flow, is reached.
    MemoryLimit,
    /// The flow's cache was emptied in favour of flows that held less.
    Reclaimed,
    /// The mobile would not take it: it lies beyond the window, or is older than what has arrived.
    Unacceptable,
}

/// The reason why a flow's state was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowEnd {
    /// Both directions were closed and acknowledged, or one of them was reset.
    Closed,
    /// A new connection uses the same addresses and ports.
    Reopened,
    /// Neither host sent anything for the idle time.
    Idle,
    /// The flow was evicted from a full table in favour of a new one.
    Evicted,
}

/// An event of an agent or of its egress queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A packet passed unchanged because the agent cannot repair such packets.
    Bypassed(Bypass),
    /// A SYN or RST passed; the state of its flow, if any, is freed.
    ConnectionChange(Port),
    /// A flow's state was created.
    FlowOpened(FlowId),
    /// A flow's state was freed.
    FlowEnded(FlowId, FlowEnd),
    /// A flow passes unmended: the table is full and no flow in it may be evicted.
    FlowTableFull,
    /// A packet was forwarded without being cached.
    Uncached(FlowId, SeqNumber, Uncached),
    /// The egress queue of this port refused a packet.
    EgressDropped(Port),
    /// A cached packet is retransmitted.
    LocalRetransmit {
        /// The flow.
        flow: FlowId,
        /// The sequence number of its first byte.
        seq: SeqNumber,
        /// The cause of the retransmission.
        cause: Cause,
        /// 1 for the first local retransmission.
        attempt: u32,
    },
    /// What was decided on a range that is missing.
    Decided {
        /// The flow.
        flow: FlowId,
        /// The sequence numbers of its first byte and behind its last one.
        range: (SeqNumber, SeqNumber),
        /// The decision.
        decision: Decision,
    },
    /// The sender retransmitted this packet, which is forwarded and marked in the cache.
    SenderRetransmit(FlowId, SeqNumber),
    /// A duplicate ACK was suppressed.
    DupAckSuppressed(FlowId, SeqNumber),
    /// A duplicate ACK was forwarded: the sender must repair the loss.
    DupAckForwarded(FlowId, SeqNumber),
    /// An ACK below the highest ACK was discarded.
    SpuriousAckDropped(FlowId, SeqNumber),
    /// Data that the mobile has acknowledged was discarded.
    DataDiscarded(FlowId, SeqNumber),
    /// The mobile's last ACK was repeated to a sender that retransmitted acknowledged data.
    AckRepeated(FlowId, SeqNumber),
    /// SACK blocks that signal a masked loss were removed from an ACK.
    SackStripped(FlowId, SeqNumber),
    /// A hole was not repaired within its hold budget: the suppressed loss signal is forwarded.
    LossSignalForwarded(FlowId, SeqNumber),
    /// The mobile discarded data that it had acknowledged selectively (RFC 2018 §8).
    Reneged(FlowId, SeqNumber),
    /// A retransmission has a newer timestamp, since the mobile would refuse the original one (RFC
    /// 7323 §5.3).
    TimestampRenewed(FlowId, SeqNumber),
    /// A SYN or SYN-ACK that the mobile has not answered is retransmitted.
    HandshakeRepeated {
        /// 1 for the first repetition.
        attempt: u32,
    },
    /// A packet was marked "congestion experienced": the air queue was at least half full.
    CongestionMarked,
    /// A round-trip sample of the air hop.
    AirRtt {
        /// The flow.
        flow: FlowId,
        /// The sample.
        sample: Duration,
        /// The smoothed round trip after the sample.
        srtt: Duration,
    },
    /// An event that only one agent has.
    Own(OwnEvent),
    /// The agent broke an invariant.
    RuleBroken(Violation),
    /// The agent panicked and was replaced by passthrough.
    AgentReplaced(Instant),
}

/// An event that only one agent has, with its own name and text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OwnEvent {
    /// The name of the counter; stable.
    pub counter: &'static str,
    /// The text, with `{}` in place of each value.
    pub text: &'static str,
    /// The values in the text.
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

    /// The flow of the event, if it concerns one.
    pub fn flow(&self) -> Option<FlowId> {
        match *self {
            Self::FlowOpened(flow)
            | Self::FlowEnded(flow, _)
            | Self::Uncached(flow, ..)
            | Self::LocalRetransmit { flow, .. }
            | Self::Decided { flow, .. }
            | Self::SenderRetransmit(flow, _)
            | Self::DupAckSuppressed(flow, _)
            | Self::DupAckForwarded(flow, _)
            | Self::SpuriousAckDropped(flow, _)
            | Self::DataDiscarded(flow, _)
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

    /// The names of [`Self::counter`], without those of [`Self::Own`].
    pub const COUNTERS: [&'static str; 33] = [
        "bypassed_not_ip",
        "bypassed_not_tcp",
        "bypassed_fragments",
        "bypassed_truncated",
        "bypassed_malformed",
        "syns_and_rsts",
        "flows_opened",
        "flows_evicted",
        "flows_expired",
        "flows_closed",
        "flow_table_full",
        "uncached_high_water",
        "uncached_memory",
        "uncached_reclaimed",
        "uncached_unacceptable",
        "egress_drops_air",
        "egress_drops_wired",
        "local_retransmits",
        "sender_retransmits",
        "suppressed_dupacks",
        "forwarded_dupacks",
        "spurious_acks",
        "discarded_data",
        "repeated_acks",
        "stripped_acks",
        "forwarded_loss_signals",
        "reneged",
        "renewed_timestamps",
        "repeated_handshakes",
        "congestion_marks",
        "air_rtt_samples",
        "broken_rules",
        "agent_panics",
    ];

    /// The name of the event's counter, such as `local_retransmits`; stable.
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
            Self::Uncached(_, _, Uncached::Reclaimed) => "uncached_reclaimed",
            Self::Uncached(_, _, Uncached::Unacceptable) => "uncached_unacceptable",
            Self::EgressDropped(Port::Air) => "egress_drops_air",
            Self::EgressDropped(Port::Wired) => "egress_drops_wired",
            Self::LocalRetransmit { .. } => "local_retransmits",
            Self::Decided { decision, .. } => decision.counter,
            Self::SenderRetransmit(..) => "sender_retransmits",
            Self::DupAckSuppressed(..) => "suppressed_dupacks",
            Self::DupAckForwarded(..) => "forwarded_dupacks",
            Self::SpuriousAckDropped(..) => "spurious_acks",
            Self::DataDiscarded(..) => "discarded_data",
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

/// A short sentence, for packet comments in Wireshark.
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
                    Uncached::Reclaimed => "other flows need the memory",
                    Uncached::Unacceptable => "the mobile would not take it",
                };
                write!(f, "{flow}: {seq} not cached: {why}")
            }
            Self::EgressDropped(Port::Air) => f.write_str("dropped: the air queue is full"),
            Self::EgressDropped(Port::Wired) => f.write_str("dropped: the wired queue is full"),
            Self::LocalRetransmit { flow, seq, cause, attempt } => {
                write!(f, "{flow}: {seq} retransmitted locally ({cause}, attempt {attempt})")
            }
            Self::Decided { flow, range: (start, end), decision } => {
                write!(f, "{flow}: {start} to {end} {}", decision.words)
            }
            Self::SenderRetransmit(flow, seq) => write!(f, "{flow}: {seq} resent by the sender"),
            Self::DupAckSuppressed(flow, ack) => write!(f, "{flow}: DUPACK {ack} suppressed"),
            Self::DupAckForwarded(flow, ack) => {
                write!(f, "{flow}: DUPACK {ack} left to the sender")
            }
            Self::SpuriousAckDropped(flow, ack) => {
                write!(f, "{flow}: spurious ACK {ack} discarded")
            }
            Self::DataDiscarded(flow, seq) => {
                write!(f, "{flow}: {seq} discarded, the mobile has acknowledged it")
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
