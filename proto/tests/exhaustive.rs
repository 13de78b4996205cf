//! Small state is enumerated, not sampled: all 2^12 ways in which the first twelve frames of an
//! exchange can be lost on the air hop.
//!
//! A sender and a receiver of a few lines each talk through an agent over fixed delays. Whatever
//! is lost, the stream arrives intact and complete, no ACK reaches the sender above the highest
//! that the mobile sent, frames and state stay bounded, and an idle agent arms no timer.

mod common;

use airmend_proto::agents::Limits;
use airmend_proto::agents::plain::Plain;
use airmend_proto::agents::snoop95::{Settings, Snoop95};
use airmend_proto::{Instant, Packet, Ports, Side, Timer, drain};
use common::observed::Observed;
use common::packet::Tcp;
use std::collections::BTreeSet;
use std::time::Duration;

const LOSSY_FRAMES: u32 = 12;
const SEGMENTS: u32 = 8;
const SEGMENT: u32 = 100;
const ISN: u32 = u32::MAX - 250;
const STREAM: u32 = SEGMENTS * SEGMENT;

const AIR_DELAY: Duration = Duration::from_millis(5);
const WIRED_DELAY: Duration = Duration::from_millis(20);
const RETRANSMISSION_TIMEOUT: Duration = Duration::from_secs(1);
/// Within this time every timer but that of the idle flows has found nothing to do.
const REST: Duration = Duration::from_secs(1);
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// What no loss pattern may exceed.
#[derive(Clone, Copy)]
struct Bounds {
    /// Frames on the air, both directions; sixteen without losses.
    frames: u32,
    /// Until the sender knows that all arrived.
    time: Duration,
}

/// Twelve losses cost the sender five timeouts at worst.
const PLAIN: Bounds = Bounds { frames: 48, time: Duration::from_secs(6) };
/// And one at worst where they are mended locally.
const SNOOP95: Bounds = Bounds { frames: 48, time: Duration::from_secs(3) };

#[test]
fn every_loss_pattern_through_snoop95() {
    for dupack_threshold in [1, 3] {
        let settings =
            Settings { dupack_threshold, idle_timeout: IDLE_TIMEOUT, ..Settings::default() };
        enumerate(SNOOP95, || Snoop95::new(settings.clone(), Limits::default(), 1));
    }
}

#[test]
fn every_loss_pattern_through_plain() {
    enumerate(PLAIN, || Plain::new(Limits::default().egress));
}

#[test]
fn snoop95_spares_the_sender_most_timeouts() {
    let timeouts = |run: &dyn Fn(u32) -> Outcome| -> u32 {
        (0..1 << LOSSY_FRAMES).map(|pattern| run(pattern).timeouts).sum()
    };
    let plain = timeouts(&|pattern| {
        let plain = Plain::new(Limits::default().egress);
        World::new(plain, Losses { pattern, of: Lossy::Both }, 4).run(PLAIN).unwrap()
    });
    let settings = Settings { idle_timeout: IDLE_TIMEOUT, ..Settings::default() };
    let snoop95 = timeouts(&|pattern| {
        let snoop95 = Snoop95::new(settings.clone(), Limits::default(), 1);
        World::new(snoop95, Losses { pattern, of: Lossy::Both }, 4).run(SNOOP95).unwrap()
    });
    assert!(snoop95 * 4 < plain, "{snoop95} timeouts with snoop95, {plain} without");
}

/// Runs every pattern of every kind; a failing run is told step by step.
fn enumerate<A: Observed>(bounds: Bounds, make: impl Fn() -> A) {
    for of in [Lossy::Both, Lossy::Data, Lossy::Acks] {
        for window in [4, 8] {
            for pattern in 0..1 << LOSSY_FRAMES {
                let losses = Losses { pattern, of };
                if let Err(error) = World::new(make(), losses, window).run(bounds) {
                    let mut again = World::new(make(), losses, window);
                    again.story = Some(String::new());
                    let _ = again.run(bounds);
                    let story = again.story.unwrap_or_default();
                    panic!("pattern {pattern:#014b} of {of:?}, window {window}: {error}\n{story}");
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
    BaseStation(Side),
    MobileHost,
}

/// Packets on their way; the earliest is taken first, and of those the one sent first.
#[derive(Default)]
struct Flights {
    packets: Vec<(Instant, Place, Packet)>,
    hit: u32,
    frames: u32,
}

struct World<A> {
    agent: A,
    now: Instant,
    flights: Flights,
    losses: Losses,
    sender: Sender,
    receiver: Receiver,
    story: Option<String>,
}

/// Go-back-N with a fixed window and timeout.
struct Sender {
    window: u32,
    acknowledged: u32,
    next: u32,
    due: Option<Instant>,
    timeouts: u32,
}

/// Acknowledges every segment, and keeps what arrives out of order.
#[derive(Default)]
struct Receiver {
    segments: BTreeSet<u32>,
    contiguous: u32,
    highest_ack: u32,
}

/// The agent's view of both links; the air loses what the pattern says.
struct Links<'a> {
    flights: &'a mut Flights,
    losses: Losses,
    story: &'a mut Option<String>,
}

impl Ports for Links<'_> {
    fn can_send(&self, _now: Instant, _side: Side) -> bool {
        true
    }

    fn send(&mut self, now: Instant, side: Side, packet: Packet) {
        match side {
            Side::Air => {
                self.flights.cross_air(now, Place::MobileHost, packet, self.losses, self.story);
            }
            Side::Wired => self.flights.packets.push((now + WIRED_DELAY, Place::FixedHost, packet)),
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
        let counted = match losses.of {
            Lossy::Both => true,
            Lossy::Data => to == Place::MobileHost,
            Lossy::Acks => to != Place::MobileHost,
        };
        let lost = counted && self.hit < LOSSY_FRAMES && losses.pattern >> self.hit & 1 == 1;
        self.hit += u32::from(counted);
        if lost {
            tell(story, now, "lost on the air", &packet);
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

impl<A: Observed> World<A> {
    fn new(agent: A, losses: Losses, window: u32) -> Self {
        Self {
            agent,
            now: Instant::ZERO,
            flights: Flights::default(),
            losses,
            sender: Sender { window, acknowledged: 0, next: 0, due: None, timeouts: 0 },
            receiver: Receiver::default(),
            story: None,
        }
    }

    fn run(&mut self, bounds: Bounds) -> Result<Outcome, String> {
        self.sender.fill_window(self.now, &mut self.flights);
        while self.sender.acknowledged < STREAM {
            self.step()?;
            if self.now.since(Instant::ZERO) > bounds.time {
                return Err(format!("not complete after {:?}", bounds.time));
            }
        }
        if self.receiver.contiguous != STREAM {
            return Err("the sender was told more than the receiver has".into());
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
        while let Some(deadline) = self.agent.poll_timeout() {
            if self.now >= rest && deadline.why != Timer::FlowIdle {
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
        match (self.agent.flow_count(), self.agent.cached_bytes()) {
            (0, 0) => Ok(()),
            (flows, bytes) => Err(format!("{flows} flows and {bytes} cached bytes are left")),
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
        let deadline = drain(&mut self.agent, self.now, &mut links, &mut |_| {});
        match deadline {
            Some(deadline) if deadline.at <= self.now => {
                Err(format!("`{}` is due again at once", deadline.why))
            }
            _ => Ok(()),
        }
    }

    fn arrive(&mut self, place: Place, packet: Packet) -> Result<(), String> {
        tell(&mut self.story, self.now, &format!("at {place:?}"), &packet);
        let tcp = Tcp::read(&packet).ok_or("a broken packet left the agent")?;
        match place {
            Place::BaseStation(side) => self.agent.handle_packet(self.now, side, packet),
            Place::FixedHost => {
                let ack = tcp.ack.unwrap_or(ISN).wrapping_sub(ISN);
                if ack > self.receiver.highest_ack {
                    return Err(format!("ACK {ack}; highest {}", self.receiver.highest_ack));
                }
                self.sender.acknowledge(self.now, ack, &mut self.flights);
            }
            Place::MobileHost => {
                if !packet.bytes().ends_with(&tcp.payload()) {
                    return Err("the payload was changed".into());
                }
                let ack = self.receiver.receive(tcp.seq.wrapping_sub(ISN));
                let ack = Tcp::new(0, Side::Air, 1, 0, ISN.wrapping_add(ack)).packet(0);
                let to = Place::BaseStation(Side::Air);
                self.flights.cross_air(self.now, to, ack, self.losses, &mut self.story);
            }
        }
        Ok(())
    }
}

impl Sender {
    fn fill_window(&mut self, now: Instant, flights: &mut Flights) {
        while self.next < STREAM.min(self.acknowledged + self.window * SEGMENT) {
            let seq = ISN.wrapping_add(self.next);
            let packet = Tcp::new(0, Side::Wired, seq, SEGMENT as u16, 1).packet(self.next as u16);
            flights.packets.push((now + WIRED_DELAY, Place::BaseStation(Side::Wired), packet));
            self.next += SEGMENT;
        }
        self.due.get_or_insert(now + RETRANSMISSION_TIMEOUT);
    }

    fn acknowledge(&mut self, now: Instant, ack: u32, flights: &mut Flights) {
        if ack > self.acknowledged {
            self.acknowledged = ack;
            self.next = self.next.max(ack);
            self.due = None;
            self.fill_window(now, flights);
        }
    }

    fn time_out(&mut self, now: Instant, flights: &mut Flights) {
        self.timeouts += 1;
        self.next = self.acknowledged;
        self.due = None;
        self.fill_window(now, flights);
    }
}

impl Receiver {
    /// Takes a segment and returns the ACK for it.
    fn receive(&mut self, seq: u32) -> u32 {
        self.segments.insert(seq);
        while self.segments.contains(&self.contiguous) {
            self.contiguous += SEGMENT;
        }
        self.highest_ack = self.contiguous;
        self.contiguous
    }
}

fn tell(story: &mut Option<String>, now: Instant, what: &str, packet: &Packet) {
    let (Some(story), Some(tcp)) = (story, Tcp::read(packet)) else { return };
    let line = match tcp.sender {
        Side::Wired => format!("data {}", tcp.seq.wrapping_sub(ISN)),
        Side::Air => format!("ACK {}", tcp.ack.unwrap_or(ISN).wrapping_sub(ISN)),
    };
    story.push_str(&format!("  {now} {line} {what}\n"));
}
