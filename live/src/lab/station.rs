//! The base station: one loop that keeps both hops' time, with the agent in the middle.

use super::error::LabError;
use super::links::{Links, feed};
use super::mobile::MobileEnd;
use super::outcome::{self, Lateness, LinkReport};
use super::record::Recorder;
use super::topology::pair_of;
use crate::clock::Clock;
use crate::port::Port;
use crate::sys;
use airmend_proto::{Agent, Deadline, Instant, Packet, Ports, Side, drain};
use hdrhistogram::Histogram;
use nix::poll::{PollFd, PollFlags, ppoll};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often an idle loop looks whether it has been stopped.
const IDLE: Duration = Duration::from_millis(50);

/// Everything that the loop owns.
pub(crate) struct Station {
    pub(crate) clock: Clock,
    pub(crate) links: Links,
    /// The ports to the fixed hosts, by the number of the pair.
    pub(crate) wired: Vec<Box<dyn Port>>,
    /// The ports to the mobile hosts.
    pub(crate) air: Vec<Box<dyn Port>>,
    pub(crate) agent: Box<dyn Agent + Send>,
    /// The other end of the air, if it needs one.
    pub(crate) mobile: Option<MobileEnd>,
    pub(crate) recorder: Recorder,
}

/// What the loop measured.
pub(crate) struct StationReport {
    pub(crate) recorder: Recorder,
    /// What the mobile's end did, by event counter.
    pub(crate) mobile_counters: BTreeMap<&'static str, u64>,
    pub(crate) links: BTreeMap<&'static str, LinkReport>,
    pub(crate) lateness: Lateness,
    pub(crate) port_drops: u64,
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
        while !stop.load(Ordering::Relaxed) && self.recorder.violation.is_none() {
            let now = self.clock.now();
            self.take_from_hosts(now, &mut batch).map_err(LabError::socket("reading a port"))?;
            let deadlines = [self.forward(now, &mut lateness), self.mend(now, &mut lateness)];
            self.give_to_hosts(now, &mut lateness).map_err(LabError::socket("writing a port"))?;
            let deadlines = deadlines.into_iter().flatten().map(|deadline| deadline.at);
            let next = deadlines.chain(self.links.next_deadline(now)).min();
            let wait = next.map_or(IDLE, |at| self.clock.until(at).min(IDLE));
            self.sleep(wait).map_err(LabError::socket("waiting for packets"))?;
        }
        self.recorder.entered(self.clock.now());
        Ok(StationReport {
            links: self.links.report(),
            lateness: Lateness::of_nanos(&lateness),
            port_drops: self.wired.iter_mut().chain(&mut self.air).map(|port| port.drops()).sum(),
            recorder: self.recorder,
            mobile_counters: self.mobile.map(|mobile| mobile.counters).unwrap_or_default(),
        })
    }

    /// Moves what the hosts have sent into the links towards the base station, or to the mobile's
    /// end.
    fn take_from_hosts(&mut self, now: Instant, batch: &mut Vec<Packet>) -> io::Result<()> {
        for port in &mut self.wired {
            port.receive(batch)?;
            feed(&mut self.links.wired.inbound, now, batch.drain(..));
        }
        for port in &mut self.air {
            port.receive(batch)?;
            let Some(mobile) = &mut self.mobile else {
                feed(&mut self.links.air.inbound, now, batch.drain(..));
                continue;
            };
            for packet in batch.drain(..) {
                self.recorder.enters_mobile(&packet);
                mobile.handle(now, Side::Wired, packet);
            }
        }
        Ok(())
    }

    /// Hands the agent what has reached the base station and takes what it wants sent.
    fn forward(&mut self, now: Instant, lateness: &mut Histogram<u64>) -> Option<Deadline> {
        let recorder = RefCell::new(&mut self.recorder);
        while let Some((side, delivery)) = self.links.poll_arrival(now) {
            note(lateness, now, delivery.at);
            recorder.borrow_mut().enters(side, &delivery.packet);
            self.agent.handle_packet(now, side, delivery.packet);
            let mut ports = Outbound { links: &mut self.links, recorder: &recorder };
            let mut on_event = |event| recorder.borrow_mut().event(event);
            drain(&mut *self.agent, now, &mut ports, &mut on_event);
        }
        if self.agent.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
            recorder.borrow_mut().timers(now);
        }
        let mut ports = Outbound { links: &mut self.links, recorder: &recorder };
        let mut on_event = |event| recorder.borrow_mut().event(event);
        drain(&mut *self.agent, now, &mut ports, &mut on_event)
    }

    /// Hands the mobile's end what has reached it and takes what it wants sent.
    fn mend(&mut self, now: Instant, lateness: &mut Histogram<u64>) -> Option<Deadline> {
        let (mobile, air) = (self.mobile.as_mut()?, &mut self.links.air);
        while let Some(delivery) = air.outbound.poll_delivery(now) {
            note(lateness, now, delivery.at);
            mobile.handle(now, Side::Air, delivery.packet);
            mobile.serve(now, air, &mut self.recorder);
        }
        mobile.serve(now, air, &mut self.recorder)
    }

    /// Hands the hosts what has come out of the links towards them, or of the mobile's end.
    fn give_to_hosts(&mut self, now: Instant, lateness: &mut Histogram<u64>) -> io::Result<()> {
        for packet in self.mobile.iter_mut().flat_map(|mobile| mobile.released.drain(..)) {
            if let Some(port) = self.air.get_mut(pair_of(packet.bytes())) {
                port.send(&packet)?;
            }
        }
        for (ports, hop) in
            [(&mut self.wired, &mut self.links.wired), (&mut self.air, &mut self.links.air)]
        {
            while let Some(delivery) = hop.outbound.poll_delivery(now) {
                note(lateness, now, delivery.at);
                if let Some(port) = ports.get_mut(pair_of(delivery.packet.bytes())) {
                    port.send(&delivery.packet)?;
                }
            }
        }
        Ok(())
    }

    fn sleep(&self, wait: Duration) -> nix::Result<()> {
        let ports = self.wired.iter().chain(&self.air);
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
    fn can_send(&self, now: Instant, side: Side) -> bool {
        self.recorder.borrow_mut().entered(now);
        match side {
            Side::Wired => self.links.is_two_ended || self.links.wired.outbound.can_send(now),
            Side::Air => self.links.air.outbound.can_send(now),
        }
    }

    fn send(&mut self, now: Instant, side: Side, packet: Packet) {
        self.recorder.borrow_mut().leaves(now, side, &packet);
        self.links.hop(side).outbound.send(now, packet);
    }
}

fn note(lateness: &mut Histogram<u64>, now: Instant, at: Instant) {
    lateness.saturating_record(u64::try_from(now.since(at).as_nanos()).unwrap_or(u64::MAX));
}
