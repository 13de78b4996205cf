//! Data that the mobile host sends: holes that the air made are seen here first, since what the
//! base station never saw was lost before it [S0-40].
//!
//! `flow.rs` tracks the holes, and gives the retransmission that fills one the timestamp of the
//! lost original [C-27]. `report.rs` reports holes to the mobile.

mod echo;
mod flow;
mod kept;
mod nack;
mod report;

pub(super) use report::CODEPOINT as NACK_CODEPOINT;

use super::local_queues::LocalQueues;
use super::settings::{Settings, Uplink};
use crate::agent::{Deadline, Timer};
use crate::agents::flow_table::FlowRef;
use crate::agents::flows::Flows;
use crate::agents::limits::Limits;
use crate::event::{Event, OwnEvent};
use crate::packet::Packet;
use crate::port::Port;
use crate::time::Instant;
use crate::wire::edit::with_timestamp;
use crate::wire::flow::FlowKey;
use crate::wire::tcp::Segment;
use alloc::collections::VecDeque;
use flow::UplinkFlow;

/// The flows of data from mobile to fixed hosts.
#[derive(Debug)]
pub(super) struct Uplinks {
    flows: Flows<UplinkFlow>,
    /// The queues in the mobile hosts.
    queues: LocalQueues,
    mode: Uplink,
    /// Negative acknowledgments for mobiles.
    nacks: VecDeque<Packet>,
    /// Data that was reported and lost on the wire.
    resends: VecDeque<Packet>,
}

/// The most packets that wait to be sent in each direction [C-26].
const MAX_WAITING: usize = 64;

impl Uplinks {
    pub(super) fn new(settings: &Settings, limits: Limits, hash_seed: u64) -> Self {
        Self {
            flows: Flows::new(limits, settings.idle_timeout, hash_seed),
            queues: LocalQueues::new(limits.flows, hash_seed),
            mode: settings.uplink,
            nacks: VecDeque::new(),
            resends: VecDeque::new(),
        }
    }

    /// Takes data that arrived from the mobile; returns the packet to forward in its place, if it
    /// fills a hole of the air.
    pub(super) fn take_data(
        &mut self,
        now: Instant,
        key: FlowKey,
        segment: &Segment,
        packet: &Packet,
    ) -> Option<Packet> {
        if self.mode == Uplink::Off || segment.payload_len == 0 {
            return None;
        }
        let open = |base| UplinkFlow::new(base, segment.seq);
        let reference = self.flows.find_or_open(now, key, open)?;
        let flow = self.flows.get_mut(reference)?;
        let queue = self.queues.get(now, key.air.address);
        let original = flow.take_data(now, segment, packet, queue);
        let id = flow.id();
        let restored = original
            .filter(|_| self.mode != Uplink::Sack)
            .and_then(|original| with_timestamp(packet, segment, original));
        if restored.is_some() {
            self.flows.events.push_back(timestamp_restored(id.0, segment.seq.0));
        }
        if self.mode != Uplink::Timestamps {
            let forwarded = restored.as_ref().unwrap_or(packet);
            let room = self.flows.room();
            let nack = self.flows.update(reference, |f| f.passed(now, segment, forwarded, room));
            self.send_nack(nack.flatten());
            self.schedule(now, reference);
        }
        restored
    }

    /// Takes an ACK of the fixed host that has departed to the mobile.
    pub(super) fn ack_departed(
        &mut self,
        now: Instant,
        key: &FlowKey,
        segment: &Segment,
        packet: &Packet,
    ) {
        let Some(reference) = self.flows.find(key) else { return };
        self.flows.update(reference, |flow| flow.ack_departed(now, segment, packet));
        self.resend(now, reference);
    }

    /// Sends on what was reported to the mobile and lost on the wire.
    fn resend(&mut self, now: Instant, reference: FlowRef) {
        while self.resends.len() < MAX_WAITING {
            let Some(flow) = self.flows.get_mut(reference) else { return };
            let Some(packet) = flow.take_lost(now) else { return };
            let id = flow.id().0;
            self.resends.push_back(packet);
            self.flows.events.push_back(Event::Own(OwnEvent {
                counter: "resent_reported_data",
                text: "flow {}: reported data sent on again",
                values: [id, 0],
                is_retransmission: false,
            }));
        }
    }

    fn send_nack(&mut self, nack: Option<Packet>) {
        let Some(nack) = nack.filter(|_| self.nacks.len() < MAX_WAITING) else { return };
        self.nacks.push_back(nack);
        self.flows.events.push_back(Event::Own(OwnEvent {
            counter: "negative_acks",
            text: "negative acknowledgment",
            values: [0, 0],
            is_retransmission: false,
        }));
    }

    /// The next packet of its own towards a port.
    pub(super) fn poll_transmit(&mut self, to: Port) -> Option<Packet> {
        match to {
            Port::Air => self.nacks.pop_front(),
            Port::Wired => self.resends.pop_front(),
        }
    }

    fn schedule(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get(reference) else { return };
        let (id, due) = (flow.id(), flow.silence_due());
        if let Some(at) = due {
            let why = Timer::of_flow("snoop-uplink", id);
            self.flows.schedule(reference, Deadline { at: at.max(now), why });
        }
    }

    /// A SYN or RST of one of the hosts passed.
    pub(super) fn connection_changed(&mut self, from: Port, key: &FlowKey, segment: &Segment) {
        self.flows.ends_connection(from, key, segment);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(reference) = self.flows.pop_due(now) {
            let nack = self.flows.get_mut(reference).and_then(|flow| flow.end_silence(now));
            self.send_nack(nack);
            self.schedule(now, reference);
        }
        self.flows.sweep(now);
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.flows.next_deadline()
    }

    /// The next event of its own; that the state of a flow comes and goes is none.
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        loop {
            let event = self.flows.events.pop_front()?;
            if matches!(event, Event::Own(_)) {
                return Some(event);
            }
        }
    }
}

/// A retransmission has the timestamp of its lost original.
pub(super) fn timestamp_restored(flow: u64, seq: u32) -> Event {
    Event::Own(OwnEvent {
        counter: "restored_timestamps",
        text: "flow {}: timestamp of {} restored",
        values: [flow, seq.into()],
        is_retransmission: false,
    })
}
