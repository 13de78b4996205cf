//! All frames of a LAN: a packet socket in promiscuous mode.
//!
//! The interface keeps its addresses and its own traffic. Nothing in the system is changed, so
//! nothing is left behind, however the process ends.

use super::offload::{parse_copy, split_frame};
use super::transmitter::Transmitter;
use super::{BATCH, Device};
use crate::sys::{self, Copied, PacketSocket};
use airmend_proto::{LinkType, Packet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The frames that come in through an interface and are not for this machine.
pub(crate) struct LanDevice {
    socket: PacketSocket,
    transmitter: Transmitter,
    drops: u64,
}

impl LanDevice {
    /// Opens the device on `interface` of the calling thread's network namespace.
    pub(crate) fn open(interface: &str) -> io::Result<Self> {
        let index = sys::interface_index(interface)?;
        let transmitter = Transmitter::open(index, 0, 0)?;
        Ok(Self { socket: PacketSocket::open_promiscuous(index)?, transmitter, drops: 0 })
    }

    fn take(&mut self, copied: Copied, batch: &mut Vec<Packet>) {
        if copied.is_for_this_machine {
            return;
        }
        let frame = parse_copy(LinkType::Ethernet, copied);
        if !frame.is_some_and(|frame| split_frame(frame, batch)) {
            self.drops += 1;
        }
    }
}

impl Device for LanDevice {
    fn receive(&mut self, batch: &mut Vec<Packet>) -> io::Result<bool> {
        for _ in 0..BATCH {
            let Some(copied) = self.socket.receive_copy() else {
                return self.socket.check_interface().map(|()| false);
            };
            self.take(copied, batch);
        }
        Ok(true)
    }

    fn send(&mut self, packet: &Packet) -> io::Result<()> {
        self.transmitter.send(packet)
    }

    fn drops(&mut self) -> u64 {
        self.drops += self.socket.drops().unwrap_or(0);
        self.drops + self.transmitter.drops()
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
