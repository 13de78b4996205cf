//! The options of flags and of the configuration file. Those of the link have the same names in
//! both; what belongs to the peer is in a table of its own in the file.

use crate::config_file::switch;
use crate::values::setting;
use airmend_live::gateway::MetricsAddress;
use airmend_live::tunnel::{KeyError, Padding, PublicKey, masked};
use airmend_proto::agents::{self, AgentConfig};
use airmend_proto::named;
use clap::Args;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// All options; one that is not given has its default.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Options {
    /// What mends the path: a link protocol, or plain for a tunnel that mends nothing [default:
    /// tulip].
    #[arg(long, value_name = "NAME", value_parser = arq)]
    pub(super) arq: Option<AgentConfig>,
    /// The name of the virtual interface [default: NAME, or mend0].
    #[arg(long, value_name = "NAME")]
    pub(super) dev: Option<String>,
    /// An address of the virtual interface, such as 10.9.0.1/24; may be repeated.
    #[arg(long, value_name = "ADDR/PREFIX", value_parser = address)]
    pub(super) address: Vec<(IpAddr, u8)>,
    /// The virtual interface's MTU; the path decides if this is not given.
    #[arg(long, value_name = "BYTES", value_parser = mtu)]
    pub(super) mtu: Option<u32>,
    /// Make no virtual interface, but join the LAN of this interface with that of the other end:
    /// every frame that comes in crosses the link and leaves through the other end's interface.
    #[arg(long, value_name = "IF", conflicts_with_all = ["dev", "address", "mtu"])]
    pub(super) bridge: Option<String>,
    /// Wait here for the peer: [::]:4433 or, over Ethernet, any.
    #[arg(long, value_name = "ADDR")]
    pub(super) listen: Option<String>,
    /// What carries the frames: udp or ethernet [default: udp].
    #[arg(long, value_name = "NAME")]
    pub(super) over: Option<CarrierKind>,
    /// The interface for frames over Ethernet.
    #[arg(long, value_name = "IF")]
    pub(super) interface: Option<String>,
    /// This end's private key, as airmend keygen writes it.
    #[arg(long, value_name = "FILE")]
    pub(super) key_file: Option<PathBuf>,
    /// Hide the lengths of packets: 16 for multiples of 16 bytes, another number up to 1024, or
    /// path for datagrams as long as the path allows. Each end pads what it sends.
    #[arg(long, value_name = "SIZE")]
    pub(super) pad: Option<Padding>,
    /// Send all headers whole: of TULIP's frames, and of TCP, UDP and IP in them. Otherwise they
    /// cross compressed where the other end can read that.
    #[arg(long)]
    pub(super) no_compression: bool,
    /// Which packets are sent again until they have arrived, or for how long; docs/link.md has the
    /// rules. TULIP's default: TCP data until it has arrived, and for a time QUIC, voice (by DSCP)
    /// and DNS. encrypted adds TCP in ESP and WireGuard. LACK sends all again but TCP's ACKs.
    #[arg(long, value_name = "RULES")]
    pub(super) class: Option<String>,
    /// Another constant of the link protocol, as KEY=VALUE; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    pub(super) set: Vec<(String, String)>,
    /// Set no routes to what --allowed-ips names; otherwise they come and go with the interface.
    #[arg(long)]
    pub(super) no_routes: bool,
    /// While the interface is not there, let what --allowed-ips names go another way; otherwise
    /// routes of type blackhole drop it until the link is back, or ended by SIGTERM.
    #[arg(long)]
    pub(super) no_blackholes: bool,
    /// Leave the interface its carrier while the peer is silent.
    #[arg(long)]
    pub(super) keep_carrier: bool,
    /// Let this host's connections through the link begin with the kernel's ten segments; otherwise
    /// with what the measured path holds (initcwnd of the interface's routes).
    #[arg(long)]
    pub(super) no_initcwnd: bool,
    /// Run this command when the interface is set up; its name is in AIRMEND_INTERFACE.
    #[arg(long, value_name = "COMMAND")]
    pub(super) up: Option<String>,
    /// Run this command before the link ends.
    #[arg(long, value_name = "COMMAND")]
    pub(super) down: Option<String>,
    /// The socket for airmend status [default: /run/airmend/DEV/status.sock for one with a NAME].
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
    /// Serve metrics to Prometheus on this loopback address or Unix socket, such as 127.0.0.1:9291,
    /// or on another address to a network: 10.0.5.1:9291,from=10.0.5.0/24.
    #[arg(long, value_name = "ADDR")]
    pub(super) metrics: Option<MetricsAddress>,
    /// Neither encrypt nor authenticate anything.
    #[arg(long, conflicts_with_all = ["key_file", "psk_file"])]
    pub(super) insecure: bool,
    /// The other end, by flags.
    #[command(flatten)]
    pub(super) peer: Peer,
    /// The other ends of the file, and then all.
    #[arg(skip)]
    pub(super) peers: Vec<Peer>,
}

/// What belongs to one peer.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Peer {
    /// Where the peer listens: 192.0.2.1:4433 or, over Ethernet, its MAC address.
    #[arg(long = "peer", value_name = "ADDR", conflicts_with = "listen")]
    pub(super) endpoint: Option<String>,
    /// The peer's public key; without it, both ends have the same key file.
    #[arg(long = "peer-key", value_name = "KEY")]
    pub(super) key: Option<PublicKey>,
    /// A secret that both ends have beside their keys, as airmend keygen --psk writes it.
    #[arg(long, value_name = "FILE")]
    pub(super) psk_file: Option<PathBuf>,
    /// Networks behind the peer, such as 10.0.0.0/8,fd00::/8: routed through the link.
    #[arg(long, value_name = "NETS", value_delimiter = ',', value_parser = network)]
    pub(super) allowed_ips: Vec<(IpAddr, u8)>,
    /// What people call the peer.
    #[arg(skip)]
    pub(super) name: Option<String>,
}

/// The keys of the file, without those of a peer.
pub(super) const OPTION_NAMES: [&str; 23] = [
    "arq",
    "dev",
    "address",
    "mtu",
    "bridge",
    "listen",
    "over",
    "interface",
    "key-file",
    "pad",
    "no-compression",
    "class",
    "set",
    "no-routes",
    "no-blackholes",
    "keep-carrier",
    "no-initcwnd",
    "up",
    "down",
    "socket",
    "metrics",
    "insecure",
    "peer",
];

/// The keys of a `[[peer]]`.
pub(super) const PEER_NAMES: [&str; 5] = ["name", "key", "endpoint", "allowed-ips", "psk-file"];

/// Keys that exclude each other.
pub(super) const EXCLUSIVE: [(&str, &str); 6] = [
    ("bridge", "dev"),
    ("bridge", "address"),
    ("bridge", "mtu"),
    ("bridge", "up"),
    ("bridge", "down"),
    ("insecure", "key-file"),
];

impl Options {
    /// Sets the option of this name from text, as its flag does. `None` if none has a single value.
    /// Paths are relative to `folder`.
    pub(super) fn set_from_text(
        &mut self,
        name: &str,
        text: &str,
        folder: &Path,
    ) -> Option<Result<(), String>> {
        let words = |error: &dyn ToString| error.to_string();
        Some(match name {
            "arq" => put(&mut self.arq, arq(text)),
            "dev" => put(&mut self.dev, Ok(text.to_owned())),
            "mtu" => put(&mut self.mtu, mtu(text)),
            "bridge" => put(&mut self.bridge, Ok(text.to_owned())),
            "listen" => put(&mut self.listen, place(text)),
            "over" => put(&mut self.over, text.parse().map_err(|error| words(&error))),
            "interface" => put(&mut self.interface, Ok(text.to_owned())),
            "key-file" => put(&mut self.key_file, Ok(folder.join(text))),
            "pad" => put(&mut self.pad, text.parse().map_err(|error| words(&error))),
            "class" => put(&mut self.class, Ok(text.to_owned())),
            "up" => put(&mut self.up, Ok(text.to_owned())),
            "down" => put(&mut self.down, Ok(text.to_owned())),
            "socket" => put(&mut self.socket, Ok(folder.join(text))),
            "metrics" => put(&mut self.metrics, text.parse().map_err(|error| words(&error))),
            "no-compression" => switch(text).map(|on| self.no_compression = on),
            "no-routes" => switch(text).map(|on| self.no_routes = on),
            "no-blackholes" => switch(text).map(|on| self.no_blackholes = on),
            "keep-carrier" => switch(text).map(|on| self.keep_carrier = on),
            "no-initcwnd" => switch(text).map(|on| self.no_initcwnd = on),
            "insecure" => switch(text).map(|on| self.insecure = on),
            _ => return None,
        })
    }

    /// Both, where `self` wins. Addresses are replaced as a whole, settings one by one.
    ///
    /// # Errors
    /// Flags are about one peer, and there are several.
    pub(super) fn over(self, below: Self) -> Result<Self, String> {
        let peers = match (&below.peers[..], self.peer.is_given()) {
            ([] | [_], _) => vec![self.peer.over(below.peers.into_iter().next())],
            (_, false) => below.peers,
            (_, true) => {
                let why = "the file has several [[peer]]: --peer, --peer-key, --psk-file and \
                           --allowed-ips are for one";
                return Err(why.into());
            }
        };
        Ok(Self {
            arq: self.arq.or(below.arq),
            dev: self.dev.or(below.dev),
            address: if self.address.is_empty() { below.address } else { self.address },
            mtu: self.mtu.or(below.mtu),
            bridge: self.bridge.or(below.bridge),
            listen: self.listen.or(below.listen),
            over: self.over.or(below.over),
            interface: self.interface.or(below.interface),
            key_file: self.key_file.or(below.key_file),
            pad: self.pad.or(below.pad),
            no_compression: self.no_compression || below.no_compression,
            class: self.class.or(below.class),
            set: [below.set, self.set].concat(),
            no_routes: self.no_routes || below.no_routes,
            no_blackholes: self.no_blackholes || below.no_blackholes,
            keep_carrier: self.keep_carrier || below.keep_carrier,
            no_initcwnd: self.no_initcwnd || below.no_initcwnd,
            up: self.up.or(below.up),
            down: self.down.or(below.down),
            socket: self.socket.or(below.socket),
            metrics: self.metrics.or(below.metrics),
            insecure: self.insecure || below.insecure,
            peer: Peer::default(),
            peers,
        })
    }
}

impl Peer {
    /// As [`Options::set_from_text`].
    pub(super) fn set_from_text(
        &mut self,
        name: &str,
        text: &str,
        folder: &Path,
    ) -> Option<Result<(), String>> {
        Some(match name {
            "name" => put(&mut self.name, Ok(text.to_owned())),
            "key" => put(&mut self.key, text.parse().map_err(|error: KeyError| error.to_string())),
            "endpoint" => put(&mut self.endpoint, place(text)),
            "psk-file" => put(&mut self.psk_file, Ok(folder.join(text))),
            _ => return None,
        })
    }

    /// Whether flags say anything about it.
    fn is_given(&self) -> bool {
        let Self { endpoint, key, psk_file, allowed_ips, .. } = self;
        endpoint.is_some() || key.is_some() || psk_file.is_some() || !allowed_ips.is_empty()
    }

    fn over(self, below: Option<Self>) -> Self {
        let below = below.unwrap_or_default();
        Self {
            endpoint: self.endpoint.or(below.endpoint),
            key: self.key.or(below.key),
            psk_file: self.psk_file.or(below.psk_file),
            name: self.name.or(below.name),
            allowed_ips: match self.allowed_ips.is_empty() {
                true => below.allowed_ips,
                false => self.allowed_ips,
            },
        }
    }
}

fn put<T>(place: &mut Option<T>, read: Result<T, String>) -> Result<(), String> {
    read.map(|value| *place = Some(value))
}

/// The carrier of the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CarrierKind {
    #[default]
    Udp,
    Ethernet,
}

named! { CarrierKind, "carries no frames": Udp = "udp", Ethernet = "ethernet" }

fn arq(name: &str) -> Result<AgentConfig, String> {
    let config = AgentConfig::by_name(name).ok();
    config.filter(|config| config.is_link() || config.is_plain()).ok_or_else(|| {
        let known = agents::link_names().collect::<Vec<_>>().join(", ");
        format!("{name:?} mends no link; write {known} or plain")
    })
}

/// An address and the length of its prefix.
pub(super) fn address(text: &str) -> Result<(IpAddr, u8), String> {
    let parsed = text.split_once('/').and_then(|(address, prefix)| {
        let address: IpAddr = address.parse().ok()?;
        let prefix: u8 = prefix.parse().ok()?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        (prefix <= longest).then_some((address, prefix))
    });
    parsed.ok_or_else(|| {
        format!("{text:?} is no address with a prefix; write it like 10.9.0.1/24 or fd09::1/64")
    })
}

/// A network, without the bits behind its prefix. The whole Internet has no other way than the one
/// that the link itself takes.
pub(super) fn network(text: &str) -> Result<(IpAddr, u8), String> {
    let (address, prefix) = address(text.trim())?;
    if prefix > 0 {
        return Ok((masked(address, prefix), prefix));
    }
    let halves = if address.is_ipv4() { "0.0.0.0/1,128.0.0.0/1" } else { "::/1,8000::/1" };
    Err(format!(
        "{text:?} is also the way to the peer itself: write {halves}, and give the peer's address \
         a route of its own outside the link"
    ))
}

/// Whether there is a port behind an address or a name.
pub(super) fn has_port(text: &str) -> bool {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let is_port = port.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0));
    is_port && text.parse::<Ipv6Addr>().is_err()
}

/// Where to send or listen: an address or a name with a port, or over Ethernet a MAC address or
/// any.
fn place(text: &str) -> Result<String, String> {
    let is_mac = text.len() == 17 && text.chars().all(|c| c == ':' || c.is_ascii_hexdigit());
    match has_port(text) || is_mac || text == "any" {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "{text:?} lacks a port; write it like 192.0.2.1:4433 or [2001:db8::1]:4433"
        )),
    }
}

fn mtu(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(mtu @ 68..=65_000) => Ok(mtu),
        _ => Err(format!("{text:?} is no MTU; write a number of bytes from 68 to 65000")),
    }
}
