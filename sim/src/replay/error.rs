//! Errors of captures that cannot be replayed: each is a sentence that follows the file's name.

use super::left_out::LeftOut;
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
        "is no capture in pcapng or pcap: give a file as `airmend lab run --pcap` or `tcpdump -w` \
         writes it, or make one with `editcap FILE run.pcapng`"
    )]
    NotACapture,
    /// The file is packed in another way than by gzip.
    #[error("is packed: unpack it first ({0})")]
    Packed(&'static str),
    /// A block is malformed.
    #[error("is damaged after {packets} packets: {why}")]
    Damaged {
        /// The number of packets before the block.
        packets: usize,
        /// The fault.
        why: String,
    },
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
    #[error("holds no TCP segment that could be read: {left_out}{}", advice(left_out))]
    NoTcp {
        /// What it has instead.
        left_out: LeftOut,
    },
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

/// What would be right, where it is known.
fn advice(left_out: &LeftOut) -> String {
    let advice = |bytes| format!("; capture at least {bytes} bytes of each packet");
    left_out.snap_length().map_or_else(String::new, advice)
}
