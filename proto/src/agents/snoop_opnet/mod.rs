//! The Snoop agent of the OPNET study [snoop-opnet]: caches the data of the sender, retransmits all
//! of it from the first lost packet on, and suppresses the duplicate ACKs.
//!
//! The agent of the paper is in the sending host: the wired port is TCP/IP, the air port the MAC
//! layer. A base station may run it too. Its five states are methods: Init is
//! [`SnoopOpnet::new`], Wait is the time between two calls, Snoop_Data is `data.rs`, Snoop_Ack
//! `ack.rs`, and Timeout `timers.rs` [snoop-opnet §3.5; S3-03]. `resend.rs` is the go-back-N of the
//! last two.

mod ack;
mod cache;
mod counters;
mod data;
mod flow;
mod resend;
mod settings;
mod timers;

pub(crate) use counters::COUNTERS;
pub use settings::{Resend, Settings, TimerPeriod};

use super::flow_table::FlowRef;
use super::flows::Flows;
use super::limits::Limits;
use super::repairs::Repairs;
use super::settings::AgentSettings;
use crate::agent::{Agent, Deadline, LinkSignal, Load, Port, Timer, Verdict};
use crate::event::Event;
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::tcp::{Flags, Segment};
use alloc::boxed::Box;
use counters::CacheCounters;
use flow::Flow;

/// The agent `snoop-opnet`. Data from the wired side is cached and retransmitted; data from the air
/// side passes.
#[derive(Debug)]
pub struct SnoopOpnet {
    settings: Settings,
    /// The connection table [S3-05], with the cached packets of each connection [S3-04].
    flows: Flows<Flow>,
    counters: CacheCounters,
    /// The flows that have packets to retransmit.
    resending: Repairs<FlowRef>,
}

impl SnoopOpnet {
    /// An agent without flows; `hash_seed` should be secret where hosts are not trusted.
    pub fn new(settings: Settings, limits: Limits, hash_seed: u64) -> Self {
        Self {
            flows: Flows::new(limits, settings.idle_timeout, hash_seed),
            counters: CacheCounters::default(),
            resending: Repairs::new(limits.egress.air),
            settings,
        }
    }

    fn event(&mut self, event: Event) {
        self.flows.events.push_back(event);
    }
}

impl AgentSettings for Settings {
    fn build(&self, limits: Limits, seed: u64) -> Box<dyn Agent + Send> {
        Box::new(SnoopOpnet::new(self.clone(), limits, seed))
    }

    fn hold_window(&mut self, packets: usize) {
        self.cache_packets = self.cache_packets.max(packets);
    }
}

impl Agent for SnoopOpnet {
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
            Port::Wired => self.judge_data(now, &key, segment),
            Port::Air => {
                let ends = self.flows.ends_connection(from, &key, segment);
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
        // [S3-06] A pure ACK belongs to data of the opposite direction.
        if !self.flows.ends_connection(Port::Wired, &key, segment) && segment.seq_len() > 0 {
            self.snoop_data(now, key, segment, packet);
        }
    }

    fn confirm_departure(&mut self, _now: Instant, to: Port, packet: &Packet) -> bool {
        to == Port::Wired || self.is_needed(packet)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.run_timers(now);
    }

    fn handle_link(&mut self, _now: Instant, signal: LinkSignal) {
        match signal {
            LinkSignal::ObservationGap(key) => {
                if let Some(flow) = self.flows.find(&key) {
                    self.flows.release(flow);
                }
            }
            LinkSignal::Stop => self.flows.release_all(),
            LinkSignal::MobileLeft(mobile) => self.flows.leave(&mobile),
            _ => {}
        }
    }

    fn poll_enqueue(&mut self) -> Option<(Port, Packet)> {
        Some((Port::Wired, self.flows.released.pop_front()?))
    }

    fn poll_transmit(&mut self, _now: Instant, to: Port) -> Option<Packet> {
        match to {
            Port::Air => self.poll_resend(),
            Port::Wired => None,
        }
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        if !self.flows.released.is_empty() {
            // A departure has ended a flow; the runner polls after the timeout.
            return Some(Deadline { at: Instant::ZERO, why: Timer::new("snoop-release") });
        }
        self.flows.next_deadline()
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.flows.events.pop_front();
        event.or_else(|| self.counters.next_event(self.flows.load().cache_packets))
    }

    fn load(&self) -> Load {
        self.flows.load()
    }

    fn unanswered(&self) -> usize {
        self.flows.unanswered()
    }
}
