//! The contract between an agent and the world that runs it, and the one loop that knows the order.

use crate::event::{Event, FlowId};
use crate::packet::Packet;
use crate::time::Instant;
use core::fmt;

/// The two sides of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Towards the fixed hosts (FH).
    Wired,
    /// Towards the mobile hosts (MH), over the lossy hop.
    Air,
}

impl Side {
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
    /// The next look for flows that have been idle too long.
    FlowIdle,
}

impl fmt::Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SnoopRoundTrip(flow) => write!(f, "snoop-rto {flow}"),
            Self::SnoopPersist(flow) => write!(f, "snoop-persist {flow}"),
            Self::FlowIdle => f.write_str("flow-idle"),
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

/// Sits between the wired and the air side of a gateway.
///
/// A malformed packet is a fact, not an error: it passes untouched and is counted, so no method
/// returns a `Result`. `now` never goes backwards between calls.
pub trait Agent {
    /// Takes a packet that arrived from `from`.
    fn handle_packet(&mut self, now: Instant, from: Side, packet: Packet);

    /// Acts on every deadline that is due; spurious calls are no-ops.
    fn handle_timeout(&mut self, now: Instant);

    /// The most urgent packet for `to`, asked when that side can take one.
    #[must_use]
    fn poll_transmit(&mut self, now: Instant, to: Side) -> Option<Packet>;

    /// The next deadline. It may turn out to be early, never late.
    #[must_use]
    fn poll_timeout(&self) -> Option<Deadline>;

    /// The next thing worth counting or tracing.
    #[must_use]
    fn poll_event(&mut self) -> Option<Event>;
}

/// What a runner offers; implemented by the virtual link, the emulated link and the real port.
pub trait Ports {
    /// Whether `side` can take a packet at once.
    fn can_send(&self, now: Instant, side: Side) -> bool;

    /// Takes a packet for `side`.
    fn send(&mut self, now: Instant, side: Side, packet: Packet);
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
    for side in Side::BOTH {
        while ports.can_send(now, side) {
            let Some(packet) = agent.poll_transmit(now, side) else { break };
            report(agent);
            ports.send(now, side, packet);
        }
    }
    report(agent);
    agent.poll_timeout()
}
