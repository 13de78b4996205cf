//! The modern snoop: repairs losses of the air hop for today's TCP, and masks those under repair
//! that the sender would answer too soon.
//!
//! The rules are those of `docs/modern-snoop.md`. `data.rs` caches data of the fixed host,
//! `delivery.rs` reads the mobile's ACKs, `loss.rs` detects losses, `repair.rs` retransmits,
//! `ack.rs` forwards ACKs, `timers.rs` probes the tail and ends masks whose hold budget is spent.
//! What is masked, and for how long, is a strategy (`strategy.rs`): that of a base station, or that
//! of the sending host (`own_host/`).
//!
//! The hop to a mobile host is estimated in `hop.rs`, what one flow sees of it in `rtt.rs`, its
//! sender in `sender.rs`; nothing of that is configured.

mod ack;
#[cfg(test)]
mod adversary;
mod base_station;
mod budget;
mod cache;
mod data;
mod decision;
mod delivery;
mod flight;
mod flow;
mod handshake;
mod hop;
mod hops;
mod loss;
mod original_timestamp;
mod outstanding;
mod own;
mod own_host;
mod patience;
mod place;
mod probe;
mod queued_repair;
mod repair;
mod rtt;
mod sender;
mod settings;
mod strategy;
mod surplus;
mod tally;
mod timers;
mod ts_recent;
mod uplink;
mod window;

pub(crate) use decision::COUNTERS;
pub use settings::{Settings, Uplink};

use super::flows::Flows;
use super::limits::Limits;
use super::repairs::Repairs;
use super::settings::AgentSettings;
use crate::agent::{Agent, Deadline, LinkSignal, Load, Port, Restoration, Timer, Verdict};
use crate::event::{Event, FlowEnd};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use budget::SharedCredit;
use core::time::Duration;
use flow::Flow;
use handshake::{Handshakes, Opened};
use hops::Hops;
use outstanding::Spare;
use queued_repair::Repair;
use uplink::Uplinks;

/// The agent `snoop`. Data from the wired side is cached and repaired; data from the air side
/// passes.
#[derive(Debug)]
pub struct Snoop {
    settings: Settings,
    flows: Flows<Flow>,
    handshakes: Handshakes,
    /// The round trip of the air hop that a flow measured last.
    air_round_trip: Option<Duration>,
    repairs: Repairs<Repair>,
    /// The retransmissions that wait in a queue of the runner, in its order.
    handed_over: VecDeque<Repair>,
    shared: Shared,
    uplinks: Uplinks,
}

/// The state that all flows share.
#[derive(Debug)]
struct Shared {
    /// What all flows may retransmit beyond what they have earned.
    credit: SharedCredit,
    /// The hops to the mobile hosts.
    hops: Hops,
    /// Places for what flows have in flight.
    spare: Spare,
}

/// The sequence number of a position.
fn seq(position: u64) -> SeqNumber {
    SeqNumber(position as u32)
}

impl Snoop {
    /// An agent without flows; `hash_seed` should be secret where hosts are not trusted.
    pub fn new(settings: Settings, limits: Limits, hash_seed: u64) -> Self {
        Self {
            flows: Flows::new(limits, settings.idle_timeout, hash_seed),
            handshakes: Handshakes::default(),
            air_round_trip: None,
            repairs: Repairs::new(limits.egress.air),
            handed_over: VecDeque::new(),
            shared: Shared {
                credit: SharedCredit::default(),
                hops: Hops::new(limits.flows, hash_seed),
                spare: Spare::default(),
            },
            uplinks: Uplinks::new(&settings, limits, hash_seed),
            settings,
        }
    }

    fn event(&mut self, event: Event) {
        self.flows.events.push_back(event);
    }

    /// A SYN or SYN-ACK of the fixed host has departed to the air.
    fn handle_fixed_syn(&mut self, now: Instant, key: FlowKey, segment: &Segment, packet: &Packet) {
        let interval = self.air_round_trip.map_or(handshake::LONGEST_INTERVAL, |air| air * 2);
        let interval = interval.clamp(handshake::LEAST_INTERVAL, handshake::LONGEST_INTERVAL);
        self.handshakes.fixed_sent(now, key, segment, packet.clone(), interval);
    }

    /// Processes a SYN or RST of one of the hosts, which passes. Neither ends the state of a flow
    /// unless the other host believes it (RFC 5961 §3.2 and §4.2): an RST must lie where the flow
    /// is, and a SYN must be answered.
    fn handle_connection_change(&mut self, from: Port, key: &FlowKey, segment: &Segment) {
        self.event(Event::ConnectionChange(from));
        self.uplinks.connection_changed(from, key, segment);
        if !segment.flags.intersects(Flags::RST) {
            return;
        }
        self.handshakes.end(key);
        if let Some(flow) = self.flows.find(key)
            && self.flows.get(flow).is_some_and(|flow| flow.believes_reset(from, segment))
        {
            self.flows.end(flow, FlowEnd::Closed);
        }
    }

    /// Whether this is an ACK of a flow that is there, and so cannot answer a SYN: a stranger's SYN
    /// may have a number close below it.
    fn is_of_known_flow(&self, key: &FlowKey, segment: &Segment) -> bool {
        let flow = self.flows.find(key).and_then(|flow| self.flows.get(flow));
        !segment.flags.intersects(Flags::SYN) && flow.is_some_and(|flow| flow.covers(segment.ack))
    }

    /// Opens the flow of a connection that the mobile has accepted, in place of an older one.
    fn open_accepted(&mut self, now: Instant, key: FlowKey, opened: Opened) {
        if let Some(older) = self.flows.find(&key) {
            self.flows.end(older, FlowEnd::Reopened);
        }
        let settings = &self.settings;
        self.flows.find_or_open(now, key, |base| Flow::accepted(base, opened, settings));
    }

    /// The next repetition.
    fn poll_handshake(&mut self, now: Instant) -> Option<Packet> {
        let (packet, attempt) = self.handshakes.poll_due(now)?;
        self.event(Event::HandshakeRepeated { attempt });
        Some(packet)
    }
}

impl AgentSettings for Settings {
    fn build(&self, limits: Limits, seed: u64) -> Box<dyn Agent + Send> {
        Box::new(Snoop::new(self.clone(), limits, seed))
    }
}

impl Agent for Snoop {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Verdict {
        // The queue may drop a packet from the wired side, so such a packet is read when it
        // departs.
        if from != Port::Air {
            return self.restore_timestamp(now, packet);
        }
        let parsed = Segment::parse(packet);
        let segment = match &parsed {
            Ok(segment) => segment,
            &Err(reason) => {
                self.event(Event::Bypassed(reason));
                return Verdict::Pass;
            }
        };
        let key = FlowKey::of(segment, from);
        if !self.handshakes.is_empty()
            && !self.is_of_known_flow(&key, segment)
            && let Some(opened) = self.handshakes.mobile_answers(&key, segment)
        {
            self.open_accepted(now, key, opened);
        }
        if segment.flags.intersects(Flags::SYN.union(Flags::RST)) {
            self.handle_connection_change(from, &key, segment);
            if !segment.flags.intersects(Flags::ACK.union(Flags::RST)) {
                self.handshakes.mobile_sent(now, key, segment);
            }
            return Verdict::Pass;
        }
        if !segment.flags.intersects(Flags::ACK) {
            return Verdict::Pass;
        }
        if self.take_nack(now, &key, segment, packet) {
            return Verdict::Withhold;
        }
        let Some(restored) = self.uplinks.take_data(now, key, segment, packet) else {
            return self.handle_ack(now, &key, segment, packet);
        };
        match self.handle_ack(now, &key, segment, &restored) {
            Verdict::Pass => Verdict::Replace(restored),
            verdict => verdict,
        }
    }

    /// Data that the kernel has sent keeps its timestamp, and is not withheld.
    fn handle_copy(&mut self, now: Instant, from: Port, packet: &Packet) {
        if from == Port::Air {
            let _too_late = self.handle_packet(now, from, packet);
        }
        self.handle_departure(now, from.opposite(), packet);
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
        if segment.flags.intersects(Flags::SYN.union(Flags::RST)) {
            self.handle_connection_change(Port::Wired, &key, segment);
            if !segment.flags.intersects(Flags::RST) {
                self.handle_fixed_syn(now, key, segment, packet);
            }
            return;
        }
        self.uplinks.ack_departed(now, &key, segment);
        if segment.seq_len() > 0 {
            self.handle_data(now, key, segment, packet);
        }
    }

    fn confirm_departure(&mut self, now: Instant, to: Port, packet: &Packet) -> bool {
        if to == Port::Air {
            self.confirm_repair(now, packet);
        }
        true
    }

    fn restoration(&self, repair: &Packet) -> Option<Restoration> {
        self.restoration_of(repair)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.run_timers(now);
    }

    fn handle_link(&mut self, _now: Instant, signal: LinkSignal) {
        match signal {
            LinkSignal::ObservationGap(key) => {
                let Some(flow) = self.flows.find(&key) else { return };
                self.flows.release(flow);
                self.flows.update(flow, Flow::forget_sent);
            }
            LinkSignal::Stop => self.flows.release_all(),
            LinkSignal::MobileLeft(mobile) => self.flows.leave(&mobile),
            LinkSignal::AirRoundTrip(round_trip) => {
                self.settings.initial_rtt = round_trip;
                self.air_round_trip = Some(round_trip);
            }
            _ => {}
        }
    }

    fn poll_enqueue(&mut self) -> Option<(Port, Packet)> {
        Some((Port::Wired, self.flows.released.pop_front()?))
    }

    fn poll_transmit(&mut self, now: Instant, to: Port) -> Option<Packet> {
        if to == Port::Wired {
            return None;
        }
        if !self.repairs.is_empty()
            && let Some(packet) = self.poll_repair(now)
        {
            return Some(packet);
        }
        if self.handshakes.is_empty() { None } else { self.poll_handshake(now) }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        if !self.flows.released.is_empty() {
            // A departure has ended a flow; the runner polls after the timeout.
            return Some(Deadline { at: Instant::ZERO, why: Timer::new("snoop-release") });
        }
        let handshake = self.handshakes.next_due();
        let handshake = handshake.map(|at| Deadline { at, why: Timer::new("snoop-handshake") });
        let due = [self.flows.next_deadline(), self.uplinks.next_deadline(), handshake];
        due.into_iter().flatten().min_by_key(|deadline| deadline.at)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.flows.events.pop_front().or_else(|| self.uplinks.poll_event())
    }

    fn air_round_trip(&self, flow: &FlowKey) -> Option<Duration> {
        let air = &self.flows.get(self.flows.find(flow)?)?.air;
        (air.min() > Duration::ZERO).then(|| air.srtt())
    }

    fn repair_credit(&self) -> Option<u64> {
        Some(budget::SHARED.into())
    }

    fn load(&self) -> Load {
        self.flows.load()
    }

    fn unanswered(&self) -> usize {
        self.flows.unanswered()
    }
}
