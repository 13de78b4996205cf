//! From flags to the tunnel's configuration; every mistake is one sentence.

use super::args::{CarrierKind, LinkArgs};
use crate::process::BadUsage;
use airmend_live::tunnel::{
    CarrierConfig, DeviceConfig, IPV6_MIN_MTU, Keys, PresharedKey, PrivateKey, Rekey, Security,
    TunnelConfig,
};
use anyhow::Result;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// The configuration that the flags ask for.
pub(super) fn config(args: &LinkArgs) -> Result<TunnelConfig> {
    let carrier = match args.over {
        CarrierKind::Udp => udp(args)?,
        CarrierKind::Ethernet => ethernet(args)?,
    };
    let has_ipv6 = args.address.iter().any(|(address, _)| address.is_ipv6());
    if let Some(mtu) = args.mtu.filter(|mtu| has_ipv6 && *mtu < IPV6_MIN_MTU) {
        let sentence = format!("--mtu {mtu}: an IPv6 --address needs {IPV6_MIN_MTU} at least");
        return Err(BadUsage(sentence).into());
    }
    let device = match &args.bridge {
        Some(interface) => DeviceConfig::Bridge { interface: interface.clone() },
        None => DeviceConfig::Tun {
            name: args.dev.clone(),
            addresses: args.address.clone(),
            mtu: args.mtu,
        },
    };
    let (padding, compression) = (args.pad, !args.no_compression);
    Ok(TunnelConfig { device, carrier, security: security(args)?, padding, compression })
}

/// The description of the tunnel.
pub(super) fn begins(config: &TunnelConfig, mtu: u32) -> String {
    let how = match &config.security {
        Security::Noise(keys, _) if keys.peer == keys.private.public() => "with a shared key",
        Security::Noise(..) => "with the peer's key",
        Security::Insecure => "WITHOUT ENCRYPTION",
    };
    let whereto = match &config.carrier {
        CarrierConfig::Udp { peer: Some(peer), .. } => format!("the peer is {peer}"),
        CarrierConfig::Udp { local, peer: None } => format!("listening on {local}"),
        CarrierConfig::Ethernet { interface, .. } => format!("over Ethernet on {interface}"),
    };
    let psk = match &config.security {
        Security::Noise(Keys { psk: Some(_), .. }, _) => " and a pre-shared key",
        _ => "",
    };
    let device = match &config.device {
        DeviceConfig::Tun { name, .. } => name.clone(),
        DeviceConfig::Bridge { interface } => format!("the bridge of {interface}"),
    };
    format!("{device} is up, MTU {mtu}, {whereto}, {how}{psk}")
}

fn security(args: &LinkArgs) -> Result<Security> {
    if args.insecure {
        return Ok(Security::Insecure);
    }
    let Some(file) = &args.key_file else {
        return Err(BadUsage(
            "a link needs --key-file FILE: make a key with `airmend keygen FILE`, or say \
             --insecure to encrypt nothing"
                .into(),
        )
        .into());
    };
    let private = PrivateKey::read(file)?;
    if args.peer_key == Some(private.public()) {
        return Err(BadUsage(
            "--peer-key: this is the public key of --key-file itself; write the other end's, \
             or leave --peer-key out if both ends have the same key file"
                .into(),
        )
        .into());
    }
    let peer = args.peer_key.unwrap_or_else(|| private.public());
    let psk = args.psk_file.as_deref().map(PresharedKey::read).transpose()?;
    Ok(Security::Noise(Keys { private, peer, psk }, Rekey::default()))
}

fn udp(args: &LinkArgs) -> Result<CarrierConfig> {
    if args.interface.is_some() {
        let sentence = "--interface is for --over ethernet; routes choose the interface for UDP";
        return Err(BadUsage(sentence.into()).into());
    }
    if let Some(peer) = &args.peer {
        let peer = endpoint("--peer", peer)?;
        let any = if peer.is_ipv4() {
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
        } else {
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))
        };
        return Ok(CarrierConfig::Udp { local: any, peer: Some(peer) });
    }
    let local = endpoint("--listen", args.listen.as_deref().unwrap_or_default())?;
    Ok(CarrierConfig::Udp { local, peer: None })
}

/// An address with a port, or a name that has one.
fn endpoint(flag: &str, text: &str) -> Result<SocketAddr, BadUsage> {
    let has_port = text.rsplit_once(':').is_some_and(|(_, port)| {
        !port.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if !has_port || text.parse::<Ipv6Addr>().is_ok() {
        return Err(BadUsage(format!(
            "{flag}: {text:?} lacks a port; write it like 192.0.2.1:4433 or [2001:db8::1]:4433"
        )));
    }
    let found = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.ok_or_else(|| {
        BadUsage(format!(
            "{flag}: {text:?} is no address and no name that can be found; write it like \
             192.0.2.1:4433 or [2001:db8::1]:4433"
        ))
    })
}

fn ethernet(args: &LinkArgs) -> Result<CarrierConfig> {
    let Some(interface) = args.interface.clone() else {
        let sentence = "--over ethernet needs --interface IF: `ip link` lists those there are";
        return Err(BadUsage(sentence.into()).into());
    };
    let peer = match (&args.peer, &args.listen) {
        (Some(peer), _) => Some(mac(peer)?),
        (None, Some(listen)) if listen != "any" => {
            let sentence = format!("--listen: over Ethernet write any, not {listen:?}");
            return Err(BadUsage(sentence).into());
        }
        (None, _) => None,
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
