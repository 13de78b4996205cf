//! The contract between an agent and the world that runs it.
//!
//! The runner owns the queue in front of each port ([`crate::forwarder`]). The agent returns a
//! verdict on each packet that arrives (pass, withhold or replace) and is notified when a packet
//! departs: only then can the packet be lost on the air, and only then is it cached. The runner
//! polls the agent for the packets that the agent originates: repairs, released ACKs, frames of a
//! link protocol.

use crate::event::{Event, FlowId};
use crate::packet::Packet;
pub use crate::port::Port;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use core::fmt;
use core::time::Duration;

/// What an agent decides about a packet that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is forwarded as it is.
    Pass,
    /// The packet is not forwarded. If it is needed, the agent has kept a reference to it.
    Withhold,
    /// This packet is forwarded in place of the one that arrived.
    Replace(Packet),
}

/// The purpose of a timer, for traces: "snoop-rto flow 3".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The name, which begins with the name of the agent unless several agents have the timer.
    pub name: &'static str,
    /// The flow of the timer; `None` for a timer of the whole agent.
    pub flow: Option<FlowId>,
}

impl Timer {
    /// The next step of the idle sweep, which frees flows that were idle too long.
    pub const FLOW_IDLE: Self = Self::new("flow-idle");

    /// A timer of the whole agent.
    pub const fn new(name: &'static str) -> Self {
        Self { name, flow: None }
    }

    /// A timer of one flow.
    pub const fn of_flow(name: &'static str, flow: FlowId) -> Self {
        Self { name, flow: Some(flow) }
    }
}

impl fmt::Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.flow.map_or(Ok(()), |flow| write!(f, " {flow}"))
    }
}

/// The time at which an agent must be called, and the timer that expires then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The expiry time.
    pub at: Instant,
    /// The timer.
    pub why: Timer,
}

/// A signal of the runner, or of the link at the air port, to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkSignal {
    /// The last bit of the last frame polled for the air has been sent. On a half-duplex link the
    /// reply timeout begins here: such a link signals `Sent` or [`LinkSignal::Idle`] for every
    /// frame before it polls the next one. A full-duplex link need not.
    Sent,
    /// Half duplex: the link has acquired the channel, or may answer, and is about to send the last
    /// frame polled. Frames have arrived while that frame waited, so its link ACK may be stale: the
    /// link polls once more and sends the frame that it then gets instead. Only a link that holds
    /// frames while others arrive signals this, and only for frames of a link protocol.
    Leaving,
    /// Observation gap of one flow: the mobile's packets crossed without being shown to the agent.
    /// Data that seems lost may have arrived, and may be acknowledged already. The agent originates
    /// for the wired side what it withholds of this flow. Other flows are not concerned.
    ObservationGap(FlowKey),
    /// The runner ends: the agent originates for the wired side what it withholds of any flow. No
    /// packet is shown to it afterwards; what is polled once more leaves.
    Stop,
    /// A mobile host has left this station: the state of its flows is freed [snoop95 §3.3].
    MobileLeft([u8; 16]),
    /// The round trip of the air hop that the station measured which served a mobile host before:
    /// flows begin with it.
    AirRoundTrip(Duration),
    /// Half duplex: no answer will come to the last frame (no frame followed in the exchange, or
    /// the channel could not be acquired and the frame was not sent), and the channel is free. A
    /// link that cannot detect this need not signal it: the agent's reply timeout then ends the
    /// wait.
    Idle,
}

/// The timestamp that the sender's retransmission of these data shall have: that of the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restoration {
    /// The flow.
    pub flow: FlowKey,
    /// The sequence number of the first byte.
    pub start: SeqNumber,
    /// The sequence number behind the last byte.
    pub end: SeqNumber,
    /// The TSval (RFC 7323 §3).
    pub timestamp: u32,
}

/// The memory that an agent uses at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The number of flows with state.
    pub flows: usize,
    /// Bytes of memory in all caches.
    pub cache_bytes: usize,
    /// Packets in all caches; `snoop` counts the segments of a super-packet.
    pub cache_packets: usize,
}

/// What an end of a link protocol knows of the path to the other end, for people.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathView {
    /// The largest rate at which frames arrived lately, in bytes per second.
    pub rate: Option<u64>,
    /// The share of frames that were lost while the path had no queue to speak of.
    pub loss: Option<f64>,
    /// The smoothed round trip (RFC 6298).
    pub round_trip: Option<Duration>,
    /// Its mean deviation.
    pub deviation: Option<Duration>,
    /// The least round trip of the last ten to twenty seconds.
    pub least_round_trip: Option<Duration>,
    /// Packets that wait to be sent.
    pub queued: usize,
    /// Packets that are sent and not acknowledged.
    pub in_flight: u32,
    /// Bytes of packets that wait, that are sent and not acknowledged, and that have arrived before
    /// others.
    pub memory: usize,
}

/// A flow of which no acknowledgment has passed for so long is unanswered: a sender that knows no
/// round trip waits as long for one (RFC 6298 §2).
pub const UNANSWERED: Duration = Duration::from_secs(1);

/// A protocol at a station, between its ports.
///
/// A malformed packet passes unchanged and is counted, so no method returns a `Result`. `now` never
/// goes backwards between calls. Every method but [`Agent::handle_packet`] has a default, which
/// caches, schedules and originates nothing.
pub trait Agent {
    /// Returns the verdict on a packet that arrived at `from`.
    fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Verdict;

    /// A frame arrived from the air damaged. Any of its bytes may be wrong or missing; a frame of a
    /// link protocol may have a header that shows by itself whether it is right.
    fn handle_damaged(&mut self, _now: Instant, _frame: &Packet) {}

    /// A forwarded packet has left the queue of `to` and is on the link. `packet` is as it arrived,
    /// without the queue's ECN mark.
    fn handle_departure(&mut self, _now: Instant, _to: Port, _packet: &Packet) {}

    /// The kernel has forwarded a packet from `from`, of which this is a copy: it has arrived and
    /// departed, and is changed and withheld no more.
    fn handle_copy(&mut self, now: Instant, from: Port, packet: &Packet) {
        let _too_late = self.handle_packet(now, from, packet);
        self.handle_departure(now, from.opposite(), packet);
    }

    /// A packet that this agent originated departs from `to`. Returns `false` if the packet is no
    /// longer needed; a packet that still waits in a queue of the runner is then dropped. A runner
    /// whose queues are the kernel's reports the departure when it has seen a copy of the packet.
    fn confirm_departure(&mut self, _now: Instant, _to: Port, _packet: &Packet) -> bool {
        true
    }

    /// What the sender resends of the data of this repair shall have the timestamp of the original.
    /// A runner asks when it has taken the repair, if its kernel forwards data that the agent sees
    /// later.
    fn restoration(&self, _repair: &Packet) -> Option<Restoration> {
        None
    }

    /// Acts on every timer that has expired; a call without one does nothing.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// Processes a signal of the runner or of the link at the air port.
    fn handle_link(&mut self, _now: Instant, _signal: LinkSignal) {}

    /// The next packet that this agent originates for the queue of a port, behind all packets that
    /// wait there. The runner polls after every call that may cause such a packet.
    #[must_use]
    fn poll_enqueue(&mut self) -> Option<(Port, Packet)> {
        None
    }

    /// The next packet that this agent originates for `to` in the priority class, which departs
    /// before all queued packets [snoop95 §3.1.2: two link-layer queues]. The runner polls when the
    /// port can take a packet.
    #[must_use]
    fn poll_transmit(&mut self, _now: Instant, _to: Port) -> Option<Packet> {
        None
    }

    /// The next deadline, which may be early but never late.
    #[must_use]
    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    /// The next event to be counted or traced.
    #[must_use]
    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// The segments that the agent may retransmit beyond two for each that has arrived, all flows
    /// together; `None` if the protocol has no such bound. The [`crate::invariants`] check it.
    fn repair_credit(&self) -> Option<u64> {
        None
    }

    /// The round trip of the air hop that the agent has measured for a flow.
    fn air_round_trip(&self, _flow: &FlowKey) -> Option<Duration> {
        None
    }

    /// Another limit of cached packets, in bytes, of an agent that is one end of a link. What is
    /// held beyond it stays until it has crossed; nothing more is taken meanwhile.
    fn limit_cache(&mut self, _bytes: usize) {}

    /// The path to the other end, if the agent is one end of a link and measures it.
    fn path(&self) -> Option<PathView> {
        None
    }

    /// The memory in use; zero for an agent without flows.
    fn load(&self) -> Load {
        Load::default()
    }

    /// The number of flows whose data has been passing for [`UNANSWERED`] without any
    /// acknowledgment: the mobile host is gone, or its packets take another way. The call looks at
    /// every flow.
    fn unanswered(&self) -> usize {
        0
    }
}
