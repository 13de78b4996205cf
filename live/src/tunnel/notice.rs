//! Notices for the operator of a tunnel.

use super::carrier::Address;
use std::fmt;

/// One thing that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The peer is there.
    PeerFound(Address),
    /// The peer now has this address.
    PeerMoved(Address),
    /// The peer does not answer.
    NoAnswer(Address),
    /// The path, and with it the TUN device, has a new MTU.
    Mtu(u32),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerFound(address) => write!(f, "the peer is there, at {address}"),
            Self::PeerMoved(address) => write!(f, "the peer has moved to {address}"),
            Self::NoAnswer(address) => write!(
                f,
                "no answer from {address}: check that airmend link runs there, with the key that \
                 belongs to this one's, and that nothing between drops its packets; still trying"
            ),
            Self::Mtu(mtu) => write!(f, "the MTU is now {mtu}"),
        }
    }
}
