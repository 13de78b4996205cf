//! The hosts' interfaces and kernel settings, and the ports that join them to the base station.

use super::config::{DeviceKind, LabConfig, Path};
use super::error::LabError;
use super::iproute::ip;
use super::kernel::Kernel;
use super::namespace::Namespace;
use crate::device::Device;
use crate::device::packet::PacketDevice;
use crate::device::tun::TunDevice;
use crate::sys::{self, Offload};
use airmend_proto::Port;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The hosts' interface. Both have the same MAC address: with ARP off, a host's kernel addresses
/// every frame to its own interface, so a frame of one host is right for the other unchanged.
pub(crate) const INTERFACE: &str = "eth0";
pub(crate) const HOST_MAC: [u8; 6] = [0x02, 0x61, 0x69, 0x72, 0x00, 0x01];
/// Linux's own first sizes of a TCP's receive and send buffers, which its tuning raises, in bytes.
const RMEM_DEFAULT: u32 = 131_072;
const WMEM_DEFAULT: u32 = 16_384;
/// How far it may. Linux allows 4 to 32 MB, by the machine's memory; the lab's hosts must never
/// meet that limit: a packet of 1448 bytes takes more than 2 kB of a buffer, and 500 Mb/s for
/// 100 ms are 6 MB.
const BUFFER_MAX: u32 = 64 << 20;
/// The path's MTU, in bytes.
pub const MTU: u32 = 1500;

/// One host.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its network namespace.
    pub(crate) namespace: Namespace,
    /// Its address.
    pub(crate) address: IpAddr,
}

/// Two hosts that talk with each other.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The fixed host.
    pub(crate) fixed: Host,
    /// The mobile host.
    pub(crate) mobile: Host,
}

/// All hosts, set up, and the base station's ports to them: those of pair n are the nth.
pub(crate) struct Topology {
    /// Where the ports are: with it go both ends of each pair of interfaces, and their counters.
    pub(crate) station: Namespace,
    /// The first pair's flows pass the agent, a second one's pass it by.
    pub(crate) pairs: Vec<Pair>,
    /// The base station's ports towards the fixed hosts.
    pub(crate) wired: Vec<Box<dyn Device>>,
    /// The base station's ports towards the mobile hosts.
    pub(crate) air: Vec<Box<dyn Device>>,
    /// The kernel that forwards between them, where the base station has one.
    pub(crate) kernel: Option<Kernel>,
}

impl Topology {
    /// Creates everything anew; nothing of it outlives the process.
    pub(crate) fn create(config: &LabConfig) -> Result<Self, LabError> {
        let station = Namespace::new()?;
        let (mut pairs, mut wired, mut air) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..if config.unmended_flows > 0 { 2 } else { 1 } {
            let (fixed, wired_port) = create_host(config, &station, number, Port::Wired)?;
            let (mobile, air_port) = create_host(config, &station, number, Port::Air)?;
            pairs.push(Pair { fixed, mobile });
            wired.push(wired_port);
            air.push(air_port);
        }
        let kernel = match config.path {
            Path::Inline => None,
            Path::Kernel | Path::Gateway => Some(Kernel::create(config, &station, &pairs)?),
        };
        Ok(Self { station, pairs, wired, air, kernel })
    }
}

/// The number of the pair between whose hosts an IP packet goes.
pub(crate) fn pair_of(packet: &[u8]) -> usize {
    // The third byte of an IPv4 address, the fourth group of an IPv6 one; of the source.
    let byte = match packet.first().map(|byte| byte >> 4) {
        Some(4) => packet.get(14),
        _ => packet.get(15),
    };
    byte.map_or(0, |byte| usize::from(*byte))
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

/// A pair of interfaces: `end` in the calling thread's namespace, opened as a port, and `peer` in
/// another one, which is to be set up.
pub(super) fn open_veth(
    end: &str,
    peer: &str,
    namespace: &Namespace,
) -> Result<PacketDevice, LabError> {
    set_required("net.ipv6.conf.all.disable_ipv6", 1).or_else(|error| match error {
        // A kernel without IPv6.
        LabError::Sysctl { source, .. } if source.kind() == io::ErrorKind::NotFound => Ok(()),
        error => Err(error),
    })?;
    let [a, b, c, d, e, f] = HOST_MAC;
    ip(&format!(
        "link add {end} mtu {MTU} type veth peer name {peer} mtu {MTU} \
         address {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} netns {path}\n\
         link set {end} addrgenmode none arp off\n\
         link set {end} up\n",
        path = namespace.path().display(),
    ))?;
    disable_offloads(end)?;
    PacketDevice::open(end, HOST_MAC).map_err(LabError::PacketDevice)
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
    // A TUN device drops what its queue cannot hold; a TCP may send a whole window at once.
    ip(&format!(
        "link set {INTERFACE} addrgenmode none mtu {MTU} txqueuelen 4096 arp off\n\
         link set {INTERFACE} up\n\
         address add {address} noprefixroute dev {INTERFACE}\n\
         route add {subnet} dev {INTERFACE}{window}\n",
    ))?;
    match config.port {
        DeviceKind::Veth => disable_offloads(INTERFACE),
        DeviceKind::Tun => Ok(()),
    }
}

pub(super) fn disable_offloads(interface: &str) -> Result<(), LabError> {
    Offload::ALL.into_iter().try_for_each(|offload| {
        sys::disable_offload(interface, offload)
            .map_err(LabError::socket("switching segmentation offload off"))
    })
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
    if !config.ipv6 {
        // No router solicitations and multicast reports among the measured packets.
        set("net.ipv6.conf.all.disable_ipv6", "1").ok();
    }
    Ok(())
}

/// The least, first and largest size of a TCP buffer, as the kernel wants them.
fn buffer(first: u32) -> String {
    format!("4096 {first} {BUFFER_MAX}")
}

pub(super) fn set_required(name: &'static str, value: u32) -> Result<(), LabError> {
    set(name, &value.to_string()).map_err(|source| LabError::Sysctl {
        name,
        value: value.to_string(),
        source,
    })
}

/// Writes a setting of the calling thread's network namespace, if it differs: in containers
/// `/proc/sys` is often read-only, and then a right value is good enough.
pub(super) fn set(name: &str, value: &str) -> io::Result<()> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    let current = fs::read_to_string(&path)?;
    if current.split_whitespace().eq(value.split_whitespace()) {
        return Ok(());
    }
    fs::write(path, value)
}
