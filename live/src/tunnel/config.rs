//! The configuration of a tunnel, and the sockets that it opens.

use super::carrier::{Address, Carrier, EthernetCarrier, UdpCarrier};
use super::error::TunnelError;
use super::key::PublicKey;
use super::padding::Padding;
use super::routing::Network;
use super::security::Security;
use crate::device::Device;
use crate::device::lan::LanDevice;
use crate::device::tun::TunDevice;
use crate::device::tun_offload::OffloadTun;
use crate::sys;
use airmend_proto::agents::{Limits, LinkProtocol};
use airmend_proto::{Agent, Forwarder};
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// The configuration of a tunnel.
#[derive(Clone, Debug)]
pub struct TunnelConfig {
    /// Where the packets come from.
    pub device: DeviceConfig,
    /// The carrier of the frames.
    pub carrier: CarrierConfig,
    /// The other ends: one, or several with a key each.
    pub peers: Vec<PeerConfig>,
    /// What hides the lengths of frames.
    pub padding: Option<Padding>,
    /// Whether headers leave compressed, where the link protocol and the other end can do so.
    pub compression: bool,
}

/// One other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerConfig {
    /// What people call it.
    pub name: Option<String>,
    /// Where it waits; without that, it sends first.
    pub remote: Option<Remote>,
    /// The protection of the frames.
    pub security: Security,
    /// Its addresses, if there are several peers: what is for them goes to it, and what comes from
    /// it has one of them. A peer alone has all.
    pub allowed: Vec<Network>,
}

impl PeerConfig {
    /// Whether both are the same other end.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// Whether what crosses to it does not differ.
    pub(super) fn crosses_alike(&self, other: &Self) -> bool {
        self.remote == other.remote && self.security == other.security
    }

    /// What people call it: its name, else the beginning of its key.
    pub fn title(&self) -> String {
        let key = || self.key().map(|key| key.to_string().chars().take(8).collect());
        self.name.clone().or_else(key).unwrap_or_else(|| "peer".to_owned())
    }

    /// Its key.
    pub fn key(&self) -> Option<PublicKey> {
        match &self.security {
            Security::Noise(keys, _) => Some(keys.peer),
            Security::Insecure => None,
        }
    }
}

/// What makes the agents of all peers.
pub struct Protocol<'a> {
    /// A new one within these limits.
    pub agent: &'a dyn Fn(Limits) -> Box<dyn Agent + Send>,
    /// Of which it is one end; none for passthrough.
    pub link: Option<&'a LinkProtocol>,
}

impl Protocol<'_> {
    /// A new agent with its queue; debug builds check its invariants.
    pub(super) fn forwarder(&self, limits: Limits) -> Forwarder {
        let agent = (self.agent)(limits);
        match cfg!(debug_assertions) {
            true => Forwarder::checked(agent, limits.egress, self.link),
            false => Forwarder::new(agent, limits.egress),
        }
    }
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
    pub addresses: Vec<Network>,
    /// Its MTU; `None` to follow the path.
    pub mtu: Option<u32>,
    /// Networks that it is the way to.
    pub routes: Vec<Network>,
    /// Nothing for them goes another way while the device is not there.
    pub has_blackholes: bool,
    /// It has a carrier also while the peer is silent.
    pub keeps_carrier: bool,
    /// This host's connections through it begin with what the measured path holds.
    pub sets_initial_windows: bool,
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

/// The carrier of the frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CarrierConfig {
    /// UDP over IPv4 or IPv6.
    Udp {
        /// This end; port 0 for any.
        local: SocketAddr,
    },
    /// Raw Ethernet frames.
    Ethernet {
        /// The interface.
        interface: String,
    },
}

/// Where a peer waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remote {
    /// At this address; over Ethernet perhaps the broadcast address, until its first answer.
    Address(Address),
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

impl TunnelConfig {
    /// Whether what crosses to all peers does not differ.
    pub(super) fn crosses_alike(&self, other: &Self) -> bool {
        self.carrier == other.carrier
            && self.padding == other.padding
            && self.compression == other.compression
    }

    /// This end's public key.
    pub(super) fn public_key(&self) -> Option<PublicKey> {
        self.peers.iter().find_map(|peer| match &peer.security {
            Security::Noise(keys, _) => Some(keys.private.public()),
            Security::Insecure => None,
        })
    }

    pub(super) fn open_carrier(&self) -> Result<Box<dyn Carrier>, TunnelError> {
        Ok(match &self.carrier {
            CarrierConfig::Udp { local } => {
                let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
                let is_name = |peer: &PeerConfig| matches!(peer.remote, Some(Remote::Name(_)));
                let may_lack_ipv6 = local.port() == 0 && self.peers.iter().any(is_name);
                let bound = UdpCarrier::bind(*local).or_else(|error| match may_lack_ipv6 {
                    // Without IPv6 the name's other addresses remain.
                    true => UdpCarrier::bind(any),
                    false => Err(error),
                });
                Box::new(bound.map_err(|error| listen(*local, error))?)
            }
            CarrierConfig::Ethernet { interface } => {
                let carrier = EthernetCarrier::open(interface);
                Box::new(carrier.map_err(|error| ethernet(interface, error))?)
            }
        })
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
            CarrierConfig::Ethernet { interface } if *interface == name => {
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
