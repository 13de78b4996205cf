//! Two ends of a link in virtual time, and a channel between them that does what a test says.

use crate::kit::{Frame, Settings, Station};
use airmend_proto::agents::Limits;
use airmend_proto::{Agent, Event, Instant, LinkSignal, Packet, Port};
use std::collections::BTreeMap;
use std::time::Duration;

/// The end of the gateway, and that of the mobile.
pub(crate) const GATEWAY: usize = 0;
pub(crate) const MOBILE: usize = 1;

/// What the channel does to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives.
    Arrives,
    /// It is lost.
    Lost,
}

/// One end, and what its network layer got.
pub(crate) struct End {
    pub(crate) agent: Station,
    pub(crate) delivered: Vec<(Instant, Packet)>,
    pub(crate) counters: BTreeMap<&'static str, u64>,
    /// When the link has sent what it was given last.
    free_at: Instant,
    is_sending: bool,
}

/// A hop with a FIFO of its own, which drops what finds it full.
#[derive(Clone, Copy)]
pub(crate) struct Hop {
    rate_bps: u64,
    /// The longest time for which a frame waits in it.
    queue: Duration,
    free_at: Instant,
}

impl Hop {
    pub(crate) fn new(rate_bps: u64, queue: Duration) -> Self {
        Self { rate_bps, queue, free_at: Instant::ZERO }
    }

    /// When a frame that comes at `now` has been sent; `None` if it is dropped.
    fn sent(&mut self, now: Instant, bits: u64) -> Option<Instant> {
        let begins = self.free_at.max(now);
        if begins - now > self.queue {
            return None;
        }
        self.free_at = begins + Duration::from_nanos(bits * 1_000_000_000 / self.rate_bps);
        Some(self.free_at)
    }
}

/// Both ends and the channel: a rate, a delay, and frames on their way.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) ends: [End; 2],
    pub(crate) delay: Duration,
    pub(crate) rate_bps: u64,
    half_duplex: bool,
    /// Whether the ends' queues may be full.
    pub(crate) may_drop: bool,
    /// A slower hop behind each end, if there is one.
    pub(crate) hops: Option<[Hop; 2]>,
    flights: Vec<(Instant, usize, Packet)>,
    pub(crate) wire_bytes: [u64; 2],
}

impl Pair {
    pub(crate) fn new(settings: &Settings, rate_bps: u64, delay: Duration) -> Self {
        let end = |epoch| End {
            agent: Station::new(Limits::default(), settings.clone(), epoch),
            delivered: Vec::new(),
            counters: BTreeMap::new(),
            free_at: Instant::ZERO,
            is_sending: false,
        };
        Self {
            now: Instant::ZERO,
            ends: [end(1), end(2)],
            delay,
            rate_bps,
            half_duplex: settings.half_duplex,
            may_drop: false,
            hops: None,
            flights: Vec::new(),
            wire_bytes: [0; 2],
        }
    }

    /// Hands a packet to an end's network layer side.
    pub(crate) fn send(&mut self, end: usize, packet: &Packet) {
        self.ends[end].agent.handle_packet(self.now, Port::Wired, packet);
    }

    /// An end fails and comes back as another run; what was on its way to it still arrives.
    pub(crate) fn restart(&mut self, end: usize, settings: &Settings, epoch: u32) {
        self.ends[end].agent = Station::new(Limits::default(), settings.clone(), epoch.into());
    }

    /// Goes on until `end`, or until nothing is left to happen; `fate` decides about each frame.
    pub(crate) fn run(&mut self, end: Instant, fate: &mut dyn FnMut(usize, &Frame) -> Fate) {
        self.transmit(fate);
        while let Some(at) = self.next_instant().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.step();
            self.transmit(fate);
        }
        if end > self.now {
            self.now = end;
        }
    }

    /// The next thing that happens.
    pub(crate) fn next_instant(&self) -> Option<Instant> {
        let flights = self.flights.iter().map(|(at, ..)| *at);
        let timers = self.ends.iter().filter_map(|end| end.agent.poll_timeout()).map(|due| due.at);
        let sent = self.ends.iter().filter(|end| end.is_sending).map(|end| end.free_at);
        flights.chain(timers).chain(sent).min()
    }

    fn step(&mut self) {
        let now = self.now;
        for end in &mut self.ends {
            if end.is_sending && end.free_at <= now {
                end.is_sending = false;
                end.agent.handle_link(now, LinkSignal::Sent);
            }
        }
        let mut index = 0;
        while index < self.flights.len() {
            if self.flights[index].0 <= now {
                let (_, to, packet) = self.flights.remove(index);
                self.ends[to].agent.handle_packet(now, Port::Air, &packet);
            } else {
                index += 1;
            }
        }
        for end in &mut self.ends {
            if end.agent.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
                end.agent.handle_timeout(now);
                let next = end.agent.poll_timeout();
                assert!(next.is_none_or(|next| next.at > now), "{next:?} is due again at once");
            }
        }
    }

    fn can_send(&self, end: usize) -> bool {
        let one_speaks = self.ends.iter().any(|end| end.is_sending);
        if self.half_duplex { !one_speaks } else { !self.ends[end].is_sending }
    }

    fn transmit(&mut self, fate: &mut dyn FnMut(usize, &Frame) -> Fate) {
        let now = self.now;
        for end in [GATEWAY, MOBILE] {
            while let Some(packet) = self.ends[end].agent.poll_transmit(now, Port::Wired) {
                self.ends[end].delivered.push((now, packet));
            }
            while self.can_send(end) {
                let Some(packet) = self.ends[end].agent.poll_transmit(now, Port::Air) else {
                    break;
                };
                let frame = Frame::parse(&packet).expect("an end sends frames");
                self.wire_bytes[end] += u64::from(packet.wire_len());
                let airtime = packet.wire_bits() * 1_000_000_000 / self.rate_bps;
                let sent = now + Duration::from_nanos(airtime);
                self.ends[end].is_sending = true;
                self.ends[end].free_at = sent;
                let through = match &mut self.hops {
                    None => Some(sent),
                    Some(hops) => hops[end].sent(sent, packet.wire_bits()),
                };
                if let Some(sent) = through.filter(|_| fate(end, &frame) == Fate::Arrives) {
                    self.flights.push((sent + self.delay, 1 - end, packet));
                }
            }
            while let Some(event) = self.ends[end].agent.poll_event() {
                let count: &mut u64 = self.ends[end].counters.entry(event.counter()).or_default();
                *count += 1;
                if let Event::EgressDropped(side) = event
                    && !self.may_drop
                {
                    panic!("a queue is full towards {side:?}");
                }
            }
        }
    }
}
