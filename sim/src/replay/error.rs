//! Why a capture cannot be replayed: each error one sentence that goes on after the file's name.

use super::prefix::Prefix;
use std::io;

/// Why a capture cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("cannot be read ({0})")]
    Unreadable(#[source] io::Error),
    /// The file begins like nothing that is known.
    #[error(
        "is no capture: give a pcapng or pcap file, as `airmend lab run --pcap` or `tcpdump -w` \
         writes it, uncompressed"
    )]
    NotACapture,
    /// A block in the middle is wrong.
    #[error("is damaged after {packets} packets: {why}")]
    Damaged {
        /// Packets before it.
        packets: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Packets that begin with an unknown header.
    #[error(
        "has packets of link type {0}, which cannot be read: capture Ethernet, raw IP or Linux \
         cooked packets"
    )]
    LinkType(u32),
    /// No packets.
    #[error("holds no packet")]
    Empty,
    /// No TCP.
    #[error(
        "holds no TCP segment that could be read: capture TCP, and at least 128 bytes of each \
         packet"
    )]
    NoTcp,
    /// No interface of that name.
    #[error("has no interface {name:?}; it has {known}")]
    NoInterface {
        /// What was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// Packets do not say which way they went.
    #[error(
        "does not say which way the packets of an interface went: name the mobile hosts with \
         --mobile ADDR/PREFIX"
    )]
    NoDirection,
    /// Nobody has such an address.
    #[error("has no TCP packet from or to {0}: name the mobile hosts that it has")]
    NoMobile(Prefix),
}
