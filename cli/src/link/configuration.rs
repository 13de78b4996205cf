//! What is configured, by flags and by a file; every mistake is one sentence.

use super::args::LinkArgs;
use super::file;
use super::hooks::Hooks;
use super::options::{CarrierKind, Options, Peer, has_port};
use crate::process::BadUsage;
use airmend_live::gateway::default_socket;
use airmend_live::gateway::telemetry::server::ServerConfig;
use airmend_live::tunnel::{
    Address, CarrierConfig, DeviceConfig, IPV6_MIN_MTU, Keys, PeerConfig, PresharedKey, PrivateKey,
    Rekey, Remote, Security, TunConfig, TunnelConfig,
};
use airmend_proto::agents::AgentConfig;
use anyhow::Result;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

/// Where the files and the keys of links are.
const DIRECTORY: &str = "/etc/airmend/link";
/// Longer frames carry no link ACK: so long a frame fits the narrowest path of IPv6 also with one
/// and encrypted.
const SHORT_FRAME: u32 = 1_200;

/// A link as it shall be.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) tunnel: TunnelConfig,
    pub(super) agent: AgentConfig,
    pub(super) hooks: Hooks,
    pub(super) server: Option<ServerConfig>,
}

/// The configuration of flags and file, where flags have precedence, and whether the file sets
/// anything. A reload calls it again, and file and keys are read again.
pub(super) fn wanted(args: &LinkArgs) -> Result<(Wanted, bool)> {
    let own = |extension: &str| {
        args.name.as_ref().map(|name| Path::new(DIRECTORY).join(format!("{name}.{extension}")))
    };
    let (below, file_sets) = match args.config.clone().or_else(|| own("toml")) {
        Some(path) => file::read(&path).map_err(BadUsage)?,
        None => (Options::default(), false),
    };
    let mut options = args.options.clone().over(below).map_err(BadUsage)?;
    options.dev = options.dev.or_else(|| args.name.clone());
    if !options.insecure {
        options.key_file = options.key_file.or_else(|| own("key"));
    }
    let agent = agent(&options).map_err(BadUsage)?;
    let tunnel = tunnel(&options)?;
    let hooks = Hooks { up: options.up, down: options.down };
    let is_asked = args.name.is_some() || options.socket.is_some() || options.metrics.is_some();
    let server = is_asked.then(|| ServerConfig {
        socket: options.socket.unwrap_or_else(|| default_socket(tunnel.device.name())),
        metrics: options.metrics,
    });
    Ok((Wanted { tunnel, agent, hooks, server }, file_sets))
}

fn tunnel(options: &Options) -> Result<TunnelConfig> {
    let (carrier, remotes) = match options.over.unwrap_or_default() {
        CarrierKind::Udp => udp(options)?,
        CarrierKind::Ethernet => ethernet(options)?,
    };
    if options.bridge.is_some() && options.peers.len() > 1 {
        return Err(BadUsage("a bridge joins two LANs: it has one [[peer]]".into()).into());
    }
    let has_ipv6 = options.address.iter().any(|(address, _)| address.is_ipv6());
    if let Some(mtu) = options.mtu.filter(|mtu| has_ipv6 && *mtu < IPV6_MIN_MTU) {
        let sentence = format!("--mtu {mtu}: an IPv6 --address needs {IPV6_MIN_MTU} at least");
        return Err(BadUsage(sentence).into());
    }
    let networks = options.peers.iter().flat_map(|peer| peer.allowed_ips.clone()).collect();
    let device = match &options.bridge {
        Some(interface) => DeviceConfig::Bridge { interface: interface.clone() },
        None => DeviceConfig::Tun(TunConfig {
            name: options.dev.clone().unwrap_or_else(|| "mend0".to_owned()),
            addresses: options.address.clone(),
            mtu: options.mtu,
            routes: if options.no_routes { vec![] } else { networks },
            has_blackholes: !options.no_blackholes,
            keeps_carrier: options.keep_carrier,
            sets_initial_windows: !options.no_initcwnd,
        }),
    };
    let (padding, compression) = (options.pad, !options.no_compression);
    let peers = options.peers.iter().zip(security(options)?).zip(remotes);
    let peer = |((peer, security), remote): ((&Peer, _), _)| PeerConfig {
        name: peer.name.clone(),
        remote,
        security,
        allowed: peer.allowed_ips.clone(),
    };
    Ok(TunnelConfig { device, carrier, peers: peers.map(peer).collect(), padding, compression })
}

/// The link protocol.
fn agent(options: &Options) -> Result<AgentConfig, String> {
    let tulip = || AgentConfig::by_name("tulip");
    let mut config = options.arq.clone().map_or_else(tulip, Ok)?;
    if config.is_plain() {
        return match options.class.is_some() || !options.set.is_empty() {
            true => {
                let why = "--arq plain mends nothing: --class and --set are for --arq tulip, lack \
                           or lack-flow";
                Err(why.into())
            }
            false => Ok(config),
        };
    }
    config.set("max_frame", &SHORT_FRAME.to_string())?;
    config.control_rate();
    for (name, value) in &options.set {
        if name == "half_duplex" {
            return Err("--set half_duplex: UDP and Ethernet are full duplex here".into());
        }
        let refused = |sentence| format!("--set {name}={value}: {sentence}");
        config.set(name, value).map_err(refused)?;
    }
    if let Some(rules) = &options.class {
        config.set("classes", rules).map_err(|sentence| format!("--class: {sentence}"))?;
    }
    // Also in the paper's profile.
    config.follow_radio(None);
    Ok(config)
}

/// What protects the frames of each peer.
fn security(options: &Options) -> Result<Vec<Security>> {
    let has_psk = options.peers.iter().any(|peer| peer.psk_file.is_some());
    if options.insecure {
        let why = match options.peers.len() {
            0 | 1 if options.key_file.is_none() && !has_psk => return Ok(vec![Security::Insecure]),
            0 | 1 => "insecure and a key exclude each other; give one",
            _ => "insecure is for one [[peer]]: several are told apart by their keys",
        };
        return Err(BadUsage(why.into()).into());
    }
    let Some(file) = &options.key_file else {
        return Err(BadUsage(
            "a link needs --key-file FILE: make a key with `airmend keygen FILE`, or say \
             --insecure to encrypt nothing"
                .into(),
        )
        .into());
    };
    let private = PrivateKey::read(file)?;
    options.peers.iter().map(|peer| with(&private, peer)).collect()
}

fn with(private: &PrivateKey, peer: &Peer) -> Result<Security> {
    if peer.key == Some(private.public()) {
        return Err(BadUsage(
            "--peer-key: this is the public key of --key-file itself; write the other end's, \
             or leave --peer-key out if both ends have the same key file"
                .into(),
        )
        .into());
    }
    let psk = peer.psk_file.as_deref();
    let psk = psk.map(PresharedKey::read).transpose()?;
    let peer = peer.key.unwrap_or_else(|| private.public());
    Ok(Security::Noise(Keys { private: private.clone(), peer, psk }, Rekey::default()))
}

/// The socket, and where each peer waits.
type Carrier = (CarrierConfig, Vec<Option<Remote>>);

fn udp(options: &Options) -> Result<Carrier> {
    if options.interface.is_some() {
        let sentence = "--interface is for --over ethernet; routes choose the interface for UDP";
        return Err(BadUsage(sentence.into()).into());
    }
    check_sides(options)?;
    let remotes = options.peers.iter().map(|peer| peer.endpoint.as_deref().map(remote).transpose());
    let remotes = remotes.collect::<Result<Vec<_>, _>>()?;
    let is_v4 = |remote: &Option<Remote>| {
        matches!(remote, Some(Remote::Address(Address::Udp(SocketAddr::V4(_)))))
    };
    let local = match &options.listen {
        Some(listen) => local(listen)?,
        None if remotes.iter().all(is_v4) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        // A name may have addresses of both families.
        None => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    Ok((CarrierConfig::Udp { local }, remotes))
}

/// Of two ends one knows where the other is, which waits there. An end with several peers may wait
/// for some of them and know where others are.
fn check_sides(options: &Options) -> Result<(), BadUsage> {
    let is_known = |peer: &Peer| peer.endpoint.is_some();
    let sentence = match (&options.peers[..], options.listen.is_some()) {
        ([peer], true) if is_known(peer) => {
            "--listen and the peer's endpoint exclude each other; give one of them"
        }
        ([_], true) | ([_, _, ..], true) => return Ok(()),
        (peers, false) if peers.iter().all(is_known) => return Ok(()),
        ([_, _, ..], _) => {
            "`listen` is missing, or the `endpoint` of some [[peer]]: this end waits for the peers \
             without one"
        }
        _ => {
            "a link needs --listen ADDR where it waits for the peer, or --peer ADDR (the endpoint \
             of its [[peer]]) where the peer waits"
        }
    };
    Err(BadUsage(sentence.to_owned()))
}

/// An address with a port, or a name that has one: whether the name leads anywhere, and where, may
/// change.
fn remote(text: &str) -> Result<Remote, BadUsage> {
    check_port("--peer", text)?;
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    match text.parse() {
        Ok(address) => Ok(Remote::Address(Address::Udp(address))),
        Err(_) if text.chars().all(is_host) => Ok(Remote::Name(text.to_owned())),
        Err(_) => Err(no_address("--peer", text)),
    }
}

/// The same of this machine.
fn local(text: &str) -> Result<SocketAddr, BadUsage> {
    check_port("--listen", text)?;
    let found = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.ok_or_else(|| no_address("--listen", text))
}

fn check_port(flag: &str, text: &str) -> Result<(), BadUsage> {
    match has_port(text) {
        true => Ok(()),
        false => Err(BadUsage(format!(
            "{flag}: {text:?} lacks a port; write it like 192.0.2.1:4433 or [2001:db8::1]:4433"
        ))),
    }
}

fn no_address(flag: &str, text: &str) -> BadUsage {
    BadUsage(format!(
        "{flag}: {text:?} is no address and no name; write it like 192.0.2.1:4433 or \
         [2001:db8::1]:4433"
    ))
}

fn ethernet(options: &Options) -> Result<Carrier> {
    let Some(interface) = options.interface.clone() else {
        let sentence = "--over ethernet needs --interface IF: `ip link` lists those there are";
        return Err(BadUsage(sentence.into()).into());
    };
    if let Some(listen) = options.listen.as_deref().filter(|listen| *listen != "any") {
        let sentence = format!("--listen: over Ethernet write any, not {listen:?}");
        return Err(BadUsage(sentence).into());
    }
    check_sides(options)?;
    let remote = |peer: &Peer| {
        let mac = peer.endpoint.as_deref().map(mac).transpose()?;
        Ok(mac.map(|mac| Remote::Address(Address::Mac(mac))))
    };
    let remotes = options.peers.iter().map(remote).collect::<Result<_, BadUsage>>()?;
    Ok((CarrierConfig::Ethernet { interface }, remotes))
}

fn mac(text: &str) -> Result<[u8; 6], BadUsage> {
    let bytes = text.split(':').map(|part| {
        let is_pair = part.len() == 2 && part.chars().all(|c| c.is_ascii_hexdigit());
        u8::from_str_radix(part, 16).ok().filter(|_| is_pair)
    });
    let bytes = bytes.collect::<Option<Vec<u8>>>().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| {
        BadUsage(format!(
            "--peer: {text:?} is no MAC address; write it like 02:00:00:00:00:01, or \
             ff:ff:ff:ff:ff:ff for whoever answers"
        ))
    })
}
