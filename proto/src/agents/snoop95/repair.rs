//! Local retransmissions, in the priority or the normal class [snoop95 §3.1.2].

use super::Snoop95;
use crate::agent::Port;
use crate::agents::flow_table::FlowRef;
use crate::event::{Cause, Event};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;

impl Snoop95 {
    /// Queues a retransmission of a cached packet.
    pub(super) fn retransmit(
        &mut self,
        now: Instant,
        reference: FlowRef,
        seq: SeqNumber,
        cause: Cause,
    ) {
        let is_full = self.repairs.is_full();
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let Some(cached) = flow.cache.starting_at(seq) else { return };
        if cached.queued.is_some() {
            return;
        }
        if is_full {
            return self.event(Event::EgressDropped(Port::Air));
        }
        cached.queued = Some(cause);
        cached.retransmissions += 1;
        flow.spoil_measurement();
        // [S0-33] The first retransmission that a DUPACK causes starts the round-trip timer.
        if cause == Cause::DupAck || flow.round_trip_due.is_some() {
            flow.round_trip_due = Some(now + flow.round_trip_timeout(&self.settings));
        }
        if cause == Cause::DupAck {
            flow.recover = flow.arrived.max(flow.last_seq);
        }
        self.repairs.push((reference, seq));
    }

    /// The next retransmission that is still needed. In the normal class it has not departed yet.
    pub(super) fn poll_repair(&mut self) -> Option<Packet> {
        loop {
            let (reference, seq) = self.repairs.pop()?;
            let Some(flow) = self.flows.get_mut(reference) else { continue };
            let Some(cached) = flow.cache.starting_at(seq) else { continue };
            let packet = cached.packet.clone();
            if !self.settings.fast_queue || self.depart_repair(reference, seq) {
                return Some(packet);
            }
        }
    }

    /// Notes the departure of a retransmission; false if no retransmission of this packet is
    /// queued.
    pub(super) fn depart_repair(&mut self, reference: FlowRef, seq: SeqNumber) -> bool {
        let Some(flow) = self.flows.get_mut(reference) else { return false };
        let (id, sent_packets) = (flow.base.id, flow.sent_packets);
        let Some(cached) = flow.cache.starting_at(seq) else { return false };
        let Some(cause) = cached.queued.take() else { return false };
        cached.sent_index = sent_packets;
        let attempt = cached.retransmissions;
        self.event(Event::LocalRetransmit { flow: id, seq, cause, attempt });
        true
    }
}
