//! `airmend gateway`: mends the TCP flows that leave through one interface, while the kernel
//! forwards as before.
//!
//! Data towards the mobiles is listened to: the kernel sends it, and a copy comes here. Their ACKs
//! are diverted, given to the agent for a verdict and reinjected, but for those that only advance,
//! which the kernel passes and reports. `crate::bpf` is the kernel's part.

mod arrival;
mod config;
mod copies;
mod error;
#[cfg(debug_assertions)]
mod fault;
mod intake;
mod interface;
mod journal;
pub mod observe;
mod outbound;
pub mod privileges;
mod queue_place;
pub mod rules;
mod shape;
pub mod telemetry;

pub use config::{
    DEFAULT_MARK, GatewayConfig, LogFormat, LogLevel, MetricsAddress, Shape, default_socket,
};
pub use error::GatewayError;
pub use queue_place::queue_places;

use crate::bpf::{self, BpfConfig, BpfCounters, BpfPrograms};
use crate::clock::{self, Clock};
use crate::device::reinjection::Reinjection;
use crate::guard::Guard;
use crate::pcap::Recording;
use crate::sys::PacketSocket;
use airmend_proto::recording::RecordedAgent;
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Forwarder, Instant, LinkSignal, LinkType, Packet, Port, PriorityClass, drain};
use arrival::{Arrival, Kind};
use intake::Intake;
use interface::Interface;
use journal::Journal;
use nix::poll::{PollFd, PollFlags, ppoll};
use observe::{CapacityFrom, Observer, shaper};
use outbound::{Outbound, Watched};
use shape::Shaper;
use std::cell::RefCell;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, SystemTime};
use telemetry::{About, KernelView, Status, Telemetry};

/// Without a heartbeat for this time, the kernel passes every packet.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_millis(50);
/// The longest and the shortest interval between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(20);
const MIN_HEARTBEAT_INTERVAL: Duration = Duration::from_millis(5);
/// While packets come, copies do not wake the daemon one by one: it looks after so long.
const TICK: Duration = Duration::from_millis(4);
/// Turns that empty all queues, if nothing new comes.
const CLOSING_TURNS: usize = 64;
/// How often the gateway looks whether the interface is still there.
const INSPECTION: Duration = Duration::from_secs(1);

/// A gateway at work.
pub struct Gateway {
    config: GatewayConfig,
    interface: Interface,
    /// Keeps other gateways off it.
    _claim: UnixDatagram,
    clock: Clock,
    bpf: BpfPrograms,
    intake: Intake,
    outbound: Outbound,
    forwarder: Forwarder<Guard>,
    journal: Journal,
    /// With `--observe`, what looks at packets instead of the agent.
    observer: Option<Observer>,
    shaper: Option<Shaper>,
    /// Time as the agent knows it, which never goes back.
    now: Instant,
    last_beat: Duration,
    /// `None` to look at once.
    last_inspection: Option<Instant>,
    /// The counters of the BPF programs at that time.
    inspected: BpfCounters,
    is_up: bool,
    /// Packets that had passed unseen at the last such signal to the agent.
    unseen: u64,
    /// The last arrival of a packet.
    active_at: Instant,
}

impl Gateway {
    /// Begins to mend what leaves through the interface, and gives up what the calling thread may
    /// do beyond an ordinary one, unless told to keep it or to detach at the end.
    ///
    /// # Errors
    /// What the machine, the interface or the process's rights lack.
    pub fn open(config: GatewayConfig) -> Result<Self, GatewayError> {
        if config.agent.is_link() {
            return Err(GatewayError::LinkAgent(config.agent.name()));
        }
        crate::sys::keep_heap();
        bpf::lift_memory_lock_limit();
        let interface = Interface::find(&config.interface)?;
        let claim = interface.claim()?;
        let link_type = interface.link_type;
        let reinjection = Reinjection::create(link_type).map_err(GatewayError::Reinjection)?;
        let data = PacketSocket::open_copies(interface.index).map_err(GatewayError::Socket)?;
        let repairs = PacketSocket::open_headers(interface.index).map_err(GatewayError::Socket)?;
        let shaper = Shaper::open(&config, &interface)?;
        let priority = shaper.as_ref().and_then(|shaper| shaper.priority).or(config.priority);
        let outbound = Outbound::open(&config, &interface, reinjection, priority)
            .map_err(GatewayError::Socket)?;
        let bpf_config = BpfConfig {
            air: interface.index as u32,
            reinjection: outbound.reinjection.index(),
            has_ethernet: link_type == LinkType::Ethernet,
            mark: config.mark,
            observe: config.observe,
            max_flows: u32::try_from(config.limits.flows).unwrap_or(u32::MAX).max(1),
            heartbeat_timeout: HEARTBEAT_TIMEOUT,
            attach: config.attach,
        };
        let mut bpf = BpfPrograms::load(&bpf_config, data.as_fd(), repairs.as_fd())?;
        let last_beat = clock::monotonic();
        bpf.beat(last_beat)?;
        data.listen().and_then(|()| repairs.listen()).map_err(GatewayError::Socket)?;
        bpf.attach(&bpf_config)?;
        // What a thread may do it hands on to those that it starts: the recording's is one.
        if !config.keep_privileges && !bpf.needs_detaching() {
            privileges::drop_all()?;
        }
        let journal = journal(&config, link_type)?;
        let agent = config.agent.build(config.limits, hash_seed());
        #[cfg(debug_assertions)]
        let agent = fault::inject(agent);
        let agent = Box::new(Guard::new(agent));
        let observer = config
            .observe
            .then(|| Observer::new(air_rate(&config, &interface), config.limits.flows));
        telemetry::log::started(journal.telemetry.about(), bpf.attached());
        log_queue(journal.telemetry.about(), &interface, shaper.is_some());
        Ok(Self {
            forwarder: match cfg!(debug_assertions) {
                true => Forwarder::checked(agent, config.limits.egress, None),
                false => Forwarder::new(agent, config.limits.egress),
            }
            .with_priority_class(PriorityClass::Kernel),
            clock: Clock::start(),
            intake: Intake::new(data, repairs, link_type),
            outbound,
            bpf,
            is_up: interface.is_up(),
            config,
            interface,
            _claim: claim,
            journal,
            observer,
            shaper,
            now: Instant::ZERO,
            last_beat,
            last_inspection: None,
            inspected: BpfCounters::default(),
            unseen: 0,
            active_at: Instant::ZERO,
        })
    }

    /// One turn: takes what has come, lets the agent act, and waits for more, at most 20 ms.
    ///
    /// # Errors
    /// The interface has vanished, or the kernel fails.
    pub fn step(&mut self) -> Result<(), GatewayError> {
        // Where a device is gone, whatever failed did so because of that.
        self.turn().map_err(|error| self.look_at_devices().err().unwrap_or(error))
    }

    fn turn(&mut self) -> Result<(), GatewayError> {
        let is_late = self.beat()?;
        self.inspect()?;
        let known = self.collect()?;
        let may_have_gap = self.beat()? || is_late || self.intake.is_behind();
        while let Some(arrival) = self.intake.next(&self.clock) {
            self.take(arrival);
            self.active_at = self.now;
        }
        if may_have_gap {
            // Of what has just been handed in, too.
            self.report_observation_gap();
        }
        self.now = self.now.max(known);
        self.shaper.iter_mut().for_each(|shaper| shaper.turn(self.now));
        if self.forwarder.poll_timeout().is_some_and(|deadline| deadline.at <= self.now) {
            self.journal.timers(self.now);
        }
        let deadline = self.drain();
        if let Some(source) = self.outbound.error.take() {
            return Err(GatewayError::Io { doing: "sending a packet", source });
        }
        let wait =
            deadline.map_or(HEARTBEAT_INTERVAL, |at| self.clock.until(at).min(HEARTBEAT_INTERVAL));
        self.wait(wait)
    }

    /// Everything that can be seen of the gateway now.
    pub fn status(&mut self) -> Status {
        let counters = self.bpf.counters();
        let copies_lost = self.intake.drops();
        let kernel = KernelView {
            heartbeat_timeouts: counters.heartbeat_timeouts,
            passed_unseen: counters.unseen(),
            copies_lost,
            refused: self.outbound.drops(),
            flow: &|key| self.bpf.flow(key),
        };
        let now = self.clock.now();
        let mut status = self.journal.telemetry.status(now, self.forwarder.load(), &kernel);
        status.shape = self.shaper.as_ref().map(Shaper::status);
        match &mut self.observer {
            Some(observer) => status.observed(observer.observation(now), observer.len()),
            None => status,
        }
    }

    /// Takes over what can change while flows are mended; says what of `wanted` must wait for a
    /// restart, by the names of flags.
    ///
    /// # Errors
    /// The kernel refuses the new priority: privileges were given up.
    pub fn reload(&mut self, wanted: &GatewayConfig) -> Result<Vec<&'static str>, GatewayError> {
        if wanted.priority != self.config.priority && self.shaper.is_none() {
            let priority = wanted.priority.unwrap_or_else(|| self.interface.highest_priority());
            let changed = self.outbound.repairs.set(self.config.mark, priority);
            changed.map_err(GatewayError::io("changing the priority of repairs"))?;
            self.config.priority = wanted.priority;
        }
        if wanted.rules != self.config.rules {
            self.config.rules = wanted.rules.clone();
            self.bpf.forget_ignored();
        }
        if self.config.air_rate_bps != wanted.air_rate_bps {
            self.config.air_rate_bps = wanted.air_rate_bps;
            let known = air_rate(&self.config, &self.interface);
            self.observer.iter_mut().for_each(|observer| observer.know(known));
        }
        self.config.log_level = wanted.log_level;
        telemetry::log::reloaded(self.journal.telemetry.about());
        Ok(self.config.differences(wanted))
    }

    /// Detaches: from here on the kernel forwards alone. ACKs that wait for a verdict are returned.
    ///
    /// # Errors
    /// The recording is not whole.
    pub fn close(mut self) -> Result<Status, GatewayError> {
        // Diverting ends with the heartbeat, and what was diverted before is judged.
        self.bpf.stop()?;
        for _ in 0..CLOSING_TURNS {
            let known = self.collect()?;
            let mut is_empty = true;
            while let Some(arrival) = self.intake.next(&self.clock) {
                // Copies come as before.
                is_empty &= arrival.kind.from() == Port::Wired;
                self.take(arrival);
            }
            self.now = self.now.max(known);
            if is_empty && !self.intake.has_more() {
                break;
            }
        }
        let status = self.status();
        telemetry::log::stopped(&status);
        self.journal.finish().map_err(|source| GatewayError::Recording {
            path: self.config.pcap.clone().unwrap_or_default(),
            source,
        })?;
        Ok(status)
    }

    fn collect(&mut self) -> Result<Instant, GatewayError> {
        self.intake
            .collect(&self.clock, &mut self.bpf, &mut self.outbound.reinjection)
            .map_err(GatewayError::io("taking packets from the kernel"))
    }

    /// Hands one packet to the agent.
    fn take(&mut self, arrival: Arrival) {
        let Arrival { at, kind, packet, damaged } = arrival;
        self.now = self.now.max(at);
        if let Some(shaper) = self.shaper.as_mut().filter(|_| !damaged) {
            shaper.packet(at, kind, &packet);
        }
        if kind == Kind::Repair {
            self.journal.departs(self.now, &packet);
            self.forwarder.confirm_copy(self.now, Port::Air, &packet);
            self.drain();
            return;
        }
        let (from, passed) = (kind.from(), kind != Kind::Diverted);
        if damaged || !self.is_chosen(from, &packet) {
            if !passed {
                self.outbound.send(from.opposite(), &packet);
            }
            return;
        }
        self.journal.enters(from, &packet, passed);
        if let Some(observer) = &mut self.observer {
            observer.packet(self.now, from, &packet);
            self.journal.left_alone(self.now);
            return;
        }
        if passed {
            self.forwarder.handle_copy(self.now, from, &packet);
        } else {
            self.forwarder.handle_packet(self.now, from, packet);
        }
        self.drain();
        self.journal.left_alone(self.now);
    }

    /// Whether the operator's rules let this packet's flow be mended; a flow that is not passes
    /// unseen from now on.
    fn is_chosen(&mut self, from: Port, packet: &Packet) -> bool {
        // A mobile's packets come because of data that was chosen, and bear a DSCP of their own.
        if self.config.rules.is_all() || from == Port::Air {
            return true;
        }
        let Ok(segment) = Segment::parse(packet) else { return false };
        let key = FlowKey::of(&segment, from);
        let chosen = self.config.rules.chooses(&key, dscp(packet, &segment));
        if !chosen {
            // If the kernel has no room for that, the next packet asks again.
            self.bpf.ignore(&key).ok();
        }
        chosen
    }

    /// Lets the agent act; says when it must be asked again.
    fn drain(&mut self) -> Option<Instant> {
        let now = self.now;
        let journal = RefCell::new(&mut self.journal);
        let mut ports = Watched { outbound: &mut self.outbound, journal: &journal };
        let mut on_event = |event| journal.borrow_mut().event(now, event);
        let next = drain(&mut self.forwarder, now, &mut ports, &mut on_event);
        next.map(|deadline| deadline.at)
    }

    /// Writes the heartbeat. True if it was so late that packets may have passed unseen.
    fn beat(&mut self) -> Result<bool, GatewayError> {
        let now = clock::monotonic();
        let since = now.saturating_sub(self.last_beat);
        if since >= MIN_HEARTBEAT_INTERVAL {
            self.last_beat = now;
            self.bpf.beat(now)?;
        }
        // The kernel looks at a clock of its own.
        Ok(since >= HEARTBEAT_TIMEOUT - MIN_HEARTBEAT_INTERVAL)
    }

    /// Signals an observation gap to the agent if packets have passed unseen.
    fn report_observation_gap(&mut self) {
        let unseen = self.bpf.counters().unseen();
        if unseen > self.unseen {
            self.unseen = unseen;
            self.forwarder.handle_link(self.now, LinkSignal::ObservationGap);
        }
    }

    /// Looks now and then at what no packet tells.
    fn inspect(&mut self) -> Result<(), GatewayError> {
        let now = self.clock.now();
        if self.last_inspection.is_some_and(|last| now.since(last) < INSPECTION) {
            return Ok(());
        }
        self.last_inspection = Some(now);
        self.look_at_devices()?;
        if let Some(before) = self.interface.rename() {
            self.journal.telemetry.rename(self.interface.name.clone());
            telemetry::log::renamed(self.journal.telemetry.about(), &before);
        }
        if self.bpf.restore()? {
            telemetry::log::attached_again(self.journal.telemetry.about());
        }
        let (about, is_up) = (self.journal.telemetry.about(), self.interface.is_up());
        match (self.is_up, is_up) {
            (true, false) => telemetry::log::interface_down(about),
            (false, true) => telemetry::log::interface_up(about),
            _ => {}
        }
        self.is_up = is_up;
        let counters = self.bpf.counters();
        if counters.heartbeat_timeouts > self.inspected.heartbeat_timeouts {
            telemetry::log::heartbeat_timeout(about, counters.bypassed - self.inspected.bypassed);
        }
        self.inspected = counters;
        Ok(())
    }

    /// Without the interface there is nothing to mend; and what is redirected to a device that
    /// somebody has set down would be lost.
    fn look_at_devices(&self) -> Result<(), GatewayError> {
        if !self.intake.has_interface() {
            return Err(GatewayError::Gone { name: self.interface.name.clone() });
        }
        match self.outbound.reinjection.is_up() {
            false => Err(GatewayError::ReinjectionDown {
                name: self.outbound.reinjection.name().to_owned(),
            }),
            true => Ok(()),
        }
    }

    /// Waits until an ACK wants a verdict, a deadline is due, or it is time to look.
    fn wait(&mut self, wait: Duration) -> Result<(), GatewayError> {
        if self.intake.has_more() {
            return Ok(());
        }
        let is_active = self.clock.now().since(self.active_at) < HEARTBEAT_INTERVAL;
        let wait = if is_active { wait.min(TICK) } else { wait };
        let [data, repairs] = self.intake.copies_readable();
        let mut all = [data, repairs, self.bpf.readable(), self.outbound.reinjection.readable()]
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        let polled = if is_active { &mut all[2..] } else { &mut all[..] };
        match ppoll(polled, Some(wait.into()), None) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(GatewayError::io("waiting for packets")(error.into())),
        }
        let failed = all[..2].iter().filter_map(PollFd::revents);
        if failed.fold(PollFlags::empty(), PollFlags::union).contains(PollFlags::POLLERR) {
            self.intake.take_errors().map_err(GatewayError::io("reading the packet socket"))?;
            self.last_inspection = None;
        }
        Ok(())
    }
}

/// The air's rate, if the operator or the interface's queue tells it.
fn air_rate(config: &GatewayConfig, interface: &Interface) -> Option<(u64, CapacityFrom)> {
    let configured = config.air_rate_bps.map(|rate| (rate, CapacityFrom::Configured));
    configured.or_else(|| Some((shaper::rate(&interface.name)?, CapacityFrom::Shaper)))
}

/// Where the interface's queue stands, unless it is this program's own.
fn log_queue(about: &About, interface: &Interface, is_ours: bool) {
    match interface.stacked() {
        Some(kind) => telemetry::log::queue_below(about, &kind),
        None if is_ours => {}
        None => telemetry::log::queue_place(about, &queue_place::queue_place(interface)),
    }
}

fn journal(config: &GatewayConfig, link_type: LinkType) -> Result<Journal, GatewayError> {
    let about = About {
        interface: config.interface.clone(),
        agent: config.agent.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        observe: config.observe,
        limits: config.limits,
        started: SystemTime::now(),
    };
    let recorded = RecordedAgent { config: config.agent.clone(), limits: config.limits };
    let recording = config.pcap.as_deref().map(|path| {
        Recording::create(path, link_type, Some(&recorded))
            .map_err(|source| GatewayError::Recording { path: path.to_owned(), source })
    });
    Ok(Journal::new(Telemetry::new(about), recording.transpose()?))
}

/// A number that no sender can guess, so that none can make flows collide.
fn hash_seed() -> u64 {
    let mut bytes = [0; 8];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    // Without it the clock is the best that there is.
    read.map_or_else(|_| clock::realtime().as_nanos() as u64, |()| u64::from_ne_bytes(bytes))
}

/// The codepoint of the differentiated services field.
fn dscp(packet: &Packet, segment: &Segment) -> u8 {
    let header = packet.bytes().get(usize::from(segment.network_offset)..).unwrap_or(&[]);
    match header {
        [first, tos, ..] if first >> 4 == 4 => tos >> 2,
        [first, second, ..] => (first & 0x0f) << 2 | second >> 6,
        _ => 0,
    }
}
