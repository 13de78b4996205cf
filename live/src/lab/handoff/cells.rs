//! The cells of several base stations, one loop that runs them in real time with a mobile host
//! that moves between them.
//!
//! The fixed host's network routes to the station where the mobile host is, from the moment of its
//! association on: what is on its way to the last station arrives there. What the mobile host's
//! radio has not got or sent when it leaves a station is lost.

use super::arrivals::Arrivals;
use super::backbone::{self, Member};
use super::base_station::{BaseStation, CellLinks, Cooperation};
use super::intruder::Intruder;
use super::plan::HandoffPlan;
use super::report::CellsReport;
use super::schedule::{Move, Schedule};
use crate::clock::Clock;
use crate::device::Device;
use crate::lab::config::LabConfig;
use crate::lab::error::LabError;
use crate::lab::hop::End;
use crate::lab::inline_agent::InlineAgent;
use crate::lab::links;
use crate::lab::network::namespace::Namespace;
use crate::lab::outcome::{self, Handoffs, Lateness, LinkReport};
use crate::lab::station::{IDLE, StationReport, record_lateness, send_to_host};
use crate::sys;
use crate::tunnel::random::random;
use airmend_proto::agents::handoff::{Handoff, Key, Mobile, StationId};
use airmend_proto::{Instant, Packet, Port};
use hdrhistogram::Histogram;
use nix::poll::{PollFd, PollFlags, ppoll};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The directions of the air, as indices.
const DOWN: usize = 0;
const UP: usize = 1;

/// All base stations, and the hosts.
pub(crate) struct Cells {
    clock: Clock,
    stations: Vec<BaseStation>,
    plan: HandoffPlan,
    /// `None` until the stations know each other.
    schedule: Option<Schedule>,
    /// The station that has the route to the mobile host.
    route: usize,
    /// The station that the mobile host's radio hears, if any.
    radio: Option<usize>,
    mobile: Mobile,
    fixed_port: Vec<Box<dyn Device>>,
    mobile_port: Vec<Box<dyn Device>>,
    arrivals: Arrivals,
    moves: u64,
    /// Frames that were on the air of a station where the mobile host was not.
    unheard: [u64; 2],
    intruder: Option<Intruder>,
    /// Dropping it removes the backbone's bridge.
    _backbone: Option<Namespace>,
}

impl Cells {
    /// The cells of these agents, with ports to the fixed host and to the mobile host of this
    /// address.
    pub(crate) fn new(
        config: &LabConfig,
        plan: HandoffPlan,
        agents: Vec<InlineAgent>,
        clock: Clock,
        [fixed_port, mobile_port]: [Vec<Box<dyn Device>>; 2],
        address: IpAddr,
    ) -> Result<Self, LabError> {
        let station = |(number, agent)| {
            let (wired, air) = links::of_cell(config, number);
            BaseStation { agent, handoff: None, links: CellLinks { wired, air } }
        };
        let mut stations: Vec<_> = (0..).zip(agents).map(station).collect();
        let beside = match plan.has_state {
            true => Some(connect(plan, &mut stations)?),
            false => None,
        };
        let (backbone, intruder) = beside.unzip();
        let mobile = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        Ok(Self {
            clock,
            stations,
            plan,
            schedule: None,
            route: 0,
            radio: None,
            mobile: mobile.octets(),
            fixed_port,
            mobile_port,
            arrivals: Arrivals::default(),
            moves: 0,
            unheard: [0; 2],
            intruder: intruder.flatten(),
            _backbone: backbone,
        })
    }

    /// Runs until `stop`, a broken rule or a broken port.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<StationReport, LabError> {
        // As the loop of one station.
        nix::sys::prctl::set_timerslack(1).ok();
        sys::request_real_time().ok();
        let mut lateness = outcome::histogram();
        let mut batch = Vec::new();
        self.move_mobile(self.clock.now(), Move::Attach(0));
        while !stop.load(Ordering::Relaxed) && !self.has_broken_rule() {
            let now = self.clock.now();
            if self.schedule.is_none() && self.know_each_other() {
                self.schedule = Some(Schedule::new(self.plan, now));
            }
            while let Some((_, what)) = self.schedule.as_mut().and_then(|moves| moves.poll(now)) {
                self.move_mobile(now, what);
            }
            self.receive_from_hosts(now, &mut batch).map_err(LabError::socket("reading a port"))?;
            for number in 0..self.stations.len() {
                self.forward(now, number, &mut lateness);
            }
            let next = self.serve(now).map_err(LabError::socket("using the backbone"))?;
            self.send_to_hosts(now, &mut lateness).map_err(LabError::socket("writing a port"))?;
            let wait = next.map_or(IDLE, |at| self.clock.until(at).min(IDLE));
            self.sleep(wait).map_err(LabError::socket("waiting for packets"))?;
        }
        let now = self.clock.now();
        let hosts = self.fixed_port.iter_mut().chain(&mut self.mobile_port);
        let port_drops = hosts.map(|port| port.drops()).sum();
        let handoffs = Handoffs {
            moves: self.moves,
            gaps: self.arrivals.gaps,
            intruded: self.intruder.map(|intruder| intruder.repeated),
        };
        let links = report_links(&self.stations, self.unheard);
        let agents = self.stations.into_iter().map(|station| station.agent);
        let recorders = agents.map(|agent| agent.into_recorder(now)).collect();
        Ok(StationReport {
            links,
            lateness: Lateness::of_nanos(&lateness),
            port_drops,
            station: None,
            mobile: None,
            cells: Some(CellsReport { recorders, handoffs }),
            gateway: None,
        })
    }

    fn has_broken_rule(&self) -> bool {
        self.stations.iter().any(|station| station.agent.recorder.violation.is_some())
    }

    fn know_each_other(&self) -> bool {
        let mut handoffs = self.stations.iter().filter_map(|station| station.handoff.as_ref());
        handoffs.all(|handoff| handoff.handoff.peers() + 1 == self.stations.len())
    }

    fn move_mobile(&mut self, now: Instant, what: Move) {
        match what {
            Move::Approach(to) => self.stations[to].approach(now, self.mobile),
            Move::Leave => {
                self.radio = None;
                self.moves += 1;
                self.arrivals.leave(now);
            }
            Move::Attach(to) => {
                (self.radio, self.route) = (Some(to), to);
                self.stations[to].attach(now, self.mobile);
            }
        }
    }

    /// Moves packets of the hosts into the links towards the stations.
    fn receive_from_hosts(&mut self, now: Instant, batch: &mut Vec<Packet>) -> io::Result<()> {
        for port in &mut self.fixed_port {
            port.receive(batch)?;
            self.stations[self.route].links.wired.feed(now, End::Host, batch.drain(..));
        }
        for port in &mut self.mobile_port {
            port.receive(batch)?;
            match self.radio {
                Some(at) => self.stations[at].links.air.feed(now, End::Host, batch.drain(..)),
                None => self.unheard[UP] += batch.drain(..).len() as u64,
            }
        }
        Ok(())
    }

    /// Passes packets that have arrived at a station to its agent, in the order of arrival.
    fn forward(&mut self, now: Instant, number: usize, lateness: &mut Histogram<u64>) {
        let station = &mut self.stations[number];
        loop {
            let links = &mut station.links;
            let wired = links.wired.arrived_at(now, End::Host);
            let air = links.air.arrived_at(now, End::Host);
            let is_air = air.is_some_and(|air| wired.is_none_or(|wired| air < wired));
            let (hop, side) = match is_air {
                true => (&mut links.air, Port::Air),
                false => (&mut links.wired, Port::Wired),
            };
            let Some(delivery) = hop.poll_delivery(now, End::Host) else { return };
            record_lateness(lateness, now, delivery.at);
            if is_air && self.radio != Some(number) {
                self.unheard[UP] += 1;
            } else {
                station.handle_arrival(now, side, delivery.packet);
            }
        }
    }

    /// Lets the stations act; returns when something is next due.
    fn serve(&mut self, now: Instant) -> io::Result<Option<Instant>> {
        let mut next = self.schedule.as_ref().map(Schedule::next_deadline);
        for station in &mut self.stations {
            next = station.serve(now)?.into_iter().chain(next).min();
        }
        self.intruder.as_mut().map_or(Ok(()), Intruder::repeat)?;
        Ok(next)
    }

    /// Sends packets that the links have delivered to the hosts.
    fn send_to_hosts(&mut self, now: Instant, lateness: &mut Histogram<u64>) -> io::Result<()> {
        for (number, station) in self.stations.iter_mut().enumerate() {
            let links = &mut station.links;
            while let Some(delivery) = links.wired.poll_delivery(now, End::Station) {
                record_lateness(lateness, now, delivery.at);
                send_to_host(&mut self.fixed_port, &delivery.packet)?;
            }
            while let Some(delivery) = links.air.poll_delivery(now, End::Station) {
                record_lateness(lateness, now, delivery.at);
                if self.radio == Some(number) {
                    self.arrivals.deliver(now, &delivery.packet);
                    send_to_host(&mut self.mobile_port, &delivery.packet)?;
                } else {
                    self.unheard[DOWN] += 1;
                }
            }
        }
        Ok(())
    }

    fn sleep(&self, wait: Duration) -> nix::Result<()> {
        let hosts = self.fixed_port.iter().chain(&self.mobile_port).map(|port| port.readable());
        let handoffs = self.stations.iter().filter_map(|station| station.handoff.as_ref());
        let members = handoffs.map(|handoff| &handoff.member);
        let members = members.chain(self.intruder.as_ref().map(|intruder| &intruder.member));
        let readable = hosts.chain(members.map(Member::readable));
        let mut readable: Vec<_> = readable.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match ppoll(&mut readable, Some(wait.into()), None) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Joins the stations by a backbone with a key that they share, and an intruder without it.
fn connect(
    plan: HandoffPlan,
    stations: &mut [BaseStation],
) -> Result<(Namespace, Option<Intruder>), LabError> {
    let hosts = stations.len() + usize::from(plan.has_intruder);
    let (hub, members) = backbone::create(u32::try_from(hosts).unwrap_or(u32::MAX))?;
    let mut key = [0; 32];
    random(&mut key).map_err(|()| LabError::NoRandomBytes)?;
    let mut members = members.into_iter();
    // The key is of this run, and so is the epoch.
    for ((number, station), member) in (1..).zip(stations).zip(&mut members) {
        let handoff = Handoff::new(StationId(number), 1, Key(key));
        station.handoff = Some(Cooperation { handoff, member });
    }
    Ok((hub, members.next().map(Intruder::new)))
}

/// The sums of the stations' links, and the messages on the backbone.
fn report_links(stations: &[BaseStation], unheard: [u64; 2]) -> BTreeMap<&'static str, LinkReport> {
    let mut links: BTreeMap<&'static str, LinkReport> = BTreeMap::new();
    let mut add = |name, report: LinkReport| *links.entry(name).or_default() += report;
    for BaseStation { links: CellLinks { wired, air }, handoff, .. } in stations {
        add("wired_down", wired.counters(End::Host).into());
        add("wired_up", wired.counters(End::Station).into());
        add("air_down", air.counters(End::Station).into());
        add("air_up", air.counters(End::Host).into());
        if let Some(Cooperation { member, .. }) = handoff {
            let (frames, bytes) = (member.sent, member.bytes);
            add("backbone", LinkReport { frames, bytes, ..LinkReport::default() });
        }
    }
    for (name, lost) in [("air_down", unheard[DOWN]), ("air_up", unheard[UP])] {
        add(name, LinkReport { lost, ..LinkReport::default() });
    }
    links
}
