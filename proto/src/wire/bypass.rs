//! Packets that no agent can mend.

use crate::named;

/// The reason why an agent cannot process a packet, which passes unchanged and is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bypass {
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// An IP packet that carries something else, or TCP out of reach: encrypted, authenticated, on
    /// its way to another address, or behind more than eight extension headers.
    NotTcp,
    /// An IP fragment: its TCP header may be elsewhere.
    Fragment,
    /// Captured too short to hold the headers it announces.
    Truncated,
    /// Lengths or offsets that contradict each other.
    Malformed,
}

impl Bypass {
    /// The name of the counter; stable.
    pub fn counter(self) -> &'static str {
        match self {
            Self::NotIp => "bypassed_not_ip",
            Self::NotTcp => "bypassed_not_tcp",
            Self::Fragment => "bypassed_fragments",
            Self::Truncated => "bypassed_truncated",
            Self::Malformed => "bypassed_malformed",
        }
    }
}

named! { Bypass:
NotIp = "not IP", NotTcp = "not TCP", Fragment = "an IP fragment",
Truncated = "captured too short", Malformed = "malformed" }
