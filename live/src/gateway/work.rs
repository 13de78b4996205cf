//! The work of a turn: each packet that has crossed is handed to the agent, and what the agent
//! makes of it leaves.

use super::Gateway;
use super::arrival::{Arrival, Kind};
use super::error::GatewayError;
use super::handoff::{ForGateway, Word};
use super::outbound::Watched;
use super::pace::mobile;
use super::telemetry::Path;
use crate::clock;
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant, LinkSignal, Packet, Port, drain};
use std::cell::RefCell;
use std::time::Duration;

/// Repairs that leave at most before the next packet is looked at.
const BURST: usize = 64;
/// Turns that empty all queues, if nothing new comes.
const CLOSING_TURNS: usize = 64;

impl Gateway {
    /// Hands the agent what has come, as much as a turn may take.
    pub(super) fn work(&mut self) -> Result<(), GatewayError> {
        self.pace.begin(clock::monotonic());
        while let Some(arrival) = self.intake.next(&self.clock, self.pace.is_over()) {
            let now = self.beat()?;
            self.active_at = self.now.max(arrival.at);
            let waits = arrival.kind == Kind::Diverted;
            let wait = waits.then(|| self.clock.now().since(arrival.at));
            let is_long = self.pace.is_long(now, clock::thread_time);
            let Some(mobile) = is_long.then(|| mobile(&arrival)).flatten() else {
                self.waited(wait);
                self.take(arrival);
                continue;
            };
            if self.pace.admits(&mobile) {
                self.waited(wait);
                self.take(arrival);
                self.pace.charge(mobile, clock::thread_time());
            } else if let Some(oldest) = self.pace.postpone(mobile, arrival) {
                self.skip(&oldest);
            }
        }
        while let Some((mobile, arrival)) = self.pace.next_postponed() {
            self.beat()?;
            self.take(arrival);
            self.pace.charge(mobile, clock::thread_time());
        }
        Ok(())
    }

    /// Counts the time that an ACK has waited here for its verdict. Those that wait for their
    /// host's share of the time are not counted.
    fn waited(&mut self, wait: Option<Duration>) {
        if let Some(wait) = wait {
            self.journal.telemetry.ack_waited(wait);
        }
    }

    /// Ends the work: what is withheld or waits for a verdict leaves.
    pub(super) fn release(&mut self) -> Result<(), GatewayError> {
        self.forwarder.handle_link(self.now, LinkSignal::Stop);
        self.drain();
        while let Some((_, arrival)) = self.pace.take_next() {
            self.pass(&arrival);
        }
        for _ in 0..CLOSING_TURNS {
            self.collect()?;
            let mut is_empty = true;
            while let Some(arrival) = self.intake.next(&self.clock, true) {
                // Copies come as before.
                is_empty &= arrival.kind.from() == Port::Wired;
                self.pass(&arrival);
            }
            if is_empty && !self.intake.has_more() {
                break;
            }
        }
        Ok(())
    }

    /// Does without the agent: it has more to do than it can.
    fn skip(&mut self, arrival: &Arrival) {
        self.journal.telemetry.packets(Path::Unjudged, 1, 0);
        self.pass(arrival);
        if arrival.kind.from() == Port::Air {
            self.report_gap(&arrival.packet);
        }
    }

    /// Forwards a packet that waits for a verdict.
    fn pass(&mut self, arrival: &Arrival) {
        if arrival.kind == Kind::Diverted {
            self.outbound.send(Port::Wired, &arrival.packet);
        }
    }

    /// Signals to the agent that packets of this mobile's flow have crossed unseen.
    fn report_gap(&mut self, packet: &Packet) {
        let Ok(segment) = Segment::parse(packet) else { return };
        let gap = LinkSignal::ObservationGap(FlowKey::of(&segment, Port::Air));
        self.forwarder.handle_link(self.now, gap);
        self.drain();
    }

    /// Hands one packet to the agent.
    fn take(&mut self, arrival: Arrival) {
        let Arrival { at, kind, packet, damaged, has_gap } = arrival;
        self.now = self.now.max(at);
        if has_gap {
            // The kernel knows the flow by the same key, be the rest damaged.
            self.report_gap(&packet);
        }
        if let Some(shaper) = self.shaper.as_mut().filter(|_| !damaged) {
            shaper.packet(at, kind, &packet);
        }
        if kind == Kind::Repair {
            self.journal.departs(self.now, &packet);
            let gain = self.gain.iter_mut();
            gain.for_each(|gain| gain.packet(self.now, Port::Wired, &packet));
            self.forwarder.confirm_copy(self.now, Port::Air, &packet);
            self.drain();
            return;
        }
        let (from, passed) = (kind.from(), kind != Kind::Diverted);
        if damaged || !self.is_chosen(from, &packet) {
            if !passed {
                self.outbound.send(from.opposite(), &packet);
            }
            return;
        }
        self.journal.enters(from, &packet, passed);
        if let Some(handoff) = &mut self.handoff {
            handoff.packet(self.now, from, &packet);
        }
        if let Some(observer) = &mut self.observer {
            observer.packet(self.now, from, &packet);
            let trace = self.hop_trace.iter_mut();
            trace.for_each(|trace| trace.packet(self.now, from, &packet));
            self.journal.left_alone(self.now);
            return;
        }
        self.gain.iter_mut().for_each(|gain| gain.packet(self.now, from, &packet));
        if passed {
            self.forwarder.handle_copy(self.now, from, &packet);
        } else {
            self.forwarder.handle_packet(self.now, from, packet);
        }
        self.drain();
        self.journal.left_alone(self.now);
    }

    /// Takes the operator's word on a mobile host; a gateway without other stations needs none.
    pub fn hear(&mut self, word: &Word) {
        let now = self.now;
        self.handoff.iter_mut().for_each(|cooperation| cooperation.obey(now, word));
    }

    /// Takes part in handoffs.
    pub(super) fn cooperate(&mut self) {
        let Some(cooperation) = &mut self.handoff else { return };
        let now = self.now;
        let forwarder = &self.forwarder;
        cooperation.receive(now, &self.clock, &|flow| forwarder.air_round_trip(flow));
        while let Some(output) = cooperation.poll_output(now) {
            match output {
                ForGateway::Signal(signal) => self.forwarder.handle_link(now, signal),
                // What bears the mark is not copied to the agent.
                ForGateway::Unseen(packet) => self.outbound.send(Port::Air, &packet),
            }
        }
    }

    /// Whether the operator's rules let this packet's flow be mended; a flow that is not passes
    /// unseen from now on.
    fn is_chosen(&mut self, from: Port, packet: &Packet) -> bool {
        // A mobile's packets come because of data that was chosen, and bear a DSCP of their own.
        if self.config.rules.is_all() || from == Port::Air {
            return true;
        }
        let Ok(segment) = Segment::parse(packet) else { return false };
        let key = FlowKey::of(&segment, from);
        let chosen = self.config.rules.chooses(&key, dscp(packet, &segment));
        if !chosen {
            // If the kernel has no room for that, the next packet asks again.
            self.bpf.ignore(&key).ok();
        }
        chosen
    }

    /// Lets the agent act; says when it must be asked again.
    pub(super) fn drain(&mut self) -> Option<Instant> {
        let now = self.now;
        let journal = RefCell::new(&mut self.journal);
        let outbound = &mut self.outbound;
        let mut ports =
            Watched { outbound, journal: &journal, repairs: BURST, repaired: Vec::new() };
        let mut on_event = |event| journal.borrow_mut().event(now, event);
        let next = drain(&mut self.forwarder, now, &mut ports, &mut on_event);
        self.has_repairs = ports.repairs == 0;
        for repair in ports.repaired {
            if let Some(restoration) = self.forwarder.restoration(&repair) {
                // If the kernel has no room for that, the sender's packet leaves as it is.
                self.bpf.restore_timestamp(clock::monotonic(), &restoration).ok();
            }
        }
        next.map(|deadline| deadline.at)
    }
}

/// The codepoint of the differentiated services field.
fn dscp(packet: &Packet, segment: &Segment) -> u8 {
    let header = packet.bytes().get(usize::from(segment.network_offset)..).unwrap_or(&[]);
    match header {
        [first, tos, ..] if first >> 4 == 4 => tos >> 2,
        [first, second, ..] => (first & 0x0f) << 2 | second >> 6,
        _ => 0,
    }
}
