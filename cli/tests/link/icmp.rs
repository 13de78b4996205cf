//! Strangers who tell an end by ICMP that the path to its peer is narrow.

use crate::interface::{INNER6, both_families, mtu, shown};
use crate::kit::{Result, until};
use crate::stream::lasting;
use crate::world::{INNER, LEFT, RIGHT, World};
use crate::{BYTES, count, ended};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};
use nix::sys::socket::{SockaddrIn, SockaddrIn6, sendto, socket};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const PORT: u16 = 4433;
/// The least that Linux believes of *fragmentation needed* (`net.ipv4.route.min_pmtu`).
const LEAST: u16 = 552;
/// For longer than an end takes to ask the kernel what it has been told.
const WHILE: Duration = Duration::from_secs(3);
const LEFT6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const RIGHT6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// *Fragmentation needed*, which quotes the listener's port and guesses the peer's (RFC 1191).
pub(crate) fn forged_icmp() -> Result {
    forged(&format!("{RIGHT}:{PORT}"), LEFT, 1422, || tell_narrow(RIGHT.parse()?, LEFT.parse()?))
}

/// Tells the end that listens, from the calling thread's namespace, that the path to this peer is
/// narrow.
pub(crate) fn tell_narrow(listener: Ipv4Addr, peer: Ipv4Addr) -> Result {
    let raw = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw)?;
    let to = SockaddrIn::from(SocketAddrV4::new(listener, 0));
    sendto(raw.as_raw_fd(), &fragmentation_needed(listener, peer)?, &to, MsgFlags::empty())?;
    Ok(())
}

/// *Packet too big* (RFC 4443 §3.2).
pub(crate) fn forged_icmp_over_ipv6() -> Result {
    forged(&format!("[{RIGHT6}]:{PORT}"), &LEFT6.to_string(), 1402, || {
        let kind = SockType::Raw;
        let raw = socket(AddressFamily::Inet6, kind, SockFlag::empty(), SockProtocol::IcmpV6)?;
        let to = SockaddrIn6::from(SocketAddrV6::new(RIGHT6, 0, 0, 0));
        // The kernel writes the checksum.
        let mut message = vec![2, 0, 0, 0, 0, 0, 5, 0, 0x60, 0, 0, 0, 5, 0, 17, 64];
        message.extend_from_slice(&RIGHT6.octets());
        message.extend_from_slice(&LEFT6.octets());
        message.extend_from_slice(&quoted_ports());
        sendto(raw.as_raw_fd(), &message, &to, MsgFlags::empty())?;
        Ok(())
    })
}

/// Both ends send all the while; `tell` is the stranger.
fn forged(dial: &str, peer: &str, wide: u32, tell: impl Fn() -> Result + Sync) -> Result {
    let world = World::new()?;
    let [mut listener, dialer] = both_families(&world, dial)?;
    lasting([&world.right, &world.left], INNER[0].parse()?, |received| {
        until("the beginning", || (received() > BYTES).then_some(()))?;
        world.left.run(|| Ok(tell().map_err(|error| error.to_string())))??;
        let believes = || shown(&world.right, &format!("route get {peer}")).ok();
        until("that the kernel believes it", || believes()?.contains(" mtu ").then_some(()))?;
        let begin = Instant::now();
        until("some seconds", || (begin.elapsed() > WHILE).then_some(()))
    })?;
    assert_eq!(mtu(&world.right)?, wide);
    let addresses = shown(&world.right, "-6 address show mend0")?;
    assert!(addresses.contains(INNER6[1]), "{addresses}");
    while let Some(line) = listener.line_within(Duration::ZERO)? {
        // That of the peer's family, when the peer was found.
        assert!(!line.contains("MTU") || line.contains(&wide.to_string()), "{line}");
    }
    ended(dialer)?;
    let figures = ended(listener)?;
    assert_eq!(count(&figures, "send_errors"), 0, "{figures}");
    Ok(())
}

/// UDP from the listener's port to one that nobody has.
fn quoted_ports() -> Vec<u8> {
    [PORT, 9, 1400, 0].map(u16::to_be_bytes).concat()
}

/// From a router that does not exist, about a datagram that was never sent.
fn fragmentation_needed(listener: Ipv4Addr, peer: Ipv4Addr) -> Result<Vec<u8>> {
    let router: Ipv4Addr = "192.0.2.99".parse()?;
    let header = |length: u16, protocol: u8, from: Ipv4Addr, to: Ipv4Addr| {
        let mut header = vec![0x45, 0];
        header.extend_from_slice(&length.to_be_bytes());
        header.extend_from_slice(&[0, 0, 0x40, 0, 64, protocol, 0, 0]);
        header.extend_from_slice(&[from.octets(), to.octets()].concat());
        header
    };
    let mut message = vec![3, 4, 0, 0, 0, 0];
    message.extend_from_slice(&LEAST.to_be_bytes());
    message.extend_from_slice(&header(1420, 17, listener, peer));
    message.extend_from_slice(&quoted_ports());
    let sum: u32 = message.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let sum = !(folded + (folded >> 16)) as u16;
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    // The kernel writes the checksum and the length of the IP header.
    Ok([header(0, 1, router, listener), message].concat())
}
