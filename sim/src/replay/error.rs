//! Errors of captures that cannot be replayed: each is a sentence that follows the file's name.

use super::prefix::Prefix;
use std::io;

/// The reason why a capture cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error("cannot be read ({0})")]
    Unreadable(#[source] io::Error),
    /// The file has an unknown format.
    #[error(
        "is no capture: give a pcapng or pcap file, as `airmend lab run --pcap` or `tcpdump -w` \
         writes it, uncompressed"
    )]
    NotACapture,
    /// A block is malformed.
    #[error("is damaged after {packets} packets: {why}")]
    Damaged {
        /// The number of packets before the block.
        packets: usize,
        /// The fault.
        why: String,
    },
    /// Packets that begin with an unknown header.
    #[error(
        "has packets of link type {0}, which cannot be read: capture Ethernet, raw IP or Linux \
         cooked packets"
    )]
    LinkType(u32),
    /// The times of the packets cannot be true.
    #[error(
        "has more than a hundred years from its first packet to its last: capture with a clock \
         that is right, or keep the packets on one side of the jump (`editcap -A` and `-B`)"
    )]
    TooLong,
    /// The capture has no packets.
    #[error("holds no packet")]
    Empty,
    /// The capture has no TCP packets.
    #[error(
        "holds no TCP segment that could be read: capture TCP, and at least 128 bytes of each \
         packet"
    )]
    NoTcp,
    /// The capture has no interface of that name.
    #[error("has no interface {name:?}; it has {known}")]
    NoInterface {
        /// The name that was given.
        name: String,
        /// The names of the interfaces.
        known: String,
    },
    /// The directions of packets are unknown.
    #[error(
        "does not say which way the packets of an interface went: name the mobile hosts with \
         --mobile ADDR/PREFIX"
    )]
    NoDirection,
    /// No packet has such an address.
    #[error("has no TCP packet from or to {0}: name the mobile hosts that it has")]
    NoMobile(Prefix),
}
