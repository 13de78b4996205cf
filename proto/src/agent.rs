//! The contract between an agent and the world that runs it, and the one loop that knows the order.

use crate::event::{Event, FlowId};
use crate::packet::Packet;
use crate::time::Instant;
use core::fmt;

/// The two sides of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Port {
    /// Towards the fixed hosts (FH).
    Wired,
    /// Towards the mobile hosts (MH), over the lossy hop.
    Air,
}

impl Port {
    /// Both sides, in the order in which they are served.
    pub const BOTH: [Self; 2] = [Self::Air, Self::Wired];

    /// The other side.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Wired => Self::Air,
            Self::Air => Self::Wired,
        }
    }
}

/// What an armed timer is for; a trace line then reads "snoop-rto flow 3", not "timeout".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The round-trip timer of a local retransmission [snoop95 §4].
    SnoopRoundTrip(FlowId),
    /// The persist timer: unacknowledged packets and silence [snoop95 §4].
    SnoopPersist(FlowId),
    /// The tail of a flow is probed.
    SnoopProbe(FlowId),
    /// A packet's reordering window ends.
    SnoopReordering(FlowId),
    /// The time ends for which a hole is kept from the sender.
    SnoopHold(FlowId),
    /// A SYN or SYN-ACK is repeated.
    SnoopHandshake,
    /// The next look for flows that have been idle too long.
    FlowIdle,
    /// A link ACK that has waited long enough for a packet to travel with [tulip99 §III].
    TulipAck,
    /// The other end's answer is overdue: what was sent, or the answer, is lost [tulip99 §III].
    TulipReply,
    /// The next attempt to learn which run of the other end is there.
    TulipHello,
}

impl fmt::Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SnoopRoundTrip(flow) => write!(f, "snoop-rto {flow}"),
            Self::SnoopPersist(flow) => write!(f, "snoop-persist {flow}"),
            Self::SnoopProbe(flow) => write!(f, "snoop-probe {flow}"),
            Self::SnoopReordering(flow) => write!(f, "snoop-reordering {flow}"),
            Self::SnoopHold(flow) => write!(f, "snoop-hold {flow}"),
            Self::SnoopHandshake => f.write_str("snoop-handshake"),
            Self::FlowIdle => f.write_str("flow-idle"),
            Self::TulipAck => f.write_str("tulip-ack"),
            Self::TulipReply => f.write_str("tulip-reply"),
            Self::TulipHello => f.write_str("tulip-hello"),
        }
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

/// What the link on the air side tells the agent about its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkSignal {
    /// The last bit of the frame polled last for the air has left. On a half-duplex link this is
    /// where the wait for the answer begins, so such a link signals it (or [`LinkSignal::Idle`])
    /// for every frame before it polls the next one; a full-duplex link need not.
    Sent,
    /// Half duplex: the channel has been won, or an answer may leave, and the frame polled last is
    /// about to. What it says may be old, since frames have arrived while it waited; so the link
    /// polls once more, and takes what it is then given in its stead. Only a link that holds frames
    /// while others arrive signals it, and only for frames of a link protocol.
    Leaving,
    /// Packets have crossed in both directions that the agent was not shown: what it takes for lost
    /// may have arrived, and be acknowledged already.
    Missed,
    /// A frame arrived damaged: something was sent, but nobody can say what.
    Damaged,
    /// Half duplex: no answer is coming to what was sent last (no frame followed in the exchange,
    /// or the channel could not be won and the frame never left), and the channel may be used
    /// again. A link that cannot tell need not signal it: the agent's own wait then ends.
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

/// Sits between the wired and the air side of a gateway.
///
/// A malformed packet is a fact, not an error: it passes untouched and is counted, so no method
/// returns a `Result`. `now` never goes backwards between calls.
pub trait Agent {
    /// Takes a packet that arrived from `from`.
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet);

    /// Acts on every deadline that is due; spurious calls are no-ops.
    fn handle_timeout(&mut self, now: Instant);

    /// Takes a signal from the link on the air side, before the `drain` that may act on it.
    fn handle_link(&mut self, _now: Instant, _signal: LinkSignal) {}

    /// The most urgent packet for `to`, asked when that side can take one.
    #[must_use]
    fn poll_transmit(&mut self, now: Instant, to: Port) -> Option<Packet>;

    /// The next deadline. It may turn out to be early, never late.
    #[must_use]
    fn poll_timeout(&self) -> Option<Deadline>;

    /// The next thing worth counting or tracing.
    #[must_use]
    fn poll_event(&mut self) -> Option<Event>;

    /// What it holds now; nothing, for an agent without flows.
    fn load(&self) -> Load {
        Load::default()
    }
}

/// What a runner offers; implemented by the virtual link, the emulated link and the real port.
pub trait Ports {
    /// Whether `side` can take a packet at once.
    fn can_send(&self, now: Instant, side: Port) -> bool;

    /// Takes a packet for `side`.
    fn send(&mut self, now: Instant, side: Port, packet: Packet);
}

/// Feeds due timeouts, moves what the agent wants sent, and reports events; returns the next
/// deadline. The only place that knows the polling order.
///
/// Events polled before the first transmission belong to the packet last handed in, or to a timer;
/// events polled between two transmissions belong to the packet about to be sent. A recorder can
/// therefore say of each packet what the agent did with it.
pub fn drain(
    agent: &mut dyn Agent,
    now: Instant,
    ports: &mut dyn Ports,
    on_event: &mut dyn FnMut(Event),
) -> Option<Deadline> {
    if agent.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
        agent.handle_timeout(now);
    }
    let mut report = |agent: &mut dyn Agent| {
        while let Some(event) = agent.poll_event() {
            on_event(event);
        }
    };
    report(agent);
    for side in Port::BOTH {
        while ports.can_send(now, side) {
            let Some(packet) = agent.poll_transmit(now, side) else { break };
            report(agent);
            ports.send(now, side, packet);
        }
    }
    report(agent);
    agent.poll_timeout()
}
