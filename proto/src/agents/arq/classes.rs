//! Service classes: which packets are retransmitted, by protocol number, port and length alone
//! [tulip99 §III S2-01]. No state of a transport protocol is kept.

use crate::packet::Packet;
use crate::settings::written_as_displayed;
use crate::units;
use crate::wire::ip::{Network, TCP};
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Flags;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::hash::BuildHasher;
use core::str::FromStr;
use core::time::Duration;
use foldhash::fast::FixedState;

/// The number of hash values that distinguish flows; two flows with one value keep their order.
pub(crate) const FLOWS: usize = 256;
/// The most rules of a link.
const MAX_RULES: usize = 64;

const UDP: u8 = 17;
const NAMED: [(&str, u8); 5] =
    [("icmp", 1), ("tcp", TCP), ("udp", UDP), ("esp", 50), ("icmpv6", 58)];

/// The persistence of the link for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Retransmission until the packet has arrived.
    Reliable,
    /// Retransmission for this time after the first transmission; then a skip frame tells the
    /// receiver not to wait for the packet (RFC 3366 §3).
    Bounded(Duration),
    /// A single transmission.
    Unreliable,
}

/// A rule: which packets it matches, and their class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Rule {
    /// The IP protocol number, or the last next-header value of IPv6; `None` for any.
    protocol: Option<u8>,
    /// Source or destination port of TCP and UDP.
    port: Option<u16>,
    /// A packet matches if it has more payload than this, in bytes; a SYN or FIN counts as one, as
    /// in the sequence space of TCP.
    longer_than: Option<u32>,
    class: Class,
}

/// Class rules: the first that matches decides; a packet that no rule matches is unreliable.
///
/// ```
/// use airmend_proto::agents::tulip::Rules;
///
/// let rules: Rules = "tcp>0=reliable,udp:443=100ms,esp>120=reliable".parse().unwrap();
/// assert_eq!(rules.to_string(), "tcp>0=reliable,udp:443=100ms,esp>120=reliable");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rules(Vec<Rule>);

written_as_displayed!(Rules);

/// The fields of a packet that the link reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    protocol: u8,
    ports: Option<[u16; 2]>,
    /// Bytes behind the transport header of TCP and UDP, behind the IP header of other protocols.
    pub(crate) payload_len: u32,
    /// The hash of its addresses, protocol and ports.
    pub(crate) hash: u64,
    /// The number of its flow, below [`FLOWS`].
    pub(crate) flow: usize,
    /// The sequence number and the flags of a TCP segment.
    pub(crate) tcp: Option<(SeqNumber, Flags)>,
}

impl Rules {
    /// The rules of the paper: TCP data is reliable, all else is not [tulip99 §III S2-01]. SYN and
    /// FIN are data: a lost SYN costs its sender a second (RFC 6298 §2).
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
    pub(crate) fn class(&self, view: &View) -> Class {
        let matching = self.0.iter().find(|rule| rule.matches(view));
        matching.map_or(Class::Unreliable, |rule| rule.class)
    }
}

/// The rules of the paper, and QUIC with bounded persistence: QUIC repairs its losses itself if the
/// link takes too long.
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
    pub(crate) fn exempt(&mut self, port: u16) {
        let class = Class::Unreliable;
        let rule = Rule { protocol: Some(TCP), port: Some(port), longer_than: None, class };
        self.0.insert(0, rule);
    }
}

impl Rule {
    fn matches(&self, view: &View) -> bool {
        self.protocol.is_none_or(|protocol| protocol == view.protocol)
            && self.port.is_none_or(|port| view.ports.is_some_and(|ports| ports.contains(&port)))
            && self.longer_than.is_none_or(|bytes| view.len() > bytes)
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
    /// Bytes of payload; of TCP, sequence numbers.
    fn len(&self) -> u32 {
        self.payload_len + self.tcp.map_or(0, |(_, flags)| flags.seq_len())
    }

    /// Reads a packet. A packet that is not IP, or malformed, has the reserved protocol number 255,
    /// and shares one flow with all such packets.
    pub(crate) fn of(packet: &Packet) -> Self {
        let Ok(network) = Network::walk(packet) else {
            let payload_len = packet.wire_len();
            return Self { protocol: 255, ports: None, payload_len, hash: 0, flow: 0, tcp: None };
        };
        let Network { source, destination, protocol, transport_len, .. } = network;
        let transport = packet.bytes().get(usize::from(network.transport_offset)..);
        let transport = transport.filter(|_| !network.is_fragment);
        let ports = match (protocol, transport) {
            (TCP | UDP, Some([a, b, c, d, ..])) => {
                Some([u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])])
            }
            _ => None,
        };
        let header_len = match (protocol, transport) {
            (TCP, Some(bytes)) => bytes.get(12).map_or(20, |byte| u32::from(byte >> 4) * 4),
            (UDP, Some(_)) => 8,
            _ => 0,
        };
        let hash = FixedState::default().hash_one((source, destination, protocol, ports));
        let tcp = match (protocol, transport) {
            (TCP, Some([_, _, _, _, a, b, c, d, _, _, _, _, _, flags, ..])) => {
                let seq = SeqNumber(u32::from_be_bytes([*a, *b, *c, *d]));
                Some((seq, Flags(u16::from(*flags))))
            }
            _ => None,
        };
        let payload_len = transport_len.saturating_sub(header_len);
        Self { protocol, ports, payload_len, hash, flow: hash as usize % FLOWS, tcp }
    }
}

#[cfg(test)]
mod tests;
