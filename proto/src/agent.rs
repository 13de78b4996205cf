//! The contract between an agent and the world that runs it.
//!
//! The runner owns the queue in front of each port ([`crate::forwarder`]). The agent says of each
//! packet that arrives whether it passes, is withheld or is replaced, and is told when a packet
//! has departed: only then can the packet be lost on the air, and only then is it cached. What the
//! agent originates itself (repairs, released ACKs, frames of a link protocol) the runner polls.

use crate::event::{Event, FlowId};
use crate::packet::Packet;
pub use crate::port::Port;
use crate::time::Instant;
use core::fmt;

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

/// The class of a packet in the queue of a port [snoop95 §3.1.2: two link-layer queues].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Behind what waits at the port, as a forwarded packet.
    Normal,
    /// Before everything that waits at the port.
    Priority,
}

/// What an armed timer is for; a trace line then reads "snoop-rto flow 3", not "timeout".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The name, with the agent's name in front where the timer is one agent's own.
    pub name: &'static str,
    /// The flow that it belongs to, if it belongs to one.
    pub flow: Option<FlowId>,
}

impl Timer {
    /// The idle sweep: the next look for flows that have been idle too long.
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

/// When an agent wants to be woken, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// Not before this instant.
    pub at: Instant,
    /// What will then be done.
    pub why: Timer,
}

/// What the runner, or the link at the air port, reports to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkSignal {
    /// The last bit of the frame polled last for the air has left. On a half-duplex link the wait
    /// for the answer begins here, so such a link signals it (or [`LinkSignal::Idle`]) for every
    /// frame before it polls the next one; a full-duplex link need not.
    Sent,
    /// Half duplex: the channel has been won, or an answer may leave, and the frame polled last is
    /// about to leave. Frames have arrived while it waited, so its acknowledgment may be old; the
    /// link polls once more, and takes the frame that it is then given instead. Only a link that
    /// holds frames while others arrive signals it, and only for frames of a link protocol.
    Leaving,
    /// Observation gap: packets have crossed in both directions that the agent was not shown. What
    /// seems lost may have arrived, and may be acknowledged already.
    ObservationGap,
    /// A frame arrived damaged: something was sent, but its content is unknown.
    Damaged,
    /// Half duplex: no answer will come to the last frame (no frame followed in the exchange, or
    /// the channel could not be won and the frame never left), and the channel may be used again.
    /// A link that cannot know need not signal it: the agent's own timeout then ends the wait.
    Idle,
}

/// What an agent holds at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Flows that it keeps state for.
    pub flows: usize,
    /// Bytes of memory that its caches hold.
    pub cache_bytes: usize,
}

/// A protocol at a station, between its ports.
///
/// A malformed packet is a fact, not an error: it passes untouched and is counted, so no method
/// returns a `Result`. `now` never goes backwards between calls. Every method but
/// [`Agent::handle_packet`] has a default, under which nothing is cached, armed or originated.
pub trait Agent {
    /// Decides about a packet that arrived at `from`.
    fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Verdict;

    /// A packet of a host has left the queue of `to` and is on the link. `packet` is as it arrived,
    /// without a mark of the queue.
    fn handle_departure(&mut self, _now: Instant, _to: Port, _packet: &Packet) {}

    /// A packet that this agent originated in the normal class is about to leave the queue of `to`;
    /// `false` if it is no longer needed, and dropped.
    fn confirm_departure(&mut self, _now: Instant, _to: Port, _packet: &Packet) -> bool {
        true
    }

    /// Acts on every deadline that is due; spurious calls are no-ops.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// Takes a signal of the runner or of the link at the air port.
    fn handle_link(&mut self, _now: Instant, _signal: LinkSignal) {}

    /// The next packet that this agent originates for `to`. Packets of [`Class::Normal`] are polled
    /// after every call that may have caused one, and queued; packets of [`Class::Priority`] are
    /// polled when the port can take a packet, and have departed with the poll.
    #[must_use]
    fn poll_transmit(&mut self, _now: Instant, _to: Port, _class: Class) -> Option<Packet> {
        None
    }

    /// The next deadline. It may turn out to be early, never late.
    #[must_use]
    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    /// The next event to be counted or traced.
    #[must_use]
    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// What it holds now; nothing, for an agent without flows.
    fn load(&self) -> Load {
        Load::default()
    }
}
