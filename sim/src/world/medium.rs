//! All directions of all links, and the agenda that says when frames come out of them.

use super::arq::Arq;
use super::handoff::WithHandoffs;
use crate::agenda::Agenda;
use crate::plan::{Direction, opposite};
use airmend_proto::agent::LinkSignal;
use airmend_proto::link::mac::{Channel, Output};
use airmend_proto::link::{ErrorProcess, FRAME_LIMIT, Link, LinkCounters, LinkParams};
use airmend_proto::{Instant, Packet};
use std::time::Duration;

/// An acknowledgment of the link layer.
const ACK_BITS: u64 = 14 * 8;

/// Directions are the machines `0..directions.len()` of the agenda; both directions of a
/// half-duplex link are its first direction's machine.
pub(crate) struct Medium {
    pub(crate) agenda: Agenda,
    ways: Vec<Way>,
    channels: Vec<Channel>,
}

/// One direction of a link.
enum Way {
    Link(Link),
    /// With what repeats lost frames.
    Repeating(Link, Box<Arq>),
    /// One end of a half-duplex channel, by its number.
    Channel(u32),
}

/// What happens where a direction ends.
pub(crate) enum Arrival {
    Packet(Packet),
    /// To whoever is there; about what it sends the other way, or about a damaged frame.
    Signal(LinkSignal),
    /// The channel can take a packet the other way.
    Ready,
}

impl Medium {
    pub(crate) fn new(directions: &[Direction], machines: usize, seed: u64) -> Self {
        let mut medium = Self {
            agenda: Agenda::new(machines),
            ways: Vec::with_capacity(directions.len()),
            channels: Vec::new(),
        };
        for (link, pair) in (0u32..).zip(directions.chunks(2)) {
            if let &[down, up] = pair
                && let Some(mac) = down.mac
            {
                let number = medium.channels.len() as u32;
                medium.ways.extend([Way::Channel(number), Way::Channel(number)]);
                let processes = [errors(&down, seed, link, 0), errors(&up, seed, link, 1)];
                let models = [down.errors, up.errors];
                medium.channels.push(Channel::new(mac, models, processes, seed, link));
            } else {
                let ways = (0..).zip(pair).map(|(way, direction)| {
                    Way::new(direction, errors(direction, seed, link, way))
                });
                medium.ways.extend(ways);
            }
        }
        medium
    }

    /// Whether a direction can take a frame at once.
    pub(crate) fn can_send(&self, now: Instant, direction: u32) -> bool {
        match &self.ways[direction as usize] {
            Way::Link(link) | Way::Repeating(link, _) => link.can_send(now),
            Way::Channel(number) => self.channels[*number as usize].can_send(now, end(direction)),
        }
    }

    /// When it can; none if [`Arrival::Ready`] will tell.
    pub(crate) fn free_at(&self, direction: u32) -> Option<Instant> {
        match &self.ways[direction as usize] {
            Way::Link(link) | Way::Repeating(link, _) => Some(link.free_at()),
            Way::Channel(_) => None,
        }
    }

    /// Puts a packet into a direction; a full queue drops it.
    pub(crate) fn send(&mut self, now: Instant, direction: u32, packet: Packet) {
        match &mut self.ways[direction as usize] {
            Way::Link(link) => {
                let was_idle = link.next_delivery().is_none();
                link.send(now, packet);
                if let (true, Some(at)) = (was_idle, link.next_delivery()) {
                    self.agenda.set(direction, Some(at));
                }
            }
            Way::Repeating(link, arq) => {
                arq.send(now, link, packet);
                self.agenda.set(direction, arq.deadline(now, link));
            }
            Way::Channel(number) => {
                let channel = &mut self.channels[*number as usize];
                channel.send(now, end(direction), packet);
                if let Some(at) = channel.poll_timeout() {
                    self.agenda.hasten(first(direction), at);
                }
            }
        }
    }

    /// The next thing that happens now where this direction ends, or its opposite.
    pub(crate) fn poll(&mut self, now: Instant, direction: u32) -> Option<(u32, Arrival)> {
        match &mut self.ways[direction as usize] {
            Way::Link(link) => {
                let delivery = link.poll_delivery(now);
                self.agenda.set(direction, link.next_delivery());
                delivery.map(|delivery| (direction, Arrival::Packet(delivery.packet)))
            }
            Way::Repeating(link, arq) => {
                let packet = arq.deliver(now, link);
                self.agenda.set(direction, arq.deadline(now, link));
                packet.map(|packet| (direction, Arrival::Packet(packet)))
            }
            Way::Channel(number) => {
                let channel = &mut self.channels[*number as usize];
                channel.handle_timeout(now);
                let output = channel.poll_output();
                // There may be more, until there is nothing.
                let next = if output.is_some() { Some(now) } else { channel.poll_timeout() };
                self.agenda.set(direction, next);
                let (end, arrival) = match output? {
                    Output::Delivery(end, packet) => (end, Arrival::Packet(packet)),
                    Output::Damaged(end) => (end, Arrival::Signal(LinkSignal::Damaged)),
                    Output::Leaving(end) => (end, Arrival::Signal(LinkSignal::Leaving)),
                    Output::Sent(end) => (end, Arrival::Signal(LinkSignal::Sent)),
                    Output::Idle(end) => (end, Arrival::Signal(LinkSignal::Idle)),
                    Output::Ready(end) => (end, Arrival::Ready),
                };
                // The first direction leads away from end 0.
                let first = first(direction);
                Some((if end == 0 { opposite(first) } else { first }, arrival))
            }
        }
    }

    /// What each direction did.
    pub(crate) fn counters(&self) -> impl Iterator<Item = LinkCounters> {
        (0u32..).zip(&self.ways).map(|(direction, way)| match way {
            Way::Link(link) | Way::Repeating(link, _) => link.counters(),
            Way::Channel(number) => self.channels[*number as usize].counters(end(direction)),
        })
    }
}

impl Way {
    fn new(direction: &Direction, errors: Box<dyn ErrorProcess + Send>) -> Self {
        let params = LinkParams {
            rate_bps: direction.rate_bps,
            delay: direction.delay,
            queue_frames: direction.queue_frames.min(FRAME_LIMIT),
            lookahead: Duration::ZERO,
        };
        let link = Link::new(params, errors);
        let ack = ACK_BITS * 1_000_000_000 / direction.rate_bps.max(1);
        let feedback = 2 * direction.delay + Duration::from_nanos(ack);
        match direction.arq {
            Some(spec) => Self::Repeating(link, Box::new(Arq::new(spec, feedback))),
            None => Self::Link(link),
        }
    }
}

fn errors(direction: &Direction, seed: u64, link: u32, way: u8) -> Box<dyn ErrorProcess + Send> {
    let errors = direction.errors.process(seed, link, way);
    match direction.handoff {
        Some(handoff) => Box::new(WithHandoffs { handoff, errors }),
        None => errors,
    }
}

/// The end of its link that sends into a direction.
fn end(direction: u32) -> usize {
    direction as usize % 2
}

/// The first direction of its link.
fn first(direction: u32) -> u32 {
    direction & !1
}
