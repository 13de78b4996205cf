//! The configuration of a tunnel, and the sockets that it opens.

use super::carrier::{Address, Carrier, EthernetCarrier, UdpCarrier};
use super::channel::Channel;
use super::error::TunnelError;
use super::names::Name;
use super::noise::Names;
use super::padding::Padding;
use super::security::{self, Security};
use crate::device::Device;
use crate::device::lan::LanDevice;
use crate::device::tun::TunDevice;
use crate::device::tun_offload::OffloadTun;
use crate::sys;
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The configuration of a tunnel.
#[derive(Clone, Debug)]
pub struct TunnelConfig {
    /// Where the packets come from.
    pub device: DeviceConfig,
    /// The carrier of the frames.
    pub carrier: CarrierConfig,
    /// The protection of the frames.
    pub security: Security,
    /// What hides the lengths of frames.
    pub padding: Option<Padding>,
    /// Whether headers leave compressed, where the link protocol and the other end can do so.
    pub compression: bool,
}

/// What the tunnel joins with that of the other end.
#[derive(Clone, Debug)]
pub enum DeviceConfig {
    /// A TUN device, which the tunnel makes.
    Tun(TunConfig),
    /// A LAN: every frame that comes in through an interface and is not for this machine.
    Bridge {
        /// The interface.
        interface: String,
    },
}

/// A TUN device.
#[derive(Clone, Debug, Default)]
pub struct TunConfig {
    /// Its name.
    pub name: String,
    /// Addresses that it gets, each with the length of its prefix.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Its MTU; `None` to follow the path.
    pub mtu: Option<u32>,
    /// Networks that it is the way to.
    pub routes: Vec<(IpAddr, u8)>,
    /// Nothing for them goes another way while the device is not there.
    pub has_blackholes: bool,
    /// It has a carrier also while the peer is silent.
    pub keeps_carrier: bool,
}

impl DeviceConfig {
    /// Whether the device has a carrier only while the peer is there.
    pub(super) fn follows_peer(&self) -> bool {
        matches!(self, Self::Tun(TunConfig { keeps_carrier: false, .. }))
    }

    /// Whether both are the same interface, whatever its addresses.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.name() == other.name()
    }

    /// The name of the interface.
    pub fn name(&self) -> &str {
        match self {
            Self::Tun(tun) => &tun.name,
            Self::Bridge { interface } => interface,
        }
    }
}

/// The carrier and the address of the peer; without a peer's address, the other end sends first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CarrierConfig {
    /// UDP over IPv4 or IPv6.
    Udp {
        /// This end; port 0 for any.
        local: SocketAddr,
        /// The other one.
        peer: Option<Remote>,
    },
    /// Raw Ethernet frames.
    Ethernet {
        /// The interface.
        interface: String,
        /// The other end's MAC address; the broadcast address until its first answer.
        peer: Option<[u8; 6]>,
    },
}

/// Where a peer waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remote {
    /// At this address.
    Address(SocketAddr),
    /// Where a name with a port leads, now and later.
    Name(String),
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl CarrierConfig {
    /// Whether both use the same socket; where the peer is does not matter.
    pub(super) fn binds_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Udp { local, .. }, Self::Udp { local: others, .. }) => local == others,
            (Self::Ethernet { interface, .. }, Self::Ethernet { interface: others, .. }) => {
                interface == others
            }
            _ => false,
        }
    }
}

impl TunnelConfig {
    /// Whether what crosses to the peer does not differ.
    pub(super) fn crosses_alike(&self, other: &Self) -> bool {
        self.carrier == other.carrier
            && self.security == other.security
            && self.padding == other.padding
            && self.compression == other.compression
    }

    pub(super) fn open_carrier(&self) -> Result<Box<dyn Carrier>, TunnelError> {
        Ok(match &self.carrier {
            CarrierConfig::Udp { local, peer } => {
                let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, local.port()));
                let bound = UdpCarrier::bind(*local).or_else(|error| match peer {
                    // Without IPv6 the name's other addresses remain.
                    Some(Remote::Name(_)) => UdpCarrier::bind(any),
                    _ => Err(error),
                });
                Box::new(bound.map_err(|error| listen(*local, error))?)
            }
            CarrierConfig::Ethernet { interface, .. } => {
                let carrier = EthernetCarrier::open(interface);
                Box::new(carrier.map_err(|error| ethernet(interface, error))?)
            }
        })
    }

    /// The channel; `since_1970` is the time at `Instant::ZERO`.
    pub(super) fn open_channel(&self, since_1970: Duration) -> Box<dyn Channel> {
        let mut channel = security::open(&self.security, Names::default(), self.peer(), since_1970);
        if self.name().is_some() {
            channel.initiate(&[]);
        }
        channel
    }

    pub(super) fn peer(&self) -> Option<Address> {
        match &self.carrier {
            CarrierConfig::Udp { peer: Some(Remote::Address(peer)), .. } => {
                Some(Address::Udp(*peer))
            }
            CarrierConfig::Udp { .. } => None,
            CarrierConfig::Ethernet { peer, .. } => peer.map(Address::Mac),
        }
    }

    /// The name that leads to the peer.
    pub(super) fn name(&self) -> Option<Name> {
        match &self.carrier {
            CarrierConfig::Udp { peer: Some(Remote::Name(name)), .. } => Some(Name::new(name)),
            _ => None,
        }
    }

    pub(super) fn open_device(&self, kept: Option<File>) -> Result<Box<dyn Device>, TunnelError> {
        Ok(match &self.device {
            DeviceConfig::Tun(tun) => Box::new(self.open_tun(&tun.name, kept)?),
            DeviceConfig::Bridge { interface } => Box::new(self.open_lan(interface)?),
        })
    }

    /// Opens the interface of a LAN; one that carries the frames would carry its own again.
    fn open_lan(&self, interface: &str) -> Result<LanDevice, TunnelError> {
        let name = interface.to_owned();
        match &self.carrier {
            CarrierConfig::Ethernet { interface, .. } if *interface == name => {
                return Err(TunnelError::BridgeIsCarrier(name));
            }
            _ => {}
        }
        if sys::hardware_type(interface).is_ok_and(|kind| kind != libc::ARPHRD_ETHER) {
            return Err(TunnelError::BridgeIsNoEthernet(name));
        }
        LanDevice::open(interface).map_err(|error| ethernet(interface, error))
    }

    fn open_tun(&self, name: &str, kept: Option<File>) -> Result<OffloadTun, TunnelError> {
        if let Some(device) = kept.and_then(|kept| OffloadTun::adopt(kept, name)) {
            return Ok(device);
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 15 || !name.chars().all(is_allowed) {
            return Err(TunnelError::DeviceName(name.to_owned()));
        }
        let device = TunDevice::open_device().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => TunnelError::NoTunDevice,
            // The node is there and its driver is not.
            _ if error.raw_os_error() == Some(libc::ENODEV) => TunnelError::NoTunDevice,
            _ if error.raw_os_error() == Some(libc::ENXIO) => TunnelError::NoTunDevice,
            _ => TunnelError::Rights(error),
        })?;
        OffloadTun::create(device, name).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => TunnelError::DeviceBusy(name.to_owned()),
            // It exists and is no TUN device.
            io::ErrorKind::InvalidInput => TunnelError::DeviceBusy(name.to_owned()),
            io::ErrorKind::PermissionDenied => TunnelError::Rights(error),
            _ => self.device_failed()(error),
        })
    }

    /// Sets the device up.
    pub(super) fn set_up_device(&self) -> Result<(), TunnelError> {
        sys::set_interface_up(self.device.name()).map_err(self.device_failed())
    }

    pub(super) fn device_failed(&self) -> impl FnOnce(io::Error) -> TunnelError {
        let interface = self.device.name().to_owned();
        |source| TunnelError::Device { interface, source }
    }
}

fn listen(local: SocketAddr, source: io::Error) -> TunnelError {
    let address = local.to_string();
    if source.raw_os_error() == Some(libc::EAFNOSUPPORT) && local.is_ipv6() {
        return TunnelError::NoIpv6(address);
    }
    match source.kind() {
        io::ErrorKind::AddrInUse => TunnelError::AddressInUse(address),
        io::ErrorKind::AddrNotAvailable => TunnelError::AddressNotHere(address),
        _ => TunnelError::Listen { address, source },
    }
}

fn ethernet(interface: &str, source: io::Error) -> TunnelError {
    let interface = interface.to_owned();
    match source.raw_os_error() {
        Some(libc::ENODEV) => TunnelError::NoInterface(interface),
        _ => TunnelError::Ethernet { interface, source },
    }
}
