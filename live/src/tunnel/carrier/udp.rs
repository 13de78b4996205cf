//! Datagrams over UDP, with segmentation offload in both directions.
//!
//! Datagrams carry the don't-fragment flag, and nothing but the interface's MTU limits them
//! (`IP_PMTUDISC_PROBE`): the socket is not connected, so the kernel would believe any ICMP message
//! that quotes the port. Under `IP_PMTUDISC_WANT` the kernel compares the whole super-packet with
//! the MTU and clears the flag of every segment, so that no router ever tells that the path is
//! narrow. What the kernel refuses for its length was made before the interface's MTU decreased,
//! and is fragmented on purpose.
//!
//! The ECN field comes and goes with each call (`IP_TOS`, `IPV6_TCLASS`), and all datagrams of one
//! call have the same: the kernel joins none that differ in it. The DSCP is 0 (RFC 2983, pipe
//! model).

use super::{Address, Batch, Carrier, IPV6_MIN_MTU, Sent, Way};
use crate::route::{Route, route};
use crate::sys;
use airmend_proto::wire::flow::Endpoint;
use airmend_proto::wire::ip::Network;
use airmend_proto::{Ecn, Packet};
use nix::net::if_::if_indextoname;
use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Messages of one receive call; each may hold 64 kB of datagrams.
const MESSAGES: usize = 8;
const MESSAGE_BYTES: usize = 1 << 16;
/// Both of the socket's buffers: what a gigabit link carries in 30 ms.
const SOCKET_BUFFER: usize = 4 << 20;
const UDP_HEADER: usize = 8;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// The datagram length that every host must accept (RFC 791 §3.2).
const IPV4_MIN_MTU: usize = 576;
/// The longest IP packet; the loopback interface claims more.
const MAX_IP: usize = 65_535;

/// A UDP socket that is not connected: the peer may move.
pub(in crate::tunnel) struct UdpCarrier {
    socket: UdpSocket,
    local: SocketAddr,
    is_ipv6: bool,
    state: UdpSocketState,
    buffer: Vec<u8>,
    fragmented: u64,
    /// A datagram was too long since the last request for the path's MTU.
    is_refused: bool,
}

impl UdpCarrier {
    /// Binds the socket.
    pub(in crate::tunnel) fn bind(local: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(local)?;
        let local = socket.local_addr()?;
        let is_ipv6 = local.is_ipv6();
        let state = set_up(&socket)?;
        // Privileged users may exceed the system's limit; others get what it allows.
        setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_BUFFER)
            .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &SOCKET_BUFFER))?;
        setsockopt(&socket, sockopt::SndBufForce, &SOCKET_BUFFER)
            .or_else(|_| setsockopt(&socket, sockopt::SndBuf, &SOCKET_BUFFER))?;
        Ok(Self {
            socket,
            local,
            is_ipv6,
            state,
            buffer: vec![0; MESSAGES * MESSAGE_BYTES],
            fragmented: 0,
            is_refused: false,
        })
    }

    fn transmit(
        &mut self,
        to: SocketAddr,
        ecn: Ecn,
        bytes: &[u8],
        size: Option<usize>,
    ) -> io::Result<()> {
        let destination = self.reachable(to);
        let ecn = EcnCodepoint::from_bits(ecn as u8);
        let transmit =
            Transmit { destination, ecn, contents: bytes, segment_size: size, src_ip: None };
        self.state.try_send((&self.socket).into(), &transmit)
    }

    /// Sends a datagram that may be fragmented, here and by routers.
    fn transmit_fragments(&mut self, to: SocketAddr, ecn: Ecn, bytes: &[u8]) -> io::Result<()> {
        self.fragmented += 1;
        allow_fragments(&self.socket, true)?;
        let sent = self.transmit(to, ecn, bytes, None);
        allow_fragments(&self.socket, false)?;
        sent
    }

    /// The address as this socket's family writes it.
    fn reachable(&self, to: SocketAddr) -> SocketAddr {
        match to.ip() {
            IpAddr::V4(address) if self.is_ipv6 => (address.to_ipv6_mapped(), to.port()).into(),
            _ => to,
        }
    }
}

impl Carrier for UdpCarrier {
    fn receive(&mut self, take: &mut dyn FnMut(Address, Ecn, &[u8])) -> io::Result<bool> {
        let mut meta = [RecvMeta::default(); MESSAGES];
        let mut slices: Vec<_> =
            self.buffer.chunks_exact_mut(MESSAGE_BYTES).map(IoSliceMut::new).collect();
        let count = match self.state.recv((&self.socket).into(), &mut slices, &mut meta) {
            Ok(count) => count,
            // ICMP errors are returned here; other errors are retried.
            Err(error) if is_passing(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        drop(slices);
        for (message, meta) in self.buffer.chunks_exact(MESSAGE_BYTES).zip(&meta).take(count) {
            let from = SocketAddr::new(meta.addr.ip().to_canonical(), meta.addr.port());
            let bytes = message.get(..meta.len).unwrap_or(&[]);
            let ecn = Ecn::of_traffic_class(meta.ecn.map_or(0, |ecn| ecn as u8));
            for datagram in bytes.chunks(meta.stride.max(1)) {
                take(Address::Udp(from), ecn, datagram);
            }
        }
        Ok(count == MESSAGES)
    }

    fn send(&mut self, to: Address, batch: &Batch) -> Sent {
        let Address::Udp(to) = to else { return Sent::Done(batch.segments as u64) };
        if batch.segments <= self.state.max_gso_segments() {
            let size = (batch.segments > 1).then_some(batch.segment_size);
            match self.transmit(to, batch.ecn, &batch.bytes, size) {
                Ok(()) => return Sent::Done(0),
                Err(error) if is_full(&error) => return Sent::Full,
                Err(error) if batch.segments == 1 && !is_too_long(&error) => return Sent::Done(1),
                // The device cannot split it, or the path has become too narrow.
                Err(_) => self.is_refused = true,
            }
        }
        let mut errors = 0;
        for datagram in batch.bytes.chunks(batch.segment_size.max(1)) {
            let mut sent = self.transmit(to, batch.ecn, datagram, None);
            if sent.as_ref().is_err_and(is_too_long) {
                self.is_refused = true;
                sent = self.transmit_fragments(to, batch.ecn, datagram);
            }
            // What a full buffer refuses here is lost, like on any link.
            errors += u64::from(sent.is_err());
        }
        Sent::Done(errors)
    }

    fn send_whole(&mut self, to: Address, datagram: &[u8]) {
        if let Address::Udp(to) = to {
            // A probe that cannot be sent counts as lost.
            let sent = self.transmit(to, Ecn::NotEct, datagram, None);
            self.is_refused |= sent.is_err();
        }
    }

    fn fragmented(&self) -> u64 {
        self.fragmented
    }

    fn is_path_new(&self) -> bool {
        self.is_refused
    }

    fn way(&mut self, to: Address) -> Option<Way> {
        let Address::Udp(to) = to else { return None };
        if std::mem::take(&mut self.is_refused) {
            // It may have been the path: a new state tries segmentation offload once more.
            self.state = set_up(&self.socket).ok()?;
        }
        let headers = headers(to);
        let Route { interface, mtu, .. } = route(self.local, to).ok()?;
        let name = if_indextoname(interface).ok()?;
        let own = sys::interface_mtu(name.to_str().ok()?).ok()?;
        let ceiling = (mtu.unwrap_or(own).min(own) as usize).min(MAX_IP).saturating_sub(headers);
        let report = path_mtu(to).map_or(ceiling, |mtu| mtu.saturating_sub(headers));
        Some(Way { interface: Some(interface), ceiling, report })
    }

    fn min_datagram(&self, to: Address) -> usize {
        match to {
            Address::Udp(SocketAddr::V6(_)) => IPV6_MIN_MTU as usize - IPV6_HEADER - UDP_HEADER,
            _ => IPV4_MIN_MTU - IPV4_HEADER - UDP_HEADER,
        }
    }

    fn usual_datagram(&self) -> usize {
        1500 - UDP_HEADER - if self.is_ipv6 { IPV6_HEADER } else { IPV4_HEADER }
    }

    fn is_own(&self, to: Address, packet: &Packet) -> bool {
        let (Address::Udp(to), Ok(network)) = (to, Network::walk(packet)) else { return false };
        let is_between = |ports: &[u8; 4]| {
            let [from, at] = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
            let destination = Endpoint { address: network.destination, port: at };
            from == self.local.port() && destination == Endpoint::from(to)
        };
        let transport = packet.bytes().get(usize::from(network.transport_offset)..);
        i32::from(network.protocol) == libc::IPPROTO_UDP
            && transport.and_then(<[u8]>::first_chunk).is_some_and(is_between)
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Offload both ways, and don't-fragment always.
fn set_up(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(socket.into())?;
    // Nobody asks at which address and interface a datagram came, and of what quinn-udp has room
    // for, that leaves none for the ECN field of a super-packet.
    let fd = socket.as_fd();
    sys::set_option(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 0)?;
    if socket.local_addr()?.is_ipv6() {
        sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 0)?;
    }
    allow_fragments(socket, false)?;
    Ok(state)
}

/// Whether datagrams that are longer than the interface's MTU are fragmented or refused.
fn allow_fragments(socket: &UdpSocket, is_allowed: bool) -> io::Result<()> {
    let (fd, is_ipv6) = (socket.as_fd(), socket.local_addr()?.is_ipv6());
    let choose = |allowed, refused| if is_allowed { allowed } else { refused };
    if is_ipv6 {
        let set = |name, value| sys::set_option(fd, libc::IPPROTO_IPV6, name, value);
        set(libc::IPV6_DONTFRAG, choose(0, 1))?;
        let discover = choose(libc::IPV6_PMTUDISC_DONT, libc::IPV6_PMTUDISC_PROBE);
        set(libc::IPV6_MTU_DISCOVER, discover)?;
    }
    let discover = choose(libc::IP_PMTUDISC_DONT, libc::IP_PMTUDISC_PROBE);
    sys::set_option(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, discover)
}

/// The path MTU to this address, as the kernel believes it; only connected sockets can be asked.
fn path_mtu(to: SocketAddr) -> io::Result<usize> {
    let (any, level, name): (IpAddr, _, _) = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), libc::IPPROTO_IP, libc::IP_MTU),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    let probe = UdpSocket::bind((any, 0))?;
    probe.connect(to)?;
    Ok(usize::try_from(sys::option(probe.as_fd(), level, name)?).unwrap_or(0))
}

/// Bytes around the payload of a datagram to this address.
fn headers(to: SocketAddr) -> usize {
    UDP_HEADER + if to.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::WouldBlock
            | Kind::Interrupted
            | Kind::ConnectionRefused
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::LinkType;

    #[test]
    fn own_datagrams_are_recognised_and_nothing_else_is() {
        let carrier = UdpCarrier::bind(([127, 0, 0, 1], 0).into()).expect("a socket");
        let ports = [&carrier.local.port().to_be_bytes()[..], &[17, 81, 0, 8, 0, 0]].concat();
        let mut v4 = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 2];
        v4.extend_from_slice(&ports);
        let mut v6 = vec![0; IPV6_HEADER];
        (v6[0], v6[5], v6[6]) = (0x60, 8, 17);
        v6[24..].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        v6.extend_from_slice(&ports);
        let peers =
            ["192.0.2.2:4433", "[::1]:4433"].map(|peer| Address::Udp(peer.parse().unwrap()));
        let is_own = |own, bytes: &[u8]| {
            carrier.is_own(own, &Packet::new(LinkType::Ip, bytes.to_vec().into()))
        };
        for (packet, own, other) in [(v4, peers[0], peers[1]), (v6, peers[1], peers[0])] {
            assert!(is_own(own, &packet) && !is_own(other, &packet));
            // The protocol, the source's port and the destination's.
            let header = packet.len() - 8;
            let protocol = if header == IPV6_HEADER { 6 } else { 9 };
            for at in [protocol, header, header + 3, header - 1] {
                let mut changed = packet.clone();
                changed[at] ^= 1;
                assert!(!is_own(own, &changed), "{at}");
            }
            // What is cut before the ports end.
            assert!((0..header + 4).all(|length| !is_own(own, &packet[..length])));
        }
    }
}
