//! Service classes: which packets are worth sending again, told by protocol number, port and
//! length alone [tulip99 §III S2-01]. No transport's state is kept, and none is needed.

use crate::packet::{LinkType, Packet};
use crate::units;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::hash::BuildHasher;
use core::str::FromStr;
use core::time::Duration;
use foldhash::fast::FixedState;

/// Flows are told apart by so many numbers; two that share one merely keep order between them.
pub(super) const FLOWS: usize = 256;
/// More rules than any link needs.
const MAX_RULES: usize = 64;

const TCP: u8 = 6;
const UDP: u8 = 17;
const NAMED: [(&str, u8); 5] =
    [("icmp", 1), ("tcp", TCP), ("udp", UDP), ("esp", 50), ("icmpv6", 58)];

/// How hard the link tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Until the packet has arrived.
    Reliable,
    /// Until this long after its first transmission; then the receiver is told to do without
    /// (RFC 3366 §3).
    Bounded(Duration),
    /// Once.
    Unreliable,
}

/// Which packets a rule is about, and their class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Rule {
    /// The IP protocol number, or the last next-header value of IPv6; none for any.
    protocol: Option<u8>,
    /// Source or destination port of TCP and UDP.
    port: Option<u16>,
    /// Bytes of payload that there must be more of.
    longer_than: Option<u32>,
    class: Class,
}

/// Class rules: the first that matches decides, and a packet without one is unreliable.
///
/// ```
/// use airmend_proto::agents::tulip::Rules;
///
/// let rules: Rules = "tcp>0=reliable,udp:443=100ms,esp>120=reliable".parse().unwrap();
/// assert_eq!(rules.to_string(), "tcp>0=reliable,udp:443=100ms,esp>120=reliable");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rules(Vec<Rule>);

/// What the link sees of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    protocol: u8,
    ports: Option<[u16; 2]>,
    /// Bytes behind the transport header of TCP and UDP, and behind the IP header of others.
    payload_len: u32,
    /// The number of its flow, below [`FLOWS`].
    pub(super) flow: usize,
}

impl Rules {
    /// The paper's: TCP data is reliable, all else is not [tulip99 §III S2-01].
    pub fn tulip99() -> Self {
        let longer_than = Some(0);
        Self(alloc::vec![Rule {
            protocol: Some(TCP),
            port: None,
            longer_than,
            class: Class::Reliable
        }])
    }

    /// The class of a packet.
    pub(super) fn class(&self, view: &View) -> Class {
        let matching = self.0.iter().find(|rule| rule.matches(view));
        matching.map_or(Class::Unreliable, |rule| rule.class)
    }
}

/// The paper's, and QUIC with bounded persistence: it repairs its losses itself if the link takes
/// too long.
impl Default for Rules {
    fn default() -> Self {
        let mut rules = Self::tulip99();
        let class = Class::Bounded(Duration::from_millis(100));
        rules.0.push(Rule { protocol: Some(UDP), port: Some(443), longer_than: None, class });
        rules
    }
}

impl Rules {
    /// Makes TCP to and from this port unreliable, before all other rules.
    pub(super) fn exempt(&mut self, port: u16) {
        let class = Class::Unreliable;
        let rule = Rule { protocol: Some(TCP), port: Some(port), longer_than: None, class };
        self.0.insert(0, rule);
    }
}

impl Rule {
    fn matches(&self, view: &View) -> bool {
        self.protocol.is_none_or(|protocol| protocol == view.protocol)
            && self.port.is_none_or(|port| view.ports.is_some_and(|ports| ports.contains(&port)))
            && self.longer_than.is_none_or(|bytes| view.payload_len > bytes)
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rule) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let named = NAMED.iter().find(|(_, number)| Some(*number) == rule.protocol);
            match (named, rule.protocol) {
                (Some((name, _)), _) => write!(f, "{comma}{name}")?,
                (None, Some(number)) => write!(f, "{comma}{number}")?,
                (None, None) => write!(f, "{comma}any")?,
            }
            if let Some(port) = rule.port {
                write!(f, ":{port}")?;
            }
            if let Some(bytes) = rule.longer_than {
                write!(f, ">{bytes}")?;
            }
            match rule.class {
                Class::Reliable => f.write_str("=reliable")?,
                Class::Unreliable => f.write_str("=unreliable")?,
                Class::Bounded(time) => write!(f, "={time:?}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Rules {
    type Err = String;

    /// Reads `PROTOCOL[:PORT][>BYTES]=CLASS,…`; an empty text has no rules.
    fn from_str(text: &str) -> Result<Self, String> {
        let rules = text.split(',').map(str::trim).filter(|rule| !rule.is_empty());
        let rules: Vec<Rule> = rules.map(parse_rule).collect::<Result<_, _>>()?;
        if rules.len() > MAX_RULES {
            return Err(format!("{} class rules are too many: at most {MAX_RULES}", rules.len()));
        }
        Ok(Self(rules))
    }
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    let wrong = |what: &str| format!("class rule {text:?} {what}, such as udp:443>0=100ms");
    let (packets, class) = text.split_once('=').ok_or_else(|| wrong("must be PACKETS=CLASS"))?;
    let (packets, longer_than) = match packets.split_once('>') {
        Some((packets, bytes)) => {
            let bytes = bytes.trim().parse().map_err(|_| wrong("needs a whole number after >"))?;
            (packets, Some(bytes))
        }
        None => (packets, None),
    };
    let (protocol, port) = match packets.split_once(':') {
        Some((protocol, port)) => {
            let port = port.trim().parse().map_err(|_| wrong("needs a port from 0 to 65535"))?;
            (protocol.trim(), Some(port))
        }
        None => (packets.trim(), None),
    };
    let named = NAMED.iter().find(|(name, _)| *name == protocol).map(|(_, number)| *number);
    let protocol = match (named.or_else(|| protocol.parse().ok()), protocol) {
        (None, "any") => None,
        (None, _) => {
            return Err(wrong("must begin with tcp, udp, icmp, icmpv6, esp, any or a number"));
        }
        (known, _) => known,
    };
    if port.is_some() && !matches!(protocol, Some(TCP | UDP)) {
        return Err(wrong("has a port, so its protocol must be tcp or udp"));
    }
    let class = match class.trim() {
        "reliable" => Class::Reliable,
        "unreliable" => Class::Unreliable,
        time => match units::parse_duration(time) {
            Ok(time) if !time.is_zero() => Class::Bounded(time),
            _ => return Err(wrong("needs reliable, unreliable or a time after =")),
        },
    };
    Ok(Rule { protocol, port, longer_than, class })
}

impl View {
    /// Looks at a packet. One that is no IP packet, or cannot be read, has protocol 255, which is
    /// reserved, and shares its flow with others of that kind.
    pub(super) fn of(packet: &Packet) -> Self {
        let at = match packet.link_type() {
            LinkType::Ethernet => ethernet_payload(packet.bytes()),
            LinkType::Ip | LinkType::Frame => Some(0),
        };
        let network = at.and_then(|at| packet.bytes().get(at..)).and_then(Network::of);
        let Some(network) = network else {
            return Self { protocol: 255, ports: None, payload_len: packet.wire_len(), flow: 0 };
        };
        let Network { addresses, protocol, transport, len } = network;
        let ports = transport.and_then(|bytes| match (protocol, bytes) {
            (TCP | UDP, [a, b, c, d, ..]) => {
                Some([u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])])
            }
            _ => None,
        });
        let header_len = match (protocol, transport) {
            (TCP, Some(bytes)) => bytes.get(12).map_or(20, |byte| u32::from(byte >> 4) * 4),
            (UDP, Some(_)) => 8,
            _ => 0,
        };
        let hash = FixedState::default().hash_one((addresses, protocol, ports));
        let flow = hash as usize % FLOWS;
        Self { protocol, ports, payload_len: len.saturating_sub(header_len), flow }
    }
}

/// The IP header of a packet.
struct Network<'a> {
    /// Both addresses, as they stand there.
    addresses: &'a [u8],
    /// What follows the IP header and all extension headers.
    protocol: u8,
    /// What was captured of it; none if this is a fragment, which may lack the header.
    transport: Option<&'a [u8]>,
    /// Its length on the wire.
    len: u32,
}

impl<'a> Network<'a> {
    fn of(ip: &'a [u8]) -> Option<Self> {
        match ip.first()? >> 4 {
            4 => Self::v4(ip),
            6 => Self::v6(ip),
            _ => None,
        }
    }

    fn v4(ip: &'a [u8]) -> Option<Self> {
        let header = ip.first_chunk::<20>()?;
        let header_len = usize::from(header[0] & 0x0f) * 4;
        let total_len = u32::from(u16::from_be_bytes([header[2], header[3]]));
        let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
        Some(Self {
            addresses: &ip[12..20],
            protocol: header[9],
            transport: ip.get(header_len..).filter(|_| !is_fragment),
            len: total_len.saturating_sub(header_len as u32),
        })
    }

    fn v6(ip: &'a [u8]) -> Option<Self> {
        let header = ip.first_chunk::<40>()?;
        let mut len = u32::from(u16::from_be_bytes([header[4], header[5]]));
        let mut protocol = header[6];
        let mut at = 40;
        let mut is_fragment = false;
        // Hop-by-hop, routing, fragment and destination options (RFC 8200 §4).
        while let (0 | 43 | 44 | 60, Some([next, size, ..])) = (protocol, ip.get(at..)) {
            let size = if protocol == 44 { 8 } else { (usize::from(*size) + 1) * 8 };
            is_fragment |= protocol == 44;
            protocol = *next;
            at += size;
            len = len.saturating_sub(size as u32);
        }
        let transport = ip.get(at..).filter(|_| !is_fragment);
        Some(Self { addresses: &ip[8..40], protocol, transport, len })
    }
}

/// Where the IP header begins behind an Ethernet header and at most two VLAN tags.
fn ethernet_payload(bytes: &[u8]) -> Option<usize> {
    let tagged = |at: usize| matches!(bytes.get(at..at + 2), Some([0x81, 0] | [0x88, 0xa8]));
    let at = (0..2).fold(12, |at, _| if tagged(at) { at + 4 } else { at });
    matches!(bytes.get(at..at + 2)?, [0x08, 0] | [0x86, 0xdd]).then_some(at + 2)
}

#[cfg(test)]
mod tests;
