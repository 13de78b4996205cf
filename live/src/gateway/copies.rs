//! Copies of what leaves through the air interface, in the order in which it leaves.

use super::arrival::{Arrival, Kind, headers, queue_up};
use crate::clock::{self, Clock};
use crate::device::offload::parse_copy;
use crate::sys::{Copied, PacketSocket};
use airmend_proto::{Instant, LinkType, Packet};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Read at most in one turn.
const COPIES: usize = 1024;
const COPIED_BYTES: usize = 8 << 20;

/// A packet socket that the kernel gives copies of one kind, and the copies that were read.
#[derive(Debug)]
pub(super) struct Copies {
    socket: PacketSocket,
    kind: Kind,
    link_type: LinkType,
    pub(super) queue: VecDeque<Arrival>,
    drops: u64,
}

impl Copies {
    /// Copies of data, whole.
    pub(super) fn of_data(socket: PacketSocket, link_type: LinkType) -> Self {
        Self { socket, kind: Kind::Data, link_type, queue: VecDeque::new(), drops: 0 }
    }

    /// The headers of repairs.
    pub(super) fn of_repairs(socket: PacketSocket, link_type: LinkType) -> Self {
        Self { kind: Kind::Repair, ..Self::of_data(socket, link_type) }
    }

    /// Reads copies; if they were too many for one turn, says when the last one read had left.
    pub(super) fn collect(&mut self, clock: &Clock) -> Option<Instant> {
        let monotonic = clock::from_realtime();
        let mut bytes = 0;
        while self.queue.len() < COPIES && bytes < COPIED_BYTES {
            let copied = self.socket.receive_copy()?;
            let at = clock.at(monotonic(copied.at));
            let Some(packet) = self.packet(copied) else {
                self.drops += 1;
                continue;
            };
            bytes += packet.bytes().len();
            let kind = self.kind;
            let copy = Arrival { at, kind, packet, damaged: false, has_gap: false };
            queue_up(&mut self.queue, copy);
        }
        self.queue.back().map(|copy| copy.at)
    }

    fn packet(&self, copied: Copied) -> Option<Packet> {
        match self.kind {
            Kind::Repair => headers(self.link_type, copied.vlan, copied.bytes, copied.wire_len),
            _ => parse_copy(self.link_type, copied),
        }
    }

    /// When the first copy that waits here had left.
    pub(super) fn first(&self) -> Option<Instant> {
        self.queue.front().map(|copy| copy.at)
    }

    /// Becomes readable with every copy.
    pub(super) fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes note of an error that the socket reports, such as an interface set down: until then it
    /// would seem readable.
    pub(super) fn take_error(&self) -> io::Result<()> {
        self.socket.take_error()
    }

    /// Whether the interface is still there for this process.
    pub(super) fn has_interface(&self) -> bool {
        self.socket.is_bound()
    }

    /// Copies that were lost, or came without all of their bytes: the agent did not see them.
    pub(super) fn drops(&mut self) -> u64 {
        self.drops += self.socket.drops().unwrap_or(0);
        self.drops
    }
}
