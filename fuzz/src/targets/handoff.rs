//! Bytes as the life of two base stations: mobile hosts that come and go, packets, and a backbone
//! that loses, repeats and changes messages, and on which a host with the key says anything.
//! The agents of both stations keep their rules, what was changed is refused and counted, and
//! without such a host no packet is forwarded that nobody sent.

use crate::input::Input;
use airmend_proto::agents::handoff::{Handoff, Key, Mobile, Output, StationId, Way, authenticate};
use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::flow::Endpoint;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{
    Agent, EgressLimits, Event, Forwarder, Instant, LinkType, Packet, Port, Ports, drain,
};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

const KEY: Key = Key([7; 32]);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
const SEGMENT: u32 = 100;
/// Messages under way at most; the oldest are lost.
const UNDER_WAY: usize = 256;
const REFUSED: [&str; 3] =
    ["handoff_messages_forged", "handoff_messages_malformed", "handoff_messages_version"];

struct Station {
    handoff: Handoff,
    forwarder: Forwarder<dyn Agent + Send>,
    counters: BTreeMap<&'static str, u64>,
}

struct World {
    now: Instant,
    stations: [Station; 2],
    /// Messages, and the stations that they are for.
    under_way: VecDeque<(usize, Vec<u8>)>,
    /// A host with the key has spoken: packets may be anything.
    has_traitor: bool,
}

/// Takes everything.
struct Sink;

impl Ports for Sink {
    fn can_send(&self, _: Instant, _: Port) -> bool {
        true
    }

    fn send(&mut self, _: Instant, _: Port, _: Packet) {}
}

pub(crate) fn fuzz(data: &[u8]) {
    let mut input = Input(data);
    let mut world = World {
        now: Instant::ZERO,
        stations: [Station::new(1), Station::new(2)],
        under_way: VecDeque::new(),
        has_traitor: false,
    };
    while !input.0.is_empty() {
        world.step(&mut input);
    }
}

impl Station {
    fn new(number: u32) -> Self {
        let agent = AgentConfig::by_name("snoop").unwrap().build(Limits::default(), 1);
        let limits = EgressLimits { air: 64, wired: 64 };
        Self {
            handoff: Handoff::new(StationId(number), 1_000, KEY),
            forwarder: Forwarder::checked(agent, limits, None),
            counters: BTreeMap::new(),
        }
    }

    fn refused(&self) -> u64 {
        REFUSED.iter().filter_map(|name| self.counters.get(name)).sum()
    }
}

impl World {
    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.byte();
        let at = usize::from(op >> 7);
        let mobile = mobile(op >> 5 & 3);
        match op & 15 {
            0 => self.now += Duration::from_millis(u64::from(input.byte())),
            1 => self.now += Duration::from_millis(10 * u64::from(input.byte())),
            2 => self.stations[at].handoff.mobile_attached(self.now, address(mobile)),
            3 => self.stations[at].handoff.mobile_approaches(self.now, address(mobile)),
            4 => self.stations[at].handoff.mobile_recedes(address(mobile)),
            5..=7 => self.packet(at, Port::Wired, &data(mobile, input.byte()), op & 16 != 0),
            8 => self.packet(at, Port::Air, &ack(mobile, input.byte()), op & 16 != 0),
            9..=11 => self.deliver(),
            12 => drop(self.under_way.pop_front()),
            13 => self.repeat(input.byte()),
            14 => self.change(input),
            _ => self.betray(at, input),
        }
        self.settle();
    }

    fn packet(&mut self, at: usize, from: Port, packet: &Packet, is_copy: bool) {
        let Station { handoff, forwarder, .. } = &mut self.stations[at];
        if is_copy {
            handoff.handle_copy(self.now, from, packet);
            forwarder.handle_copy(self.now, from, packet);
        } else if handoff.handle_packet(self.now, from, packet) == Way::Onward {
            forwarder.handle_packet(self.now, from, packet.clone());
        }
    }

    fn deliver(&mut self) {
        if let Some((to, message)) = self.under_way.pop_front() {
            self.give(to, &message);
        }
    }

    fn give(&mut self, to: usize, message: &[u8]) {
        let Station { handoff, forwarder, .. } = &mut self.stations[to];
        handoff.handle_message(self.now, message, &|flow| forwarder.air_round_trip(flow));
    }

    fn repeat(&mut self, which: u8) {
        let index = usize::from(which) % self.under_way.len().max(1);
        if let Some(message) = self.under_way.get(index).cloned() {
            self.under_way.push_back(message);
        }
    }

    /// Delivers a message with one bit changed.
    fn change(&mut self, input: &mut Input<'_>) {
        let Some((to, mut message)) = self.under_way.front().cloned() else { return };
        let bit = usize::from(input.word()) % (8 * message.len());
        message[bit / 8] ^= 1 << (bit % 8);
        self.settle();
        let before = self.stations[to].refused();
        self.give(to, &message);
        assert!(self.stations[to].handoff.poll_output().is_none(), "it has an effect");
        self.count();
        assert_eq!(self.stations[to].refused(), before + 1, "it is not counted");
    }

    /// A host with the key says anything.
    fn betray(&mut self, at: usize, input: &mut Input<'_>) {
        self.has_traitor = true;
        let len = usize::from(input.byte()).min(input.0.len());
        let (content, rest) = input.0.split_at(len);
        input.0 = rest;
        self.give(at, &authenticate(&KEY, content));
    }

    /// Lets everybody act until nobody has anything to do.
    fn settle(&mut self) {
        for number in 0..2 {
            let station = &mut self.stations[number];
            if station.handoff.poll_timeout() <= self.now {
                station.handoff.handle_timeout(self.now);
            }
            while let Some(output) = station.handoff.poll_output() {
                if let Output::Arrival { packet, .. } = &output {
                    assert!(self.has_traitor || is_genuine(packet), "{packet:?}");
                }
                if let Some((_, message)) = output.apply(self.now, &mut station.forwarder) {
                    self.under_way.push_back((1 - number, message));
                }
                let rules = &mut |event| assert!(!matches!(event, Event::RuleBroken(_)), "{event}");
                drain(&mut station.forwarder, self.now, &mut Sink, rules);
            }
            let rules = &mut |event| assert!(!matches!(event, Event::RuleBroken(_)), "{event}");
            drain(&mut station.forwarder, self.now, &mut Sink, rules);
        }
        let excess = self.under_way.len().saturating_sub(UNDER_WAY);
        self.under_way.drain(..excess);
        self.count();
    }

    fn count(&mut self) {
        for station in &mut self.stations {
            while let Some(event) = station.handoff.poll_event() {
                *station.counters.entry(event.counter()).or_default() += 1;
            }
        }
    }
}

fn mobile(number: u8) -> ([u8; 4], u16) {
    ([10, 0, 1, number], 5_000)
}

fn address(mobile: ([u8; 4], u16)) -> Mobile {
    Endpoint::from(mobile).address
}

fn data(mobile: ([u8; 4], u16), number: u8) -> Packet {
    SegmentBuilder::new(SERVER, mobile)
        .seq(SeqNumber(u32::from(number) * SEGMENT))
        .ack(SeqNumber(1))
        .flags(Flags::ACK)
        .payload(&[number; SEGMENT as usize])
        .build(LinkType::Ip)
}

fn ack(mobile: ([u8; 4], u16), number: u8) -> Packet {
    SegmentBuilder::new(mobile, SERVER)
        .seq(SeqNumber(1))
        .ack(SeqNumber(u32::from(number) * SEGMENT))
        .flags(Flags::ACK)
        .build(LinkType::Ip)
}

/// Whether it is a packet that [`data`] makes.
fn is_genuine(packet: &Packet) -> bool {
    let Ok(segment) = Segment::parse(packet) else { return false };
    let number = u8::try_from(segment.seq.0 / SEGMENT).unwrap_or(0);
    (0..4).any(|host| *packet == data(mobile(host), number))
}
