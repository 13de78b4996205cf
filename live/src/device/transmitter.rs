//! Sends whole frames through an interface, with a mark and a priority of their own.

use super::is_loss;
use super::offload::build_frame;
use crate::sys::{self, set_option};
use airmend_proto::Packet;
use nix::sys::uio::writev;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};

/// A packet socket that only sends.
#[derive(Debug)]
pub(crate) struct Transmitter {
    socket: OwnedFd,
    drops: u64,
}

impl Transmitter {
    /// Opens the socket on an interface of the calling thread's network namespace.
    pub(crate) fn open(interface_index: i32, mark: u32, priority: u32) -> io::Result<Self> {
        let socket = sys::open_sending_socket(interface_index)?;
        let transmitter = Self { socket, drops: 0 };
        transmitter.set(mark, priority)?;
        Ok(transmitter)
    }

    /// Sends with this mark and priority from now on.
    pub(crate) fn set(&self, mark: u32, priority: u32) -> io::Result<()> {
        let socket = self.socket.as_fd();
        set_option(socket, libc::SOL_SOCKET, libc::SO_MARK, mark as i32)?;
        set_option(socket, libc::SOL_SOCKET, libc::SO_PRIORITY, priority as i32)
    }

    /// Sends a frame. One that the interface refuses, because its queue is full, it is down, there
    /// is no memory, or the frame is malformed or too long by now, is dropped and counted.
    pub(crate) fn send(&mut self, packet: &Packet) -> io::Result<()> {
        let is_whole = packet.bytes().len() == packet.wire_len() as usize;
        let Some((header, edited)) = build_frame(packet).filter(|_| is_whole) else {
            self.drops += 1;
            return Ok(());
        };
        let bytes = edited.as_deref().unwrap_or(packet.bytes());
        let Err(error) = writev(&self.socket, &[IoSlice::new(&header), IoSlice::new(bytes)]) else {
            return Ok(());
        };
        self.drops += 1;
        let error = error.into();
        if is_loss(&error) { Ok(()) } else { Err(error) }
    }

    /// Frames that the interface refused.
    pub(crate) fn drops(&self) -> u64 {
        self.drops
    }
}
