//! The modern snoop: repairs losses of the air hop for today's TCP, and masks only those losses
//! that are under repair.
//!
//! The rules are C-1 to C-18 of `docs/modern-snoop.md`. `data.rs` caches data of the fixed host,
//! `delivery.rs` reads the mobile's ACKs, `loss.rs` detects losses, `repair.rs` retransmits,
//! `ack.rs` masks loss signals, `timers.rs` probes the tail and ends masks whose hold budget is
//! spent.
//!
//! Round trips, reordering and delayed ACKs are estimated in `rtt.rs`, not configured.

mod ack;
mod budget;
mod cache;
mod data;
mod delivery;
mod flow;
mod handshake;
mod local_queue;
mod loss;
mod repair;
mod repairs;
mod rtt;
mod settings;
mod timers;

pub use rtt::WiredPath;
pub use settings::Settings;

use super::flow_table::FlowRef;
use super::flows::Flows;
use super::limits::Limits;
use super::settings::AgentSettings;
use crate::agent::{Agent, Class, Deadline, LinkSignal, Load, Port, Timer, Verdict};
use crate::event::Event;
use crate::packet::Packet;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use core::time::Duration;
use flow::Flow;
use handshake::Handshakes;
use repairs::Repairs;

/// The agent `snoop`. Data from the wired side is cached and repaired; data from the air side
/// passes.
#[derive(Debug)]
pub struct Snoop {
    settings: Settings,
    flows: Flows<Flow>,
    handshakes: Handshakes,
    /// The round trip of the air hop that a flow measured last.
    air_round_trip: Option<Duration>,
    repairs: Repairs,
    /// The retransmissions that wait in a queue of the runner, in its order.
    handed_over: VecDeque<(FlowRef, Span)>,
    /// Suppressed ACKs that are now forwarded to the sender.
    released: VecDeque<Packet>,
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
            released: VecDeque::new(),
            settings,
        }
    }

    fn event(&mut self, event: Event) {
        self.flows.events.push_back(event);
    }

    /// Parses a packet; returns its segment and the key of its flow. A packet that is not TCP is
    /// counted.
    fn parse(&mut self, from: Port, packet: &Packet) -> Option<(Segment, FlowKey)> {
        match Segment::parse(packet) {
            Ok(segment) => Some((segment, FlowKey::of(&segment, from))),
            Err(reason) => {
                self.event(Event::Bypassed(reason));
                None
            }
        }
    }

    /// A SYN, SYN-ACK or RST of the fixed host has gone on the air.
    fn handle_handshake(&mut self, now: Instant, key: FlowKey, flags: Flags, packet: &Packet) {
        self.handshakes.end(&key);
        if !flags.intersects(Flags::RST) {
            let interval = self.air_round_trip.map_or(handshake::LONGEST_INTERVAL, |air| air * 2);
            let interval = interval.clamp(handshake::LEAST_INTERVAL, handshake::LONGEST_INTERVAL);
            self.handshakes.begin(now, key, packet.clone(), interval);
        }
    }

    /// The next repetition.
    fn poll_handshake(&mut self, now: Instant) -> Option<Packet> {
        let (packet, attempt) = self.handshakes.poll_due(now)?;
        self.event(Event::HandshakeRepeated { attempt });
        Some(packet)
    }
}

impl AgentSettings for Settings {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        Self::set(self, name, value)
    }

    fn build(&self, limits: Limits, seed: u64) -> Box<dyn Agent + Send> {
        Box::new(Snoop::new(self.clone(), limits, seed))
    }

    fn clone_box(&self) -> Box<dyn AgentSettings> {
        Box::new(self.clone())
    }
}

impl Agent for Snoop {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Verdict {
        // The queue may drop a packet from the wired side, so such a packet is read when it
        // departs.
        if from != Port::Air {
            return Verdict::Pass;
        }
        let Some((segment, key)) = self.parse(from, packet) else { return Verdict::Pass };
        if !self.handshakes.is_empty() {
            self.handshakes.end(&key);
        }
        if !self.flows.ends_connection(from, &key, &segment) && segment.flags.intersects(Flags::ACK)
        {
            return self.handle_ack(now, &key, &segment, packet);
        }
        Verdict::Pass
    }

    fn handle_departure(&mut self, now: Instant, to: Port, packet: &Packet) {
        if to != Port::Air {
            return;
        }
        let Some((segment, key)) = self.parse(Port::Wired, packet) else { return };
        if self.flows.ends_connection(Port::Wired, &key, &segment) {
            self.handle_handshake(now, key, segment.flags, packet);
        } else if segment.seq_len() > 0 {
            self.handle_data(now, key, &segment, packet);
        }
    }

    fn confirm_departure(&mut self, now: Instant, to: Port, packet: &Packet) -> bool {
        if to == Port::Air {
            self.confirm_repair(now, packet);
        }
        true
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.run_timers(now);
    }

    fn handle_link(&mut self, _now: Instant, signal: LinkSignal) {
        let released = &mut self.released;
        let mut release = |flow: &mut Flow| {
            released.extend(flow.suppressed.take().map(|suppressed| suppressed.packet));
        };
        match signal {
            LinkSignal::ObservationGap(key) => {
                let Some(flow) = self.flows.find(&key) else { return };
                self.flows.update(flow, |flow| {
                    release(flow);
                    flow.forget_sent();
                });
            }
            LinkSignal::Stop => self.flows.update_all(release),
            _ => {}
        }
    }

    fn poll_transmit(&mut self, now: Instant, to: Port, class: Class) -> Option<Packet> {
        match (to, class) {
            (Port::Air, Class::Priority) => {
                self.poll_repair(now).or_else(|| self.poll_handshake(now))
            }
            (Port::Wired, Class::Normal) => self.released.pop_front(),
            _ => None,
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let handshake = self.handshakes.next_due();
        let handshake = handshake.map(|at| Deadline { at, why: Timer::new("snoop-handshake") });
        [self.flows.next_deadline(), handshake].into_iter().flatten().min_by_key(|next| next.at)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.flows.events.pop_front()
    }

    fn load(&self) -> Load {
        self.flows.load()
    }
}
