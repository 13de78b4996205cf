//! A device through which packets enter the kernel as if another interface had received them.
//!
//! Whatever is written to it, a program at its ingress redirects. Nothing is read from it.

use super::is_full;
use super::tun::TunPort;
use crate::sys;
use nix::sys::uio::writev;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;

/// The kernel finds a free number.
const NAME: &str = "airmend%d";
/// An empty `virtio_net_hdr`: nothing is left to do to the packet.
const HEADER: [u8; 10] = [0; 10];

/// The device, which vanishes with this value.
#[derive(Debug)]
pub(crate) struct Injector {
    device: File,
    name: String,
    drops: u64,
}

impl Injector {
    /// Creates the device in the calling thread's network namespace and sets it up.
    pub(crate) fn create(has_ethernet: bool) -> io::Result<Self> {
        let device = TunPort::open_device()?;
        let name = sys::attach_injector(device.as_fd(), NAME, has_ethernet)?;
        // No IPv6 of its own: nobody else is on it. Where that cannot be said, nobody answers.
        std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1").ok();
        sys::set_interface_mtu(&name, 65_521).ok();
        sys::set_interface_up(&name)?;
        Ok(Self { device, name, drops: 0 })
    }

    /// The device's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Lets a packet enter. One that the kernel has no room for is dropped and counted, as is any
    /// while the device is down.
    pub(crate) fn inject(&mut self, packet: &[u8]) -> io::Result<()> {
        match writev(&self.device, &[IoSlice::new(&HEADER), IoSlice::new(packet)]) {
            Ok(_) => Ok(()),
            Err(nix::Error::EIO) => {
                self.drops += 1;
                Ok(())
            }
            Err(error) => {
                let error = io::Error::from(error);
                self.drops += 1;
                if is_full(&error) { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Packets that could not enter.
    pub(crate) fn drops(&self) -> u64 {
        self.drops
    }
}
