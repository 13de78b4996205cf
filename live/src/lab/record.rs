//! What is noted of each packet at the agent: counters, the invariants, the sequence-time plot and
//! the recording.

use super::config::{Direction, FIRST_PORT, LabConfig, Place};
use super::error::LabError;
use super::outcome::{TraceKind, TracePoint};
use crate::pcap::{Crossing, Recording};
use airmend_proto::agents::LinkProtocol;
use airmend_proto::invariants::Violation;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{Event, Instant, LinkType, Packet, Port};
use std::collections::BTreeMap;

/// Points kept for the sequence-time plot.
const MAX_TRACE: usize = 200_000;

/// Watches one agent. `drain` tells which events belong to which packet; here they are joined. The
/// default one counts and checks, and keeps nothing of packets.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) counters: BTreeMap<&'static str, u64>,
    /// Packets that the agent has retransmitted.
    pub(crate) repairs: u64,
    trace: Option<Trace>,
    /// The first rule that the agent broke.
    pub(crate) violation: Option<Violation>,
    recording: Option<Recording>,
    /// The packet last handed in, until its events are known.
    entered: Option<(Port, Packet)>,
    /// Events that still wait for their packet.
    events: Vec<Event>,
}

impl Recorder {
    /// That of the agent whose packets the plot and the recording show.
    pub(crate) fn new(config: &LabConfig) -> Result<Self, LabError> {
        let recording = config.pcap.as_deref().map(|path| {
            Recording::create(path, LinkType::Ip, config.recorded_agent.as_ref())
                .map_err(|source| LabError::Recording { path: path.to_owned(), source })
        });
        let (trace, recording) = (Some(Trace::new(config)), recording.transpose()?);
        Ok(Self { trace, recording, ..Self::default() })
    }

    /// A packet is about to enter the agent.
    pub(crate) fn enters(&mut self, side: Port, packet: &Packet) {
        if let Some(trace) = &mut self.trace {
            trace.enters(packet);
        }
        self.entered = self.recording.is_some().then(|| (side, packet.clone()));
    }

    /// The agent reported something.
    pub(crate) fn event(&mut self, event: Event) {
        *self.counters.entry(event.counter()).or_default() += 1;
        self.repairs += u64::from(event.is_retransmission());
        if let Event::RuleBroken(violation) = event {
            self.violation.get_or_insert(violation);
        }
        self.events.push(event);
    }

    /// The agent's timers are due although no packet entered.
    pub(crate) fn timers(&mut self, now: Instant) {
        if let Some(recording) = &mut self.recording {
            recording.timers_ran(now);
        }
    }

    /// The agent is about to be asked for a packet: the events so far are those of the packet that
    /// entered, or of a timer.
    pub(crate) fn entered(&mut self, now: Instant) {
        if let Some((side, packet)) = self.entered.take() {
            self.record(now, side, Crossing::Inbound, &packet);
        }
        self.events.clear();
    }

    /// A packet leaves the agent.
    pub(crate) fn leaves(&mut self, now: Instant, side: Port, packet: &Packet) {
        if let Some(trace) = &mut self.trace {
            trace.leaves(now, side, packet, &self.events);
        }
        self.record(now, side, Crossing::Outbound, packet);
        self.events.clear();
    }

    /// Writes the recording's rest.
    pub(crate) fn finish(&mut self) -> std::io::Result<()> {
        self.recording.take().map_or(Ok(()), Recording::finish)
    }

    /// The sequence-time plot, which ends with this call.
    pub(crate) fn take_points(&mut self) -> Vec<TracePoint> {
        self.trace.take().map(|trace| trace.points).unwrap_or_default()
    }

    fn record(&mut self, now: Instant, side: Port, crossing: Crossing, packet: &Packet) {
        if let Some(recording) = &mut self.recording {
            recording.record(now, side, crossing, packet, &self.events);
        }
    }
}

/// The sequence-time plot of the first flow.
struct Trace {
    points: Vec<TracePoint>,
    /// The side of the agent to which the data goes.
    data_side: Port,
    /// The agent's link protocol, whose frames carry the data on the air.
    link: Option<&'static LinkProtocol>,
    /// The first flow's own port and its sender's initial sequence number.
    flow: Option<(u16, SeqNumber)>,
    /// Beyond the highest byte that has left.
    highest: SeqNumber,
}

impl Trace {
    fn new(config: &LabConfig) -> Self {
        let data_side = match (config.direction, config.place) {
            (Direction::Down, Place::Base) | (Direction::Up, Place::Mobile | Place::Both) => {
                Port::Air
            }
            (Direction::Up, Place::Base) | (Direction::Down, Place::Mobile | Place::Both) => {
                Port::Wired
            }
        };
        let link = config.recorded_agent.as_ref().and_then(|agent| agent.config.link());
        Self { points: Vec::new(), data_side, link, flow: None, highest: SeqNumber(0) }
    }

    fn enters(&mut self, packet: &Packet) {
        if self.flow.is_some() {
            return;
        }
        if let Some(segment) = self.segment(packet)
            && segment.destination.port == FIRST_PORT
            && segment.flags.intersects(Flags::SYN)
        {
            self.flow = Some((segment.source.port, segment.seq));
            self.highest = segment.end();
        }
    }

    fn leaves(&mut self, now: Instant, side: Port, packet: &Packet, events: &[Event]) {
        let (Some((port, initial)), Some(segment)) = (self.flow, self.segment(packet)) else {
            return;
        };
        let ports = [segment.source.port, segment.destination.port];
        let is_data = ports == [port, FIRST_PORT] && segment.payload_len > 0;
        let is_ack = ports == [FIRST_PORT, port] && segment.flags.intersects(Flags::ACK);
        let (number, kind) = if side == self.data_side && is_data {
            let kind = if events.iter().any(Event::is_retransmission) {
                TraceKind::LocalRetransmit
            } else if segment.seq < self.highest {
                TraceKind::SenderRetransmit
            } else {
                TraceKind::Data
            };
            self.highest = self.highest.max(segment.end());
            (segment.seq, kind)
        } else if side != self.data_side && is_ack {
            (segment.ack, TraceKind::Ack)
        } else {
            return;
        };
        if self.points.len() < MAX_TRACE {
            // The plot is full long before the sequence numbers of one flow repeat, at 4 GB.
            let offset = u64::from(number.0.wrapping_sub(initial.0));
            self.points.push(TracePoint { seconds: now.as_secs_f64(), offset, side, kind });
        }
    }

    /// The segment that a packet is, or that a frame of a link protocol carries.
    fn segment(&self, packet: &Packet) -> Option<Segment> {
        match packet.link_type() {
            LinkType::Frame => Segment::parse(&(self.link?.carries)(packet).packet()?).ok(),
            LinkType::Ethernet | LinkType::Ip => Segment::parse(packet).ok(),
        }
    }
}
