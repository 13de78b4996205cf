//! A TUN device: the host's interface is the device itself.

use super::{BATCH, Device, is_loss};
use crate::sys;
use airmend_proto::{LinkType, Packet};
use bytes::Bytes;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// The device node of all TUN devices.
pub const DEVICE: &str = "/dev/net/tun";

/// The user-space end of a TUN device.
#[derive(Debug)]
pub struct TunDevice {
    device: File,
    buffer: Vec<u8>,
    drops: u64,
}

impl TunDevice {
    /// Opens the device node; `Err` where it is missing or not for this user.
    pub fn open_device() -> io::Result<File> {
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)
    }

    /// Creates the TUN device `interface` in the calling thread's network namespace. It vanishes
    /// with the port.
    pub fn create(device: File, interface: &str) -> io::Result<Self> {
        sys::attach_tun(device.as_fd(), interface)?;
        Ok(Self { device, buffer: vec![0; usize::from(u16::MAX)], drops: 0 })
    }
}

impl Device for TunDevice {
    fn receive(&mut self, batch: &mut Vec<Packet>) -> io::Result<bool> {
        for _ in 0..BATCH {
            match self.device.read(&mut self.buffer) {
                Ok(length) => {
                    let bytes = self.buffer.get(..length).unwrap_or(&[]);
                    batch.push(Packet::new(LinkType::Ip, Bytes::copy_from_slice(bytes)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn send(&mut self, packet: &Packet) -> io::Result<()> {
        match self.device.write(packet.bytes()) {
            Err(error) if is_loss(&error) => self.drops += 1,
            result => {
                result?;
            }
        }
        Ok(())
    }

    fn drops(&mut self) -> u64 {
        self.drops
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
