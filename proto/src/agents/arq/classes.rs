//! Service classes: which packets are retransmitted, by protocol number, port, DSCP and length
//! alone [tulip99 §III S2-01]. No state of a transport protocol is kept.

mod grammar;

use crate::packet::Packet;
use crate::settings::written_as_displayed;
use crate::wire::dscp::Dscp;
use crate::wire::ip::{Network, TCP, traffic_class};
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Flags;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::time::Duration;
use foldhash::fast::FixedState;

/// The number of hash values that distinguish flows; two flows with one value keep their order.
pub(crate) const FLOWS: usize = 256;

const UDP: u8 = 17;
const ESP: u8 = 50;
const DNS: u16 = 53;
const QUIC: u16 = 443;
/// The UDP ports of ESP (RFC 3948 §2.1) and of WireGuard, by default.
const ENCRYPTED: [u16; 2] = [4_500, 51_820];

/// QUIC repairs its losses itself if the link takes too long.
const QUIC_PERSISTENCE: Duration = Duration::from_millis(100);
/// The delay variation for which voice is buffered: at most 50 ms (ITU-T Y.1541, class 0). What
/// comes later is of no use (RFC 3366 §2.3).
const VOICE_PERSISTENCE: Duration = Duration::from_millis(50);
/// Less than any usual resolver waits before it asks again: Unbound 376 ms, Windows 1 s, glibc 5 s.
const DNS_PERSISTENCE: Duration = Duration::from_millis(300);
/// The longest encrypted TCP ACK, in bytes behind the ESP or UDP header's place: 40 bytes of IPv6
/// and 60 of TCP in ESP with AES-CBC and an integrity check of 32 bytes. WireGuard makes 144 of it.
const LONGEST_ENCRYPTED_ACK: u32 = 168;

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
    dscp: Option<Dscp>,
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
    dscp: Option<Dscp>,
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
        Self(vec![Rule { longer_than: Some(0), ..Rule::of(TCP, Class::Reliable) }])
    }

    /// The default rules, and before them: what is encrypted and longer than a TCP ACK is reliable.
    pub fn encrypted() -> Self {
        let longer_than = Some(LONGEST_ENCRYPTED_ACK);
        let mut rules = vec![Rule { longer_than, ..Rule::of(ESP, Class::Reliable) }];
        rules.extend(ENCRYPTED.map(|port| {
            let port = Some(port);
            Rule { port, longer_than, ..Rule::of(UDP, Class::Reliable) }
        }));
        rules.extend(Self::default().0);
        Self(rules)
    }

    /// The class of a packet.
    pub(crate) fn class(&self, view: &View) -> Class {
        let matching = self.0.iter().find(|rule| rule.matches(view));
        matching.map_or(Class::Unreliable, |rule| rule.class)
    }

    /// Makes TCP to and from this port unreliable, before all other rules.
    pub(crate) fn exempt(&mut self, port: u16) {
        self.0.insert(0, Rule { port: Some(port), ..Rule::of(TCP, Class::Unreliable) });
    }
}

/// The rules of the paper; and QUIC, voice and DNS with bounded persistence, since each has a time
/// after which a packet is better lost (RFC 3366 §2.3).
impl Default for Rules {
    fn default() -> Self {
        let mut rules = Self::tulip99();
        let udp = |persistence| Rule::of(UDP, Class::Bounded(persistence));
        rules.0.extend([
            Rule { port: Some(QUIC), ..udp(QUIC_PERSISTENCE) },
            Rule { dscp: Some(Dscp::EF), ..udp(VOICE_PERSISTENCE) },
            Rule { dscp: Some(Dscp::VOICE_ADMIT), ..udp(VOICE_PERSISTENCE) },
            Rule { port: Some(DNS), ..udp(DNS_PERSISTENCE) },
        ]);
        rules
    }
}

impl Rule {
    /// All packets of a protocol.
    fn of(protocol: u8, class: Class) -> Self {
        Self { protocol: Some(protocol), port: None, dscp: None, longer_than: None, class }
    }

    fn matches(&self, view: &View) -> bool {
        self.protocol.is_none_or(|protocol| protocol == view.protocol)
            && self.port.is_none_or(|port| view.ports.is_some_and(|ports| ports.contains(&port)))
            && self.dscp.is_none_or(|dscp| view.dscp == Some(dscp))
            && self.longer_than.is_none_or(|bytes| view.len() > bytes)
    }
}

impl View {
    /// Bytes of payload; of TCP, sequence numbers.
    fn len(&self) -> u32 {
        self.payload_len + self.tcp.map_or(0, |(_, flags)| flags.seq_len())
    }

    /// Reads a packet. A packet that is not IP, or malformed, has the reserved protocol number 255,
    /// and shares one flow with all such packets. Who does not know the seed of the hash cannot
    /// choose which flow shares its number.
    pub(crate) fn of(packet: &Packet, hash_seed: u64) -> Self {
        let Ok(network) = Network::walk(packet) else {
            let payload_len = packet.wire_len();
            let (ports, dscp, tcp) = (None, None, None);
            return Self { protocol: 255, ports, dscp, payload_len, hash: 0, flow: 0, tcp };
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
        let dscp = traffic_class(packet, &network).map(Dscp::of_traffic_class);
        let hash =
            FixedState::with_seed(hash_seed).hash_one((source, destination, protocol, ports));
        let tcp = match (protocol, transport) {
            (TCP, Some([_, _, _, _, a, b, c, d, _, _, _, _, _, flags, ..])) => {
                let seq = SeqNumber(u32::from_be_bytes([*a, *b, *c, *d]));
                Some((seq, Flags(u16::from(*flags))))
            }
            _ => None,
        };
        let payload_len = transport_len.saturating_sub(header_len);
        Self { protocol, ports, dscp, payload_len, hash, flow: hash as usize % FLOWS, tcp }
    }
}

#[cfg(test)]
mod tests;
