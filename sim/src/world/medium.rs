//! All directions of all links, and the agenda that says when frames come out of them.

use super::arq::Arq;
use super::handoff::WithHandoffs;
use crate::agenda::Agenda;
use crate::plan::Direction;
use airmend_proto::link::{FRAME_LIMIT, Link, LinkCounters, LinkParams};
use airmend_proto::{Instant, Packet};
use std::time::Duration;

/// An acknowledgment of the link layer.
const ACK_BITS: u64 = 14 * 8;

/// Directions are the machines `0..directions.len()` of the agenda.
pub(crate) struct Medium {
    pub(crate) agenda: Agenda,
    links: Vec<Link>,
    /// What repeats lost frames, on directions that have such a link layer.
    arqs: Vec<Option<Arq>>,
}

impl Medium {
    pub(crate) fn new(directions: &[Direction], machines: usize, seed: u64) -> Self {
        let link = |(number, direction): (u32, &Direction)| {
            let params = LinkParams {
                rate_bps: direction.rate_bps,
                delay: direction.delay,
                queue_frames: direction.queue_frames.min(FRAME_LIMIT),
                lookahead: Duration::ZERO,
            };
            let (link, way) = (number / 2, (number % 2) as u8);
            let errors = direction.errors.process(seed, link, way);
            match direction.handoff {
                Some(handoff) => Link::new(params, Box::new(WithHandoffs { handoff, errors })),
                None => Link::new(params, errors),
            }
        };
        let links = (0u32..).zip(directions).map(link).collect();
        let arqs = directions.iter().map(|direction| {
            let ack = ACK_BITS * 1_000_000_000 / direction.rate_bps.max(1);
            let feedback = 2 * direction.delay + Duration::from_nanos(ack);
            direction.arq.map(|spec| Arq::new(spec, feedback))
        });
        Self { agenda: Agenda::new(machines), links, arqs: arqs.collect() }
    }

    /// Whether a direction can take a frame at once.
    pub(crate) fn can_send(&self, now: Instant, direction: u32) -> bool {
        self.links[direction as usize].can_send(now)
    }

    /// When it can.
    pub(crate) fn free_at(&self, direction: u32) -> Instant {
        self.links[direction as usize].free_at()
    }

    /// Puts a packet into a direction; a full queue drops it.
    pub(crate) fn send(&mut self, now: Instant, direction: u32, packet: Packet) {
        let link = &mut self.links[direction as usize];
        if let Some(arq) = &mut self.arqs[direction as usize] {
            arq.send(now, link, packet);
            self.agenda.set(direction, arq.deadline(now, link));
            return;
        }
        let was_idle = link.next_delivery().is_none();
        link.send(now, packet);
        if let (true, Some(at)) = (was_idle, link.next_delivery()) {
            self.agenda.set(direction, Some(at));
        }
    }

    /// Takes the frame that comes out of a direction now.
    pub(crate) fn deliver(&mut self, now: Instant, direction: u32) -> Option<Packet> {
        let link = &mut self.links[direction as usize];
        if let Some(arq) = &mut self.arqs[direction as usize] {
            let packet = arq.deliver(now, link);
            self.agenda.set(direction, arq.deadline(now, link));
            return packet;
        }
        let delivery = link.poll_delivery(now);
        self.agenda.set(direction, link.next_delivery());
        delivery.map(|delivery| delivery.packet)
    }

    /// What each direction did.
    pub(crate) fn counters(&self) -> impl Iterator<Item = LinkCounters> {
        self.links.iter().map(Link::counters)
    }
}
