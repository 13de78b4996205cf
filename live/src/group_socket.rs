//! A UDP socket in a multicast group (RFC 1112) on one interface: how base stations reach each
//! other.

use nix::sys::socket::{setsockopt, sockopt};
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// The longest UDP datagram.
const MAX_DATAGRAM: usize = 65_535;
/// The receive buffer: a window of packets comes at once when a mobile host moves.
const SOCKET_BUFFER: usize = 4 << 20;

/// A member of a group. It does not hear itself.
#[derive(Debug)]
pub(crate) struct GroupSocket {
    socket: UdpSocket,
    group: SocketAddrV4,
    buffer: Vec<u8>,
}

impl GroupSocket {
    /// Joins `group` on the interface that has this name and this address.
    pub(crate) fn join(
        group: SocketAddrV4,
        interface: &str,
        address: Ipv4Addr,
    ) -> io::Result<Self> {
        // A socket with the address of the group gets what is sent to the group only.
        let socket = UdpSocket::bind(group)?;
        setsockopt(&socket, sockopt::BindToDevice, &OsString::from(interface))?;
        socket.join_multicast_v4(group.ip(), &address)?;
        socket.set_multicast_loop_v4(false)?;
        socket.set_nonblocking(true)?;
        // Privileged users may exceed the system's limit; others get what it allows.
        setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_BUFFER)
            .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &SOCKET_BUFFER))?;
        Ok(Self { socket, group, buffer: vec![0; MAX_DATAGRAM] })
    }

    /// Sends a message to the group; returns whether the kernel took it.
    pub(crate) fn send(&self, message: &[u8]) -> bool {
        self.socket.send_to(message, SocketAddr::V4(self.group)).is_ok()
    }

    /// The next message, if one has arrived.
    pub(crate) fn receive(&mut self) -> io::Result<Option<&[u8]>> {
        match self.socket.recv(&mut self.buffer) {
            Ok(len) => Ok(self.buffer.get(..len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// For `poll`: readable when a message has arrived.
    pub(crate) fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
