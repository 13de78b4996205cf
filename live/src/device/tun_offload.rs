//! A TUN device with segmentation offload: super-packets are split when they are read, and what
//! belongs together is written as one.

use super::offload::{Coalescer, HEADER_LEN, split};
use super::{Device, is_loss};
use crate::sys;
use airmend_proto::Packet;
use nix::sys::uio::writev;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// Super-packets taken at most in one call of `receive`.
const BATCH: usize = 4;

/// The user-space end of a TUN device that leaves segmentation and checksums to us.
#[derive(Debug)]
pub(crate) struct OffloadTun {
    device: File,
    buffer: Vec<u8>,
    joined: Coalescer,
    drops: u64,
}

impl OffloadTun {
    /// Makes an open device node the TUN device `interface` in the calling thread's network
    /// namespace. Dropping this value removes it.
    pub(crate) fn create(device: File, interface: &str) -> io::Result<Self> {
        sys::attach_offload_tun(device.as_fd(), interface)?;
        Ok(Self::of(device))
    }

    /// The TUN device that somebody kept open, with the packets that wait in it; `None` if it is
    /// another one than `interface`.
    pub(crate) fn adopt(device: File, interface: &str) -> Option<Self> {
        let name = sys::tun_name(device.as_fd()).ok()?;
        (name == interface).then(|| Self::of(device))
    }

    fn of(device: File) -> Self {
        let buffer = vec![0; HEADER_LEN + usize::from(u16::MAX)];
        Self { device, buffer, joined: Coalescer::default(), drops: 0 }
    }
}

impl Device for OffloadTun {
    fn receive(&mut self, batch: &mut Vec<Packet>) -> io::Result<bool> {
        for _ in 0..BATCH {
            match self.device.read(&mut self.buffer) {
                Ok(length) => {
                    if !split(self.buffer.get(..length).unwrap_or(&[]), batch) {
                        self.drops += 1;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn send(&mut self, packet: &Packet) -> io::Result<()> {
        if let Err(packet) = self.joined.push(packet.clone()) {
            self.flush()?;
            // An empty run takes any packet.
            self.joined.push(packet).ok();
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.joined.flush(|slices| writev(&self.device, slices));
        match result.map_or(Ok(0), |result| result.map_err(io::Error::from)) {
            Ok(_) => Ok(()),
            Err(error) if is_loss(&error) => {
                self.drops += 1;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn drops(&mut self) -> u64 {
        self.drops
    }

    fn set_carrier(&mut self, is_on: bool) -> io::Result<()> {
        sys::set_tun_carrier(self.device.as_fd(), is_on)
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
