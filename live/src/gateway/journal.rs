//! What is noted of each packet at the agent: for whoever looks at the gateway, and for a
//! recording.

use super::telemetry::{Path, Telemetry};
use crate::pcap::{Crossing, Recording};
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Event, Instant, Packet, Port};

/// Watches the agent. `drain` tells which events belong to which packet; here they are joined.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) telemetry: Telemetry,
    recording: Option<Recording>,
    /// The packet last handed in, and whether it had left already.
    current: Option<(Port, Packet, bool)>,
    /// Whether that packet is still to be recorded: its events may not all be known.
    is_entering: bool,
    /// Events that wait for their packet, if somebody records.
    events: Vec<Event>,
}

impl Journal {
    pub(super) fn new(telemetry: Telemetry, recording: Option<Recording>) -> Self {
        Self { telemetry, recording, current: None, is_entering: false, events: Vec::new() }
    }

    /// A packet is about to enter the agent.
    pub(super) fn enters(&mut self, from: Port, packet: &Packet, passed: bool) {
        let path = match (from, passed) {
            (Port::Wired, _) => Path::DataCopied,
            (Port::Air, true) => Path::AcksPassed,
            (Port::Air, false) => Path::AcksJudged,
        };
        self.telemetry.packets(path, packets_of_wire_size(packet), u64::from(packet.wire_len()));
        self.current = Some((from, packet.clone(), passed));
        self.is_entering = true;
    }

    /// The agent has done with the packet that entered.
    pub(super) fn left_alone(&mut self, now: Instant) {
        self.entered(now);
        self.current = None;
    }

    /// The agent's timers are due although no packet entered.
    pub(super) fn timers(&mut self, now: Instant) {
        if let Some(recording) = &mut self.recording {
            recording.timers_ran(now);
        }
    }

    /// The agent reported something.
    pub(super) fn event(&mut self, now: Instant, event: Event) {
        if let (Event::FlowOpened(flow), Some((from, packet, _))) = (event, &self.current)
            && let Ok(segment) = Segment::parse(packet)
        {
            self.telemetry.flow_opened(now, flow, FlowKey::of(&segment, *from));
        }
        self.telemetry.event(now, &event);
        if self.recording.is_some() {
            self.events.push(event);
        }
    }

    /// The agent is about to be asked for a packet: the events so far are those of the packet that
    /// entered, or of a timer.
    pub(super) fn entered(&mut self, now: Instant) {
        if self.is_entering
            && let (Some(recording), Some((port, packet, passed))) =
                (&mut self.recording, &self.current)
        {
            let crossing = if *passed { Crossing::Copied } else { Crossing::Inbound };
            recording.record(now, *port, crossing, packet, &self.events);
        }
        self.is_entering = false;
        self.events.clear();
    }

    /// A packet leaves the agent.
    pub(super) fn leaves(&mut self, now: Instant, port: Port, packet: &Packet) {
        let path = match port {
            Port::Air => Path::Repairs,
            Port::Wired => Path::AcksReturned,
        };
        self.telemetry.packets(path, packets_of_wire_size(packet), u64::from(packet.wire_len()));
        if let Some(recording) = &mut self.recording {
            recording.record(now, port, Crossing::Outbound, packet, &self.events);
        }
        self.events.clear();
    }

    /// A repair that left the agent before leaves the interface's queue.
    pub(super) fn departs(&mut self, now: Instant, packet: &Packet) {
        if let Some(recording) = &mut self.recording {
            recording.record(now, Port::Air, Crossing::Departed, packet, &[]);
        }
    }

    /// Writes the recording's rest.
    pub(super) fn finish(&mut self) -> std::io::Result<()> {
        self.recording.take().map_or(Ok(()), Recording::finish)
    }
}

fn packets_of_wire_size(packet: &Packet) -> u64 {
    packet.segment_size().map_or(1, |size| u64::from(packet.wire_len().div_ceil(size.get().into())))
}
