//! The errors of a tunnel: each is one sentence with a remedy.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

/// Why a tunnel cannot begin, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// There is no TUN driver.
    #[error("/dev/net/tun is missing: load the driver with `modprobe tun`")]
    NoTunDevice,
    /// TUN is for others.
    #[error(
        "no right to open /dev/net/tun or to make an interface ({0}): run as root or with \
         CAP_NET_ADMIN"
    )]
    Rights(#[source] io::Error),
    /// The name of the TUN device.
    #[error("{0:?} is no name of an interface: write 1 to 15 letters or digits, such as mend0")]
    DeviceName(String),
    /// An interface of this name exists already.
    #[error("the interface {0} exists already: choose another name, or end what made it")]
    DeviceBusy(String),
    /// A reload would need another interface.
    #[error("the interface stays {0} until a restart, which connections outlive")]
    OtherDevice(String),
    /// The TUN device cannot be set up.
    #[error("cannot set up the interface {interface} ({source})")]
    Device {
        /// The name of the interface.
        interface: String,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// The TUN device cannot get the address.
    #[error("cannot give {interface} the address {address}/{prefix} ({source})")]
    DeviceAddress {
        /// The name of the interface.
        interface: String,
        /// The address.
        address: IpAddr,
        /// The length of its prefix.
        prefix: u8,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// The TUN device cannot be the way to a network.
    #[error(
        "cannot route {address}/{prefix} through {interface} ({source}): `ip route` shows what \
         there is; leave it out of allowed-ips, or say no-routes and set routes yourself"
    )]
    DeviceRoute {
        /// The name of the interface.
        interface: String,
        /// The network.
        address: IpAddr,
        /// The length of its prefix.
        prefix: u8,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// IPv6 is switched off, or the kernel has none.
    #[error(
        "{0} cannot be used: IPv6 is off here; switch it on with `sysctl -w \
         net.ipv6.conf.all.disable_ipv6=0`, or name IPv4 addresses only"
    )]
    NoIpv6(String),
    /// Another program listens there.
    #[error("{0} is in use: choose another port, or end the program that listens there")]
    AddressInUse(String),
    /// The address is of another machine.
    #[error("{0} is no address of this machine: `ip address` lists those that are")]
    AddressNotHere(String),
    /// The socket cannot be opened.
    #[error("cannot listen on {address} ({source})")]
    Listen {
        /// The address.
        address: String,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// The carrier's interface does not exist.
    #[error("there is no interface {0}: `ip link` lists those there are")]
    NoInterface(String),
    /// The interface of the bridge carries the frames.
    #[error("{0} carries the frames already: name the interface of the LAN with --bridge")]
    BridgeIsCarrier(String),
    /// The interface of the bridge has no Ethernet frames.
    #[error("{0} is no Ethernet interface: --bridge joins Ethernets only")]
    BridgeIsNoEthernet(String),
    /// The packet socket cannot be opened.
    #[error(
        "cannot send Ethernet frames on {interface} ({source}): run as root, or with CAP_NET_RAW"
    )]
    Ethernet {
        /// The interface.
        interface: String,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// A system call failed.
    #[error("{what} failed ({source})")]
    Io {
        /// The call that failed.
        what: &'static str,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
}

/// An error of a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// There is no key file.
    #[error("there is no key file {path}: make one with `airmend keygen {path}`")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The key file cannot be read.
    #[error(
        "cannot read the key file {path} ({source}): it must be a file of the user that runs this, \
         or one that a service gets with LoadCredential"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// Others can read the key.
    #[error(
        "the key file {path} is open to others (mode {mode:04o}): run `chmod 600 {path}`, and make \
         a new key if it was"
    )]
    Permissions {
        /// The file.
        path: PathBuf,
        /// The mode of the file.
        mode: u32,
    },
    /// The file holds something else.
    #[error(
        "{path} is no key file: it must hold 64 hexadecimal digits, as `airmend keygen` writes"
    )]
    File {
        /// The file.
        path: PathBuf,
    },
    /// The new key would overwrite a file.
    #[error("{path} exists already: name a new file, or remove this one first")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The key file cannot be written.
    #[error("cannot write the key file {path} ({source})")]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The text is no public key.
    #[error(
        "{text:?} is no public key: write the 64 hexadecimal digits that `airmend keygen` printed"
    )]
    Public {
        /// The text that was given.
        text: String,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random numbers")]
    NoRandom,
}
