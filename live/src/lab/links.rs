//! The emulated hops, seen from the base station.

use super::config::{
    AIR_STREAM, AirTrace, Direction, HOST_QUEUE_FRAMES, Hop, LabConfig, Path, Place,
};
use super::error::LabError;
use super::hop::{End, HopMedium};
use super::modem::Modem;
use super::outcome::LinkReport;
use airmend_proto::link::mac::FamaNcs;
use airmend_proto::link::trace::VariableRate;
use airmend_proto::link::{Delivery, ErrorModel, FRAME_LIMIT, FullDuplex, LinkParams, Pair};
use airmend_proto::{Instant, Port};
use std::collections::BTreeMap;

/// The number that names the wired hop's random streams.
const WIRED: u32 = 1;
/// The same for the wired hop beyond the air; 2 is a modem's.
const FAR_WIRED: u32 = 3;
/// Those of further base stations begin here.
const FIRST_CELL: u32 = 4;

/// All hops.
pub(crate) struct Links {
    pub(crate) wired: HopMedium,
    pub(crate) air: HopMedium,
    /// The wired link towards the host has a queue of its own, where no agent has it.
    pub(crate) has_wired_queue: bool,
    /// The modem between the base station and the air, if there is one.
    pub(crate) modem: Option<Modem>,
    /// The wired hop between the air's far end and the mobile hosts, if there is one.
    pub(crate) far_wired: Option<HopMedium>,
    /// The ends of the hop to the air that an agent feeds, whenever the air can take a frame.
    fed: &'static [End],
}

impl Links {
    /// `has_mobile_agent` says that an agent feeds the air at the mobile host too.
    ///
    /// Where an agent at each end of the air mends it, what they hand on towards the wire is the
    /// network layer's, which has a queue of its own; so does what a kernel forwards. Its queue for
    /// the air is in its interface, at the air's own rate: the link behind that has no limit, and
    /// never more to hold than that interface's burst.
    pub(crate) fn new(config: &LabConfig, has_mobile_agent: bool, modem: Option<Modem>) -> Self {
        let wired_queue = match config.direction {
            Direction::Down => config.wired_queue_frames,
            Direction::Up => HOST_QUEUE_FRAMES,
        };
        let fed: &[End] = match (config.path, has_mobile_agent) {
            (Path::Inline, true) => &[End::Station, End::Host],
            (Path::Inline, false) => &[End::Station],
            (Path::Kernel | Path::Gateway, _) => &[],
        };
        let is_link = has_mobile_agent && config.place == Place::Base;
        let has_wired_queue = is_link || config.path != Path::Inline;
        let to_wire = if has_wired_queue { config.station_limits().wired } else { FRAME_LIMIT };
        let wired_pair = pair(config.wired, ErrorModel::None, config.seed, WIRED);
        let far_wired = config.far_wired.zip(config.far_hop()).map(|(far, hop)| {
            let pair = pair(hop, far.errors(), config.seed, FAR_WIRED);
            full_duplex(hop, [HOST_QUEUE_FRAMES; 2], pair)
        });
        Self {
            has_wired_queue,
            fed,
            wired: full_duplex(config.wired, [to_wire, wired_queue], wired_pair),
            air: air(config),
            modem,
            far_wired,
        }
    }

    /// The hop that the base station sends on towards the air: the air itself, or that to the
    /// modem.
    pub(crate) fn towards_air(&mut self) -> &mut HopMedium {
        self.modem.as_mut().map_or(&mut self.air, |modem| &mut modem.hop)
    }

    /// Whether the base station can send a frame on that hop at once.
    pub(crate) fn can_send_towards_air(&self, now: Instant) -> bool {
        self.modem.as_ref().map_or(&self.air, |modem| &modem.hop).can_send(now, End::Station)
    }

    /// The next frame that has reached the base station, in the order of arrival; of a shared
    /// channel, [`HopMedium::poll_channel`] tells.
    pub(crate) fn poll_arrival(&mut self, now: Instant) -> Option<(Port, Delivery)> {
        let wired = self.wired.arrived_at(now, End::Host);
        let air = self.air.arrived_at(now, End::Host);
        let is_air = air.is_some_and(|air| wired.is_none_or(|wired| air < wired));
        let (hop, side) =
            if is_air { (&mut self.air, Port::Air) } else { (&mut self.wired, Port::Wired) };
        hop.poll_delivery(now, End::Host).map(|delivery| (side, delivery))
    }

    /// When a frame next comes out of a link, or a link that an agent feeds can take one again that
    /// cannot now.
    pub(crate) fn next_deadline(&self, now: Instant) -> Option<Instant> {
        let fed: &[End] = if self.has_wired_queue { &[] } else { &[End::Station] };
        let wired = self.wired.next_deadline(now, fed);
        let air = match &self.modem {
            None => [self.air.next_deadline(now, self.fed), None],
            // The modem's kernel feeds the air.
            Some(modem) => {
                [self.air.next_deadline(now, &[]), modem.hop.next_deadline(now, self.fed)]
            }
        };
        let far = self.far_wired.as_ref().and_then(|far| far.next_deadline(now, &[]));
        air.into_iter().chain([wired, far]).flatten().min()
    }

    /// The counters of the links, by name. What the queue of a modem has dropped is counted with
    /// the link behind it, as everywhere.
    pub(crate) fn report(&self) -> Result<BTreeMap<&'static str, LinkReport>, LabError> {
        let mut links: BTreeMap<_, LinkReport> = BTreeMap::from([
            ("wired_down", self.wired.counters(End::Host).into()),
            ("wired_up", self.wired.counters(End::Station).into()),
            ("air_down", self.air.counters(End::Station).into()),
            ("air_up", self.air.counters(End::Host).into()),
        ]);
        if let Some(far) = &self.far_wired {
            links.insert("far_wired_down", far.counters(End::Station).into());
            links.insert("far_wired_up", far.counters(End::Host).into());
        }
        if let Some(modem) = &self.modem {
            let dropped = modem.queue_drops()?;
            links.insert("modem_down", modem.hop.counters(End::Station).into());
            links.entry("air_down").and_modify(|air| air.dropped += dropped);
        }
        Ok(links)
    }
}

/// The wired hop and the air of one of several base stations, which has the queues towards both
/// itself. Station 0 has the random streams of an only one.
pub(super) fn of_cell(config: &LabConfig, station: u32) -> (HopMedium, HopMedium) {
    let stream = |of_first| match station {
        0 => of_first,
        _ => FIRST_CELL + 2 * station + of_first,
    };
    let wired = pair(config.wired, ErrorModel::None, config.seed, stream(WIRED));
    let air = pair(config.air, config.errors, config.seed, stream(AIR_STREAM));
    (
        full_duplex(config.wired, [FRAME_LIMIT, config.wired_queue_frames], wired),
        full_duplex(config.air, [FRAME_LIMIT, config.queue_frames], air),
    )
}

fn air(config: &LabConfig) -> HopMedium {
    let mut pair = pair(config.air, config.errors, config.seed, AIR_STREAM);
    let ways = config.trace.iter().flat_map(|trace| &trace.ways);
    ways.enumerate().for_each(|(way, trace)| trace.apply(&mut pair, way, config.seed, AIR_STREAM));
    let rates = config.trace.as_ref().map_or([None; 2], AirTrace::rates);
    let to_air = if config.has_queue_in_air() { config.queue_frames } else { FRAME_LIMIT };
    match config.mac() {
        None => varying(config.air, [to_air, config.queue_frames], pair, rates),
        Some(mac) => HopMedium::new(Box::new(FamaNcs::new(mac, vec![pair])), true),
    }
}

/// A hop with these queues in front of the base station's end and of the host's: an agent at the
/// base station has the queue for the air itself.
fn full_duplex(hop: Hop, queue_frames: [usize; 2], pair: Pair) -> HopMedium {
    varying(hop, queue_frames, pair, [None; 2])
}

/// The same with rates that may vary.
fn varying(
    hop: Hop,
    queue_frames: [usize; 2],
    pair: Pair,
    rates: [Option<&VariableRate>; 2],
) -> HopMedium {
    let params = queue_frames.map(|queue_frames| LinkParams {
        rate_bps: hop.rate_bps,
        delay: hop.delay,
        queue_frames,
        lookahead: hop.lookahead(),
    });
    HopMedium::new(Box::new(FullDuplex::new(params, vec![pair]).with_rates(rates)), false)
}

fn pair(hop: Hop, errors: ErrorModel, seed: u64, link: u32) -> Pair {
    Pair::new([0, 1], [hop.delay; 2], [errors; 2], seed, link)
}
