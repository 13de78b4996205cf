//! An agent at the mobile host, between the host's kernel and the air: one end of a link that
//! repairs its own losses, or the only agent of the run.

use super::hop::{End, HopMedium};
use super::inline_agent::InlineAgent;
use airmend_proto::{Deadline, Instant, Packet, Port, Ports};

/// An agent at the mobile host: its wired port is the host's kernel, its air port is the radio.
pub(crate) struct MobileAgent {
    pub(crate) agent: InlineAgent,
    /// For the kernel, in the order of release.
    pub(crate) released: Vec<Packet>,
}

impl MobileAgent {
    pub(crate) fn new(agent: InlineAgent) -> Self {
        Self { agent, released: Vec::new() }
    }

    /// Handles a packet of the kernel, or a frame that has come over the air.
    pub(crate) fn handle(&mut self, now: Instant, from: Port, packet: Packet, air: &mut HopMedium) {
        let Self { agent, released } = self;
        agent.handle(now, from, packet, &mut MobilePorts { air, released });
    }

    /// The deadline of the agent.
    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        self.agent.poll_timeout()
    }

    /// Lets the agent act, and says when it must be asked again.
    pub(crate) fn serve(&mut self, now: Instant, air: &mut HopMedium) -> Option<Deadline> {
        let Self { agent, released } = self;
        agent.serve(now, &mut MobilePorts { air, released })
    }
}

/// The air and the kernel, as the agent at the mobile host sees them.
struct MobilePorts<'a> {
    air: &'a mut HopMedium,
    released: &'a mut Vec<Packet>,
}

impl Ports for MobilePorts<'_> {
    fn can_send(&self, now: Instant, side: Port) -> bool {
        match side {
            // The hop to the kernel has no rate, no delay and no loss.
            Port::Wired => true,
            Port::Air => self.air.can_send(now, End::Host),
        }
    }

    fn send(&mut self, now: Instant, side: Port, packet: Packet) {
        match side {
            Port::Wired => self.released.push(packet),
            Port::Air => self.air.send(now, End::Host, packet),
        }
    }
}
