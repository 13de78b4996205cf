//! The gateway's programs in the kernel: which packets visit the daemon.
//!
//! `steer.bpf.c` is the one C program; here it is loaded, attached and asked. It detaches by itself
//! when the process ends; kernels before 6.6 attach to clsact instead, where programs stay until
//! somebody takes them away: there it is the heartbeat that lets everything pass.

mod clsact;
mod error;

pub use error::SteerError;

use crate::gateway::sight::KernelFlow;
use crate::netlink::Changes;
use crate::sys;
use airmend_proto::named;
use airmend_proto::wire::flow::FlowKey;
use aya::maps::{Array, HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, SocketFilter, TcAttachType};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use clsact::{Clsact, Filed};
use nix::sys::resource::{RLIM_INFINITY, Resource, setrlimit};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

static PROGRAMS: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/steer.o"));
const COPY: &str = "airmend_copy";
const JUDGE: &str = "airmend_judge";
const HOLD: &str = "airmend_hold";
const RETURN: &str = "airmend_return";
/// Bytes of a report before the packet's own.
const REPORT_HEADER: usize = 24;
/// The state of a flow that the operator does not want mended.
const IGNORED: u64 = 2;

/// Where the kernel's programs are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attach {
    /// To tcx where the kernel has it (6.6), else to clsact.
    #[default]
    Auto,
    /// To tcx: they vanish with the process.
    Tcx,
    /// To the clsact queueing discipline: they stay, and let everything pass.
    Clsact,
}

named! { Attach, "is no place for programs": Auto = "auto", Tcx = "tcx", Clsact = "clsact" }

/// What the programs are told before they are loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteerConfig {
    /// The index of the air interface.
    pub(crate) air: u32,
    /// The index of the device through which packets are returned.
    pub(crate) detour: u32,
    /// The index of the device through which data comes that the agent holds, if it holds any.
    pub(crate) hold: Option<u32>,
    pub(crate) has_ethernet: bool,
    pub(crate) mark: u32,
    /// Divert nothing.
    pub(crate) observe: bool,
    pub(crate) max_flows: u32,
    /// Without a heartbeat for so long, everything passes.
    pub(crate) lapse: Duration,
    pub(crate) attach: Attach,
}

/// What the kernel tells of a packet from the mobile.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub(crate) at: u64,
    /// Whether it waits here for a verdict; if not, it has passed.
    pub(crate) diverted: bool,
    /// A VLAN tag that stands outside the packet: its protocol and its control information.
    pub(crate) vlan: Option<(u16, u16)>,
    pub(crate) wire_len: u32,
    /// From the link layer's first byte on; all of it if it was diverted.
    pub(crate) bytes: &'a [u8],
}

/// What the programs have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteerCounters {
    /// Times that the daemon gave no sign of life for too long while a packet came.
    pub lapses: u64,
    /// Packets of mended flows that passed because the daemon gave no sign of life.
    pub lapsed: u64,
    /// Packets that passed because the daemon had too many to read.
    pub ring_full: u64,
    /// ACKs that waited for the daemon's verdict.
    pub diverted: u64,
    /// Packets from mobiles that passed at once, and of which the daemon was told.
    pub told: u64,
}

impl SteerCounters {
    /// Packets of mended flows that passed without the daemon's knowledge.
    pub(crate) fn unseen(&self) -> u64 {
        self.lapsed + self.ring_full
    }
}

/// Before Linux 5.11 the memory of BPF maps counts as locked, of which an ordinary process may have
/// next to nothing. Who may raise the limit should do so before giving that right up; later kernels
/// and those to whom the service gave enough do not need it.
pub(crate) fn lift_memory_lock_limit() {
    setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY).ok();
}

/// The programs, loaded and attached; dropping them detaches them.
pub(crate) struct Steering {
    /// Keeps the programs and their links.
    programs: Ebpf,
    heartbeat: Array<MapData, u64>,
    flows: HashMap<MapData, [u8; 40], [u64; 4]>,
    counters: PerCpuArray<MapData, u64>,
    reports: RingBuf<MapData>,
    /// Where the programs that divert are attached: tcx or clsact.
    attached: Attach,
    /// That of the air interface.
    clsact: Clsact,
    /// The programs that stand in a clsact, the detour's too. Others may take them away.
    filed: Vec<Filed>,
    /// Tells whether somebody may have; `None` while nothing stands there.
    changes: Option<Changes>,
}

impl Steering {
    /// Loads everything and attaches what returns packets and what copies them to `copies`. Call
    /// [`Self::attach`] when the daemon can read what will be diverted.
    pub(crate) fn load(config: &SteerConfig, copies: BorrowedFd<'_>) -> Result<Self, SteerError> {
        let link_header = if config.has_ethernet { 14u32 } else { 0 };
        let lapse = u64::try_from(config.lapse.as_nanos()).unwrap_or(u64::MAX);
        let observe = u32::from(config.observe);
        let hold = config.hold.unwrap_or(0);
        let mut programs = EbpfLoader::new()
            .override_global("MARK", &config.mark, true)
            .override_global("AIR", &config.air, true)
            .override_global("DETOUR", &config.detour, true)
            .override_global("HOLD", &hold, true)
            .override_global("LINK_HEADER", &link_header, true)
            .override_global("OBSERVE", &observe, true)
            .override_global("LAPSE_NS", &lapse, true)
            .map_max_entries("flows", config.max_flows)
            .load(PROGRAMS)
            .map_err(SteerError::load)?;
        let mut steering = Self {
            heartbeat: map(&mut programs, "heartbeat")?,
            flows: map(&mut programs, "flows")?,
            counters: map(&mut programs, "counters")?,
            reports: map(&mut programs, "reports")?,
            attached: config.attach,
            clsact: Clsact::of(config.air),
            filed: Vec::new(),
            changes: None,
            programs,
        };
        let filter: &mut SocketFilter = program(&mut steering.programs, COPY)?;
        filter.load().map_err(|error| SteerError::program(COPY, error))?;
        filter.attach(copies)?;
        steering.attach_classifier(RETURN, config.detour, TcAttachType::Ingress, config.attach)?;
        Ok(steering)
    }

    /// Attaches the programs that divert; what a crashed run left behind is taken away first.
    pub(crate) fn attach(&mut self, config: &SteerConfig) -> Result<(), SteerError> {
        self.clsact.remove_filters();
        let hold = config.hold.map(|_| (HOLD, TcAttachType::Egress));
        for (name, direction) in [(JUDGE, TcAttachType::Ingress)].into_iter().chain(hold) {
            self.attached = self.attach_classifier(name, config.air, direction, config.attach)?;
        }
        if !self.needs_detaching() {
            // The crashed run had added it. Later this process may not remove it any more.
            self.clsact.remove_if_added();
        }
        Ok(())
    }

    /// Attaches one program in the way that was asked for, and says which one that was.
    fn attach_classifier(
        &mut self,
        name: &'static str,
        index: u32,
        direction: TcAttachType,
        attach: Attach,
    ) -> Result<Attach, SteerError> {
        let interface = sys::interface_name(index as i32)
            .map_err(|source| SteerError::Attach { interface: format!("{index}"), source })?;
        let classifier: &mut SchedClassifier = program(&mut self.programs, name)?;
        if classifier.fd().is_err() {
            classifier.load().map_err(|error| SteerError::program(name, error))?;
        }
        if attach != Attach::Clsact {
            let first = TcAttachOptions::TcxOrder(LinkOrder::first());
            match classifier.attach_with_options(&interface, direction, first) {
                Ok(_) => return Ok(Attach::Tcx),
                Err(source) if attach == Attach::Tcx => {
                    return Err(SteerError::attach_tcx(&interface, source));
                }
                // Whatever the reason: if it stands in the way of clsact too, clsact tells it.
                Err(source) => tracing::debug!(interface, %source, "no tcx, trying clsact"),
            }
        }
        if self.changes.is_none() {
            let listening = Changes::listen();
            let failed = |source| SteerError::Attach { interface: interface.clone(), source };
            self.changes = Some(listening.map_err(failed)?);
        }
        // The detour's goes with the detour.
        let mut other = Clsact::of(index);
        let clsact = if index == self.clsact.index { &mut self.clsact } else { &mut other };
        self.filed.push(clsact.file(name, classifier, &interface, direction)?);
        Ok(Attach::Clsact)
    }

    /// Attaches again what somebody has taken from a clsact since the last call; says whether there
    /// was anything.
    pub(crate) fn restore(&mut self) -> Result<bool, SteerError> {
        if !self.changes.as_mut().is_some_and(Changes::happened) {
            return Ok(false);
        }
        let (there, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.filed).into_iter().partition(Filed::is_there);
        self.filed = there;
        let is_any_gone = !gone.is_empty();
        for Filed { program: name, index, direction, link, .. } in gone {
            let classifier: &mut SchedClassifier = program(&mut self.programs, name)?;
            // That it is not there any more is known; aya must learn it.
            classifier.detach(link).ok();
            self.attach_classifier(name, index, direction, Attach::Clsact)?;
        }
        Ok(is_any_gone)
    }

    /// Where the programs that divert are attached.
    pub(crate) fn attached(&self) -> Attach {
        self.attached
    }

    /// Whether the programs stay when the process ends.
    pub(crate) fn needs_detaching(&self) -> bool {
        self.filed.iter().any(|filed| filed.index == self.clsact.index)
    }

    /// A sign of life at this time of `CLOCK_MONOTONIC`.
    pub(crate) fn beat(&mut self, now: Duration) -> Result<(), SteerError> {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        Ok(self.heartbeat.set(0, nanos, 0)?)
    }

    /// Ends diverting at once: from here on everything passes.
    pub(crate) fn stop(&mut self) -> Result<(), SteerError> {
        self.beat(Duration::ZERO)
    }

    /// The next packet that the kernel tells of.
    pub(crate) fn next_report<T>(&mut self, take: impl FnOnce(Report<'_>) -> T) -> Option<T> {
        loop {
            let item = self.reports.next()?;
            if let Some(report) = Report::parse(&item) {
                return Some(take(report));
            }
        }
    }

    /// Becomes readable when an ACK waits for a verdict.
    pub(crate) fn readable(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// Lets all packets of a flow pass unseen from now on.
    pub(crate) fn ignore(&mut self, key: &FlowKey) -> Result<(), SteerError> {
        Ok(self.flows.insert(flow_key(key), [0, IGNORED, 0, 0], 0)?)
    }

    /// Forgets which flows pass unseen: the rules have changed.
    pub(crate) fn forget_ignored(&mut self) {
        let ignored: Vec<_> = self
            .flows
            .iter()
            .filter_map(Result::ok)
            .filter(|(_, [_, state, ..])| state & IGNORED != 0)
            .map(|(key, _)| key)
            .collect();
        // The kernel may have dropped some of them meanwhile.
        ignored.iter().for_each(|key| drop(self.flows.remove(key)));
    }

    /// What has left towards the mobile of this flow, if the kernel still knows it.
    pub(crate) fn flow(&self, key: &FlowKey) -> Option<KernelFlow> {
        let [_, _, packets, bytes] = self.flows.get(&flow_key(key), 0).ok()?;
        Some(KernelFlow { packets, bytes })
    }

    /// What has been counted so far.
    pub(crate) fn counters(&self) -> SteerCounters {
        let count = |index: u32| {
            let values = self.counters.get(&index, 0);
            values.map_or(0, |values| values.iter().sum())
        };
        SteerCounters {
            lapses: count(0),
            lapsed: count(1),
            ring_full: count(2),
            diverted: count(3),
            told: count(4),
        }
    }
}

impl Drop for Steering {
    fn drop(&mut self) {
        // If it fails, the heartbeat has ended and everything passes.
        if self.needs_detaching() {
            self.clsact.remove_filters();
        }
        self.clsact.remove_if_added();
    }
}

impl<'a> Report<'a> {
    /// `struct report` of the C program.
    fn parse(item: &'a [u8]) -> Option<Self> {
        let (header, bytes) = item.split_first_chunk::<REPORT_HEADER>()?;
        let u16_at = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let tpid = u16::from_be(u16_at(16));
        Some(Self {
            at: u64::from_ne_bytes(*header.first_chunk()?),
            wire_len: u32::from_ne_bytes(*header.get(8..)?.first_chunk()?),
            vlan: (tpid != 0).then_some((tpid, u16_at(14))),
            diverted: u16_at(18) != 0,
            bytes: bytes.get(..usize::from(u16_at(12)))?,
        })
    }
}

fn map<T: TryFrom<aya::maps::Map, Error = aya::maps::MapError>>(
    programs: &mut Ebpf,
    name: &str,
) -> Result<T, SteerError> {
    let map = programs.take_map(name).ok_or(SteerError::Missing)?;
    Ok(T::try_from(map)?)
}

fn program<'a, T>(programs: &'a mut Ebpf, name: &str) -> Result<&'a mut T, SteerError>
where
    &'a mut T: TryFrom<&'a mut aya::programs::Program, Error = aya::programs::ProgramError>,
{
    let program = programs.program_mut(name).ok_or(SteerError::Missing)?;
    Ok(program.try_into()?)
}

/// `struct flow_key` of the C program.
fn flow_key(key: &FlowKey) -> [u8; 40] {
    let mut bytes = [0; 40];
    bytes[..16].copy_from_slice(&key.wired.address);
    bytes[16..32].copy_from_slice(&key.air.address);
    let [wired, air] = [key.wired.port, key.air.port].map(u16::to_be_bytes);
    let ports = u32::from_ne_bytes([wired[0], wired[1], air[0], air[1]]);
    bytes[32..].copy_from_slice(&u64::from(ports).to_ne_bytes());
    bytes
}
