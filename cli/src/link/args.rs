//! The flags of `airmend link` and `airmend keygen`.

use crate::values::setting;
use airmend_live::tunnel::{Padding, PublicKey};
use airmend_proto::agents::{self, AgentConfig};
use airmend_proto::named;
use clap::Args;
use std::net::IpAddr;
use std::path::PathBuf;

/// `airmend link`.
#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// What mends the path: a link protocol, or plain for a tunnel that mends nothing.
    #[arg(long, value_name = "NAME", default_value = "tulip", value_parser = arq)]
    pub(super) arq: AgentConfig,
    /// The name of the virtual interface.
    #[arg(long, value_name = "NAME", default_value = "mend0")]
    pub(super) dev: String,
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
    #[arg(long, value_name = "ADDR", required_unless_present = "peer")]
    pub(super) listen: Option<String>,
    /// Where the peer listens: 192.0.2.1:4433 or, over Ethernet, its MAC address.
    #[arg(long, value_name = "ADDR", conflicts_with = "listen")]
    pub(super) peer: Option<String>,
    /// What carries the frames: udp or ethernet.
    #[arg(long, value_name = "NAME", default_value = "udp")]
    pub(super) over: CarrierKind,
    /// The interface for frames over Ethernet.
    #[arg(long, value_name = "IF")]
    pub(super) interface: Option<String>,
    /// This end's private key, as airmend keygen writes it.
    #[arg(long, value_name = "FILE")]
    pub(super) key_file: Option<PathBuf>,
    /// The peer's public key; without it, both ends have the same key file.
    #[arg(long, value_name = "KEY", requires = "key_file")]
    pub(super) peer_key: Option<PublicKey>,
    /// A secret that both ends have beside their keys, as airmend keygen --psk writes it.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(super) psk_file: Option<PathBuf>,
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
    /// Neither encrypt nor authenticate anything.
    #[arg(long, conflicts_with = "key_file")]
    pub(super) insecure: bool,
    /// Print the figures as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// `airmend keygen`.
#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// The new file for the private key.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Make no key, but print the public key of the one in the file.
    #[arg(long)]
    pub(crate) show: bool,
    /// Make a pre-shared key, for --psk-file of airmend link; it has no public half.
    #[arg(long, conflicts_with = "show")]
    pub(crate) psk: bool,
}

/// The carrier of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CarrierKind {
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

fn address(text: &str) -> Result<(IpAddr, u8), String> {
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

fn mtu(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(mtu @ 68..=65_000) => Ok(mtu),
        _ => Err(format!("{text:?} is no MTU; write a number of bytes from 68 to 65000")),
    }
}
