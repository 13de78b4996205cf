//! The two emulated hops: four one-way links that run against the wall clock.

use super::config::{Direction, HOST_QUEUE_FRAMES, Hop, LabConfig};
use super::outcome::LinkReport;
use super::topology::MTU;
use airmend_proto::link::{Delivery, ErrorModel, FRAME_LIMIT, Link, LinkParams};
use airmend_proto::{Instant, Packet, Side};
use std::collections::BTreeMap;
use std::time::Duration;

/// The number that names the air hop's random streams.
pub(crate) const AIR: u32 = 0;
const WIRED: u32 = 1;
/// What is handed to a link ahead of time, so that a late wake-up leaves no gap on it: at least
/// this much, and at least two full frames.
const LOOKAHEAD: Duration = Duration::from_millis(1);

/// Both directions of one hop, seen from the base station.
pub(crate) struct HopLinks {
    /// Towards the host: fed by the agent, which has the queue.
    pub(crate) outbound: Link,
    /// From the host: fed by its kernel, or by the mobile's end of a link, which has a queue too.
    pub(crate) inbound: Link,
}

/// Both hops.
pub(crate) struct Links {
    pub(crate) wired: HopLinks,
    pub(crate) air: HopLinks,
    /// An agent at each end of the air mends it: what they hand on towards the wire is the network
    /// layer's, which has a queue of its own.
    pub(crate) is_two_ended: bool,
}

impl Links {
    pub(crate) fn new(config: &LabConfig, is_two_ended: bool) -> Self {
        let wired_errors = |direction| ErrorModel::None.process(config.seed, WIRED, direction);
        let air_errors = |direction| config.errors.process(config.seed, AIR, direction);
        let wired_queue = match config.direction {
            Direction::Down => config.wired_queue_frames,
            Direction::Up => HOST_QUEUE_FRAMES,
        };
        let to_wire = if is_two_ended { config.egress_limits().wired } else { FRAME_LIMIT };
        Self {
            is_two_ended,
            wired: HopLinks {
                outbound: Link::new(params(config.wired, to_wire), wired_errors(0)),
                inbound: Link::new(params(config.wired, wired_queue), wired_errors(1)),
            },
            air: HopLinks {
                outbound: Link::new(params(config.air, FRAME_LIMIT), air_errors(0)),
                inbound: Link::new(params(config.air, config.queue_frames), air_errors(1)),
            },
        }
    }

    pub(crate) fn hop(&mut self, side: Side) -> &mut HopLinks {
        match side {
            Side::Wired => &mut self.wired,
            Side::Air => &mut self.air,
        }
    }

    /// The next frame that has reached the base station, in the order of arrival.
    pub(crate) fn poll_arrival(&mut self, now: Instant) -> Option<(Side, Delivery)> {
        let next = |link: &Link| link.next_delivery().filter(|at| *at <= now);
        let side = match (next(&self.wired.inbound), next(&self.air.inbound)) {
            (None, None) => return None,
            (Some(wired), Some(air)) if air < wired => Side::Air,
            (Some(_), _) => Side::Wired,
            (None, Some(_)) => Side::Air,
        };
        self.hop(side).inbound.poll_delivery(now).map(|delivery| (side, delivery))
    }

    /// When a frame next comes out of a link, or a link that an agent feeds can take one again that
    /// cannot now.
    pub(crate) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let hops = [&self.wired, &self.air];
        let deliveries = hops
            .iter()
            .flat_map(|hop| [hop.outbound.next_delivery(), hop.inbound.next_delivery()])
            .flatten();
        let fed = hops.iter().map(|hop| &hop.outbound);
        let fed = fed.chain(self.is_two_ended.then_some(&self.air.inbound));
        let room = fed.filter(|link| !link.can_send(now)).map(Link::free_at);
        deliveries.chain(room).min()
    }

    pub(crate) fn report(&self) -> BTreeMap<&'static str, LinkReport> {
        BTreeMap::from([
            ("wired_down", report(&self.wired.inbound)),
            ("wired_up", report(&self.wired.outbound)),
            ("air_down", report(&self.air.outbound)),
            ("air_up", report(&self.air.inbound)),
        ])
    }
}

/// Takes what a host sent; what the full queue refuses is congestion, which the link counts.
pub(crate) fn feed(link: &mut Link, now: Instant, packets: impl Iterator<Item = Packet>) {
    for packet in packets {
        link.send(now, packet);
    }
}

fn params(hop: Hop, queue_frames: usize) -> LinkParams {
    let two_frames = Duration::from_secs_f64(2.0 * f64::from(MTU) * 8.0 / hop.rate_bps as f64);
    LinkParams {
        rate_bps: hop.rate_bps,
        delay: hop.delay,
        queue_frames,
        lookahead: LOOKAHEAD.max(two_frames),
    }
}

fn report(link: &Link) -> LinkReport {
    let counters = link.counters();
    LinkReport {
        frames: counters.frames,
        lost: counters.lost + counters.damaged,
        dropped: counters.dropped,
        bytes: counters.bytes,
    }
}
