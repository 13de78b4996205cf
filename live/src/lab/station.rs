//! The base station: one loop that runs both hops in real time, with the agent between them, or
//! ports to a kernel that forwards.

use super::control::{Parts, Served};
use super::data_path::DataPath;
use super::error::LabError;
use super::gateway::GatewayReport;
use super::handoff::report::CellsReport;
use super::hop::{End, HopMedium};
use super::links::Links;
use super::mobile::MobileAgent;
use super::modem::Modem;
use super::network::topology::pair_of;
use super::outcome::{self, Lateness, LinkReport};
use super::record::Recorder;
use crate::clock::Clock;
use crate::device::Device;
use crate::sys;
use airmend_proto::link::Output;
use airmend_proto::{Deadline, Event, Instant, Packet, Port, Ports};
use hdrhistogram::Histogram;
use nix::poll::{PollFd, PollFlags, ppoll};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The interval at which an idle loop checks the stop flag.
pub(super) const IDLE: Duration = Duration::from_millis(50);

/// The state of the loop.
pub(crate) struct Station {
    pub(crate) clock: Clock,
    pub(crate) links: Links,
    /// The ports to the fixed hosts, by the number of the pair.
    pub(crate) wired: Vec<Box<dyn Device>>,
    /// The ports to the mobile hosts.
    pub(crate) air: Vec<Box<dyn Device>>,
    /// The first so many pairs of hosts are those whose flows are shown to the agent. Flows of
    /// others pass through the same egress queues unseen.
    pub(crate) mended_pairs: usize,
    pub(crate) data_path: DataPath,
    /// The agent at the mobile host, if it has one.
    pub(crate) mobile: Option<MobileAgent>,
    /// The requests that the loop serves, if somebody can send any.
    pub(crate) served: Option<Served>,
}

/// The measurements of the loop.
pub(crate) struct StationReport {
    /// What was recorded of the agent at the base station, if it has one.
    pub(crate) station: Option<Recorder>,
    /// The same of the agent at the mobile host.
    pub(crate) mobile: Option<Recorder>,
    pub(crate) links: BTreeMap<&'static str, LinkReport>,
    pub(crate) lateness: Lateness,
    pub(crate) port_drops: u64,
    /// What several base stations noted, instead of one.
    pub(crate) cells: Option<CellsReport>,
    /// The final report of a gateway, which ends after the loop.
    pub(crate) gateway: Option<GatewayReport>,
}

impl StationReport {
    /// What was recorded of each agent.
    pub(crate) fn recorders(&mut self) -> impl Iterator<Item = &mut Recorder> {
        let cells = self.cells.iter_mut().flat_map(|cells| &mut cells.recorders);
        self.station.iter_mut().chain(&mut self.mobile).chain(cells)
    }

    /// Counts what the queues of the base station have refused as drops of the links behind them:
    /// there is no agent whose counters would have it.
    pub(crate) fn count_drops_with_links(&mut self) {
        for (port, link) in [(Port::Air, "air_down"), (Port::Wired, "wired_up")] {
            let counter = Event::EgressDropped(port).counter();
            let dropped = self.station.as_ref().and_then(|station| station.counters.get(counter));
            let link = self.links.get_mut(link);
            if let Some((link, dropped)) = link.zip(dropped) {
                link.dropped += dropped;
            }
        }
    }
}

impl Station {
    /// Runs until `stop`, a broken rule or a broken port.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<StationReport, LabError> {
        // The kernel may otherwise delay a wake-up by 50 microseconds to save energy.
        nix::sys::prctl::set_timerslack(1).ok();
        // Without the right to it the loop runs at normal priority; the lateness shows the effect.
        sys::request_real_time().ok();
        let mut lateness = outcome::histogram();
        let mut batch = Vec::new();
        let mut channel_time = Instant::ZERO;
        while !stop.load(Ordering::Relaxed) && !self.has_broken_rule() {
            let now = self.clock.now();
            if self.links.air.is_shared {
                self.run_channel(channel_time, now, &mut lateness)
                    .map_err(LabError::socket("writing a port"))?;
            }
            channel_time = now;
            let Self { links, data_path, mobile, served, .. } = &mut self;
            if let Some(served) = served {
                served.serve(now, Parts { links, data_path, has_mobile_agent: mobile.is_some() });
            }
            self.receive_from_hosts(now, &mut batch).map_err(LabError::socket("reading a port"))?;
            let forwarded = self.forward(now, &mut lateness);
            let forwarded = forwarded.map_err(LabError::socket("writing a port"))?;
            self.pass_far_wired(now, &mut lateness);
            self.pass_modem(now, &mut batch, &mut lateness)
                .map_err(LabError::socket("using a port of the modem"))?;
            let deadlines = [forwarded, self.serve_mobile(now, &mut lateness)];
            self.send_to_hosts(now, &mut lateness).map_err(LabError::socket("writing a port"))?;
            let deadlines = deadlines.into_iter().flatten().map(|deadline| deadline.at);
            let next = deadlines.chain(self.links.next_deadline(now)).min();
            let wait = next.map_or(IDLE, |at| self.clock.until(at).min(IDLE));
            self.sleep(wait).map_err(LabError::socket("waiting for packets"))?;
        }
        let now = self.clock.now();
        let hosts = self.wired.iter_mut().chain(&mut self.air);
        let host_drops = hosts.map(|port| port.drops()).sum::<u64>();
        let modem_drops = self.links.modem.as_mut().map_or(0, Modem::port_drops);
        Ok(StationReport {
            links: self.links.report()?,
            lateness: Lateness::of_nanos(&lateness),
            port_drops: host_drops + modem_drops + self.data_path.drops(),
            station: self.data_path.into_recorder(now),
            mobile: self.mobile.map(|mobile| mobile.agent.into_recorder(now)),
            cells: None,
            gateway: None,
        })
    }

    /// Whether an agent broke a rule.
    fn has_broken_rule(&self) -> bool {
        let mobile = self.mobile.as_ref().map(|mobile| &mobile.agent);
        let mut agents = self.data_path.agent().into_iter().chain(mobile);
        agents.any(|agent| agent.recorder.violation.is_some())
    }

    /// Moves packets of the hosts into the links towards the base station, or to the agent at the
    /// mobile host, and packets that a kernel has forwarded into the links towards the hosts.
    fn receive_from_hosts(&mut self, now: Instant, batch: &mut Vec<Packet>) -> io::Result<()> {
        for port in &mut self.wired {
            port.receive(batch)?;
            self.links.wired.feed(now, End::Host, batch.drain(..));
        }
        for port in &mut self.air {
            port.receive(batch)?;
            match (&mut self.links.far_wired, &mut self.mobile) {
                (Some(far), _) => far.feed(now, End::Host, batch.drain(..)),
                (None, Some(mobile)) => {
                    let air = &mut self.links.air;
                    batch.drain(..).for_each(|packet| mobile.handle(now, Port::Wired, packet, air));
                }
                (None, None) => self.links.air.feed(now, End::Host, batch.drain(..)),
            }
        }
        self.data_path.take(now, &mut self.links, batch)
    }

    /// Runs a shared air and the timers of the agents from `channel_time` to `now`, each event at
    /// its own time: the floor acquisition depends on exact times, and a late wake-up must not cost
    /// airtime. The hosts do get their frames late.
    fn run_channel(
        &mut self,
        mut channel_time: Instant,
        now: Instant,
        lateness: &mut Histogram<u64>,
    ) -> io::Result<()> {
        loop {
            let timers = self.timers().filter(|at| *at > channel_time);
            let due = timers.fold(now, Instant::min);
            match self.links.air.poll_channel(due) {
                Some((at, output)) => {
                    channel_time = at;
                    self.handle_output(at, now, output, lateness)?;
                }
                None if due < now => channel_time = due,
                None => return Ok(()),
            }
            self.serve(channel_time);
            if let Some(mobile) = &mut self.mobile {
                mobile.serve(channel_time, &mut self.links.air);
            }
        }
    }

    /// The deadlines of the agents.
    fn timers(&self) -> impl Iterator<Item = Instant> {
        let mobile = self.mobile.as_ref().and_then(MobileAgent::poll_timeout);
        self.data_path.poll_timeout().into_iter().chain(mobile).map(|deadline| deadline.at)
    }

    /// Passes an output of a shared air to its end.
    fn handle_output(
        &mut self,
        at: Instant,
        now: Instant,
        output: Output,
        lateness: &mut Histogram<u64>,
    ) -> io::Result<()> {
        let (end, signal) = match output {
            Output::Delivery { to, packet, .. } => {
                record_lateness(lateness, now, at);
                return self.handle_delivery(at, End::of_number(to), packet);
            }
            Output::Damaged { to, packet } => {
                match (End::of_number(to), &mut self.mobile) {
                    (End::Station, _) => self.data_path.damaged(at, &packet),
                    (End::Host, Some(mobile)) => mobile.agent.damaged(at, &packet),
                    (End::Host, None) => {}
                }
                return Ok(());
            }
            Output::Signal(end, signal) => (end, signal),
            // Both ends are served after every output.
            Output::Ready(_) => return Ok(()),
        };
        match (End::of_number(end), &mut self.mobile) {
            (End::Station, _) => self.data_path.signal(at, signal),
            (End::Host, Some(mobile)) => mobile.agent.signal(at, signal),
            (End::Host, None) => {}
        }
        Ok(())
    }

    /// Handles a frame that a shared air has delivered.
    fn handle_delivery(&mut self, at: Instant, end: End, packet: Packet) -> io::Result<()> {
        match (end, &mut self.mobile) {
            (End::Station, _) => self.handle_arrival(at, Port::Air, packet),
            (End::Host, Some(mobile)) => {
                mobile.handle(at, Port::Air, packet, &mut self.links.air);
                Ok(())
            }
            (End::Host, None) => {
                send_to_mobile(at, &mut self.links.far_wired, &mut self.air, packet)
            }
        }
    }

    /// Passes packets that have arrived at the base station to the agent or the kernel, and sends
    /// the agent's packets.
    fn forward(
        &mut self,
        now: Instant,
        lateness: &mut Histogram<u64>,
    ) -> io::Result<Option<Deadline>> {
        while let Some((side, delivery)) = self.links.poll_arrival(now) {
            record_lateness(lateness, now, delivery.at);
            self.handle_arrival(now, side, delivery.packet)?;
        }
        Ok(self.serve(now))
    }

    /// Handles a packet that has arrived at the base station.
    fn handle_arrival(&mut self, now: Instant, side: Port, packet: Packet) -> io::Result<()> {
        match &mut self.data_path {
            DataPath::Agent(agent) => {
                let mut ports = StationPorts { links: &mut self.links };
                if self.mobile.is_none() && pair_of(packet.bytes()) >= self.mended_pairs {
                    agent.handle_unseen(now, side, packet, &mut ports);
                } else {
                    agent.handle(now, side, packet, &mut ports);
                }
                Ok(())
            }
            DataPath::Kernel(ports) => ports.on(side).send(&packet),
        }
    }

    /// Lets the agent of the base station act on expired timers; returns its next deadline.
    fn serve(&mut self, now: Instant) -> Option<Deadline> {
        let DataPath::Agent(agent) = &mut self.data_path else { return None };
        agent.serve(now, &mut StationPorts { links: &mut self.links })
    }

    /// Passes packets that have arrived to the agent at the mobile host, and sends its packets;
    /// returns its next deadline.
    fn serve_mobile(&mut self, now: Instant, lateness: &mut Histogram<u64>) -> Option<Deadline> {
        let (mobile, air) = (self.mobile.as_mut()?, &mut self.links.air);
        while let Some(delivery) = air.poll_delivery(now, End::Station) {
            record_lateness(lateness, now, delivery.at);
            mobile.handle(now, Port::Air, delivery.packet, air);
        }
        mobile.serve(now, air)
    }

    /// Moves what has crossed the wired hop beyond the air into the air, or to the far end of the
    /// link across it.
    fn pass_far_wired(&mut self, now: Instant, lateness: &mut Histogram<u64>) {
        let Some(far) = &mut self.links.far_wired else { return };
        while let Some(delivery) = far.poll_delivery(now, End::Host) {
            record_lateness(lateness, now, delivery.at);
            match &mut self.mobile {
                Some(mobile) => {
                    mobile.handle(now, Port::Wired, delivery.packet, &mut self.links.air);
                }
                None => self.links.air.send(now, End::Host, delivery.packet),
            }
        }
    }

    /// Hands to a modem what has come to it, and moves what it has let go into the air.
    fn pass_modem(
        &mut self,
        now: Instant,
        batch: &mut Vec<Packet>,
        lateness: &mut Histogram<u64>,
    ) -> io::Result<()> {
        let Some(modem) = &mut self.links.modem else { return Ok(()) };
        while let Some(delivery) = modem.hop.poll_delivery(now, End::Station) {
            record_lateness(lateness, now, delivery.at);
            modem.near.send(&delivery.packet)?;
        }
        modem.far.receive(batch)?;
        self.links.air.feed(now, End::Station, batch.drain(..));
        Ok(())
    }

    /// Sends packets that the links or the agent at the mobile host have delivered to the hosts.
    fn send_to_hosts(&mut self, now: Instant, lateness: &mut Histogram<u64>) -> io::Result<()> {
        let (far, hosts) = (&mut self.links.far_wired, &mut self.air);
        for packet in self.mobile.iter_mut().flat_map(|mobile| mobile.released.drain(..)) {
            send_to_mobile(now, far, hosts, packet)?;
        }
        while let Some(delivery) = self.links.wired.poll_delivery(now, End::Station) {
            record_lateness(lateness, now, delivery.at);
            send_to_host(&mut self.wired, &delivery.packet)?;
        }
        while let Some(delivery) = self.links.air.poll_delivery(now, End::Station) {
            record_lateness(lateness, now, delivery.at);
            send_to_mobile(now, far, hosts, delivery.packet)?;
        }
        while let Some(delivery) = far.as_mut().and_then(|far| far.poll_delivery(now, End::Station))
        {
            record_lateness(lateness, now, delivery.at);
            send_to_host(hosts, &delivery.packet)?;
        }
        Ok(())
    }

    fn sleep(&self, wait: Duration) -> nix::Result<()> {
        let hosts = self.wired.iter().chain(&self.air).map(|port| &**port as &dyn Device);
        let modem = self.links.modem.iter().map(|modem| &*modem.far as &dyn Device);
        let ports = hosts.chain(modem).chain(self.data_path.ports());
        let mut readable: Vec<PollFd<'_>> =
            ports.map(|port| PollFd::new(port.readable(), PollFlags::POLLIN)).collect();
        match ppoll(&mut readable, Some(wait.into()), None) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The links that the agent of the base station feeds.
struct StationPorts<'a> {
    links: &'a mut Links,
}

impl Ports for StationPorts<'_> {
    fn can_send(&self, now: Instant, side: Port) -> bool {
        match side {
            Port::Wired => {
                self.links.has_wired_queue || self.links.wired.can_send(now, End::Station)
            }
            Port::Air => self.links.can_send_towards_air(now),
        }
    }

    fn send(&mut self, now: Instant, side: Port, packet: Packet) {
        match side {
            Port::Wired => self.links.wired.send(now, End::Station, packet),
            Port::Air => self.links.towards_air().send(now, End::Station, packet),
        }
    }
}

/// Sends what has crossed the air towards its mobile host.
fn send_to_mobile(
    now: Instant,
    far_wired: &mut Option<HopMedium>,
    hosts: &mut [Box<dyn Device>],
    packet: Packet,
) -> io::Result<()> {
    match far_wired {
        Some(far) => far.send(now, End::Station, packet),
        None => send_to_host(hosts, &packet)?,
    }
    Ok(())
}

/// Sends a packet to its destination host.
pub(super) fn send_to_host(ports: &mut [Box<dyn Device>], packet: &Packet) -> io::Result<()> {
    match ports.get_mut(pair_of(packet.bytes())) {
        Some(port) => port.send(packet),
        None => Ok(()),
    }
}

pub(super) fn record_lateness(lateness: &mut Histogram<u64>, now: Instant, at: Instant) {
    lateness.saturating_record(u64::try_from(now.since(at).as_nanos()).unwrap_or(u64::MAX));
}
