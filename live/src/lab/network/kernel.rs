//! A kernel that forwards, that of a base station or of a modem: a namespace with an interface on
//! each side, and the queue where a radio has it, in the interface to the air.

use super::air_queue;
use super::host::Pair;
use super::interface::{AIR, WIRED, disable_offloads, no_link_local};
use super::iproute::{self, ip};
use super::namespace::Namespace;
use super::sysctl::{set_ipv6, set_required};
use super::veth::open_veth;
use crate::device::Device;
use crate::lab::config::{AirQueue, FarQueue, Hop, LabConfig};
use crate::lab::error::LabError;
use std::fmt::Write as _;
use std::net::IpAddr;

/// A kernel that forwards between the two hops.
pub(crate) struct Kernel {
    /// The namespace of this kernel.
    pub(crate) namespace: Namespace,
    /// The loop's device towards the fixed hosts.
    pub(crate) wired: Box<dyn Device>,
    /// The loop's device towards the mobile hosts.
    pub(crate) air: Box<dyn Device>,
}

/// The queue of a kernel's interface to the air.
struct Egress {
    /// `None` where the gateway sets one up.
    discipline: Option<AirQueue>,
    /// The hop behind it.
    hop: Hop,
    frames: usize,
}

impl Kernel {
    /// Sets the base station's up for the hosts of `pairs`; the loop's ports are opened in the
    /// namespace `station`.
    pub(crate) fn of_station(
        config: &LabConfig,
        station: &Namespace,
        pairs: &[Pair],
    ) -> Result<Self, LabError> {
        let discipline = config.shape.is_none().then(|| config.station_queue());
        let hop = config.station_hop();
        let egress = Egress { discipline, hop, frames: config.queue_frames };
        Self::create(config, station, pairs, ["wired", "air"], &egress)
    }

    /// As [`Self::of_station`], for a modem with this queue.
    pub(crate) fn of_modem(
        config: &LabConfig,
        queue: FarQueue,
        station: &Namespace,
        pairs: &[Pair],
    ) -> Result<Self, LabError> {
        let (discipline, hop) = (Some(queue.discipline()), config.air);
        let egress = Egress { discipline, hop, frames: queue.frames() };
        Self::create(config, station, pairs, ["near", "far"], &egress).map_err(
            |error| match error {
                LabError::AirQueue { queue, said } => LabError::FarQueue { queue, said },
                error => error,
            },
        )
    }

    fn create(
        config: &LabConfig,
        station: &Namespace,
        pairs: &[Pair],
        [wired_end, air_end]: [&str; 2],
        &Egress { discipline, hop, frames }: &Egress,
    ) -> Result<Self, LabError> {
        let namespace = Namespace::new()?;
        namespace.run(|| set_ipv6(config.ipv6))?;
        let port = |end: &str, peer| station.run(|| open_veth(end, peer, &namespace));
        let (wired, air) = (port(wired_end, WIRED)?, port(air_end, AIR)?);
        namespace.run(|| {
            set_up_forwarding(config, pairs)?;
            [WIRED, AIR].into_iter().try_for_each(disable_offloads)?;
            discipline.map_or(Ok(()), |discipline| air_queue::set_up(discipline, hop, frames))
        })?;
        Ok(Self { namespace, wired: Box::new(wired), air: Box::new(air) })
    }
}

/// Frames that the queue to the air has dropped, of the calling thread's namespace.
pub(crate) fn air_queue_drops() -> Result<u64, LabError> {
    let said = iproute::run("tc", &["-s", "-j", "qdisc", "show", "dev", AIR], "")?;
    let queues: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
    let drops = |queue: &serde_json::Value| {
        // Of the root only: it counts what its classes drop, each of which has a queue as well.
        (queue["root"] == true).then(|| queue["drops"].as_u64())?
    };
    let drops = queues.as_array().and_then(|queues| queues.iter().find_map(drops));
    drops.ok_or(LabError::Interfaces(said))
}

/// Packets come addressed to the interface's MAC address and leave to that of the host, which is
/// the same one: no address resolution is needed.
fn set_up_forwarding(config: &LabConfig, pairs: &[Pair]) -> Result<(), LabError> {
    if config.ipv6 {
        set_required("net.ipv6.conf.all.forwarding", 1)?;
    } else {
        set_required("net.ipv4.ip_forward", 1)?;
    }
    let mut commands = String::new();
    for interface in [WIRED, AIR] {
        let _ = writeln!(commands, "link set {interface} {} arp off up", no_link_local());
    }
    for Pair { fixed, mobile } in pairs {
        for (host, interface) in [(fixed, WIRED), (mobile, AIR)] {
            let bits = if matches!(host.address, IpAddr::V4(_)) { 32 } else { 128 };
            let _ = writeln!(commands, "route add {}/{bits} dev {interface}", host.address);
        }
    }
    // What goes to other networks than those of the hosts.
    let anywhere = if config.ipv6 { "::/0" } else { "0.0.0.0/0" };
    let _ = writeln!(commands, "route add {anywhere} dev {WIRED}");
    ip(&commands)
}
