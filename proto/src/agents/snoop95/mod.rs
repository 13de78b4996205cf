//! The 1995 Snoop agent [snoop95]: caches data for mobile hosts, retransmits it locally, and
//! suppresses the duplicate ACKs that a lossy air hop causes.
//!
//! Before working on this file, read sections 3.1 and 4 of the paper. `data.rs` is its
//! `snoop_data()`, `ack.rs` its `snoop_ack()`, `timers.rs` its two timers, `cache.rs` its circular
//! buffer, and `uplink/` its section 3.2, data from the mobile. Every reading of an ambiguous
//! passage is in `docs/conformance.md`.

mod ack;
mod cache;
mod data;
mod flow;
mod repair;
mod settings;
mod timers;
mod uplink;

pub use settings::{Settings, Uplink};

use super::flow_table::FlowRef;
use super::flows::Flows;
use super::limits::Limits;
use super::repairs::Repairs;
use super::settings::AgentSettings;
use crate::agent::{Agent, Deadline, LinkSignal, Load, Port, Verdict};
use crate::event::Event;
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;
use flow::Flow;
use uplink::Uplinks;

/// The counters of the agent's own events.
pub(crate) const COUNTERS: &[&str] = &[uplink::NEGATIVE_ACKS, cache::RESENT_CACHED];

/// The agent `snoop95`. Data from the wired side is cached and repaired; data from the air side
/// passes, and what is missing of it can be reported to the mobile.
#[derive(Debug)]
pub struct Snoop95 {
    settings: Settings,
    flows: Flows<Flow>,
    repairs: Repairs<(FlowRef, SeqNumber)>,
    /// ACKs of the mobile that are repeated to the sender [S0-12], or no longer withheld.
    repeated_acks: VecDeque<Packet>,
    uplinks: Uplinks,
}

impl Snoop95 {
    /// An agent without flows; `hash_seed` should be secret where hosts are not trusted.
    pub fn new(settings: Settings, limits: Limits, hash_seed: u64) -> Self {
        Self {
            flows: Flows::new(limits, settings.idle_timeout, hash_seed),
            repairs: Repairs::new(limits.egress.air),
            repeated_acks: VecDeque::new(),
            uplinks: Uplinks::new(&settings, limits, hash_seed),
            settings,
        }
    }

    fn event(&mut self, event: Event) {
        self.flows.events.push_back(event);
    }
}

impl AgentSettings for Settings {
    fn build(&self, limits: Limits, seed: u64) -> Box<dyn Agent + Send> {
        Box::new(Snoop95::new(self.clone(), limits, seed))
    }

    fn hold_window(&mut self, packets: usize) {
        Self::hold_window(self, packets);
    }
}

impl Agent for Snoop95 {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Verdict {
        let parsed = Segment::parse(packet);
        let segment = match &parsed {
            Ok(segment) => segment,
            &Err(reason) => {
                // A packet from the wired side is counted when it departs.
                if from == Port::Air {
                    self.event(Event::Bypassed(reason));
                }
                return Verdict::Pass;
            }
        };
        let key = FlowKey::of(segment, from);
        match from {
            Port::Wired if segment.flags.intersects(Flags::SYN.union(Flags::RST)) => Verdict::Pass,
            Port::Wired => self.repeat_ack(now, &key, segment),
            Port::Air => {
                let ends = self.flows.ends_connection(from, &key, segment);
                self.uplinks.connection_changed(from, &key, segment);
                self.uplinks.take_data(now, key, segment);
                if ends || !segment.flags.intersects(Flags::ACK) {
                    return Verdict::Pass;
                }
                self.snoop_ack(now, &key, segment, packet)
            }
        }
    }

    fn handle_departure(&mut self, now: Instant, to: Port, packet: &Packet) {
        if to != Port::Air {
            return;
        }
        let parsed = Segment::parse(packet);
        let segment = match &parsed {
            Ok(segment) => segment,
            &Err(reason) => return self.event(Event::Bypassed(reason)),
        };
        let key = FlowKey::of(segment, Port::Wired);
        self.uplinks.connection_changed(Port::Wired, &key, segment);
        self.uplinks.ack_departed(now, &key, segment, packet);
        if !self.flows.ends_connection(Port::Wired, &key, segment) && segment.seq_len() > 0 {
            self.snoop_data(now, key, segment, packet);
        }
    }

    fn confirm_departure(&mut self, _now: Instant, to: Port, packet: &Packet) -> bool {
        if self.settings.fast_queue {
            // The agent counts such a retransmission when it hands it over.
            return true;
        }
        let Ok(segment) = Segment::parse(packet) else { return true };
        let flow = self.flows.find(&FlowKey::of(&segment, to.opposite()));
        to == Port::Wired || flow.is_some_and(|flow| self.depart_repair(flow, segment.seq))
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.run_timers(now);
        self.uplinks.handle_timeout(now);
    }

    fn handle_link(&mut self, _now: Instant, signal: LinkSignal) {
        let released = &mut self.repeated_acks;
        let release = |flow: &mut Flow| released.extend(flow.withheld.take());
        match signal {
            LinkSignal::ObservationGap(key) => {
                if let Some(flow) = self.flows.find(&key) {
                    self.flows.update(flow, release);
                }
            }
            LinkSignal::Stop => self.flows.update_all(release),
            LinkSignal::MobileLeft(mobile) => {
                self.flows.leave(&mobile);
                self.uplinks.mobile_left(&mobile);
            }
            LinkSignal::AirRoundTrip(round_trip) => self.settings.initial_srtt = round_trip,
            _ => {}
        }
    }

    fn poll_enqueue(&mut self) -> Option<(Port, Packet)> {
        if let Some(ack) = self.repeated_acks.pop_front() {
            return Some((Port::Wired, ack));
        }
        let repair = if self.settings.fast_queue { None } else { self.poll_repair() };
        Some((Port::Air, repair?))
    }

    fn poll_transmit(&mut self, _now: Instant, to: Port) -> Option<Packet> {
        if to == Port::Wired {
            return None;
        }
        let is_fast = self.settings.fast_queue && !self.repairs.is_empty();
        let repair = if is_fast { self.poll_repair() } else { None };
        repair.or_else(|| self.uplinks.poll_transmit())
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let deadlines = [self.flows.next_deadline(), self.uplinks.next_deadline()];
        deadlines.into_iter().flatten().min_by_key(|deadline| deadline.at)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.flows.events.pop_front().or_else(|| self.uplinks.poll_event())
    }

    fn air_round_trip(&self, flow: &FlowKey) -> Option<Duration> {
        self.flows.get(self.flows.find(flow)?)?.srtt
    }

    fn load(&self) -> Load {
        self.flows.load()
    }

    fn unanswered(&self) -> usize {
        self.flows.unanswered()
    }
}
