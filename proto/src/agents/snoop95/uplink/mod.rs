//! Data from a mobile host [snoop95 §3.2]: the base station reports to the mobile which of it the
//! air has lost, as SACK blocks of what has passed. The fixed host is not involved.
//!
//! `flow.rs` tracks what has passed. What was reported is not kept: if the wired network loses it,
//! the mobile's retransmission timer repairs, which ignores reports (RFC 2018 §8).

mod flow;

use super::settings::{Settings, Uplink};
use crate::agent::{Deadline, Timer};
use crate::agents::flow_table::FlowRef;
use crate::agents::flows::Flows;
use crate::agents::limits::Limits;
use crate::event::{Event, OwnEvent};
use crate::packet::Packet;
use crate::port::Port;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::tcp::Segment;
use alloc::collections::VecDeque;
use core::time::Duration;
use flow::UplinkFlow;

/// The most reports that wait to be sent.
const MAX_WAITING: usize = 64;

/// The flows of data from mobile to fixed hosts.
#[derive(Debug)]
pub(super) struct Uplinks {
    flows: Flows<UplinkFlow>,
    is_on: bool,
    threshold: u32,
    silence: Duration,
    nacks: VecDeque<Packet>,
}

impl Uplinks {
    pub(super) fn new(settings: &Settings, limits: Limits, hash_seed: u64) -> Self {
        Self {
            flows: Flows::new(limits, settings.idle_timeout, hash_seed),
            is_on: settings.uplink == Uplink::Sack,
            threshold: settings.nack_threshold,
            silence: settings.nack_silence,
            nacks: VecDeque::new(),
        }
    }

    /// Takes data that arrived from the mobile [S0-41].
    pub(super) fn take_data(&mut self, now: Instant, key: FlowKey, segment: &Segment) {
        if !self.is_on || segment.payload_len == 0 {
            return;
        }
        let open = |base| UplinkFlow::new(base, segment.seq);
        let Some(reference) = self.flows.find_or_open(now, key, open) else { return };
        let Some(flow) = self.flows.get_mut(reference) else { return };
        flow.take_data(now, segment, self.silence);
        if flow.packets_with_hole() >= self.threshold {
            self.report(reference);
        }
        self.schedule(now, reference);
    }

    /// Takes an ACK of the fixed host that has departed to the mobile.
    pub(super) fn ack_departed(
        &mut self,
        now: Instant,
        key: &FlowKey,
        segment: &Segment,
        packet: &Packet,
    ) {
        let found = self.flows.find(key).filter(|_| self.is_on);
        if let Some(flow) = found.and_then(|reference| self.flows.get_mut(reference)) {
            flow.ack_departed(now, segment, packet);
        }
    }

    fn report(&mut self, reference: FlowRef) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let id = flow.id().0;
        let Some(nack) = flow.report().filter(|_| self.nacks.len() < MAX_WAITING) else { return };
        self.nacks.push_back(nack);
        self.flows.events.push_back(Event::Own(OwnEvent {
            counter: NEGATIVE_ACKS,
            text: "flow {}: negative acknowledgment to the mobile",
            values: [id, 0],
            is_retransmission: false,
        }));
    }

    fn schedule(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get(reference) else { return };
        if let Some(due) = flow.silence_due() {
            let why = Timer::of_flow("snoop-nack", flow.id());
            self.flows.schedule(reference, Deadline { at: due.max(now), why });
        }
    }

    /// The next negative acknowledgment for a mobile.
    pub(super) fn poll_transmit(&mut self) -> Option<Packet> {
        self.nacks.pop_front()
    }

    /// A SYN or RST of one of the hosts passed.
    pub(super) fn connection_changed(&mut self, from: Port, key: &FlowKey, segment: &Segment) {
        if self.is_on {
            self.flows.ends_connection(from, key, segment);
        }
    }

    pub(super) fn mobile_left(&mut self, mobile: &[u8; 16]) {
        self.flows.leave(mobile);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(reference) = self.flows.pop_due(now) {
            if self.flows.get_mut(reference).is_some_and(|flow| flow.ends_silence(now)) {
                self.report(reference);
            }
            self.schedule(now, reference);
        }
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

/// The counter of negative acknowledgments.
pub(super) const NEGATIVE_ACKS: &str = "negative_acks";
