//! Raw sockets: every frame of an interface.

use super::Result;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, bind, setsockopt, socket, sockopt,
};
use std::os::fd::{AsRawFd, OwnedFd};

/// Opens the socket on an interface of the calling thread's namespace; reading does not wait.
pub(crate) fn open_end(interface: &str) -> Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)?;
    let mut all = getifaddrs()?.filter(|found| found.interface_name == interface);
    let address = all.find_map(|found| found.address?.as_link_addr().copied());
    bind(fd.as_raw_fd(), &address.ok_or("the interface has no link address")?)?;
    setsockopt(&fd, sockopt::RcvBufForce, &(8 << 20))?;
    Ok(fd)
}
