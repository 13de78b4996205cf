//! The mobile's end of an air link that repairs its own losses: between the air and the mobile's
//! kernel.

use super::hop::{End, HopMedium};
use super::record::Recorder;
use airmend_proto::agent::LinkSignal;
use airmend_proto::agents::LinkProtocol;
use airmend_proto::{
    Agent, Deadline, EgressLimits, Forwarder, Instant, Packet, Port, Ports, drain,
};
use std::collections::BTreeMap;

/// One end of a link, at the mobile: its wired side is the mobile's kernel.
pub(crate) struct MobileEnd {
    forwarder: Forwarder,
    pub(crate) counters: BTreeMap<&'static str, u64>,
    /// For the kernel, in the order of release.
    pub(crate) released: Vec<Packet>,
}

impl MobileEnd {
    pub(crate) fn new(
        agent: Box<dyn Agent + Send>,
        limits: EgressLimits,
        link: Option<&LinkProtocol>,
    ) -> Self {
        Self {
            forwarder: Forwarder::checked(agent, limits, link),
            counters: BTreeMap::new(),
            released: Vec::new(),
        }
    }

    /// Takes a packet of the kernel, or a frame that has come over the air.
    pub(crate) fn handle(&mut self, now: Instant, from: Port, packet: Packet) {
        self.forwarder.handle_packet(now, from, packet);
    }

    /// The deadline of the agent.
    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        self.forwarder.poll_timeout()
    }

    /// Takes a signal of the air.
    pub(crate) fn signal(&mut self, now: Instant, signal: LinkSignal) {
        self.forwarder.handle_link(now, signal);
    }

    /// Takes a frame that arrived damaged.
    pub(crate) fn damaged(&mut self, now: Instant, frame: &Packet) {
        self.forwarder.handle_damaged(now, frame);
    }

    /// Lets the agent act, and says when it must be asked again.
    pub(crate) fn serve(
        &mut self,
        now: Instant,
        air: &mut HopMedium,
        recorder: &mut Recorder,
    ) -> Option<Deadline> {
        let Self { forwarder, counters, released } = self;
        let mut ports = MobilePorts { air, released };
        let mut on_event = |event: airmend_proto::Event| {
            *counters.entry(event.counter()).or_default() += 1;
            recorder.check(event);
        };
        drain(forwarder, now, &mut ports, &mut on_event)
    }
}

/// The air and the kernel, as the mobile's end sees them.
struct MobilePorts<'a> {
    air: &'a mut HopMedium,
    released: &'a mut Vec<Packet>,
}

impl Ports for MobilePorts<'_> {
    fn can_send(&self, now: Instant, side: Port) -> bool {
        match side {
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
