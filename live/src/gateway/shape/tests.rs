//! Meter and control at a hop that several mobiles share, in virtual time: a queue for each mobile
//! at the gateway, a FIFO beyond it, and mobiles that acknowledge as they like.

use super::control::{Control, INTERVAL};
use super::meter::Meter;
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{Instant, LinkType, Packet};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

/// A step of time, in seconds.
const STEP: f64 = 1e-4;
/// The hop carries so many bits per second, and its FIFO holds so many.
const CAPACITY: f64 = 40e6;
const LIMIT: f64 = 140.0 * 1514.0 * 8.0;
/// The round trip without a queue.
const ROUND_TRIP: f64 = 0.01;
/// What the honest mobile has, in its packets, and the hostile one in all of its flows.
const HONEST: f64 = 20e6;
const FULL: usize = 1448;
const HOSTILE: f64 = 0.67e6;
const FLOWS: u16 = 30;
const SMALL: usize = 100;
const HEADERS: usize = 66;
/// Payload in full packets.
const USEFUL: f64 = FULL as f64 / (FULL + HEADERS) as f64;

/// When a mobile acknowledges a packet that arrives now; the second number is the queue's delay.
type Delay = fn(f64, f64) -> f64;

/// What is sent to one mobile.
struct Mobile {
    address: [u8; 4],
    payload: usize,
    /// Bits per second that its servers send at most, at this time.
    offered: fn(f64) -> f64,
    /// Bytes that they have in flight at most.
    window: usize,
    delay: Delay,
    credit: f64,
    waiting: VecDeque<Packet>,
    next: Vec<u32>,
    turn: usize,
    in_flight: usize,
    arrived: u64,
}

impl Mobile {
    fn new(number: u8, flows: u16, payload: usize, offered: fn(f64) -> f64, delay: Delay) -> Self {
        Self {
            address: [10, 0, 1, number],
            payload,
            offered,
            window: 200_000,
            delay,
            credit: 0.0,
            waiting: VecDeque::new(),
            next: vec![0; flows.into()],
            turn: 0,
            in_flight: 0,
            arrived: 0,
        }
    }

    /// Full packets at this rate, acknowledged at once.
    fn honest(offered: fn(f64) -> f64) -> Self {
        Self::new(1, 1, FULL, offered, |_, _| 0.0)
    }

    /// Small packets of many flows.
    fn hostile(delay: Delay) -> Self {
        Self::new(2, FLOWS, SMALL, |_| HOSTILE, delay)
    }

    fn bits(&self) -> f64 {
        8.0 * (self.payload + HEADERS) as f64
    }

    /// What the servers send in a step.
    fn send(&mut self, now: f64) {
        self.credit = (self.credit + (self.offered)(now) * STEP).min(2.0 * self.bits());
        while self.credit >= self.bits() && self.in_flight < self.window {
            self.credit -= self.bits();
            self.in_flight += self.payload;
            self.turn = (self.turn + 1) % self.next.len();
            let seq = &mut self.next[self.turn];
            let to = (self.address, 5000 + self.turn as u16);
            let segment = SegmentBuilder::new(([10, 0, 0, 2], 80), to).seq(SeqNumber(*seq));
            *seq = seq.wrapping_add(self.payload as u32);
            let payload = vec![1; self.payload];
            self.waiting.push_back(segment.payload(&payload).build(LinkType::Ethernet));
        }
    }
}

/// A packet that has arrived: when its ACK comes, of which mobile, flow, and up to where.
type Ack = Reverse<(u64, usize, u16, u32)>;

struct Hop {
    meter: Meter,
    control: Control,
    mobiles: Vec<Mobile>,
    capacity: f64,
    now: f64,
    steps: u64,
    /// Bits that may leave the gateway, and the mobile whose turn it is.
    credit: f64,
    turn: usize,
    /// Bits in the FIFO; what is in it, with the time at which it arrives.
    queued: f64,
    acks: BinaryHeap<Ack>,
    sent: u64,
    queue_delays: Vec<f64>,
}

impl Hop {
    fn new(mobiles: Vec<Mobile>) -> Self {
        Self {
            meter: Meter::default(),
            control: Control::default(),
            mobiles,
            capacity: CAPACITY,
            now: 0.0,
            steps: 0,
            credit: 0.0,
            turn: 0,
            queued: 0.0,
            acks: BinaryHeap::new(),
            sent: 0,
            queue_delays: Vec::new(),
        }
    }

    /// Runs for so long; the rate that arrived at the first mobile, and the median of the time in
    /// the FIFO while that mobile was sent to.
    fn run(&mut self, seconds: f64) -> (f64, f64) {
        self.queue_delays.clear();
        let before = self.mobiles[0].arrived;
        let (mut active, end) = (0.0, self.now + seconds);
        while self.now < end {
            self.step();
            if (self.mobiles[0].offered)(self.now) > 0.0 {
                active += STEP;
                self.queue_delays.push(self.queued / self.capacity);
            }
        }
        let rate = 8.0 * (self.mobiles[0].arrived - before) as f64 / f64::max(active, STEP);
        self.queue_delays.sort_by(f64::total_cmp);
        (rate, self.queue_delays.get(self.queue_delays.len() / 2).copied().unwrap_or(0.0))
    }

    fn step(&mut self) {
        self.steps += 1;
        self.now = self.steps as f64 * STEP;
        for mobile in &mut self.mobiles {
            mobile.send(self.now);
        }
        self.queued = (self.queued - self.capacity * STEP).max(0.0);
        let rate = self.control.rate().unwrap_or(1e9);
        self.credit = (self.credit + rate * STEP).min((rate * 1e-3).max(2.0 * 1514.0 * 8.0));
        self.leave();
        self.acknowledge();
        if self.steps.is_multiple_of((INTERVAL.as_secs_f64() / STEP).round() as u64) {
            let interval = self.meter.take(INTERVAL, std::mem::take(&mut self.sent));
            self.control.step(&interval);
        }
    }

    /// Packets leave, of each mobile one in turn.
    fn leave(&mut self) {
        let mut idle = 0;
        while self.credit >= 0.0 && idle < self.mobiles.len() {
            self.turn = (self.turn + 1) % self.mobiles.len();
            let mobile = &mut self.mobiles[self.turn];
            let Some(packet) = mobile.waiting.pop_front() else {
                idle += 1;
                continue;
            };
            idle = 0;
            let bits = 8.0 * f64::from(packet.wire_len());
            self.credit -= bits;
            self.sent += u64::from(packet.wire_len());
            self.meter.left(time(self.now), &packet);
            let segment = airmend_proto::wire::tcp::Segment::parse(&packet).unwrap();
            if self.queued + bits > LIMIT {
                // Its repair comes at once.
                mobile.waiting.push_front(packet);
                continue;
            }
            self.queued += bits;
            let queue = self.queued / self.capacity;
            let arrives = self.now + ROUND_TRIP + queue;
            let at = arrives + (mobile.delay)(arrives, queue);
            let end = segment.seq.0.wrapping_add(segment.payload_len);
            let flow = segment.destination.port;
            self.acks.push(Reverse(((at / STEP) as u64, self.turn, flow, end)));
        }
    }

    fn acknowledge(&mut self) {
        while self.acks.peek().is_some_and(|Reverse((at, ..))| *at <= self.steps) {
            let Some(Reverse((_, number, port, end))) = self.acks.pop() else { return };
            let mobile = &mut self.mobiles[number];
            mobile.in_flight -= mobile.payload;
            mobile.arrived += mobile.payload as u64;
            let ack = SegmentBuilder::new((mobile.address, port), ([10, 0, 0, 2], 80))
                .ack(SeqNumber(end))
                .flags(Flags::ACK)
                .build(LinkType::Ethernet);
            self.meter.came(time(self.now), &ack);
        }
    }
}

fn time(seconds: f64) -> Instant {
    Instant::from_millis(1000) + Duration::from_secs_f64(seconds)
}

/// Five seconds of every ten.
fn at_times(now: f64) -> f64 {
    if now % 10.0 < 5.0 { HONEST } else { 0.0 }
}

/// Delays in turns: the least round trip stays small.
fn in_turns(now: f64, _: f64) -> f64 {
    if now % 2.0 < 0.2 { 0.0 } else { 0.06 }
}

/// Delays that seem to drain when the rate is lowered.
fn in_steps(now: f64, _: f64) -> f64 {
    if now % 0.9 < 0.3 { 0.0 } else { 0.2 * (now % 0.9) }
}

/// As if no queue ever stood.
fn against_the_queue(_: f64, queue: f64) -> f64 {
    (0.2 - queue).max(0.0)
}

const LIARS: [Delay; 3] = [in_turns, in_steps, against_the_queue];

#[test]
fn a_hostile_mobile_costs_an_honest_one_nothing_that_pauses() {
    for delay in LIARS {
        let mut calm = Hop::new(vec![Mobile::honest(at_times), Mobile::hostile(|_, _| 0.0)]);
        let mut hop = Hop::new(vec![Mobile::honest(at_times), Mobile::hostile(delay)]);
        let (without, with) = (calm.run(60.0), hop.run(60.0));
        println!("{without:?} {with:?} {:?}", hop.control.rate());
        assert!(with.0 >= 0.95 * without.0, "{without:?} {with:?}");
    }
}

#[test]
fn a_long_pause_costs_little() {
    fn rarely(now: f64) -> f64 {
        if (20.0..320.0).contains(&now) { 0.0 } else { HONEST }
    }
    for delay in LIARS {
        let mut hop = Hop::new(vec![Mobile::honest(rarely), Mobile::hostile(delay)]);
        hop.run(320.0);
        let rate = hop.control.rate();
        let (goodput, _) = hop.run(20.0);
        println!("{goodput} {rate:?}");
        assert!(goodput >= 0.95 * USEFUL * HONEST, "{goodput} {rate:?}");
    }
}

/// Who is alone from the beginning is believed until another one shows that there is more.
#[test]
fn a_mobile_that_comes_later_gets_its_rate() {
    fn late(now: f64) -> f64 {
        if now < 20.0 { 0.0 } else { HONEST }
    }
    for delay in LIARS {
        let mut hop = Hop::new(vec![Mobile::honest(late), Mobile::hostile(delay)]);
        hop.run(20.0);
        hop.run(60.0);
        let (goodput, _) = hop.run(10.0);
        println!("{goodput} {:?}", hop.control.rate());
        assert!(goodput >= 0.95 * USEFUL * HONEST, "{goodput} {:?}", hop.control.rate());
    }
}

#[test]
fn a_hostile_mobile_does_not_lengthen_the_queue_beyond() {
    let greedy: fn(f64) -> f64 = |_| 200e6;
    let mut calm = Hop::new(vec![Mobile::honest(greedy), Mobile::hostile(|_, _| 0.0)]);
    calm.run(15.0);
    let without = calm.run(30.0);
    for delay in LIARS {
        let mut hop = Hop::new(vec![Mobile::honest(greedy), Mobile::hostile(delay)]);
        hop.run(15.0);
        let with = hop.run(30.0);
        println!("{without:?} {with:?} {:?}", hop.control.rate());
        assert!(with.0 >= 0.95 * without.0, "{without:?} {with:?}");
        let ping = |queue: f64| queue + ROUND_TRIP;
        assert!(ping(with.1) <= 2.0 * ping(without.1), "{without:?} {with:?}");
    }
}

/// The only mobile that had the hop is believed at once, also where its senders wait for ACKs.
#[test]
fn a_hop_that_falls_to_a_fortieth_is_followed() {
    let mut hop = Hop::new(vec![Mobile::honest(|_| 200e6)]);
    hop.run(20.0);
    hop.capacity = 1e6;
    hop.run(5.0);
    let rate = hop.control.rate();
    assert!(rate.is_some_and(|rate| rate <= 1.1e6), "{rate:?}");
}

/// One that fell while nobody used it, by what its first flow shows.
#[test]
fn a_hop_that_fell_in_a_pause_is_followed() {
    fn pauses(now: f64) -> f64 {
        if (20.0..80.0).contains(&now) { 0.0 } else { 200e6 }
    }
    for share in [0.5, 0.25, 0.125] {
        let mut hop = Hop::new(vec![Mobile::honest(pauses)]);
        hop.run(80.0);
        hop.capacity = share * CAPACITY;
        hop.run(10.0);
        let rate = hop.control.rate();
        println!("{share} {rate:?}");
        assert!(rate.is_some_and(|rate| rate <= 1.05 * hop.capacity), "{share} {rate:?}");
    }
}
