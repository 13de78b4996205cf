//! Packets of a capture that a replay leaves out, by reason.

use airmend_proto::wire::tcp::Bypass;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

/// Reasons in a sentence at most.
const MOST_REASONS: usize = 4;

/// Why a packet of a capture takes no part in its replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Its link type is unknown (`LINKTYPE_` of libpcap).
    LinkType(u16),
    /// The file describes no such interface.
    NoInterface,
    /// The file does not say when it was captured.
    NoTime,
    /// Its direction of the connection is taken from another interface, or from the other way
    /// through this one.
    Again,
    /// Neither of its hosts is a mobile host.
    OtherHosts,
    /// Its TCP header cannot be read.
    Unread(Unread),
}

/// Why the TCP header of a packet cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unread {
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// An IP packet that carries something else.
    NotTcp,
    /// An IP fragment.
    Fragment,
    /// Captured shorter than its headers.
    Truncated,
    /// Lengths or offsets that contradict each other.
    Malformed,
}

/// Numbers of packets that were left out, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<Reason, u64>);

impl LeftOut {
    /// Counts a packet.
    pub(super) fn count(&mut self, reason: Reason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// Each reason with its number of packets.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        self.0.iter().map(|(reason, packets)| (*reason, *packets))
    }

    /// Whether no packet was left out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Reason {
    /// The name of the reason in JSON lines; stable.
    pub fn name(self) -> String {
        match self {
            Self::LinkType(number) => format!("link_type_{number}"),
            Self::NoInterface => "no_interface".to_owned(),
            Self::NoTime => "no_time".to_owned(),
            Self::Again => "seen_again".to_owned(),
            Self::OtherHosts => "other_hosts".to_owned(),
            Self::Unread(unread) => unread.name().to_owned(),
        }
    }
}

/// The commonest link types that are not read.
fn link_name(number: u16) -> Option<&'static str> {
    Some(match number {
        105 | 119 | 127 | 163 | 192 => "802.11 in monitor mode",
        187 | 201 | 251 | 256 => "Bluetooth",
        189 | 220 | 249 => "USB",
        195 | 215 | 230 => "IEEE 802.15.4",
        227 => "CAN",
        239 => "netfilter's log",
        253 => "netlink",
        _ => return None,
    })
}

/// `12 packets not TCP, 1 packet without a time`: the reasons with most packets.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut most: Vec<_> = self.iter().collect();
        most.sort_by_key(|(_, packets)| Reverse(*packets));
        for (at, (reason, packets)) in most.into_iter().take(MOST_REASONS).enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let plural = if packets == 1 { "" } else { "s" };
            write!(f, "{separator}{packets} packet{plural} {reason}")?;
        }
        Ok(())
    }
}

/// What follows a number of packets.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkType(number) => {
                write!(f, "of link type {number}")?;
                link_name(*number).map_or(Ok(()), |name| write!(f, " ({name})"))
            }
            Self::NoInterface => f.write_str("of an interface that the file does not describe"),
            Self::NoTime => f.write_str("without a time"),
            Self::Again => f.write_str("seen again at another interface"),
            Self::OtherHosts => f.write_str("of other hosts"),
            Self::Unread(unread) => unread.fmt(f),
        }
    }
}

impl Unread {
    fn name(self) -> &'static str {
        match self {
            Self::NotIp => "not_ip",
            Self::NotTcp => "not_tcp",
            Self::Fragment => "fragments",
            Self::Truncated => "truncated",
            Self::Malformed => "malformed",
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotIp => "not IP",
            Self::NotTcp => "not TCP",
            Self::Fragment => "IP fragments",
            Self::Truncated => "captured too short for their headers",
            Self::Malformed => "malformed",
        })
    }
}

impl From<Bypass> for Unread {
    fn from(bypass: Bypass) -> Self {
        match bypass {
            Bypass::NotIp => Self::NotIp,
            Bypass::NotTcp => Self::NotTcp,
            Bypass::Fragment => Self::Fragment,
            Bypass::Truncated => Self::Truncated,
            Bypass::Malformed => Self::Malformed,
        }
    }
}
