//! The reinjection device, a TAP or TUN device between the daemon and the BPF programs.
//!
//! A BPF program at the ingress of the device redirects the packets that the daemon writes to the
//! ingress of another interface. Packets that BPF programs redirect to the device are read here.

use super::is_transient;
use super::offload::{build_frame, parse_frame};
use super::tun::TunDevice;
use crate::sys;
use airmend_proto::{LinkType, Packet};
use nix::sys::uio::writev;
use std::fs::File;
use std::io::{self, IoSlice, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// The length of the device's queue, in packets: enough for those that are redirected until the
/// heartbeat times out. Packets beyond are lost.
const QUEUE: i32 = 1 << 14;
/// The longest packet, with its `virtio_net_hdr`.
const LONGEST: usize = 1 << 17;

/// The device; dropping this value removes it.
#[derive(Debug)]
pub(crate) struct Reinjection {
    device: File,
    name: String,
    index: i32,
    link_type: LinkType,
    buffer: Vec<u8>,
    drops: u64,
}

impl Reinjection {
    /// Creates the device of the gateway on the interface with this index, in the calling
    /// thread's network namespace, and sets it up.
    ///
    /// The device is also the right to mend on that interface: a network namespace has one device
    /// of a name, only CAP_NET_ADMIN can create it, and it ends with the process.
    ///
    /// # Errors
    /// `EBUSY` if a device has the name: another gateway is at work on the interface.
    pub(crate) fn create(air: i32, link_type: LinkType) -> io::Result<Self> {
        let device = TunDevice::open_device()?;
        // Names have 15 bytes at most.
        let name = format!("airmend{air:x}");
        let name = sys::attach_reinjection(device.as_fd(), &name, link_type == LinkType::Ethernet)?;
        // The kernel sends no IPv6 on it, which needs 1280 bytes (RFC 8200 §5). What is redirected
        // here may be longer.
        sys::set_interface_mtu(&name, 1_279)?;
        sys::set_interface_queue(&name, QUEUE)?;
        sys::set_interface_up(&name)?;
        let index = sys::interface_index(&name)?;
        Ok(Self { device, name, index, link_type, buffer: vec![0; LONGEST], drops: 0 })
    }

    /// The device's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The device's index.
    pub(crate) fn index(&self) -> u32 {
        self.index as u32
    }

    /// The next packet that was redirected here.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Packet>> {
        loop {
            let length = match self.device.read(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if is_transient(&error) => return Ok(None),
                Err(error) => return Err(error),
            };
            let read = self.buffer.get(..length).unwrap_or(&[]);
            let Some((header, bytes)) = read.split_first_chunk() else { continue };
            if let Some(packet) = parse_frame(self.link_type, *header, None, bytes.into()) {
                return Ok(Some(packet));
            }
            self.drops += 1;
        }
    }

    /// Becomes readable when something was redirected here.
    pub(crate) fn readable(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    /// Whether the device exists and is up. Where the kernel cannot tell now, it was the last time.
    pub(crate) fn is_up(&self) -> bool {
        let is_up = sys::interface_is_up(&self.name);
        is_up.unwrap_or_else(|error| error.raw_os_error() != Some(libc::ENODEV))
    }

    /// Reinjects a packet. One that the kernel has no room for, or finds malformed, is dropped and
    /// counted. An error if the device is down or removed.
    pub(crate) fn inject(&mut self, packet: &Packet) -> io::Result<()> {
        let Some((header, edited)) = build_frame(packet) else {
            self.drops += 1;
            return Ok(());
        };
        let bytes = edited.as_deref().unwrap_or(packet.bytes());
        match writev(&self.device, &[IoSlice::new(&header), IoSlice::new(bytes)]) {
            Ok(_) => Ok(()),
            Err(error) => {
                self.drops += 1;
                match error {
                    // A malformed packet.
                    nix::Error::EINVAL => Ok(()),
                    error if is_transient(&error.into()) => Ok(()),
                    error => Err(error.into()),
                }
            }
        }
    }

    /// Packets that could not be reinjected, or were read in an unknown form.
    pub(crate) fn drops(&self) -> u64 {
        self.drops
    }
}
