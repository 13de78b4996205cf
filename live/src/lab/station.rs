//! The base station: one loop that keeps both hops' time, with the agent in the middle, or ports to
//! a kernel that forwards.

use super::data_path::DataPath;
use super::error::LabError;
use super::gateway::GatewayReport;
use super::hop::End;
use super::links::Links;
use super::mobile::MobileEnd;
use super::network::topology::pair_of;
use super::outcome::{self, Lateness, LinkReport};
use super::record::Recorder;
use crate::clock::Clock;
use crate::device::Device;
use crate::sys;
use airmend_proto::link::Output;
use airmend_proto::{Deadline, Instant, Packet, Port, Ports, drain};
use hdrhistogram::Histogram;
use nix::poll::{PollFd, PollFlags, ppoll};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The hosts whose flows the agent is shown. Flows of a second pair share the queue with them, and
/// pass unmended.
const MENDED_PAIR: usize = 0;
/// How often an idle loop looks whether it has been stopped.
const IDLE: Duration = Duration::from_millis(50);

/// Everything that the loop owns.
pub(crate) struct Station {
    pub(crate) clock: Clock,
    pub(crate) links: Links,
    /// The ports to the fixed hosts, by the number of the pair.
    pub(crate) wired: Vec<Box<dyn Device>>,
    /// The ports to the mobile hosts.
    pub(crate) air: Vec<Box<dyn Device>>,
    pub(crate) data_path: DataPath,
    /// The other end of the air, if it needs one.
    pub(crate) mobile: Option<MobileEnd>,
    pub(crate) recorder: Recorder,
}

/// The measurements of the loop.
pub(crate) struct StationReport {
    pub(crate) recorder: Recorder,
    /// The counters of the mobile's end, by event.
    pub(crate) mobile_counters: BTreeMap<&'static str, u64>,
    pub(crate) links: BTreeMap<&'static str, LinkReport>,
    pub(crate) lateness: Lateness,
    pub(crate) port_drops: u64,
    /// What a gateway told at its end, which is after the loop's.
    pub(crate) gateway: Option<GatewayReport>,
}

impl Station {
    /// Runs until `stop`, a broken rule or a broken port.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<StationReport, LabError> {
        // The kernel may otherwise delay a wake-up by 50 microseconds to save energy.
        nix::sys::prctl::set_timerslack(1).ok();
        // Ordinary users do without; the lateness tells what it costs.
        sys::request_real_time().ok();
        let mut lateness = outcome::histogram();
        let mut batch = Vec::new();
        let mut heard = Instant::ZERO;
        while !stop.load(Ordering::Relaxed) && self.recorder.violation.is_none() {
            let now = self.clock.now();
            if self.links.air.is_shared {
                self.hear(heard, now, &mut lateness).map_err(LabError::socket("writing a port"))?;
            }
            heard = now;
            self.take_from_hosts(now, &mut batch).map_err(LabError::socket("reading a port"))?;
            let forwarded = self.forward(now, &mut lateness);
            let forwarded = forwarded.map_err(LabError::socket("writing a port"))?;
            let deadlines = [forwarded, self.mend(now, &mut lateness)];
            self.give_to_hosts(now, &mut lateness).map_err(LabError::socket("writing a port"))?;
            let deadlines = deadlines.into_iter().flatten().map(|deadline| deadline.at);
            let next = deadlines.chain(self.links.next_deadline(now)).min();
            let wait = next.map_or(IDLE, |at| self.clock.until(at).min(IDLE));
            self.sleep(wait).map_err(LabError::socket("waiting for packets"))?;
        }
        self.recorder.entered(self.clock.now());
        let hosts = self.wired.iter_mut().chain(&mut self.air);
        Ok(StationReport {
            links: self.links.report(),
            lateness: Lateness::of_nanos(&lateness),
            port_drops: hosts.map(|port| port.drops()).sum::<u64>() + self.data_path.drops(),
            recorder: self.recorder,
            mobile_counters: self.mobile.map(|mobile| mobile.counters).unwrap_or_default(),
            gateway: None,
        })
    }

    /// Moves what the hosts have sent into the links towards the base station, or to the mobile's
    /// end; and what a kernel has forwarded into those towards the hosts.
    fn take_from_hosts(&mut self, now: Instant, batch: &mut Vec<Packet>) -> io::Result<()> {
        for port in &mut self.wired {
            port.receive(batch)?;
            self.links.wired.feed(now, End::Host, batch.drain(..));
        }
        for port in &mut self.air {
            port.receive(batch)?;
            let Some(mobile) = &mut self.mobile else {
                self.links.air.feed(now, End::Host, batch.drain(..));
                continue;
            };
            for packet in batch.drain(..) {
                mobile.handle(now, Port::Wired, packet);
            }
        }
        self.data_path.take(now, &mut self.links, batch)
    }

    /// Acts on all that has happened since `heard` on an air that is shared, and on the timers of
    /// both ends, each as of its own time: who has the floor when depends on it, and a wake-up that
    /// comes late takes nothing from the channel. The hosts do get their frames late.
    fn hear(
        &mut self,
        mut heard: Instant,
        now: Instant,
        lateness: &mut Histogram<u64>,
    ) -> io::Result<()> {
        loop {
            let timers = self.timers().filter(|at| *at > heard);
            let due = timers.fold(now, Instant::min);
            match self.links.air.poll_channel(due) {
                Some((at, output)) => {
                    heard = at;
                    self.happen(at, now, output, lateness)?;
                }
                None if due < now => heard = due,
                None => return Ok(()),
            }
            self.serve(heard);
            if let Some(mobile) = &mut self.mobile {
                mobile.serve(heard, &mut self.links.air, &mut self.recorder);
            }
        }
    }

    /// The deadlines of the agents.
    fn timers(&self) -> impl Iterator<Item = Instant> {
        let mobile = self.mobile.as_ref().and_then(MobileEnd::poll_timeout);
        self.data_path.poll_timeout().into_iter().chain(mobile).map(|deadline| deadline.at)
    }

    /// Tells an end of a shared air what has happened there.
    fn happen(
        &mut self,
        at: Instant,
        now: Instant,
        output: Output,
        lateness: &mut Histogram<u64>,
    ) -> io::Result<()> {
        let (end, signal) = match output {
            Output::Delivery { to, packet, .. } => {
                note(lateness, now, at);
                return self.arrive(at, End::of_number(to), packet);
            }
            Output::Signal(end, signal) => (end, signal),
            // Both ends are served after whatever happens.
            Output::Ready(_) => return Ok(()),
        };
        match (End::of_number(end), &mut self.mobile) {
            (End::Station, _) => self.data_path.signal(at, signal),
            (End::Host, Some(mobile)) => mobile.signal(at, signal),
            (End::Host, None) => {}
        }
        Ok(())
    }

    /// A frame has come over a shared air.
    fn arrive(&mut self, at: Instant, end: End, packet: Packet) -> io::Result<()> {
        match (end, &mut self.mobile) {
            (End::Station, _) => self.reach(at, Port::Air, packet),
            (End::Host, Some(mobile)) => {
                mobile.handle(at, Port::Air, packet);
                Ok(())
            }
            (End::Host, None) => give(&mut self.air, &packet),
        }
    }

    /// Hands the agent, or the kernel, what has reached the base station, and takes what the agent
    /// wants sent.
    fn forward(
        &mut self,
        now: Instant,
        lateness: &mut Histogram<u64>,
    ) -> io::Result<Option<Deadline>> {
        while let Some((side, delivery)) = self.links.poll_arrival(now) {
            note(lateness, now, delivery.at);
            self.reach(now, side, delivery.packet)?;
        }
        Ok(self.serve(now))
    }

    /// A packet has reached the base station.
    fn reach(&mut self, now: Instant, side: Port, packet: Packet) -> io::Result<()> {
        match &mut self.data_path {
            DataPath::Agent(forwarder) => {
                self.recorder.enters(side, &packet);
                if self.mobile.is_none() && pair_of(packet.bytes()) != MENDED_PAIR {
                    forwarder.forward_unseen(side, packet);
                } else {
                    forwarder.handle_packet(now, side, packet);
                }
                self.drain(now);
                Ok(())
            }
            DataPath::Kernel(ports) => ports.on(side).send(&packet),
        }
    }

    /// Lets the agent act on what is due, and says when it must be asked again.
    fn serve(&mut self, now: Instant) -> Option<Deadline> {
        if self.data_path.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
            self.recorder.timers(now);
        }
        self.drain(now)
    }

    fn drain(&mut self, now: Instant) -> Option<Deadline> {
        let DataPath::Agent(forwarder) = &mut self.data_path else { return None };
        let recorder = RefCell::new(&mut self.recorder);
        let mut ports = Outbound { links: &mut self.links, recorder: &recorder };
        let mut on_event = |event| recorder.borrow_mut().event(event);
        drain(forwarder, now, &mut ports, &mut on_event)
    }

    /// Hands the mobile's end what has reached it and takes what it wants sent.
    fn mend(&mut self, now: Instant, lateness: &mut Histogram<u64>) -> Option<Deadline> {
        let (mobile, air) = (self.mobile.as_mut()?, &mut self.links.air);
        while let Some(delivery) = air.poll_delivery(now, End::Station) {
            note(lateness, now, delivery.at);
            mobile.handle(now, Port::Air, delivery.packet);
            mobile.serve(now, air, &mut self.recorder);
        }
        mobile.serve(now, air, &mut self.recorder)
    }

    /// Hands the hosts what has come out of the links towards them, or of the mobile's end.
    fn give_to_hosts(&mut self, now: Instant, lateness: &mut Histogram<u64>) -> io::Result<()> {
        for packet in self.mobile.iter_mut().flat_map(|mobile| mobile.released.drain(..)) {
            give(&mut self.air, &packet)?;
        }
        while let Some(delivery) = self.links.wired.poll_delivery(now, End::Station) {
            note(lateness, now, delivery.at);
            give(&mut self.wired, &delivery.packet)?;
        }
        while let Some(delivery) = self.links.air.poll_delivery(now, End::Station) {
            note(lateness, now, delivery.at);
            give(&mut self.air, &delivery.packet)?;
        }
        Ok(())
    }

    fn sleep(&self, wait: Duration) -> nix::Result<()> {
        let hosts = self.wired.iter().chain(&self.air).map(|port| &**port as &dyn Device);
        let ports = hosts.chain(self.data_path.ports());
        let mut readable: Vec<PollFd<'_>> =
            ports.map(|port| PollFd::new(port.readable(), PollFlags::POLLIN)).collect();
        match ppoll(&mut readable, Some(wait.into()), None) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The links that the agent feeds, with the recorder beside them.
struct Outbound<'a, 'b> {
    links: &'a mut Links,
    recorder: &'a RefCell<&'b mut Recorder>,
}

impl Ports for Outbound<'_, '_> {
    fn can_send(&self, now: Instant, side: Port) -> bool {
        self.recorder.borrow_mut().entered(now);
        match side {
            Port::Wired => {
                self.links.has_wired_queue || self.links.wired.can_send(now, End::Station)
            }
            Port::Air => self.links.air.can_send(now, End::Station),
        }
    }

    fn send(&mut self, now: Instant, side: Port, packet: Packet) {
        self.recorder.borrow_mut().leaves(now, side, &packet);
        match side {
            Port::Wired => self.links.wired.send(now, End::Station, packet),
            Port::Air => self.links.air.send(now, End::Station, packet),
        }
    }
}

/// To the host that it is for.
fn give(ports: &mut [Box<dyn Device>], packet: &Packet) -> io::Result<()> {
    match ports.get_mut(pair_of(packet.bytes())) {
        Some(port) => port.send(packet),
        None => Ok(()),
    }
}

fn note(lateness: &mut Histogram<u64>, now: Instant, at: Instant) {
    lateness.saturating_record(u64::try_from(now.since(at).as_nanos()).unwrap_or(u64::MAX));
}
