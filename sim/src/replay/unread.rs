//! Why no TCP header can be read in a packet.

use airmend_proto::wire::tcp::Bypass;
use std::fmt;

/// Why the TCP header of a packet cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unread {
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// An IP packet that carries something else.
    NotTcp,
    /// A fragment.
    Fragment,
    /// Captured shorter than its headers.
    Truncated,
    /// Lengths or offsets that contradict each other.
    Malformed,
    /// What is in it is encrypted.
    Encrypted,
}

impl Unread {
    /// The name in JSON lines; stable.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::NotIp => "not_ip",
            Self::NotTcp => "not_tcp",
            Self::Fragment => "fragments",
            Self::Truncated => "truncated",
            Self::Malformed => "malformed",
            Self::Encrypted => "encrypted",
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotIp => "not IP",
            Self::NotTcp => "not TCP",
            Self::Fragment => "fragments",
            Self::Truncated => "captured too short for their headers",
            Self::Malformed => "malformed",
            Self::Encrypted => "encrypted",
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
