//! Data that the mobile host sends: holes that the air made are seen here first, since what the
//! base station never saw was lost before it.
//!
//! `flow.rs` tracks the holes, and gives the retransmission that fills one the timestamp of the
//! lost original [C-27].

mod echo;
mod flow;

use super::hops::Hops;
use super::settings::{Settings, Uplink};
use crate::agent::Deadline;
use crate::agents::flows::Flows;
use crate::agents::limits::Limits;
use crate::event::{Event, OwnEvent};
use crate::packet::Packet;
use crate::port::Port;
use crate::time::Instant;
use crate::wire::edit::with_timestamp;
use crate::wire::flow::FlowKey;
use crate::wire::tcp::Segment;
use flow::UplinkFlow;

/// The flows of data from mobile to fixed hosts.
#[derive(Debug)]
pub(super) struct Uplinks {
    flows: Flows<UplinkFlow>,
    /// The hops in the mobile hosts.
    hops: Hops,
    mode: Uplink,
}

impl Uplinks {
    pub(super) fn new(settings: &Settings, limits: Limits, hash_seed: u64) -> Self {
        Self {
            flows: Flows::new(limits, settings.idle_timeout, hash_seed),
            hops: Hops::new(limits.flows, hash_seed),
            mode: settings.uplink,
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
        let hop = self.hops.get(now, key.air.address);
        let original = flow.take_data(now, segment, packet, hop);
        let id = flow.id();
        let restored = original.and_then(|original| with_timestamp(packet, segment, original));
        if restored.is_some() {
            self.flows.events.push_back(timestamp_restored(id.0, segment.seq.0));
        }
        restored
    }

    /// Takes an ACK of the fixed host that has departed to the mobile.
    pub(super) fn ack_departed(&mut self, now: Instant, key: &FlowKey, segment: &Segment) {
        let found = self.flows.find(key);
        if let Some(flow) = found.and_then(|reference| self.flows.get_mut(reference)) {
            flow.ack_departed(now, segment);
        }
    }

    /// A SYN or RST of one of the hosts passed.
    pub(super) fn connection_changed(&mut self, from: Port, key: &FlowKey, segment: &Segment) {
        self.flows.ends_connection(from, key, segment);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.flows.sweep(now);
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.flows.next_deadline()
    }

    /// The next event of its own.
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.flows.pop_own_event()
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
