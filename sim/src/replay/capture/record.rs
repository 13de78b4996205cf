//! What a capture consists of: interfaces and packets.

use airmend_proto::{Instant, Packet};
use std::time::Duration;

/// The direction of a packet at the interface, seen from the capturing machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Crossing {
    /// The machine received it.
    Inbound,
    /// The machine sent it.
    Outbound,
}

/// An interface of the capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interface {
    /// The name, if the file has it.
    pub name: Option<String>,
    /// The link type (`LINKTYPE_` of libpcap).
    pub(super) link: u16,
    /// Its addresses, of IP and of the link.
    pub(super) addresses: Vec<Vec<u8>>,
}

/// One captured packet.
#[derive(Clone, Debug)]
pub struct Record {
    /// The time since the first packet of the capture.
    pub at: Instant,
    /// The index of the interface.
    pub interface: usize,
    /// The direction, if the file has it.
    pub crossing: Option<Crossing>,
    /// The packet, perhaps cut by a snap length.
    pub packet: Packet,
    /// Whether the packet had departed when the recorded agent saw its copy.
    pub is_copy: bool,
    /// Whether the recorded agent had sent the packet before, and it now departed from a queue of
    /// the kernel.
    pub is_departure: bool,
    /// The time before the packet at which the recorded agent's timers ran.
    pub timers: Vec<Duration>,
}

impl Record {
    /// A packet at the beginning, with nothing that a recording says.
    pub(super) fn new(interface: usize, crossing: Option<Crossing>, packet: Packet) -> Self {
        Self {
            at: Instant::ZERO,
            interface,
            crossing,
            packet,
            is_copy: false,
            is_departure: false,
            timers: Vec::new(),
        }
    }
}
