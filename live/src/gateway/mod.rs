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
mod handoff;
mod hop_trace;
mod intake;
mod interface;
mod journal;
pub mod observe;
mod outbound;
mod pace;
pub mod privileges;
mod queue_place;
pub mod rules;
mod shape;
pub mod telemetry;
mod work;

pub use config::{
    DEFAULT_MARK, GatewayConfig, LogFormat, LogLevel, MetricsAddress, Shape, default_socket,
};
pub use error::GatewayError;
pub use handoff::{HandoffConfig, Movement, Word};
pub use queue_place::queue_places;

use crate::bpf::{self, BpfConfig, BpfCounters, BpfPrograms};
use crate::clock::{self, Clock};
use crate::guard::Guard;
use crate::meter::Meter;
use crate::output_file;
use crate::pcap::Recording;
use crate::sys::PacketSocket;
use crate::tunnel::random::hash_seed;
use airmend_proto::recording::RecordedAgent;
use airmend_proto::{EgressLimits, Forwarder, Instant, LinkType, PriorityClass};
use handoff::Cooperation;
use hop_trace::HopTrace;
use intake::Intake;
use interface::Interface;
use journal::Journal;
use nix::poll::{PollFd, PollFlags, ppoll};
use observe::{CapacityFrom, MEASURED_FLOWS, Observer, shaper};
use outbound::Outbound;
use pace::Pace;
use shape::Shaper;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::time::{Duration, SystemTime};
use telemetry::{About, Goodput, KernelView, Status, Telemetry};

/// Without a heartbeat for this time, the kernel passes every packet.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_millis(50);
/// The longest and the shortest interval between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(20);
const MIN_HEARTBEAT_INTERVAL: Duration = Duration::from_millis(5);
/// While packets come, copies do not wake the daemon one by one: it looks after so long.
const TICK: Duration = Duration::from_millis(4);
/// How often the gateway looks whether the interface is still there.
const INSPECTION: Duration = Duration::from_secs(1);

/// A gateway at work.
pub struct Gateway {
    config: GatewayConfig,
    interface: Interface,
    clock: Clock,
    bpf: BpfPrograms,
    intake: Intake,
    outbound: Outbound,
    forwarder: Forwarder<Guard>,
    journal: Journal,
    /// With `--observe`, what looks at packets instead of the agent.
    observer: Option<Observer>,
    /// Otherwise what looks at the packets beside the agent.
    gain: Option<Observer>,
    /// With it, what records the hop.
    hop_trace: Option<HopTrace>,
    shaper: Option<Shaper>,
    handoff: Option<Cooperation>,
    /// Time as the agent knows it, which never goes back.
    now: Instant,
    last_beat: Duration,
    /// `None` to look at once.
    last_inspection: Option<Instant>,
    /// The counters of the BPF programs at that time.
    inspected: BpfCounters,
    /// What reached mobiles, and what came from them.
    meter: Meter,
    is_up: bool,
    pace: Pace,
    /// The agent may have more repairs than have left.
    has_repairs: bool,
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
        // While the gateway may still do so.
        let trace = trace_file(&config)?;
        crate::sys::keep_heap();
        bpf::lift_memory_lock_limit();
        let interface = Interface::find(&config.interface)?;
        let reinjection = interface.claim()?;
        let link_type = interface.link_type;
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
        let handoff = cooperation(&config, &interface, &mut bpf)?;
        let last_beat = clock::monotonic();
        bpf.beat(last_beat)?;
        data.listen().and_then(|()| repairs.listen()).map_err(GatewayError::Socket)?;
        bpf.attach(&bpf_config)?;
        // What a thread may do it hands on to those that it starts: the recording's is one.
        if !config.keep_privileges && !bpf.needs_detaching() {
            privileges::drop_all()?;
        }
        let journal = journal(&config, link_type)?;
        let known = air_rate(&config, &interface);
        let [observer, gain] = observers(&config, known);
        let known = known.map(|(rate, _)| rate);
        let hop_trace = trace.map(|file| HopTrace::start(file, Instant::ZERO, known)).transpose();
        let hop_trace = hop_trace.map_err(|source| trace_error(&config, source))?;
        telemetry::log::started(journal.telemetry.about(), bpf.attached());
        log_queue(journal.telemetry.about(), &interface, shaper.is_some());
        Ok(Self {
            forwarder: forwarder(&config),
            clock: Clock::start(),
            intake: Intake::new(data, repairs, link_type),
            outbound,
            bpf,
            is_up: interface.is_up(),
            config,
            interface,
            journal,
            observer,
            gain,
            hop_trace,
            shaper,
            handoff,
            now: Instant::ZERO,
            last_beat,
            last_inspection: None,
            inspected: BpfCounters::default(),
            meter: Meter::default(),
            pace: Pace::default(),
            has_repairs: false,
            active_at: Instant::ZERO,
        })
    }

    /// One turn: takes what has come, lets the agent act, and waits for more, at most 20 ms.
    ///
    /// # Errors
    /// The interface has vanished, or the kernel fails.
    pub fn step(&mut self) -> Result<(), GatewayError> {
        // Where a device is gone, whatever failed did so because of that.
        self.turn().map_err(|error| {
            let error = self.look_at_devices().err().unwrap_or(error);
            // What is withheld can leave if the devices are there.
            self.bpf.stop().ok();
            self.release().ok();
            error
        })
    }

    fn turn(&mut self) -> Result<(), GatewayError> {
        self.beat()?;
        self.inspect()?;
        let known = self.collect()?;
        self.work()?;
        self.now = self.now.max(known);
        self.hop_trace.iter_mut().for_each(|trace| trace.turn(self.now));
        self.shaper.iter_mut().for_each(|shaper| shaper.turn(self.now));
        if self.forwarder.poll_timeout().is_some_and(|deadline| deadline.at <= self.now) {
            self.journal.timers(self.now);
        }
        self.cooperate();
        let deadline = self.drain();
        let handoff = self.handoff.as_ref().map(|handoff| handoff.next_deadline(self.now));
        let deadline = deadline.into_iter().chain(handoff).min();
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
        status.flows_unanswered = self.forwarder.unanswered() as u64;
        status.goodput = self.goodput(counters.uploaded_bytes);
        status.shape = self.shaper.as_ref().map(Shaper::status);
        status.handoff = self.handoff.as_ref().map(Cooperation::status);
        status.gain = self.gain.as_mut().map(|gain| gain.gain(now));
        match &mut self.observer {
            Some(observer) => status.observed(observer.observation(now), observer.len()),
            None => status,
        }
    }

    /// What reached mobiles so far, in bytes of payload of the measured flows.
    fn delivered_bytes(&self) -> u64 {
        self.observer.iter().chain(&self.gain).map(Observer::delivered).sum()
    }

    fn goodput(&self, uploaded_bytes: u64) -> Goodput {
        let (to_mobiles_bps, from_mobiles_bps) = self.meter.rates();
        Goodput {
            to_mobiles_bps,
            from_mobiles_bps,
            to_mobiles_bytes: self.delivered_bytes(),
            from_mobiles_bytes: uploaded_bytes,
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
            changed.map_err(|source| match source.kind() {
                ErrorKind::PermissionDenied => GatewayError::PriorityNeedsPrivileges,
                _ => GatewayError::io("changing the priority of repairs")(source),
            })?;
            self.config.priority = wanted.priority;
        }
        if wanted.rules != self.config.rules {
            self.config.rules = wanted.rules.clone();
            self.bpf.forget_ignored();
        }
        if self.config.air_rate_bps != wanted.air_rate_bps {
            self.config.air_rate_bps = wanted.air_rate_bps;
            let known = air_rate(&self.config, &self.interface);
            let both = self.observer.iter_mut().chain(&mut self.gain);
            both.for_each(|observer| observer.know(known));
            let known = known.map(|(rate, _)| rate);
            self.hop_trace.iter_mut().for_each(|trace| trace.know(known));
        }
        self.config.log_level = wanted.log_level;
        Ok(self.config.differences(wanted))
    }

    /// Detaches: from here on the kernel forwards alone. ACKs that wait for a verdict are returned,
    /// and those that the agent withholds.
    ///
    /// # Errors
    /// The recording is not whole.
    pub fn close(mut self) -> Result<Status, GatewayError> {
        // Diverting ends with the heartbeat.
        self.bpf.stop()?;
        self.release()?;
        let status = self.status();
        telemetry::log::stopped(&status);
        self.journal.finish().map_err(|source| GatewayError::Recording {
            path: self.config.pcap.clone().unwrap_or_default(),
            source,
        })?;
        if let Some(trace) = self.hop_trace.take() {
            trace.finish(self.now).map_err(|source| trace_error(&self.config, source))?;
        }
        Ok(status)
    }

    fn collect(&mut self) -> Result<Instant, GatewayError> {
        self.intake
            .collect(&self.clock, &mut self.bpf, &mut self.outbound.reinjection)
            .map_err(GatewayError::io("taking packets from the kernel"))
    }

    /// Writes the heartbeat, if it is time to; returns the time, of `CLOCK_MONOTONIC`.
    fn beat(&mut self) -> Result<Duration, GatewayError> {
        let now = clock::monotonic();
        if now.saturating_sub(self.last_beat) >= MIN_HEARTBEAT_INTERVAL {
            self.last_beat = now;
            self.bpf.beat(now)?;
        }
        Ok(now)
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
        self.meter.add(now, self.delivered_bytes(), counters.uploaded_bytes);
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
        if self.intake.has_more() || self.pace.has_postponed() || self.has_repairs {
            return Ok(());
        }
        let is_active = self.clock.now().since(self.active_at) < HEARTBEAT_INTERVAL;
        let wait = if is_active { wait.min(TICK) } else { wait };
        let [data, repairs] = self.intake.copies_readable();
        let reports = self.bpf.readable();
        let handoff = self.handoff.as_ref().map(Cooperation::readable);
        let [heard, group] = handoff.unwrap_or([reports; 2]);
        let mut all = [data, repairs, heard, group, reports, self.outbound.reinjection.readable()]
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        let polled = if is_active { &mut all[2..] } else { &mut all[..] };
        match ppoll(polled, Some(wait.into()), None) {
            // Without memory to wait with, the next turn comes at once.
            Ok(_) | Err(nix::Error::EINTR | nix::Error::EAGAIN | nix::Error::ENOMEM) => {}
            Err(error) => return Err(GatewayError::io("waiting for packets")(error.into())),
        }
        let failed = all[..3].iter().filter_map(PollFd::revents);
        if failed.fold(PollFlags::empty(), PollFlags::union).contains(PollFlags::POLLERR) {
            self.intake.take_errors().map_err(GatewayError::io("reading the packet socket"))?;
            self.handoff.iter().for_each(Cooperation::take_error);
            self.last_inspection = None;
        }
        Ok(())
    }
}

/// What looks at packets in the place of an agent, or beside it.
fn observers(config: &GatewayConfig, known: Option<(u64, CapacityFrom)>) -> [Option<Observer>; 2] {
    match config.observe {
        true => [Some(Observer::new(known, config.limits.flows)), None],
        false => [None, Some(Observer::new(known, MEASURED_FLOWS))],
    }
}

/// The handoff, if there are other stations to be told of.
fn cooperation(
    config: &GatewayConfig,
    interface: &Interface,
    bpf: &mut BpfPrograms,
) -> Result<Option<Cooperation>, GatewayError> {
    let Some(handoff) = &config.handoff else { return Ok(None) };
    let cooperation = Cooperation::open(handoff, interface)?;
    bpf.listen_for_hosts(cooperation.heard().as_fd())?;
    cooperation.heard().listen().map_err(GatewayError::Socket)?;
    Ok(Some(cooperation))
}

/// The agent, guarded, with queues that hold nothing for long.
fn forwarder(config: &GatewayConfig) -> Forwarder<Guard> {
    let agent = config.agent.build(config.limits, hash_seed());
    #[cfg(debug_assertions)]
    let agent = fault::inject(agent);
    let agent = Box::new(Guard::new(agent));
    // At the end an ACK of each flow may leave.
    let wired = config.limits.egress.wired.max(config.limits.flows);
    let egress = EgressLimits { wired, ..config.limits.egress };
    let forwarder = match cfg!(debug_assertions) {
        true => Forwarder::checked(agent, egress, None),
        false => Forwarder::new(agent, egress),
    };
    forwarder.with_priority_class(PriorityClass::Kernel)
}

/// The file for the trace of the hop.
fn trace_file(config: &GatewayConfig) -> Result<Option<File>, GatewayError> {
    let file = config.trace.as_deref().map(output_file::create).transpose();
    file.map_err(|source| trace_error(config, source))
}

/// The trace of the hop cannot be written.
fn trace_error(config: &GatewayConfig, source: std::io::Error) -> GatewayError {
    GatewayError::Recording { path: config.trace.clone().unwrap_or_default(), source }
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
