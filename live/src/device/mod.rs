//! What joins a loop in user space to a host's network stack, or to a LAN.

#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub(crate) mod lan;
pub(crate) mod offload;
pub mod packet;
pub(crate) mod reinjection;
pub(crate) mod transmitter;
pub mod tun;
pub(crate) mod tun_offload;

use airmend_proto::Packet;
use std::io;
use std::os::fd::BorrowedFd;

/// Packets to and from one interface, each beginning with its IP header (whatever the kind of
/// device, the links then charge a packet the same airtime) or, of a LAN, with its Ethernet header.
pub trait Device: Send {
    /// Takes what has arrived, at most one batch, without waiting; each packet of wire size. True
    /// if there may be more.
    fn receive(&mut self, batch: &mut Vec<Packet>) -> io::Result<bool>;

    /// Sends one packet, perhaps not before `flush`. One that the kernel has no room for, or that
    /// it does not take, is dropped and counted.
    fn send(&mut self, packet: &Packet) -> io::Result<()>;

    /// Sends what `send` has kept.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Packets lost between the kernel and this device, in both directions, since it was opened.
    fn drops(&mut self) -> u64;

    /// Tells the host whether there is anybody at the other end, if the device can.
    fn set_carrier(&mut self, _is_on: bool) -> io::Result<()> {
        Ok(())
    }

    /// Becomes readable when something has arrived.
    fn readable(&self) -> BorrowedFd<'_>;
}

/// Packets taken at most in one call of `receive`: a flood on one device must not starve the other.
const BATCH: usize = 64;

/// The EtherType of an IP packet, from its version.
fn ethertype(packet: &[u8]) -> Option<u16> {
    match packet.first()? >> 4 {
        4 => Some(libc::ETH_P_IP as u16),
        6 => Some(libc::ETH_P_IPV6 as u16),
        _ => None,
    }
}

/// Whether an error of sending is about one packet or about now: the interface is down (a TUN
/// device calls that EIO), or the packet is malformed or too long for it, or [`is_transient`]. That
/// packet is lost, as on a wire, and the device stays.
fn is_loss(error: &io::Error) -> bool {
    let lost = [libc::EIO, libc::ENETDOWN, libc::ENXIO, libc::EINVAL, libc::EMSGSIZE];
    is_transient(error) || error.raw_os_error().is_some_and(|error| lost.contains(&error))
}

/// Whether an error of a socket or device ends by itself: the kernel has no room or no memory now,
/// or a signal came. A packet is lost then, as in a full queue on a wire.
fn is_transient(error: &io::Error) -> bool {
    let transient = [libc::EAGAIN, libc::EINTR, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|error| transient.contains(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_room_and_no_memory_end_by_themselves_and_a_device_that_is_gone_does_not() {
        let is_transient = |error| is_transient(&io::Error::from_raw_os_error(error));
        for error in [libc::EAGAIN, libc::EWOULDBLOCK, libc::EINTR, libc::ENOBUFS, libc::ENOMEM] {
            assert!(is_transient(error), "{error}");
        }
        for error in [libc::EBADF, libc::EBADFD, libc::EIO, libc::ENODEV, libc::EPERM] {
            assert!(!is_transient(error), "{error}");
        }
    }

    #[test]
    fn an_interface_that_is_down_loses_packets_and_one_that_is_gone_is_an_error() {
        let is_loss = |error| is_loss(&io::Error::from_raw_os_error(error));
        for error in [libc::EIO, libc::ENETDOWN, libc::EMSGSIZE, libc::EINVAL, libc::ENOBUFS] {
            assert!(is_loss(error), "{error}");
        }
        for error in [libc::EBADF, libc::EBADFD, libc::ENODEV, libc::EPERM] {
            assert!(!is_loss(error), "{error}");
        }
    }
}
