//! An agent in the loop, with its queues and the recorder that watches it.

use super::record::Recorder;
use airmend_proto::agent::LinkSignal;
use airmend_proto::agents::handoff;
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::{Agent, Deadline, Forwarder, Instant, Packet, Port, Ports, drain};
use std::cell::RefCell;
use std::time::Duration;

/// An agent in the loop, at the base station or at the mobile host. Each call says what its ports
/// lead to.
pub(crate) struct InlineAgent {
    forwarder: Forwarder,
    pub(crate) recorder: Recorder,
}

impl InlineAgent {
    pub(crate) fn new(forwarder: Forwarder, recorder: Recorder) -> Self {
        Self { forwarder, recorder }
    }

    /// Handles a packet that has arrived at the port `from`, and sends what can leave.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        from: Port,
        packet: Packet,
        ports: &mut dyn Ports,
    ) {
        self.recorder.enters(from, &packet);
        self.forwarder.handle_packet(now, from, packet);
        self.drain(now, ports);
    }

    /// As [`Self::handle`], for a packet that is not shown to the agent.
    pub(crate) fn handle_unseen(
        &mut self,
        now: Instant,
        from: Port,
        packet: Packet,
        ports: &mut dyn Ports,
    ) {
        self.recorder.enters(from, &packet);
        self.forwarder.forward_unseen(from, packet);
        self.drain(now, ports);
    }

    /// Does what a handoff wants; returns a message to be sent.
    pub(crate) fn apply(
        &mut self,
        now: Instant,
        output: handoff::Output,
        ports: &mut dyn Ports,
    ) -> Option<Vec<u8>> {
        if let handoff::Output::Arrival { packet, .. } = &output {
            self.recorder.enters(Port::Wired, packet);
        }
        let message = output.apply(now, &mut self.forwarder);
        if message.is_none() {
            self.drain(now, ports);
        }
        // The header names the receiver.
        message.map(|(_, message)| message)
    }

    /// The round trip over the air that the agent has measured for a flow.
    pub(crate) fn air_round_trip(&self, flow: &FlowKey) -> Option<Duration> {
        self.forwarder.air_round_trip(flow)
    }

    /// Puts another agent in the place of the one at work.
    pub(crate) fn replace(&mut self, now: Instant, agent: Box<dyn Agent + Send>) {
        drop(self.forwarder.replace_agent(now, agent));
    }

    /// Takes a signal of the air.
    pub(crate) fn signal(&mut self, now: Instant, signal: LinkSignal) {
        self.forwarder.handle_link(now, signal);
    }

    /// Takes a frame that arrived damaged.
    pub(crate) fn damaged(&mut self, now: Instant, frame: &Packet) {
        self.forwarder.handle_damaged(now, frame);
    }

    /// The deadline of the agent.
    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        self.forwarder.poll_timeout()
    }

    /// Lets the agent act on expired timers, and sends what can leave; returns the next deadline.
    pub(crate) fn serve(&mut self, now: Instant, ports: &mut dyn Ports) -> Option<Deadline> {
        if self.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
            self.recorder.timers(now);
        }
        self.drain(now, ports)
    }

    /// Ends the agent; the packet that entered last is recorded too.
    pub(crate) fn into_recorder(mut self, now: Instant) -> Recorder {
        self.recorder.entered(now);
        self.recorder
    }

    fn drain(&mut self, now: Instant, ports: &mut dyn Ports) -> Option<Deadline> {
        let recorder = RefCell::new(&mut self.recorder);
        let mut ports = RecordedPorts { ports, recorder: &recorder };
        let mut on_event = |event| recorder.borrow_mut().event(event);
        drain(&mut self.forwarder, now, &mut ports, &mut on_event)
    }
}

/// The ports of an agent, with the recorder beside them.
struct RecordedPorts<'a, 'b> {
    ports: &'a mut dyn Ports,
    recorder: &'a RefCell<&'b mut Recorder>,
}

impl Ports for RecordedPorts<'_, '_> {
    fn can_send(&self, now: Instant, side: Port) -> bool {
        self.recorder.borrow_mut().entered(now);
        self.ports.can_send(now, side)
    }

    fn send(&mut self, now: Instant, side: Port, packet: Packet) {
        self.recorder.borrow_mut().leaves(now, side, &packet);
        self.ports.send(now, side, packet);
    }
}
