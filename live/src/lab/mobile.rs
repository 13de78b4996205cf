//! The mobile's end of an air link that repairs its own losses: between the air and the mobile's
//! kernel.

use super::hop::{End, HopMedium};
use super::record::Recorder;
use airmend_proto::agent::LinkSignal;
use airmend_proto::{Agent, Deadline, Instant, Packet, Port, Ports, drain};
use std::collections::BTreeMap;

/// One end of a link, at the mobile: its wired side is the mobile's kernel.
pub(crate) struct MobileEnd {
    agent: Box<dyn Agent + Send>,
    pub(crate) counters: BTreeMap<&'static str, u64>,
    /// For the kernel, in the order of release.
    pub(crate) released: Vec<Packet>,
}

impl MobileEnd {
    pub(crate) fn new(agent: Box<dyn Agent + Send>) -> Self {
        Self { agent, counters: BTreeMap::new(), released: Vec::new() }
    }

    /// Takes a packet of the kernel, or a frame that has come over the air.
    pub(crate) fn handle(&mut self, now: Instant, from: Port, packet: Packet) {
        self.agent.handle_packet(now, from, packet);
    }

    /// When the agent wants to be woken.
    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        self.agent.poll_timeout()
    }

    /// Takes a signal of the air.
    pub(crate) fn signal(&mut self, now: Instant, signal: LinkSignal) {
        self.agent.handle_link(now, signal);
    }

    /// Lets the agent act, and says when it must be asked again.
    pub(crate) fn serve(
        &mut self,
        now: Instant,
        air: &mut HopMedium,
        recorder: &mut Recorder,
    ) -> Option<Deadline> {
        let Self { agent, counters, released } = self;
        let mut ports = MobilePorts { air, recorder, released };
        let mut on_event = |event: airmend_proto::Event| {
            *counters.entry(event.counter()).or_default() += 1;
        };
        drain(&mut **agent, now, &mut ports, &mut on_event)
    }
}

/// The air and the kernel, as the mobile's end sees them.
struct MobilePorts<'a> {
    air: &'a mut HopMedium,
    recorder: &'a mut Recorder,
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
            Port::Wired => {
                self.recorder.leaves_mobile(&packet);
                self.released.push(packet);
            }
            Port::Air => self.air.send(now, End::Host, packet),
        }
    }
}
