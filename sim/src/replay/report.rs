//! The report of a replay.

use super::flow::{Flow, FlowReport};
use airmend_proto::event::FlowId;
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Event, Instant, Packet, Port};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// A jumbo frame, in bytes.
const LONGEST_FRAME: u32 = 9_216;

/// The actions of an agent on a capture.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Packets that arrived from the hosts.
    pub packets: u64,
    /// Of these, super-packets of segmentation or receive offload; each counts as one segment.
    pub oversized: u64,
    /// The time from the first packet to the last.
    pub time: Duration,
    /// The flows with data towards the mobile host, in the order in which they began.
    pub flows: Vec<FlowReport>,
    /// The counters of the agent, by name.
    pub counters: BTreeMap<&'static str, u64>,
    /// The events of the agent, in order.
    pub timeline: Vec<Moment>,
}

/// An event of the agent.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The time since the first packet.
    pub at: Instant,
    /// The flow, if the event concerns one.
    pub flow: Option<FlowKey>,
    /// The event.
    pub event: Event,
}

/// Collects the report while the agent runs.
#[derive(Debug)]
pub(super) struct Observer {
    report: Report,
    flows: Vec<Flow>,
    by_key: HashMap<FlowKey, usize>,
    by_id: HashMap<FlowId, usize>,
    /// The flow of the last packet passed to the agent, to which a new flow number belongs.
    entered: Option<usize>,
    is_mended: bool,
}

impl Observer {
    /// An empty report; `is_mended` if an agent was active in the capture.
    pub(super) fn new(is_mended: bool) -> Self {
        Self {
            report: Report::default(),
            flows: Vec::new(),
            by_key: HashMap::new(),
            by_id: HashMap::new(),
            entered: None,
            is_mended,
        }
    }

    /// A host's packet is about to enter the agent.
    pub(super) fn enters(&mut self, now: Instant, from: Port, packet: &Packet) {
        self.report.packets += 1;
        self.report.oversized += u64::from(packet.wire_len() > LONGEST_FRAME);
        self.report.time = now.since(Instant::ZERO);
        self.entered = None;
        let Ok(segment) = Segment::parse(packet) else { return };
        let key = FlowKey::of(&segment, from);
        let index = *self.by_key.entry(key).or_insert_with(|| {
            self.flows.push(Flow::new(FlowReport::new(key), self.is_mended));
            self.flows.len() - 1
        });
        self.entered = Some(index);
        self.flows[index].enters(now, from, &segment);
    }

    /// The agent reported something.
    pub(super) fn event(&mut self, now: Instant, event: Event) {
        *self.report.counters.entry(event.counter()).or_default() += 1;
        if let (Event::FlowOpened(id), Some(index)) = (event, self.entered) {
            self.by_id.insert(id, index);
        }
        let index = event.flow().and_then(|id| self.by_id.get(&id).copied());
        let flow = index.map(|index| &mut self.flows[index]);
        let key = flow.as_ref().map(|flow| flow.report.key);
        match (flow, event) {
            (Some(flow), Event::LocalRetransmit { seq, .. }) => flow.repairs(now, seq),
            (Some(flow), Event::DupAckSuppressed(..)) => flow.report.suppressed_dupacks += 1,
            _ => {}
        }
        self.report.timeline.push(Moment { at: now, flow: key, event });
    }

    /// The agent sends a packet.
    pub(super) fn leaves(&mut self, now: Instant, to: Port, packet: &Packet) {
        if to == Port::Wired {
            return;
        }
        let Ok(segment) = Segment::parse(packet) else { return };
        // The packet arrived on the opposite side.
        if let Some(&index) = self.by_key.get(&FlowKey::of(&segment, Port::Wired)) {
            self.flows[index].leaves_to_air(now, &segment);
        }
    }

    pub(super) fn finish(mut self) -> Report {
        self.flows.iter_mut().for_each(Flow::end_connection);
        let reports = self.flows.into_iter().map(|flow| flow.report);
        self.report.flows = reports.filter(|flow| flow.segments > 0).collect();
        self.report
    }
}
