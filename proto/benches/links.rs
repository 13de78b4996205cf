//! What a packet costs on a link of each link protocol, both ends together: `cargo bench -p
//! airmend-proto --bench links`. Whole packets of 1,500 bytes one way, link ACKs the other, at
//! several loss rates, over a short path and over one on which TULIP sends repair frames.

use airmend_proto::agents::{AgentConfig, Limits, link_names};
use airmend_proto::random::{Purpose, Stream};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{Agent, Instant, LinkType, Packet, Port};
use std::collections::VecDeque;
use std::time::Duration;

const ROUNDS: usize = 21;
const PACKETS_PER_ROUND: usize = 20_000;
/// The time of a frame, of 1 Gb/s and of 17 Mb/s.
const STEPS: [Duration; 2] = [Duration::from_micros(12), Duration::from_micros(700)];
/// Frames that are on their way: 2.4 ms and 140 ms.
const IN_FLIGHT: usize = 200;
/// Packets that wait for the link, those in flight included.
const BACKLOG: u64 = 2 * IN_FLIGHT as u64;
/// Different packets, whose sequence numbers go once round.
const PACKETS: u32 = 4_096;

fn main() {
    println!("\nCost of a packet on a link, both ends: medians of {ROUNDS} rounds");
    println!(
        "{:>10}{:>8}{:>8}{:>12}{:>18}{:>16}",
        "agent", "ms", "loss", "ns/packet", "frames/packet", "ACKs/packet"
    );
    // The profile of the TULIP paper is for radios that take turns.
    for name in link_names().filter(|name| *name != "tulip99") {
        for (step, loss) in
            STEPS.into_iter().flat_map(|step| [0.0, 0.01, 0.1].map(|loss| (step, loss)))
        {
            let mut link = Link::new(name, step, loss);
            let mut nanos: Vec<f64> = (0..ROUNDS).map(|_| link.round()).collect();
            nanos.sort_by(f64::total_cmp);
            let delivered = link.delivered as f64;
            println!(
                "{name:>10}{:>8.1}{loss:>8}{:>12.0}{:>18.3}{:>16.3}",
                1e3 * step.as_secs_f64() * IN_FLIGHT as f64,
                nanos[ROUNDS / 2],
                link.frames as f64 / delivered,
                link.acks as f64 / delivered
            );
        }
    }
}

/// Two ends, and frames on their way from one to the other.
struct Link {
    from: Box<dyn Agent + Send>,
    to: Box<dyn Agent + Send>,
    now: Instant,
    step: Duration,
    losses: Stream,
    loss: f64,
    packets: Vec<Packet>,
    there: VecDeque<Option<Packet>>,
    handed: u64,
    delivered: u64,
    frames: u64,
    acks: u64,
}

impl Link {
    fn new(name: &str, step: Duration, loss: f64) -> Self {
        let config = AgentConfig::by_name(name).expect("a name of the registry");
        let end = |seed| config.build(Limits::default(), seed);
        let packet = |number| {
            let segment = SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 9, 0, 1], 5_000));
            let seq = SeqNumber(number * (u32::MAX / PACKETS + 1));
            segment.seq(seq).payload(&[7; 1_460]).build(LinkType::Ip)
        };
        Self {
            from: end(1),
            to: end(2),
            now: Instant::ZERO,
            step,
            losses: Stream::new(1, 0, 0, Purpose::Loss),
            loss,
            packets: (0..PACKETS).map(packet).collect(),
            there: VecDeque::new(),
            handed: 0,
            delivered: 0,
            frames: 0,
            acks: 0,
        }
    }

    /// Nanoseconds per packet.
    fn round(&mut self) -> f64 {
        let clock = std::time::Instant::now();
        let end = self.delivered + PACKETS_PER_ROUND as u64;
        while self.delivered < end {
            self.step();
        }
        clock.elapsed().as_nanos() as f64 / PACKETS_PER_ROUND as f64
    }

    /// The link takes one frame, and delivers one.
    fn step(&mut self) {
        self.now += self.step;
        if self.handed < self.delivered + BACKLOG {
            let packet = &self.packets[self.handed as usize % self.packets.len()];
            self.from.handle_packet(self.now, Port::Wired, packet);
            self.handed += 1;
        }
        for agent in [&mut self.from, &mut self.to] {
            if agent.poll_timeout().is_some_and(|deadline| deadline.at <= self.now) {
                agent.handle_timeout(self.now);
            }
            while agent.poll_event().is_some() {}
        }
        let frame = self.from.poll_transmit(self.now, Port::Air);
        self.frames += u64::from(frame.is_some());
        let is_lost = self.losses.happens(self.loss);
        self.there.push_back(frame.filter(|_| !is_lost));
        if self.there.len() > IN_FLIGHT
            && let Some(frame) = self.there.pop_front().flatten()
        {
            self.to.handle_packet(self.now, Port::Air, &frame);
        }
        while let Some(ack) = self.to.poll_transmit(self.now, Port::Air) {
            self.acks += 1;
            self.from.handle_packet(self.now, Port::Air, &ack);
        }
        while self.to.poll_transmit(self.now, Port::Wired).is_some() {
            self.delivered += 1;
        }
    }
}
