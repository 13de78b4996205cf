//! What is configured, by flags and by a file; every mistake is one sentence.

use super::args::LinkArgs;
use super::file;
use super::hooks::Hooks;
use super::options::{CarrierKind, Options, has_port};
use crate::process::BadUsage;
use airmend_live::gateway::default_socket;
use airmend_live::gateway::telemetry::server::ServerConfig;
use airmend_live::tunnel::{
    CarrierConfig, DeviceConfig, IPV6_MIN_MTU, Keys, PresharedKey, PrivateKey, Rekey, Remote,
    Security, TunConfig, TunnelConfig,
};
use airmend_proto::agents::AgentConfig;
use anyhow::Result;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

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
    let mut options = args.options.clone().over(below);
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
    let carrier = match options.over.unwrap_or_default() {
        CarrierKind::Udp => udp(options)?,
        CarrierKind::Ethernet => ethernet(options)?,
    };
    let has_ipv6 = options.address.iter().any(|(address, _)| address.is_ipv6());
    if let Some(mtu) = options.mtu.filter(|mtu| has_ipv6 && *mtu < IPV6_MIN_MTU) {
        let sentence = format!("--mtu {mtu}: an IPv6 --address needs {IPV6_MIN_MTU} at least");
        return Err(BadUsage(sentence).into());
    }
    let device = match &options.bridge {
        Some(interface) => DeviceConfig::Bridge { interface: interface.clone() },
        None => DeviceConfig::Tun(TunConfig {
            name: options.dev.clone().unwrap_or_else(|| "mend0".to_owned()),
            addresses: options.address.clone(),
            mtu: options.mtu,
            routes: if options.no_routes { vec![] } else { options.peer.allowed_ips.clone() },
            has_blackholes: !options.no_blackholes,
            keeps_carrier: options.keep_carrier,
        }),
    };
    let (padding, compression) = (options.pad, !options.no_compression);
    Ok(TunnelConfig { device, carrier, security: security(options)?, padding, compression })
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

fn security(options: &Options) -> Result<Security> {
    if options.insecure {
        return match options.key_file.is_some() || options.peer.psk_file.is_some() {
            true => Err(BadUsage("insecure and a key exclude each other; give one".into()).into()),
            false => Ok(Security::Insecure),
        };
    }
    let Some(file) = &options.key_file else {
        return Err(BadUsage(
            "a link needs --key-file FILE: make a key with `airmend keygen FILE`, or say \
             --insecure to encrypt nothing"
                .into(),
        )
        .into());
    };
    let private = PrivateKey::read(&credential(file))?;
    if options.peer.key == Some(private.public()) {
        return Err(BadUsage(
            "--peer-key: this is the public key of --key-file itself; write the other end's, \
             or leave --peer-key out if both ends have the same key file"
                .into(),
        )
        .into());
    }
    let peer = options.peer.key.unwrap_or_else(|| private.public());
    let psk = options.peer.psk_file.as_deref();
    let psk = psk.map(|file| PresharedKey::read(&credential(file))).transpose()?;
    Ok(Security::Noise(Keys { private, peer, psk }, Rekey::default()))
}

/// The file, or what the service manager keeps of it for this service: a user that exists only for
/// a service cannot read the keys of root.
fn credential(file: &Path) -> PathBuf {
    let kept = std::env::var_os("CREDENTIALS_DIRECTORY")
        .and_then(|directory| Some(Path::new(&directory).join(file.file_name()?)));
    kept.filter(|kept| kept.exists()).unwrap_or_else(|| file.to_owned())
}

fn udp(options: &Options) -> Result<CarrierConfig> {
    if options.interface.is_some() {
        let sentence = "--interface is for --over ethernet; routes choose the interface for UDP";
        return Err(BadUsage(sentence.into()).into());
    }
    match (&options.peer.endpoint, &options.listen) {
        (Some(peer), None) => {
            let peer = remote(peer)?;
            let any = match &peer {
                Remote::Address(SocketAddr::V4(_)) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                // A name may have addresses of both families.
                _ => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
            };
            Ok(CarrierConfig::Udp { local: any, peer: Some(peer) })
        }
        (None, Some(listen)) => Ok(CarrierConfig::Udp { local: local(listen)?, peer: None }),
        (peer, _) => Err(one_side(peer.is_some()).into()),
    }
}

/// One end knows where the other is, which waits there.
fn one_side(has_both: bool) -> BadUsage {
    BadUsage(match has_both {
        true => "--listen and the peer's endpoint exclude each other; give one of them".to_owned(),
        false => "a link needs --listen ADDR where it waits for the peer, or --peer ADDR (the \
                  endpoint of its [[peer]]) where the peer waits"
            .to_owned(),
    })
}

/// An address with a port, or a name that has one: whether the name leads anywhere, and where, may
/// change.
fn remote(text: &str) -> Result<Remote, BadUsage> {
    check_port("--peer", text)?;
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    match text.parse() {
        Ok(address) => Ok(Remote::Address(address)),
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

fn ethernet(options: &Options) -> Result<CarrierConfig> {
    let Some(interface) = options.interface.clone() else {
        let sentence = "--over ethernet needs --interface IF: `ip link` lists those there are";
        return Err(BadUsage(sentence.into()).into());
    };
    let peer = match (&options.peer.endpoint, options.listen.as_deref()) {
        (Some(peer), None) => Some(mac(peer)?),
        (None, Some("any")) => None,
        (None, Some(listen)) => {
            let sentence = format!("--listen: over Ethernet write any, not {listen:?}");
            return Err(BadUsage(sentence).into());
        }
        (peer, _) => return Err(one_side(peer.is_some()).into()),
    };
    Ok(CarrierConfig::Ethernet { interface, peer })
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
