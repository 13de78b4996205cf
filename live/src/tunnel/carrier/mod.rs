//! What carries datagrams between the two ends.

mod ethernet;
mod udp;

pub(super) use ethernet::EthernetCarrier;
pub(super) use udp::UdpCarrier;

use crate::sys::{self, ReceiveBuffer};
use airmend_proto::{Ecn, Packet};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

/// The address of an end of the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// A UDP endpoint.
    Udp(SocketAddr),
    /// A station on the Ethernet.
    Mac([u8; 6]),
}

impl Address {
    /// Whether both belong to one host, as far as can be seen: ports change with each start.
    pub(super) fn is_same_host(self, other: Self) -> bool {
        match (self, other) {
            (Self::Udp(a), Self::Udp(b)) => a.ip() == b.ip(),
            _ => self == other,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => write!(f, "{address}"),
            Self::Mac([a, b, c, d, e, g]) => {
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
        }
    }
}

/// Datagrams of one size and one ECN field, one behind the other; only the last may be shorter.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) segment_size: usize,
    pub(super) segments: usize,
    pub(super) ecn: Ecn,
    is_closed: bool,
}

/// Segments of a batch at most: what Linux takes in one call (`UDP_MAX_SEGMENTS`).
const MAX_SEGMENTS: usize = 64;
/// Bytes of a batch at most: what an IP packet can hold, less its headers.
const MAX_BYTES: usize = 65_000;

impl Batch {
    /// One datagram, without ECN.
    pub(super) fn single(bytes: Vec<u8>) -> Self {
        let segment_size = bytes.len();
        Self { bytes, segment_size, segments: 1, ecn: Ecn::NotEct, is_closed: true }
    }

    /// Whether a datagram of this length and ECN field may join: those of one call share the field.
    pub(super) fn takes(&self, length: usize, ecn: Ecn) -> bool {
        self.segments == 0
            || (!self.is_closed
                && ecn == self.ecn
                && length <= self.segment_size
                && self.segments < MAX_SEGMENTS
                && self.bytes.len() + length <= MAX_BYTES)
    }

    /// The datagram that was just appended to `bytes` joins.
    pub(super) fn joined(&mut self, length: usize, ecn: Ecn) {
        if self.segments == 0 {
            (self.segment_size, self.ecn) = (length, ecn);
        }
        self.segments += 1;
        self.is_closed = length < self.segment_size;
    }

    /// Forgets all datagrams.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.segments = 0;
        self.is_closed = false;
    }
}

/// The result of sending a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// All of it left, but for so many datagrams that could not be sent.
    Done(u64),
    /// Nothing left: there is no room now.
    Full,
}

/// The least MTU of an IPv6 link (RFC 8200 §5).
pub const IPV6_MIN_MTU: u32 = 1280;

/// The way to an address, as far as this machine knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The index of the interface that it leads through, where routes choose it.
    pub(super) interface: Option<u32>,
    /// The longest datagram that the interface carries, and its route by the administrator's word.
    pub(super) ceiling: usize,
    /// The longest one that the kernel believes to reach the address whole, perhaps by ICMP.
    pub(super) report: usize,
}

/// Carries datagrams.
pub(super) trait Carrier: Send {
    /// Hands every datagram that has arrived, at most one batch, to `take`, with its ECN field.
    /// True if there may be more.
    fn receive(&mut self, take: &mut dyn FnMut(Address, Ecn, &[u8])) -> io::Result<bool>;

    /// Sends a batch. What is longer than the kernel allows leaves in fragments if possible.
    fn send(&mut self, to: Address, batch: &Batch) -> Sent;

    /// Sends a datagram that arrives whole or not at all, without ECN.
    fn send_whole(&mut self, to: Address, datagram: &[u8]);

    /// Datagrams that left in fragments, so far.
    fn fragmented(&self) -> u64;

    /// Whether the path's MTU may have changed since the last request for it.
    fn is_path_new(&self) -> bool;

    /// The way to this address now; `None` without one.
    fn way(&mut self, to: Address) -> Option<Way>;

    /// The longest datagram that reaches this address whole on any path; where that is longer than
    /// the ceiling, there is nothing to find out.
    fn min_datagram(&self, to: Address) -> usize;

    /// The longest datagram to a peer whose address is not known yet.
    fn usual_datagram(&self) -> usize;

    /// Whether this IP packet is a datagram of this end to the peer: it came back to where it was
    /// made, through the interface of the link itself.
    fn is_own(&self, to: Address, packet: &Packet) -> bool;

    /// What waits in the socket; `None` where it cannot be told.
    fn received(&self) -> Option<ReceiveBuffer> {
        sys::receive_buffer(self.socket()).ok()
    }

    /// Becomes readable when something has arrived, writable when there is room.
    fn socket(&self) -> BorrowedFd<'_>;
}
