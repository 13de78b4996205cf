//! Small state is enumerated, not sampled: all 2^12 ways in which the first twelve frames of an
//! exchange can be lost on the air hop.
//!
//! A sender and a receiver of a few lines each talk through an agent over fixed delays. Whatever
//! is lost, the stream arrives intact and complete, no ACK reaches the sender above the highest
//! that the mobile sent, frames and state stay bounded, and an idle agent arms no timer.

#[path = "../common/mod.rs"]
mod common;
mod hosts;

use airmend_proto::agents::{self, AgentConfig, Limits};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Segment, Timestamps};
use airmend_proto::{Forwarder, Instant, Load, Packet, Port, Ports, Timer, drain};
use common::agents::forwarder;
use common::packet::Tcp;
use hosts::{Receiver, Sender};
use std::collections::BTreeMap;
use std::time::Duration;

const LOSSY_FRAMES: u32 = 12;
const SEGMENTS: u32 = 8;
const SEGMENT: u32 = 100;
const ISN: u32 = u32::MAX - 250;
const STREAM: u32 = SEGMENTS * SEGMENT;

const AIR_DELAY: Duration = Duration::from_millis(5);
/// So long that masks are brief for the sender, also one that needs none [C-13].
const WIRED_DELAY: Duration = Duration::from_millis(50);
const RETRANSMISSION_TIMEOUT: Duration = Duration::from_secs(1);
/// Within this time every timer but that of the idle flows has found nothing to do, unless it had
/// backed off.
const REST: Duration = Duration::from_secs(1);
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// What no loss pattern may exceed.
#[derive(Clone, Copy)]
struct Bounds {
    /// Frames on the air, both directions; sixteen without losses.
    frames: u32,
    /// Until the sender knows that all arrived.
    time: Duration,
    /// Whether the sender sees no sign of a loss before the hold budget is spent.
    hides_loss: bool,
}

/// Twelve losses cost the sender five timeouts at worst.
const PLAIN: Bounds = Bounds { frames: 48, time: Duration::from_secs(6), hides_loss: false };
/// And one at worst where they are mended locally.
const SNOOP95: Bounds = Bounds { time: Duration::from_secs(3), ..PLAIN };
const SNOOP: Bounds = Bounds { hides_loss: true, ..SNOOP95 };

/// Go-back-N sends once more what has arrived, and a timer of 1 s expires when the sender's does.
const GO_BACK_N: Bounds = Bounds { frames: 70, time: Duration::from_secs(4), hides_loss: false };

/// The shortest time for which snoop masks a hole here: two round trips of the air.
const HOLD_BUDGET: Duration = Duration::from_millis(20);

/// What each agent may take. One that mends nothing is bounded as passthrough is.
fn bounds(name: &str) -> Bounds {
    match name {
        "snoop" => SNOOP,
        "snoop95" | "snoop-nosuppress" => SNOOP95,
        "snoop-opnet" | "snoop-opnet-adaptive" => GO_BACK_N,
        _ => PLAIN,
    }
}

fn agent(name: &str, settings: &[(&str, &str)]) -> AgentConfig {
    let mut config = AgentConfig::by_name(name).expect("a name of the registry");
    // Agents without flows have no such setting.
    config.set("idle_timeout", "5s").ok();
    settings.iter().for_each(|(name, value)| config.set(name, value).expect("a setting"));
    config
}

#[test]
fn every_loss_pattern_through_every_agent() {
    for name in agents::names() {
        // Without SACK a host cannot say more, and snoop95 reads nothing more.
        let modern: &[bool] =
            if name.starts_with("snoop") && name != "snoop95" { &[false, true] } else { &[false] };
        enumerate(&agent(name, &[]), bounds(name), modern);
    }
    enumerate(&agent("snoop95", &[("dupack_threshold", "3")]), SNOOP95, &[false]);
    enumerate(&agent("snoop-opnet", &[("resend", "first")]), GO_BACK_N, &[false]);
}

#[test]
fn the_snoops_spare_the_sender_most_timeouts() {
    let [plain, snoop95, snoop] = ["plain", "snoop95", "snoop"].map(timeouts);
    assert!(snoop95 * 4 < plain, "{snoop95} timeouts with snoop95, {plain} without");
    assert!(snoop * 4 < plain, "{snoop} timeouts with snoop, {plain} without");
}

fn timeouts(name: &str) -> u32 {
    let (bounds, config) = (bounds(name), agent(name, &[]));
    let run = |pattern| {
        let losses = Losses { pattern, of: Lossy::Both };
        World::new(forwarder(&config, Limits::default()), losses, Hosts::OLD)
            .run(bounds)
            .unwrap()
            .timeouts
    };
    (0..1 << LOSSY_FRAMES).map(run).sum()
}

/// Runs every pattern of every kind; a failing run is logged step by step.
fn enumerate(config: &AgentConfig, bounds: Bounds, modern: &[bool]) {
    let make = || forwarder(config, Limits::default());
    let kinds = modern.iter().flat_map(|modern| [4, 8].map(|window| (window, *modern)));
    for (window, modern) in kinds {
        let hosts = Hosts { window, modern };
        for of in [Lossy::Both, Lossy::Data, Lossy::Acks] {
            for pattern in 0..1 << LOSSY_FRAMES {
                let losses = Losses { pattern, of };
                if let Err(error) = World::new(make(), losses, hosts).run(bounds) {
                    let mut again = World::new(make(), losses, hosts);
                    again.story = Some(String::new());
                    let _ = again.run(bounds);
                    let story = again.story.unwrap_or_default();
                    panic!("pattern {pattern:#014b} of {of:?}, {hosts:?}: {error}\n{story}");
                }
            }
        }
    }
}

/// Which frames on the air the bits of a pattern stand for, the lowest bit for the first.
#[derive(Clone, Copy, Debug)]
enum Lossy {
    Both,
    Data,
    Acks,
}

#[derive(Clone, Copy)]
struct Losses {
    pattern: u32,
    of: Lossy,
}

struct Outcome {
    timeouts: u32,
}

/// Where a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    FixedHost,
    BaseStation(Port),
    MobileHost,
}

/// Packets on their way; the earliest is taken first, and of those the one sent first.
#[derive(Default)]
struct Flights {
    packets: Vec<(Instant, Place, Packet)>,
    hit: u32,
    frames: u32,
    /// When each segment, by its sequence number, first crossed the air.
    crossed: BTreeMap<u32, Instant>,
}

/// What the two hosts are like.
#[derive(Clone, Copy, Debug)]
struct Hosts {
    /// Segments in flight.
    window: u32,
    /// Whether they use SACK and timestamps.
    modern: bool,
}

impl Hosts {
    const OLD: Self = Self { window: 4, modern: false };
}

struct World {
    agent: Forwarder,
    now: Instant,
    flights: Flights,
    losses: Losses,
    sender: Sender,
    receiver: Receiver,
    hides_loss: bool,
    /// ACKs in a row that had no new information for the sender.
    duplicates: u32,
    story: Option<String>,
}

/// The agent's view of both links; the air loses what the pattern says.
struct Links<'a> {
    flights: &'a mut Flights,
    losses: Losses,
    story: &'a mut Option<String>,
}

impl Ports for Links<'_> {
    fn can_send(&self, _now: Instant, _side: Port) -> bool {
        true
    }

    fn send(&mut self, now: Instant, side: Port, packet: Packet) {
        match side {
            Port::Air => {
                self.flights.cross_air(now, Place::MobileHost, packet, self.losses, self.story);
            }
            Port::Wired => self.flights.packets.push((now + WIRED_DELAY, Place::FixedHost, packet)),
        }
    }
}

impl Flights {
    fn cross_air(
        &mut self,
        now: Instant,
        to: Place,
        packet: Packet,
        losses: Losses,
        story: &mut Option<String>,
    ) {
        self.frames += 1;
        if let Some(data) = Tcp::read(&packet).filter(|tcp| tcp.sender == Port::Wired) {
            self.crossed.entry(data.seq.wrapping_sub(ISN)).or_insert(now);
        }
        let counted = match losses.of {
            Lossy::Both => true,
            Lossy::Data => to == Place::MobileHost,
            Lossy::Acks => to != Place::MobileHost,
        };
        let lost = counted && self.hit < LOSSY_FRAMES && losses.pattern >> self.hit & 1 == 1;
        self.hit += u32::from(counted);
        if lost {
            log(story, now, "lost on the air", &packet);
        } else {
            self.packets.push((now + AIR_DELAY, to, packet));
        }
    }

    /// The next arrival at or before `limit`.
    fn next(&mut self, limit: Instant) -> Option<(Instant, Place, Packet)> {
        let (index, first) = self.packets.iter().enumerate().min_by_key(|(_, packet)| packet.0)?;
        (first.0 <= limit).then(|| self.packets.remove(index))
    }
}

impl World {
    fn new(agent: Forwarder, losses: Losses, hosts: Hosts) -> Self {
        let Hosts { window, modern } = hosts;
        let mut agent = agent;
        connect(&mut agent);
        Self {
            agent,
            now: Instant::ZERO,
            flights: Flights::default(),
            losses,
            sender: Sender { window, echo: modern.then_some(0), ..Sender::default() },
            receiver: Receiver { modern, ..Receiver::default() },
            hides_loss: false,
            duplicates: 0,
            story: None,
        }
    }

    fn run(&mut self, bounds: Bounds) -> Result<Outcome, String> {
        self.hides_loss = bounds.hides_loss;
        self.sender.fill_window(self.now, &mut self.flights);
        while self.sender.acknowledged < STREAM {
            self.step()?;
            if self.now.since(Instant::ZERO) > bounds.time {
                return Err(format!("not complete after {:?}", bounds.time));
            }
        }
        if self.receiver.contiguous != STREAM {
            return Err("more was acknowledged to the sender than the receiver has".into());
        }
        self.finish()?;
        if self.flights.frames > bounds.frames {
            return Err(format!("{} frames on the air", self.flights.frames));
        }
        Ok(Outcome { timeouts: self.sender.timeouts })
    }

    /// The transfer is complete: what is under way arrives, and the agent comes to rest.
    fn finish(&mut self) -> Result<(), String> {
        while !self.flights.packets.is_empty() {
            self.step()?;
        }
        // An empty cache has nothing to retransmit, whatever timer still turns out to be early.
        let (rest, frames) = (self.now + REST, self.flights.frames);
        let mut late = 0;
        while let Some(deadline) = self.agent.poll_timeout() {
            late += u32::from(self.now >= rest && deadline.why != Timer::FLOW_IDLE);
            if late > 1 {
                return Err(format!("idle, but `{}` is armed", deadline.why));
            }
            if self.now >= rest + 2 * IDLE_TIMEOUT {
                return Err("the idle flow is never cleaned up".into());
            }
            self.step()?;
        }
        if self.flights.frames != frames {
            return Err("frames leave although everything was acknowledged".into());
        }
        match self.agent.load() {
            Load { flows: 0, cache_bytes: 0, cache_packets: 0 } => Ok(()),
            load => Err(format!("left are {load:?}")),
        }
    }

    /// Goes to what happens next.
    fn step(&mut self) -> Result<(), String> {
        let sending = self.sender.acknowledged < STREAM;
        let sender_due = self.sender.due.filter(|_| sending);
        let agent_due = self.agent.poll_timeout().map(|deadline| deadline.at);
        let due = [sender_due, agent_due].into_iter().flatten().min();
        let limit = due.unwrap_or(Instant::from_nanos(u64::MAX));
        match (self.flights.next(limit), due) {
            (Some((at, place, packet)), _) => {
                self.now = at;
                self.arrive(place, packet)?;
            }
            (None, Some(at)) => {
                self.now = self.now.max(at);
                if sender_due.is_some_and(|at| at <= self.now) {
                    self.sender.time_out(self.now, &mut self.flights);
                }
            }
            (None, None) => return Err("nothing is under way and no timer is armed".into()),
        }
        let mut links =
            Links { flights: &mut self.flights, losses: self.losses, story: &mut self.story };
        let mut deadline = drain(&mut self.agent, self.now, &mut links, &mut |_| {});
        if deadline.is_some_and(|deadline| deadline.at <= self.now) {
            // A departure may have shortened a time that is over then.
            deadline = drain(&mut self.agent, self.now, &mut links, &mut |_| {});
        }
        match deadline {
            Some(deadline) if deadline.at <= self.now => {
                Err(format!("`{}` is due again at once", deadline.why))
            }
            _ => Ok(()),
        }
    }

    /// [C-13] Until it has resent something itself the sender sees no sign of loss, neither a block
    /// above the ACK nor a third duplicate, for a hole that is younger than the hold budget.
    fn check_hidden(&mut self, ack: u32, blocks: &[(SeqNumber, SeqNumber)]) -> Result<(), String> {
        self.duplicates = if ack == self.sender.acknowledged { self.duplicates + 1 } else { 0 };
        let left_at = self.now.since(Instant::ZERO).saturating_sub(WIRED_DELAY);
        let sent_at = self.flights.crossed.get(&ack).map(|at| at.since(Instant::ZERO));
        let is_young = sent_at.is_some_and(|sent_at| left_at < sent_at + HOLD_BUDGET);
        let above = |left: SeqNumber| (ack + 1..STREAM).contains(&left.0.wrapping_sub(ISN));
        let shows_loss = self.duplicates >= 3 || blocks.iter().any(|(left, _)| above(*left));
        if self.hides_loss && self.sender.timeouts == 0 && is_young && shows_loss {
            return Err(format!("the sender sees the hole at {ack} already"));
        }
        Ok(())
    }

    fn arrive(&mut self, place: Place, packet: Packet) -> Result<(), String> {
        log(&mut self.story, self.now, &format!("at {place:?}"), &packet);
        let tcp = Tcp::read(&packet).ok_or("a broken packet left the agent")?;
        match place {
            Place::BaseStation(side) => self.agent.handle_packet(self.now, side, packet),
            Place::FixedHost => {
                let ack = tcp.ack.unwrap_or(ISN).wrapping_sub(ISN);
                if ack > self.receiver.highest_ack {
                    return Err(format!("ACK {ack}; highest {}", self.receiver.highest_ack));
                }
                let options = Segment::parse(&packet).map_err(|reason| reason.to_string())?.options;
                self.check_hidden(ack, options.sack.as_slice())?;
                if let Some(Timestamps { value, .. }) = options.timestamps {
                    self.sender.echo = Some(value);
                }
                self.sender.acknowledge(self.now, ack, &mut self.flights);
            }
            Place::MobileHost => {
                if !packet.bytes().ends_with(&tcp.payload()) {
                    return Err("the payload was changed".into());
                }
                let ack = self.receiver.receive(self.now, &tcp).packet(0);
                let to = Place::BaseStation(Port::Air);
                self.flights.cross_air(self.now, to, ack, self.losses, &mut self.story);
            }
        }
        Ok(())
    }
}

fn log(story: &mut Option<String>, now: Instant, what: &str, packet: &Packet) {
    let (Some(story), Some(tcp)) = (story, Tcp::read(packet)) else { return };
    let line = match tcp.sender {
        Port::Wired => format!("data {}", tcp.seq.wrapping_sub(ISN)),
        Port::Air => format!("ACK {}", tcp.ack.unwrap_or(ISN).wrapping_sub(ISN)),
    };
    story.push_str(&format!("  {now} {line} {what}\n"));
}

/// The handshake of the two hosts, of which nothing is lost.
fn connect(agent: &mut Forwarder) {
    let flags = Flags::SYN;
    let syn = Tcp { flags, ack: None, ..Tcp::new(0, Port::Wired, ISN.wrapping_sub(1), 0, 0) };
    let answer = Tcp { flags, window: 1_000, ..Tcp::new(0, Port::Air, 0, 0, ISN) };
    for (from, packet) in [(Port::Wired, syn), (Port::Air, answer)] {
        agent.handle_packet(Instant::ZERO, from, packet.packet(0));
        assert!(agent.poll_transmit(Instant::ZERO, from.opposite()).is_some());
    }
}
