//! Whose socket is at the other end of a connection within this machine, by netlink.
//!
//! Read `sock_diag(7)`, `linux/inet_diag.h` and the kernel's `net/ipv4/inet_diag.c` before working
//! on this file.

use crate::netlink::{ask_one, family, word};
use nix::sys::socket::SockProtocol;
use nix::unistd::Uid;
use std::net::{IpAddr, SocketAddr, TcpStream};

/// The request and its answer, and all states of a connection.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const ALL_STATES: u32 = u32::MAX;
/// Where `struct inet_diag_msg` has the user and the inode.
const USER: usize = 64;
const INODE: usize = 68;

/// The user whose process has the other end of a connection; `None` if that end is on another
/// machine or in another network namespace, if no process has it any more, and where the kernel
/// does not tell.
pub(crate) fn peer_user(stream: &TcpStream) -> Option<Uid> {
    let body = request(stream.peer_addr().ok()?, stream.local_addr().ok()?);
    user(&ask_one(SockProtocol::NetlinkSockDiag, SOCK_DIAG_BY_FAMILY, &body).ok()?)
}

/// `struct inet_diag_req_v2` for the socket with these addresses.
fn request(own: SocketAddr, other: SocketAddr) -> Vec<u8> {
    let mut bytes = vec![family(own.ip()), libc::IPPROTO_TCP as u8, 0, 0];
    bytes.extend_from_slice(&ALL_STATES.to_ne_bytes());
    bytes.extend([own, other].into_iter().flat_map(|end| end.port().to_be_bytes()));
    bytes.extend([own, other].into_iter().flat_map(|end| address(end.ip())));
    // Any interface, and no cookie.
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&[0xff; 8]);
    bytes
}

fn address(address: IpAddr) -> [u8; 16] {
    let mut bytes = [0; 16];
    match address {
        IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes = address.octets(),
    }
    bytes
}

fn user(answer: &[u8]) -> Option<Uid> {
    // Some kernels take a socket that no process has for root's.
    word(answer, INODE).filter(|inode| *inode != 0)?;
    word(answer, USER).map(Uid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::geteuid;
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

    #[test]
    fn the_user_at_the_other_end_is_found() {
        for own in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            // A machine may be without IPv6.
            let Ok(listener) = TcpListener::bind((own, 0)) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            assert_eq!(peer_user(&accepted), Some(geteuid()), "{own}");
            drop(client);
            assert_eq!(peer_user(&accepted), None, "{own}: nobody has the other end");
        }
    }

    #[test]
    fn a_short_answer_names_no_user() {
        assert_eq!(user(&[1; INODE + 3]), None);
        assert_eq!(user(&[1; INODE + 4]), Some(Uid::from_raw(0x0101_0101)));
        assert_eq!(user(&[0; INODE + 4]), None);
    }
}
