//! The gateway's BPF programs, which select the packets that the daemon receives.
//!
//! `gateway.bpf.c` has the programs; this module loads and attaches them and reads their maps. With
//! tcx they are detached when the process ends. Kernels before 6.6 have clsact instead, where
//! programs remain until they are removed: after a heartbeat timeout they pass every packet.

mod clsact;
mod error;

pub use error::BpfError;

use crate::netlink::Changes;
use crate::sys;
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::{Restoration, named};
use aya::maps::{Array, HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, SocketFilter, TcAttachType};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use clsact::{Clsact, Filed};
use nix::sys::resource::{RLIM_INFINITY, Resource, setrlimit};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The compiled programs, an ELF object for the kernel.
pub static PROGRAMS: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/gateway.bpf.o"));
const COPY: &str = "airmend_copy";
const DEPARTED: &str = "airmend_departed";
const HEARD: &str = "airmend_heard";
const INGRESS: &str = "airmend_ingress";
const EGRESS: &str = "airmend_egress";
const INJECT: &str = "airmend_inject";
/// Where the packets of mobiles come in, and those that the daemon returns.
const INBOUND: TcAttachType = TcAttachType::Ingress;
/// Bytes of a report before the packet's own.
const REPORT_HEADER: usize = 24;
/// The state of a flow that the operator does not want mended.
const IGNORED: u64 = 2;
/// A timestamp is restored within this time after the repair: a sender resends what the air has
/// lost after one of its round trips, or after its least timeout, which is 1 s by RFC 6298 §2.4.
const RESTORATION_LIFETIME: Duration = Duration::from_secs(2);
/// The place of the last one in the map of heartbeats.
const BEAT: u32 = 0;
/// The place there of the time until which timestamps may be restored.
pub const RESTORES_UNTIL: u32 = 2;

/// The hook that the programs are attached to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attach {
    /// To tcx where the kernel has it (6.6), else to clsact.
    #[default]
    Auto,
    /// To tcx: the kernel detaches the programs when the process ends.
    Tcx,
    /// To the clsact queueing discipline: the programs remain, and pass every packet.
    Clsact,
}

named! { Attach, "is no place for programs": Auto = "auto", Tcx = "tcx", Clsact = "clsact" }

/// Constants of the programs, set before they are loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BpfConfig {
    /// The index of the air interface.
    pub(crate) air: u32,
    /// The index of the device through which packets are returned.
    pub(crate) reinjection: u32,
    pub(crate) has_ethernet: bool,
    pub(crate) mark: u32,
    /// Divert nothing.
    pub(crate) observe: bool,
    pub(crate) max_flows: u32,
    /// Without a heartbeat for this time the programs pass every packet.
    pub(crate) heartbeat_timeout: Duration,
    pub(crate) attach: Attach,
}

/// The kernel's report of a packet from the mobile.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub(crate) at: u64,
    /// Whether it waits here for a verdict; if not, it has passed.
    pub(crate) diverted: bool,
    /// Whether its checksum is left to a card, if it was diverted.
    pub(crate) is_left_to_card: bool,
    /// Packets of its flow from the mobile have passed unreported since the last report of it.
    pub(crate) has_gap: bool,
    /// A VLAN tag that stands outside the packet: its protocol and its control information.
    pub(crate) vlan: Option<(u16, u16)>,
    pub(crate) wire_len: u32,
    /// From the link layer's first byte on; all of it if it was diverted.
    pub(crate) bytes: &'a [u8],
}

/// Counters of the programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BpfCounters {
    /// Times that a packet came after the heartbeat timeout.
    pub heartbeat_timeouts: u64,
    /// Packets of mended flows that passed after the heartbeat timeout.
    pub bypassed: u64,
    /// Packets that passed because the ring buffer was full.
    pub ring_full: u64,
    /// ACKs that waited for the daemon's verdict.
    pub diverted: u64,
    /// Packets from mobiles that passed at once and were reported to the daemon.
    pub reported: u64,
    /// Bytes of TCP's payload that came from mobiles, of all flows.
    pub uploaded_bytes: u64,
}

impl BpfCounters {
    /// Packets of mended flows that passed without the daemon's knowledge.
    pub(crate) fn unseen(&self) -> u64 {
        self.bypassed + self.ring_full
    }
}

/// The packets that the kernel has sent towards the mobile in one flow, without repairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFlow {
    /// Packets of wire size.
    pub packets: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

/// Before Linux 5.11 the memory of BPF maps counts as locked, of which an ordinary process may have
/// next to nothing. Who may raise the limit should do so before giving that right up; later kernels
/// and those to whom the service gave enough do not need it.
pub(crate) fn lift_memory_lock_limit() {
    setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY).ok();
}

/// The programs, loaded and attached; dropping this value detaches them.
pub(crate) struct BpfPrograms {
    /// Keeps the programs and their links.
    programs: Ebpf,
    heartbeat: Array<MapData, u64>,
    flows: HashMap<MapData, FlowKeyBytes, FlowValue>,
    counters: PerCpuArray<MapData, u64>,
    reports: RingBuf<MapData>,
    restorations: HashMap<MapData, RestorationKey, RestorationValue>,
    /// The hook of the programs that divert: tcx or clsact.
    attached: Attach,
    /// The clsact of the air interface.
    clsact: Clsact,
    /// The programs attached to a clsact, that of the reinjection device included. Other programs
    /// may remove them.
    filed: Vec<Filed>,
    /// Notifications of such removals; `None` while no program is attached to a clsact.
    changes: Option<Changes>,
}

impl BpfPrograms {
    /// Loads everything and attaches what returns packets, and the filters of two packet sockets:
    /// `data` receives copies of data, and `repairs` the headers of repairs. Call [`Self::attach`]
    /// when the daemon can read what will be diverted, and [`Self::listen_for_hosts`] before to be
    /// told who is on the air.
    pub(crate) fn load(
        config: &BpfConfig,
        data: BorrowedFd<'_>,
        repairs: BorrowedFd<'_>,
    ) -> Result<Self, BpfError> {
        let link_header = if config.has_ethernet { 14u32 } else { 0 };
        let heartbeat_timeout = nanos(config.heartbeat_timeout);
        let observe = u32::from(config.observe);
        let mut programs = EbpfLoader::new()
            .override_global("MARK", &config.mark, true)
            .override_global("AIR", &config.air, true)
            .override_global("REINJECTION", &config.reinjection, true)
            .override_global("LINK_HEADER", &link_header, true)
            .override_global("OBSERVE", &observe, true)
            .override_global("HEARTBEAT_TIMEOUT_NS", &heartbeat_timeout, true)
            .map_max_entries("flows", config.max_flows)
            .load(PROGRAMS)
            .map_err(BpfError::load)?;
        let mut loaded = Self {
            heartbeat: map(&mut programs, "heartbeat")?,
            flows: map(&mut programs, "flows")?,
            counters: map(&mut programs, "counters")?,
            reports: map(&mut programs, "reports")?,
            restorations: map(&mut programs, "restorations")?,
            attached: config.attach,
            clsact: Clsact::of(config.air),
            filed: Vec::new(),
            changes: None,
            programs,
        };
        loaded.attach_filter(COPY, data)?;
        loaded.attach_filter(DEPARTED, repairs)?;
        loaded.attach_classifier(INJECT, config.reinjection, INBOUND, config.attach)?;
        Ok(loaded)
    }

    /// Attaches the filter of a packet socket that receives the headers of a packet of each host on
    /// the air, ten times a second at most.
    pub(crate) fn listen_for_hosts(&mut self, socket: BorrowedFd<'_>) -> Result<(), BpfError> {
        self.attach_filter(HEARD, socket)
    }

    fn attach_filter(
        &mut self,
        name: &'static str,
        socket: BorrowedFd<'_>,
    ) -> Result<(), BpfError> {
        let filter: &mut SocketFilter = program(&mut self.programs, name)?;
        filter.load().map_err(|error| BpfError::program(name, error))?;
        filter.attach(socket)?;
        Ok(())
    }

    /// Attaches the programs that divert and that restore timestamps; what a crashed run left
    /// behind is taken away first.
    pub(crate) fn attach(&mut self, config: &BpfConfig) -> Result<(), BpfError> {
        self.clsact.remove_filters();
        self.attached = self.attach_classifier(INGRESS, config.air, INBOUND, config.attach)?;
        if !config.observe {
            self.attach_egress(config.air, config.attach)?;
        }
        if !self.needs_detaching() {
            // The crashed run had added it. Later this process may not remove it any more.
            self.clsact.remove_if_added();
        }
        Ok(())
    }

    /// Attaches the program that restores timestamps. The old `ingress` queueing discipline, in
    /// the place of a clsact, has no hook for it.
    fn attach_egress(&mut self, air: u32, attach: Attach) -> Result<(), BpfError> {
        match self.attach_classifier(EGRESS, air, TcAttachType::Egress, attach) {
            Err(error @ BpfError::Attach { .. }) => {
                tracing::warn!(%error, "what senders resend leaves with its own timestamp");
                Ok(())
            }
            attached => attached.map(drop),
        }
    }

    /// Attaches one program as `attach` says, and returns the hook that was used.
    fn attach_classifier(
        &mut self,
        name: &'static str,
        index: u32,
        direction: TcAttachType,
        attach: Attach,
    ) -> Result<Attach, BpfError> {
        let interface = sys::interface_name(index as i32)
            .map_err(|source| BpfError::Attach { interface: format!("{index}"), source })?;
        let classifier: &mut SchedClassifier = program(&mut self.programs, name)?;
        if classifier.fd().is_err() {
            classifier.load().map_err(|error| BpfError::program(name, error))?;
        }
        if attach != Attach::Clsact {
            let first = TcAttachOptions::TcxOrder(LinkOrder::first());
            match classifier.attach_with_options(&interface, direction, first) {
                Ok(_) => return Ok(Attach::Tcx),
                Err(source) if attach == Attach::Tcx => {
                    return Err(BpfError::attach_tcx(&interface, source));
                }
                // If the reason holds for clsact too, the error of clsact names it.
                Err(source) => tracing::debug!(interface, %source, "no tcx, trying clsact"),
            }
        }
        if self.changes.is_none() {
            let listening = Changes::listen();
            let failed = |source| BpfError::Attach { interface: interface.clone(), source };
            self.changes = Some(listening.map_err(failed)?);
        }
        // The clsact of the reinjection device is removed with the device.
        let mut other = Clsact::of(index);
        let clsact = if index == self.clsact.index { &mut self.clsact } else { &mut other };
        self.filed.push(clsact.file(name, classifier, direction, &interface)?);
        Ok(Attach::Clsact)
    }

    /// Attaches the programs again that were removed from a clsact since the last call; true if
    /// there were any.
    pub(crate) fn restore(&mut self) -> Result<bool, BpfError> {
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
            if name == EGRESS {
                self.attach_egress(index, Attach::Clsact)?;
            } else {
                self.attach_classifier(name, index, direction, Attach::Clsact)?;
            }
        }
        Ok(is_any_gone)
    }

    /// The hook of the programs that divert.
    pub(crate) fn attached(&self) -> Attach {
        self.attached
    }

    /// Whether the programs stay when the process ends.
    pub(crate) fn needs_detaching(&self) -> bool {
        self.filed.iter().any(|filed| filed.index == self.clsact.index)
    }

    /// Writes the heartbeat: `now` is of `CLOCK_MONOTONIC`.
    pub(crate) fn beat(&mut self, now: Duration) -> Result<(), BpfError> {
        Ok(self.heartbeat.set(BEAT, nanos(now), 0)?)
    }

    /// Lets the sender's retransmission of this data leave with this timestamp, once; `now` is of
    /// `CLOCK_MONOTONIC`.
    pub(crate) fn restore_timestamp(
        &mut self,
        now: Duration,
        restoration: &Restoration,
    ) -> Result<(), BpfError> {
        let until = nanos(now + RESTORATION_LIFETIME);
        let (key, value) = restoration_entry(restoration, until);
        self.restorations.insert(key, value, 0)?;
        Ok(self.heartbeat.set(RESTORES_UNTIL, until, 0)?)
    }

    /// Ends diverting at once: from now on the programs pass every packet.
    pub(crate) fn stop(&mut self) -> Result<(), BpfError> {
        self.beat(Duration::ZERO)
    }

    /// The next report of the kernel.
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
    pub(crate) fn ignore(&mut self, key: &FlowKey) -> Result<(), BpfError> {
        Ok(self.flows.insert(flow_key(key), [0, IGNORED, 0, 0, 0], 0)?)
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

    /// The packets sent towards the mobile in this flow, if the kernel still has an entry for it.
    pub(crate) fn flow(&self, key: &FlowKey) -> Option<KernelFlow> {
        let [_, _, packets, bytes, _] = self.flows.get(&flow_key(key), 0).ok()?;
        Some(KernelFlow { packets, bytes })
    }

    /// The counters now.
    pub(crate) fn counters(&self) -> BpfCounters {
        let count = |index: u32| {
            let values = self.counters.get(&index, 0);
            values.map_or(0, |values| values.iter().sum())
        };
        BpfCounters {
            heartbeat_timeouts: count(0),
            bypassed: count(1),
            ring_full: count(2),
            diverted: count(3),
            reported: count(4),
            uploaded_bytes: count(5),
        }
    }
}

impl Drop for BpfPrograms {
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
            diverted: header[18] != 0,
            is_left_to_card: header[19] != 0,
            has_gap: header[20..] != [0; 4],
            bytes: bytes.get(..usize::from(u16_at(12)))?,
        })
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn map<T: TryFrom<aya::maps::Map, Error = aya::maps::MapError>>(
    programs: &mut Ebpf,
    name: &str,
) -> Result<T, BpfError> {
    let map = programs.take_map(name).ok_or(BpfError::Missing)?;
    Ok(T::try_from(map)?)
}

fn program<'a, T>(programs: &'a mut Ebpf, name: &str) -> Result<&'a mut T, BpfError>
where
    &'a mut T: TryFrom<&'a mut aya::programs::Program, Error = aya::programs::ProgramError>,
{
    let program = programs.program_mut(name).ok_or(BpfError::Missing)?;
    Ok(program.try_into()?)
}

/// `struct flow_key` of the C program.
pub type FlowKeyBytes = [u8; 40];
/// `struct flow` of the C program.
pub type FlowValue = [u64; 5];

/// `struct restoration_key` of the C program: a flow, and where the data begins.
pub type RestorationKey = [u8; 48];
/// `struct restoration` of the C program: where the data ends, the timestamp, and until when.
pub type RestorationValue = [u64; 3];

/// An entry of the map of restorations; `until` in nanoseconds of `CLOCK_MONOTONIC`.
pub fn restoration_entry(
    restoration: &Restoration,
    until: u64,
) -> (RestorationKey, RestorationValue) {
    let Restoration { flow, start, end, timestamp } = restoration;
    let mut key = [0; 48];
    key[..40].copy_from_slice(&flow_key(flow));
    key[40..].copy_from_slice(&u64::from(start.0).to_ne_bytes());
    (key, [end.0.into(), (*timestamp).into(), until])
}

/// A flow as the key of the map of flows.
pub fn flow_key(key: &FlowKey) -> FlowKeyBytes {
    let mut bytes = [0; 40];
    bytes[..16].copy_from_slice(&key.wired.address);
    bytes[16..32].copy_from_slice(&key.air.address);
    let [wired, air] = [key.wired.port, key.air.port].map(u16::to_be_bytes);
    let ports = u32::from_ne_bytes([wired[0], wired[1], air[0], air[1]]);
    bytes[32..].copy_from_slice(&u64::from(ports).to_ne_bytes());
    bytes
}
