//! What a packet costs in each agent, by the number of flows: `cargo bench -p airmend-proto`, with
//! `--bench agents -- NAME…` for these agents alone.
//!
//! Data comes from the wired side, and an ACK from the air for every second packet; each goes
//! through `drain`, as in every runner. Only the agent is timed: packets are made before the clock
//! starts, and a second reference keeps their memory from being freed before it stops. Cases take
//! turns in short rounds, so that a change of the machine's speed hits all of them alike.

use airmend_proto::agents::{self, AgentConfig, Limits};
use airmend_proto::random::{Purpose, Stream};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{Event, Forwarder, Instant, LinkType, Packet, Port, Ports, drain};
use std::collections::VecDeque;
use std::time::Duration;

const FLOWS: [u32; 3] = [1, 1_000, 100_000];
const ROUNDS: usize = 31;
/// Data packets of one case in one round: some milliseconds of work.
const DATA_PER_ROUND: usize = 8_192;
const PAYLOAD_LEN: u32 = 1_460;
/// Packets that are in flight after each ACK.
const IN_FLIGHT: u32 = 4;
/// Virtual time from one data packet to the next: 100,000 flows then take turns in 10 ms, and
/// none is silent for so long that a timer fires.
const STEP: Duration = Duration::from_nanos(100);

fn main() {
    let mut cases = cases();
    for _ in 0..ROUNDS {
        for case in &mut cases {
            case.round();
        }
    }
    println!(
        "\nCost of a packet (header-only unless full): medians of {ROUNDS} interleaved rounds"
    );
    println!(
        "{:<18}{:<10}{:>9}{:>11}{:>12}{:>11}{:>15}",
        "agent", "captured", "flows", "ns/packet", "to 1 flow", "to plain", "allocs/packet"
    );
    for case in &cases {
        let same = |flows, agent: &str| {
            let mut alike = cases.iter().filter(|c| c.capture == case.capture);
            alike.find(|c| c.flows == flows && c.name == agent).map(|c| case.median() / c.median())
        };
        let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}x"));
        println!(
            "{:<18}{:<10}{:>9}{:>11.1}{:>12}{:>11}{:>15.3}",
            case.name,
            case.capture.name(),
            case.flows,
            case.median(),
            ratio(same(1, case.name)),
            ratio(same(case.flows, "plain")),
            case.allocations
        );
    }
}

/// Every agent with every number of flows; whole packets only where their caches stay small.
fn cases() -> Vec<Case> {
    let chosen: Vec<_> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let is_chosen = |name: &&str| chosen.is_empty() || chosen.iter().any(|other| other == name);
    let mut cases = Vec::new();
    for (capture, counts) in [(Capture::Header, &FLOWS[..]), (Capture::Full, &FLOWS[..2])] {
        for name in agents::names().filter(is_chosen) {
            cases.extend(counts.iter().map(|&flows| Case::new(name, flows, capture)));
        }
    }
    cases
}

/// How much of a data packet is at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Capture {
    Header,
    Full,
}

impl Capture {
    fn name(self) -> &'static str {
        match self {
            Self::Header => "headers",
            Self::Full => "full",
        }
    }
}

/// One line of the table: an agent in steady state, and what was measured of it.
struct Case {
    name: &'static str,
    flows: u32,
    capture: Capture,
    forwarder: Forwarder,
    now: Instant,
    /// The flows' turns.
    order: Vec<u32>,
    /// Data packets so far; flow `order[turns % flows]` is next.
    turns: u64,
    /// Packets of the present round, and a second reference to them that outlives the flow's.
    arrivals: Vec<(Port, Packet)>,
    kept: VecDeque<Packet>,
    port: Sink,
    nanos_per_packet: Vec<f64>,
    allocations: f64,
}

impl Case {
    fn new(name: &'static str, flows: u32, capture: Capture) -> Self {
        let config = AgentConfig::by_name(name).expect("a name of the list");
        let limits = Limits::default();
        let mut case = Self {
            name,
            flows,
            capture,
            forwarder: Forwarder::new(config.build(limits, 1), limits.egress),
            now: Instant::ZERO,
            order: (0..flows).collect(),
            turns: 0,
            arrivals: Vec::with_capacity(2 * DATA_PER_ROUND),
            kept: VecDeque::new(),
            port: Sink { sent: Vec::with_capacity(2 * DATA_PER_ROUND) },
            nanos_per_packet: Vec::new(),
            allocations: 0.0,
        };
        // Flows open one after the other, and then come in another order than they lie in memory.
        case.warm_up(1);
        shuffle(&mut case.order);
        case.warm_up(2 * u64::from(IN_FLIGHT));
        case.prepare(DATA_PER_ROUND);
        let packets = case.arrivals.len() as f64;
        let counted = allocation_counter::measure(|| case.feed());
        case.allocations = counted.count_total as f64 / packets;
        case
    }

    /// Lets every flow have this many turns.
    fn warm_up(&mut self, turns: u64) {
        let mut left = turns * u64::from(self.flows);
        while left > 0 {
            let now = left.min(DATA_PER_ROUND as u64);
            self.prepare(now as usize);
            self.feed();
            left -= now;
        }
    }

    fn round(&mut self) {
        self.prepare(DATA_PER_ROUND);
        let packets = self.arrivals.len();
        let clock = std::time::Instant::now();
        self.feed();
        let nanos = clock.elapsed().as_nanos() as f64;
        self.nanos_per_packet.push(nanos / packets as f64);
        assert_eq!(self.port.sent.len(), packets, "{}: every packet passes", self.name);
    }

    /// The part that is measured.
    fn feed(&mut self) {
        for (from, packet) in self.arrivals.drain(..) {
            if from == Port::Wired {
                self.now += STEP;
            }
            self.forwarder.handle_packet(self.now, from, packet);
            drain(&mut self.forwarder, self.now, &mut self.port, &mut |event| match event {
                Event::AirRtt { .. } | Event::FlowOpened(_) => {}
                other => panic!("{}: no steady state: {other}", self.name),
            });
        }
    }

    /// Makes the next `data` data packets and the ACKs between them, and frees what was sent.
    fn prepare(&mut self, data: usize) {
        self.port.sent.clear();
        for _ in 0..data {
            let flow = self.order[(self.turns % u64::from(self.flows)) as usize];
            let turn = (self.turns / u64::from(self.flows)) as u32;
            self.arrivals.push((Port::Wired, data_packet(flow, turn, self.capture)));
            if let (1, Some(acked)) = (turn % 2, (turn + 1).checked_sub(IN_FLIGHT)) {
                self.arrivals.push((Port::Air, ack_packet(flow, acked)));
            }
            self.turns += 1;
        }
        self.kept.extend(self.arrivals.iter().map(|(_, packet)| packet.clone()));
        // Five packets a flow wait for their ACK at most, each with half an ACK packet.
        let lifetime = 8 * self.flows as usize + 2 * DATA_PER_ROUND;
        self.kept.drain(..self.kept.len().saturating_sub(lifetime));
    }

    fn median(&self) -> f64 {
        let mut sorted = self.nanos_per_packet.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

/// Both sides' ports: always free; what was sent is kept until the clock has stopped.
struct Sink {
    sent: Vec<Packet>,
}

impl Ports for Sink {
    fn can_send(&self, _now: Instant, _side: Port) -> bool {
        true
    }

    fn send(&mut self, _now: Instant, _side: Port, packet: Packet) {
        self.sent.push(packet);
    }
}

const MOBILE: ([u8; 4], u16) = ([192, 168, 0, 1], 80);
const FIRST_SEQ: u32 = 1;

fn fixed_host(flow: u32) -> ([u8; 4], u16) {
    ([10, 0, 0, (flow / 50_000) as u8], 10_000 + (flow % 50_000) as u16)
}

/// The flow's data packet number `turn`.
fn data_packet(flow: u32, turn: u32, capture: Capture) -> Packet {
    let segment = SegmentBuilder::new(fixed_host(flow), MOBILE)
        .seq(SeqNumber(FIRST_SEQ.wrapping_add(turn.wrapping_mul(PAYLOAD_LEN))))
        .ack(SeqNumber(1));
    match capture {
        Capture::Header => segment.payload_len(PAYLOAD_LEN).build(LinkType::Ip),
        Capture::Full => segment.payload(&[7; PAYLOAD_LEN as usize]).build(LinkType::Ip),
    }
}

/// The mobile's ACK of the flow's first `packets` data packets.
fn ack_packet(flow: u32, packets: u32) -> Packet {
    SegmentBuilder::new(MOBILE, fixed_host(flow))
        .seq(SeqNumber(1))
        .ack(SeqNumber(FIRST_SEQ.wrapping_add(packets.wrapping_mul(PAYLOAD_LEN))))
        .flags(Flags::ACK)
        .build(LinkType::Ip)
}

fn shuffle(order: &mut [u32]) {
    let mut stream = Stream::new(1, 0, 0, Purpose::Phase);
    for last in (1..order.len()).rev() {
        let other = ((1.0 - stream.uniform()) * (last + 1) as f64) as usize;
        order.swap(last, other);
    }
}
