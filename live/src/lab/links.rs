//! The two emulated hops: four one-way links that run against the wall clock.

use super::air::{Air, End};
use super::config::{Direction, HOST_QUEUE_FRAMES, Hop, LabConfig, Path};
use super::outcome::LinkReport;
use super::topology::MTU;
use airmend_proto::link::mac::Channel;
use airmend_proto::link::{Delivery, ErrorModel, FRAME_LIMIT, Link, LinkParams};
use airmend_proto::{Instant, Packet, Port};
use std::collections::BTreeMap;
use std::time::Duration;

/// The number that names the air hop's random streams.
pub(crate) const AIR: u32 = 0;
const WIRED: u32 = 1;
/// What is handed to a link ahead of time, so that a late wake-up leaves no gap on it: at least
/// this much, and at least two full frames.
const LOOKAHEAD: Duration = Duration::from_millis(1);

/// Both directions of one hop, seen from the base station.
#[derive(Debug)]
pub(crate) struct HopLinks {
    /// Towards the host: fed by the agent, which has the queue, or by a kernel that forwards.
    pub(crate) outbound: Link,
    /// From the host: fed by its kernel, or by the mobile's end of a link, which has a queue too.
    pub(crate) inbound: Link,
}

/// Both hops.
pub(crate) struct Links {
    pub(crate) wired: HopLinks,
    pub(crate) air: Air,
    /// The wired link towards the host has a queue of its own, where no agent has it.
    pub(crate) has_wired_queue: bool,
    /// The ends of the air that an agent feeds, whenever the air can take a frame.
    fed: &'static [End],
}

impl Links {
    /// Where an agent at each end of the air mends it (`is_two_ended`), what they hand on towards
    /// the wire is the network layer's, which has a queue of its own; so does what a kernel
    /// forwards. Its queue for the air is in its interface, at the air's own rate: the link behind
    /// that has no limit, and never more to hold than that interface's burst.
    pub(crate) fn new(config: &LabConfig, is_two_ended: bool) -> Self {
        let wired_errors = |direction| ErrorModel::None.process(config.seed, WIRED, direction);
        let wired_queue = match config.direction {
            Direction::Down => config.wired_queue_frames,
            Direction::Up => HOST_QUEUE_FRAMES,
        };
        let fed: &[End] = match (config.path, is_two_ended) {
            (Path::Inline, true) => &[End::Station, End::Mobile],
            (Path::Inline, false) => &[End::Station],
            (Path::Kernel | Path::Gateway, _) => &[],
        };
        let has_wired_queue = is_two_ended || config.path != Path::Inline;
        let to_wire = if has_wired_queue { config.egress_limits().wired } else { FRAME_LIMIT };
        Self {
            has_wired_queue,
            fed,
            wired: HopLinks {
                outbound: Link::new(params(config.wired, to_wire), wired_errors(0)),
                inbound: Link::new(params(config.wired, wired_queue), wired_errors(1)),
            },
            air: air(config),
        }
    }

    /// The next frame that has reached the base station, in the order of arrival; of a shared
    /// channel, [`Air::poll_channel`] tells.
    pub(crate) fn poll_arrival(&mut self, now: Instant) -> Option<(Port, Delivery)> {
        let wired = self.wired.inbound.next_delivery().filter(|at| *at <= now);
        let air = self.air.next_delivery(End::Mobile).filter(|at| *at <= now);
        let is_air = air.is_some_and(|air| wired.is_none_or(|wired| air < wired));
        let (side, delivery) = match is_air {
            true => (Port::Air, self.air.poll_delivery(now, End::Mobile)),
            false => (Port::Wired, self.wired.inbound.poll_delivery(now)),
        };
        delivery.map(|delivery| (side, delivery))
    }

    /// When a frame next comes out of a link, or a link that an agent feeds can take one again that
    /// cannot now.
    pub(crate) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let HopLinks { outbound, inbound } = &self.wired;
        let deliveries = [outbound, inbound].map(Link::next_delivery).into_iter().flatten();
        let waits = !self.has_wired_queue && !outbound.can_send(now);
        let room = waits.then(|| outbound.free_at());
        deliveries.chain(room).chain(self.air.next_deadline(now, self.fed)).min()
    }

    pub(crate) fn report(&self) -> BTreeMap<&'static str, LinkReport> {
        BTreeMap::from([
            ("wired_down", self.wired.inbound.counters().into()),
            ("wired_up", self.wired.outbound.counters().into()),
            ("air_down", self.air.counters(End::Station).into()),
            ("air_up", self.air.counters(End::Mobile).into()),
        ])
    }
}

/// Takes what a host sent; what the full queue refuses is congestion, which the link counts.
pub(crate) fn feed(link: &mut Link, now: Instant, packets: impl Iterator<Item = Packet>) {
    for packet in packets {
        link.send(now, packet);
    }
}

fn air(config: &LabConfig) -> Air {
    let errors = |direction| config.errors.process(config.seed, AIR, direction);
    match config.mac() {
        None => Air::FullDuplex(HopLinks {
            outbound: Link::new(params(config.air, FRAME_LIMIT), errors(0)),
            inbound: Link::new(params(config.air, config.queue_frames), errors(1)),
        }),
        Some(mac) => {
            let models = [config.errors; 2];
            Air::half_duplex(Channel::new(mac, models, [0, 1].map(errors), config.seed, AIR))
        }
    }
}

fn params(hop: Hop, queue_frames: usize) -> LinkParams {
    LinkParams { rate_bps: hop.rate_bps, delay: hop.delay, queue_frames, lookahead: lookahead(hop) }
}

/// How far ahead of the last bit a link takes the next frame from whoever feeds it.
pub(crate) fn lookahead(hop: Hop) -> Duration {
    let two_frames = Duration::from_secs_f64(2.0 * f64::from(MTU) * 8.0 / hop.rate_bps as f64);
    LOOKAHEAD.max(two_frames)
}
