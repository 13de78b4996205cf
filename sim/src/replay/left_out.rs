//! Packets of a capture that a replay leaves out, by reason.

use airmend_proto::wire::tcp::Bypass;
use std::collections::BTreeMap;
use std::fmt;

/// Why a packet of a capture takes no part in its replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
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
            Self::Again => "seen_again".to_owned(),
            Self::OtherHosts => "other_hosts".to_owned(),
            Self::Unread(unread) => unread.name().to_owned(),
        }
    }
}

/// What follows a number of packets.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
