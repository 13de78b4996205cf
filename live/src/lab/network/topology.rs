//! The hosts' interfaces and kernel settings, and the ports that join them to the base station.

use super::host::{Host, Pair};
use super::interface::{INTERFACE, disable_offloads, no_link_local};
use super::iproute::ip;
use super::kernel::Kernel;
use super::namespace::Namespace;
use super::sysctl::{set, set_ipv6, set_required};
use super::veth::open_veth;
use crate::device::Device;
use crate::device::tun::TunDevice;
use crate::lab::config::{DeviceKind, LabConfig, MTU, Path};
use crate::lab::error::LabError;
use airmend_proto::Port;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Linux's own first sizes of a TCP's receive and send buffers, which its tuning raises, in bytes.
const RMEM_DEFAULT: u32 = 131_072;
const WMEM_DEFAULT: u32 = 16_384;
/// The limit of tuning. Linux allows 4 to 32 MB, by the machine's memory; the hosts must never
/// meet that limit: a packet of 1448 bytes takes more than 2 kB of a buffer, and 500 Mb/s for
/// 100 ms are 6 MB.
const BUFFER_MAX: u32 = 64 << 20;
/// All hosts, set up, and the base station's ports to them: those of pair n are the nth.
pub(crate) struct Topology {
    /// The namespace of the ports: dropping it removes both ends of each pair of interfaces.
    pub(crate) station: Namespace,
    /// The flows of the first so many pairs of the configuration pass the agent, those of one
    /// beyond them pass it by.
    pub(crate) pairs: Vec<Pair>,
    /// The base station's ports towards the fixed hosts.
    pub(crate) wired: Vec<Box<dyn Device>>,
    /// The base station's ports towards the mobile hosts.
    pub(crate) air: Vec<Box<dyn Device>>,
    /// The kernel that forwards between them, where the base station has one.
    pub(crate) kernel: Option<Kernel>,
    /// The kernel of a modem between the base station and the air, if there is one.
    pub(crate) modem: Option<Kernel>,
}

impl Topology {
    /// Creates everything; nothing of it outlives the process.
    pub(crate) fn create(config: &LabConfig) -> Result<Self, LabError> {
        let station = Namespace::new()?;
        let (mut pairs, mut wired, mut air) = (Vec::new(), Vec::new(), Vec::new());
        let unmended = usize::from(config.unmended_flows > 0);
        for number in (0..=u8::MAX).take(config.pairs as usize + unmended) {
            let (fixed, wired_port) = create_host(config, &station, number, Port::Wired)?;
            let (mobile, air_port) = create_host(config, &station, number, Port::Air)?;
            pairs.push(Pair { fixed, mobile });
            wired.push(wired_port);
            air.push(air_port);
        }
        let kernel = match config.path {
            Path::Inline => None,
            Path::Kernel | Path::Gateway => Some(Kernel::of_station(config, &station, &pairs)?),
        };
        let modem = config.far_queue.map(|queue| Kernel::of_modem(config, queue, &station, &pairs));
        Ok(Self { station, pairs, wired, air, kernel, modem: modem.transpose()? })
    }
}

/// The number of the pair to which a host of an IP packet belongs; what comes from outside goes to
/// one of the hosts.
pub(crate) fn pair_of(packet: &[u8]) -> usize {
    // The third byte of an IPv4 address, the fourth group of an IPv6 one.
    let (addresses, prefix, number): ([usize; 2], &[u8], usize) =
        match packet.first().map(|byte| byte >> 4) {
            Some(4) => ([12, 16], &[10, 77], 2),
            _ => ([8, 24], &[0xfd, 0x77, 0, 0, 0, 0], 7),
        };
    let mut addresses = addresses.into_iter().filter_map(|at| packet.get(at..));
    let host = addresses.find(|address| address.starts_with(prefix));
    host.and_then(|address| address.get(number)).map_or(0, |byte| usize::from(*byte))
}

fn create_host(
    config: &LabConfig,
    station: &Namespace,
    pair: u8,
    side: Port,
) -> Result<(Host, Box<dyn Device>), LabError> {
    let namespace = Namespace::new()?;
    let number = if side == Port::Wired { 1 } else { 2 };
    let address = if config.ipv6 {
        IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, u16::from(pair), 0, 0, 0, number))
    } else {
        IpAddr::V4(Ipv4Addr::new(10, 77, pair, number as u8))
    };
    namespace.run(|| set_up_kernel(config))?;
    let port: Box<dyn Device> = match config.port {
        DeviceKind::Veth => {
            let end = format!("{}{pair}", if side == Port::Wired { "wired" } else { "air" });
            Box::new(station.run(|| open_veth(&end, INTERFACE, &namespace))?)
        }
        DeviceKind::Tun => Box::new(namespace.run(open_tun)?),
    };
    namespace.run(|| set_up_interface(config, address))?;
    Ok((Host { namespace, address }, port))
}

fn open_tun() -> Result<TunDevice, LabError> {
    let device = TunDevice::open_device().map_err(LabError::Tun)?;
    TunDevice::create(device, INTERFACE).map_err(LabError::Tun)
}

fn set_up_interface(config: &LabConfig, address: IpAddr) -> Result<(), LabError> {
    let (address, subnet) = match address {
        IpAddr::V4(ip) => (format!("{ip}/24"), format!("10.77.{}.0/24", ip.octets()[2])),
        IpAddr::V6(ip) => (format!("{ip}/64 nodad"), format!("fd77:0:0:{}::/64", ip.segments()[3])),
    };
    let window = config.window_segments.map_or_else(String::new, |segments| {
        format!(" window {}", u64::from(segments) * u64::from(config.payload_per_frame()))
    });
    // For sockets that choose none. A namespace may not have every default, but every route.
    let congestion = config.cc.name();
    // A TUN device drops what its queue cannot hold; a TCP may send a whole window at once.
    ip(&format!(
        "link set {INTERFACE} {no_link_local} mtu {MTU} txqueuelen 4096 arp off\n\
         link set {INTERFACE} up\n\
         address add {address} noprefixroute dev {INTERFACE}\n\
         route add {subnet} dev {INTERFACE}{window} congctl {congestion}\n\
         link set lo up\n",
        no_link_local = no_link_local(),
    ))?;
    match config.port {
        DeviceKind::Veth => disable_offloads(INTERFACE),
        DeviceKind::Tun => Ok(()),
    }
}

/// The settings that decide what TCP does, explicit so that the machine's own do not matter.
fn set_up_kernel(config: &LabConfig) -> Result<(), LabError> {
    set_required("net.ipv4.tcp_sack", u32::from(config.sack))?;
    set_required("net.ipv4.tcp_timestamps", u32::from(config.timestamps))?;
    // Half of all frames may be lost, and a SYN is one of them.
    set_required("net.ipv4.tcp_syn_retries", 30)?;
    set_required("net.ipv4.tcp_synack_retries", 30)?;
    set_required("net.ipv4.tcp_retries2", 100)?;
    set_required("net.ipv4.tcp_no_metrics_save", 1)?;
    // Some kernels do not let a namespace have the buffers' sizes: these are what fits best.
    set("net.ipv4.tcp_wmem", &buffer(WMEM_DEFAULT)).ok();
    if config.window_segments.is_some() {
        // Tuning would raise the window above the route's limit; without it, the buffer begins as
        // large as the window may be.
        set_required("net.ipv4.tcp_moderate_rcvbuf", 0)?;
        set("net.ipv4.tcp_rmem", &buffer(4 << 20)).ok();
    } else {
        set_required("net.ipv4.tcp_moderate_rcvbuf", 1)?;
        set("net.ipv4.tcp_rmem", &buffer(RMEM_DEFAULT)).ok();
    }
    set_ipv6(config.ipv6)
}

/// The least, first and largest size of a TCP buffer, in the form of the kernel.
fn buffer(first: u32) -> String {
    format!("4096 {first} {BUFFER_MAX}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_belongs_to_the_pair_of_its_host() {
        let ipv4 = |source: [u8; 4], destination: [u8; 4]| {
            let mut packet = [0; 20];
            packet[0] = 0x45;
            packet[12..16].copy_from_slice(&source);
            packet[16..].copy_from_slice(&destination);
            pair_of(&packet)
        };
        assert_eq!(ipv4([10, 77, 3, 1], [10, 77, 3, 2]), 3);
        assert_eq!(ipv4([203, 0, 113, 9], [10, 77, 1, 2]), 1);
        assert_eq!(ipv4([10, 77, 2, 2], [203, 0, 113, 9]), 2);
        assert_eq!(ipv4([203, 0, 113, 9], [203, 0, 113, 8]), 0);
        let mut ipv6 = [0; 40];
        ipv6[0] = 0x60;
        ipv6[24..32].copy_from_slice(&[0xfd, 0x77, 0, 0, 0, 0, 0, 5]);
        assert_eq!((pair_of(&ipv6), pair_of(&ipv6[..30]), pair_of(&[])), (5, 0, 0));
    }
}
