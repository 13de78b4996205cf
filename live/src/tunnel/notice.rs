//! Notices for the operator of a tunnel.

use super::carrier::Address;
use super::datagram::VERSION;
use super::routing::Network;
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
    /// Nothing comes from the peer any more, which initiates.
    Silent(Address),
    /// The peer's name has no address.
    NoAddress,
    /// An initiation of whoever knows this end's public key, and has not the peer's key.
    WrongKey(Address),
    /// An initiation of whoever knows this end's public key, and has none of the peers' keys.
    NoPeer(Address),
    /// The answer of the peer is not authentic.
    BadAnswer(Address),
    /// The peer begins sessions and uses none of them.
    NoUse(Address),
    /// The peer's initiation is older than one before.
    OldInitiation(Address),
    /// The peer speaks this version of the protocol.
    OtherVersion(Address, u8),
    /// The route to the peer leads into the TUN device.
    Loop(Address),
    /// The path, and with it the TUN device, has a new MTU.
    Mtu(u32),
    /// This host's connections to this network begin with so many segments; 0 for the kernel's own.
    InitialWindow(Network, u32),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerFound(address) => write!(f, "the peer is there, at {address}"),
            Self::PeerMoved(address) => write!(f, "the peer has moved to {address}"),
            Self::NoAnswer(address) => write!(
                f,
                "no answer from {address}: check that airmend link of this version runs there, \
                 with the key that belongs to this one's, and that nothing between drops its \
                 packets; still trying"
            ),
            Self::Silent(address) => write!(
                f,
                "the peer at {address} is silent: it has ended, or nothing crosses the path; \
                 waiting for it"
            ),
            Self::NoAddress => write!(
                f,
                "the name of the peer has no address now: check it, and that this machine finds \
                 names; still trying"
            ),
            Self::WrongKey(address) => write!(
                f,
                "refused an initiation from {address}: its sender has this end's public key, and \
                 not the private key that belongs to the peer's; give this end the public key that \
                 `airmend keygen --show` prints there"
            ),
            Self::NoPeer(address) => write!(
                f,
                "refused an initiation from {address}: its sender has this end's public key, and \
                 is none of the peers, or runs an airmend that is too old for an end with several; \
                 give this end the public key that `airmend keygen --show` prints there"
            ),
            Self::BadAnswer(address) => write!(
                f,
                "the answer of {address} is not authentic: give both ends the same --psk-file, or \
                 neither of them one; still trying"
            ),
            Self::NoUse(address) => write!(
                f,
                "the peer at {address} has the right key and uses no session: give both ends the \
                 same --psk-file, or neither of them one, and check that this end's packets arrive"
            ),
            Self::OldInitiation(address) => write!(
                f,
                "refused an initiation from {address} that is older than one before: it is \
                 replayed, or the peer's clock was set back; in that case set it, or restart this \
                 end"
            ),
            Self::OtherVersion(address, version) => write!(
                f,
                "the peer at {address} speaks version {version} of the link's protocol and this \
                 end version {VERSION}: install the same airmend at both ends"
            ),
            Self::Loop(address) => write!(
                f,
                "the route to the peer at {address} leads through the link itself, so nothing \
                 reaches it: give that address a route of its own outside the link"
            ),
            Self::Mtu(mtu) => write!(f, "the MTU is now {mtu}"),
            Self::InitialWindow((address, prefix), 0) => write!(
                f,
                "connections of this host to {address}/{prefix} begin with the kernel's own window"
            ),
            Self::InitialWindow((address, prefix), segments) => write!(
                f,
                "connections of this host to {address}/{prefix} begin with {segments} segments, \
                 what the path holds (initcwnd)"
            ),
        }
    }
}
