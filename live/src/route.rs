//! Addresses of interfaces and routes, by netlink.
//!
//! Read `rtnetlink(7)`, `linux/rtnetlink.h` and the kernel's `inet_rtm_getroute` before working on
//! this file.

use crate::netlink::{ask, ask_one, attribute, attributes, family, word};
use nix::sys::socket::SockProtocol;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Bytes of `struct rtmsg` and of `struct ifaddrmsg`.
const ROUTE: usize = 12;
const ADDRESS: usize = 8;
/// Whose routes these are: `ip route show proto 109`; no routing daemon's number.
const PROTOCOL: u8 = 109;
/// Above what anybody gives a route that is to be taken.
const BLACKHOLE_METRIC: u32 = 0x6d65_6e64;
const RTA_METRICS: u16 = 8;
const RTA_IP_PROTO: u16 = 27;
const RTA_SPORT: u16 = 28;
const RTA_DPORT: u16 = 29;
const RTAX_MTU: u16 = 2;
const RTAX_INITCWND: u16 = 11;
/// What tells a route from others.
const IDENTITY: [u16; 4] = [libc::RTA_DST, libc::RTA_OIF, libc::RTA_PREFSRC, libc::RTA_PRIORITY];
/// The entry of the table itself, without what ICMP has added (Linux 4.13).
const RTM_F_FIB_MATCH: u32 = 0x2000;

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The index of the interface that it leads through.
    pub(crate) interface: u32,
    /// The MTU that the administrator gave it.
    pub(crate) mtu: Option<u32>,
    /// It leads to this machine.
    pub(crate) is_local: bool,
}

/// The route of UDP datagrams from one address to another, in the calling thread's network
/// namespace; the source may be unspecified.
///
/// # Errors
/// There is none, or the kernel does not tell.
pub(crate) fn route(from: SocketAddr, to: SocketAddr) -> io::Result<Route> {
    let found = lookup(from, to, 0)?;
    let interface = of(&found, libc::RTA_OIF).and_then(|value| word(value, 0)).unwrap_or(0);
    let entry = lookup(from, to, RTM_F_FIB_MATCH)?;
    let metrics = of(&entry, RTA_METRICS).map(attributes).unwrap_or_default();
    let mtu = metrics.into_iter().find(|(which, _)| *which == RTAX_MTU);
    let mtu = mtu.and_then(|(_, value)| word(value, 0)).filter(|mtu| *mtu > 0);
    let is_local = found.get(7) == Some(&libc::RTN_LOCAL);
    Ok(Route { interface, mtu, is_local })
}

/// Gives an interface an address of a network with this prefix length, beside those that it has.
pub(crate) fn add_address(interface: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let bytes = of_interface(interface, address, prefix);
    ask(libc::RTM_NEWADDR, flags as u16, &bytes).map(drop)
}

/// Takes such an address away.
pub(crate) fn remove_address(interface: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
    let bytes = of_interface(interface, address, prefix);
    ask(libc::RTM_DELADDR, libc::NLM_F_ACK as u16, &bytes).map(drop)
}

/// The addresses that an interface has of the scope of all.
pub(crate) fn addresses(interface: u32) -> io::Result<Vec<(IpAddr, u8)>> {
    let all = ask(libc::RTM_GETADDR, libc::NLM_F_DUMP as u16, &[0; ADDRESS])?;
    let address = |message: &Vec<u8>| {
        let (head, body) = message.split_at_checked(ADDRESS)?;
        let is_here = word(head, 4) == Some(interface) && head[3] == libc::RT_SCOPE_UNIVERSE;
        let all = attributes(body);
        // Of IPv4 the second is the far end's on a line with two ends; of IPv6 there is no other.
        let find = |wanted| all.iter().find(|(which, _)| *which == wanted);
        let (_, octets) = find(libc::IFA_LOCAL).or_else(|| find(libc::IFA_ADDRESS))?;
        Some((from_octets(octets)?, head[1])).filter(|_| is_here)
    };
    Ok(all.iter().filter_map(address).collect())
}

/// A route through an interface to what lies behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceRoute {
    pub(crate) network: (IpAddr, u8),
    /// [`add_route`] made it; otherwise the kernel did, for an address of the interface.
    pub(crate) is_added: bool,
    /// The first congestion window of this host's connections in segments (`initcwnd`); 0 for the
    /// kernel's own.
    pub(crate) initial_window: u32,
    /// What tells it from others, and its other metrics.
    head: [u8; ROUTE],
    identity: Vec<u8>,
    metrics: Vec<u8>,
}

/// The routes that [`add_route`] or the kernel has made through this interface.
pub(crate) fn routes(interface: u32) -> io::Result<Vec<InterfaceRoute>> {
    let all = ask(libc::RTM_GETROUTE, libc::NLM_F_DUMP as u16, &[0; ROUTE])?;
    let routes = all.iter().filter_map(|message| interface_route(message, interface));
    Ok(routes.collect())
}

fn interface_route(message: &[u8], interface: u32) -> Option<InterfaceRoute> {
    let (head, body) = message.split_first_chunk::<ROUTE>()?;
    let [_, prefix, _, _, table, protocol, _, kind, ..] = *head;
    let through = of(message, libc::RTA_OIF).and_then(|value| word(value, 0));
    if (table, kind) != (libc::RT_TABLE_MAIN, libc::RTN_UNICAST)
        || ![PROTOCOL, libc::RTPROT_KERNEL].contains(&protocol)
        || through != Some(interface)
    {
        return None;
    }
    let mut head = *head;
    // Flags tell of its state.
    head[8..].fill(0);
    let metrics = of(message, RTA_METRICS).map(attributes).unwrap_or_default();
    let (own, others): (Vec<_>, Vec<_>) =
        metrics.into_iter().partition(|(which, _)| *which == RTAX_INITCWND);
    let identity = attributes(body).into_iter().filter(|(which, _)| IDENTITY.contains(which));
    let encoded = |(which, value): (u16, &[u8])| attribute(which, value);
    Some(InterfaceRoute {
        network: (from_octets(of(message, libc::RTA_DST)?)?, prefix),
        is_added: protocol == PROTOCOL,
        initial_window: own.first().and_then(|(_, value)| word(value, 0)).unwrap_or(0),
        head,
        identity: identity.flat_map(encoded).collect(),
        metrics: others.into_iter().flat_map(encoded).collect(),
    })
}

impl InterfaceRoute {
    /// Connections that this host begins or accepts by the route have this first window from now
    /// on, in segments; 0 for the kernel's own.
    pub(crate) fn set_initial_window(&self, segments: u32) -> io::Result<()> {
        let mut metrics = self.metrics.clone();
        if segments > 0 {
            metrics.extend(attribute(RTAX_INITCWND, &segments.to_ne_bytes()));
        }
        let bytes = [&self.head[..], &self.identity, &attribute(RTA_METRICS, &metrics)].concat();
        let flags = libc::NLM_F_ACK | libc::NLM_F_REPLACE;
        ask(libc::RTM_NEWROUTE, flags as u16, &bytes).map(drop)
    }
}

/// Sends what is for this network through the interface.
pub(crate) fn add_route(interface: u32, network: (IpAddr, u8)) -> io::Result<()> {
    let kind = (libc::RTN_UNICAST, libc::RT_SCOPE_LINK);
    let mut bytes = of_network(network, kind);
    bytes.extend(attribute(libc::RTA_OIF, &interface.to_ne_bytes()));
    let added = ask(libc::RTM_NEWROUTE, create(), &bytes).map(drop);
    let is_own = || {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        route(any, (network.0, 0).into()).is_ok_and(|route| route.interface == interface)
    };
    added.or_else(|error| match is_there(&error) && is_own() {
        true => Ok(()),
        false => Err(error),
    })
}

/// Takes such a route away.
pub(crate) fn remove_route(interface: u32, network: (IpAddr, u8)) -> io::Result<()> {
    let kind = (libc::RTN_UNICAST, libc::RT_SCOPE_LINK);
    let mut bytes = of_network(network, kind);
    bytes.extend(attribute(libc::RTA_OIF, &interface.to_ne_bytes()));
    ask(libc::RTM_DELROUTE, libc::NLM_F_ACK as u16, &bytes).map(drop)
}

/// Drops what is for this network where no other route has it.
pub(crate) fn add_blackhole(network: (IpAddr, u8)) -> io::Result<()> {
    let added = ask(libc::RTM_NEWROUTE, create(), &blackhole(network)).map(drop);
    added.or_else(|error| if is_there(&error) { Ok(()) } else { Err(error) })
}

/// No longer drops it.
pub(crate) fn remove_blackhole(network: (IpAddr, u8)) -> io::Result<()> {
    ask(libc::RTM_DELROUTE, libc::NLM_F_ACK as u16, &blackhole(network)).map(drop)
}

fn blackhole(network: (IpAddr, u8)) -> Vec<u8> {
    let mut bytes = of_network(network, (libc::RTN_BLACKHOLE, libc::RT_SCOPE_UNIVERSE));
    bytes.extend(attribute(libc::RTA_PRIORITY, &BLACKHOLE_METRIC.to_ne_bytes()));
    bytes
}

/// `struct rtmsg` of a route of the main table, and its destination.
fn of_network((address, prefix): (IpAddr, u8), (kind, scope): (u8, u8)) -> Vec<u8> {
    let (table, protocol) = (libc::RT_TABLE_MAIN, PROTOCOL);
    let mut bytes = vec![family(address), prefix, 0, 0, table, protocol, scope, kind];
    bytes.extend([0; 4]);
    bytes.extend(attribute(libc::RTA_DST, &octets(address)));
    bytes
}

fn create() -> u16 {
    (libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16
}

fn is_there(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EEXIST)
}

/// `struct ifaddrmsg`, without flags and in the scope of all, and the address.
fn of_interface(interface: u32, address: IpAddr, prefix: u8) -> Vec<u8> {
    let mut bytes = vec![family(address), prefix, 0, 0];
    bytes.extend_from_slice(&interface.to_ne_bytes());
    for which in [libc::IFA_LOCAL, libc::IFA_ADDRESS] {
        bytes.extend(attribute(which, &octets(address)));
    }
    bytes
}

/// The message of the answer.
fn lookup(from: SocketAddr, to: SocketAddr, flags: u32) -> io::Result<Vec<u8>> {
    ask_one(SockProtocol::NetlinkRoute, libc::RTM_GETROUTE, &request(from, to, flags))
}

fn request(from: SocketAddr, to: SocketAddr, flags: u32) -> Vec<u8> {
    let length = if to.is_ipv4() { 32 } else { 128 };
    let mut bytes = vec![0; ROUTE];
    (bytes[0], bytes[1]) = (family(to.ip()), length);
    bytes[8..].copy_from_slice(&flags.to_ne_bytes());
    bytes.extend(attribute(libc::RTA_DST, &octets(to.ip())));
    let source = from.ip().to_canonical();
    if !source.is_unspecified() && source.is_ipv4() == to.is_ipv4() {
        bytes[2] = length;
        bytes.extend(attribute(libc::RTA_SRC, &octets(source)));
    }
    if let SocketAddr::V6(to) = to
        && to.scope_id() != 0
    {
        bytes.extend(attribute(libc::RTA_OIF, &to.scope_id().to_ne_bytes()));
    }
    // Rules may match these.
    bytes.extend(attribute(RTA_IP_PROTO, &[libc::IPPROTO_UDP as u8]));
    for (which, port) in [(RTA_SPORT, from.port()), (RTA_DPORT, to.port())] {
        if port != 0 {
            bytes.extend(attribute(which, &port.to_be_bytes()));
        }
    }
    bytes
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn from_octets(octets: &[u8]) -> Option<IpAddr> {
    let v4 = || Some(IpAddr::from(<[u8; 4]>::try_from(octets).ok()?));
    v4().or_else(|| Some(IpAddr::from(<[u8; 16]>::try_from(octets).ok()?)))
}

fn of(message: &[u8], which: u16) -> Option<&[u8]> {
    let all = attributes(message.get(ROUTE..)?);
    all.into_iter().find(|(found, _)| *found == which).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_asked_about_both_families() {
        for (from, to) in [("0.0.0.0:0", "127.0.0.1:9"), ("127.0.0.1:7", "127.0.0.1:9")] {
            let route = route(from.parse().unwrap(), to.parse().unwrap());
            let expected = Route { interface: 1, mtu: None, is_local: true };
            assert_eq!(route.unwrap(), expected, "{from} {to}");
        }
        // Where there is IPv6 at all.
        if std::net::UdpSocket::bind("[::1]:0").is_ok() {
            let route = route("[::]:0".parse().unwrap(), "[::1]:9".parse().unwrap()).unwrap();
            assert!(route.is_local && route.interface == 1, "{route:?}");
        }
    }

    #[test]
    fn a_request_has_what_rules_may_match() {
        let bytes = request("192.0.2.1:7".parse().unwrap(), "192.0.2.2:9".parse().unwrap(), 0);
        assert_eq!(bytes[..3], [libc::AF_INET as u8, 32, 32]);
        let all = attributes(&bytes[ROUTE..]);
        assert_eq!(all[0], (libc::RTA_DST, &[192, 0, 2, 2][..]));
        assert_eq!(all[1], (libc::RTA_SRC, &[192, 0, 2, 1][..]));
        assert_eq!(
            all[2..],
            [(RTA_IP_PROTO, &[17][..]), (RTA_SPORT, &[0, 7]), (RTA_DPORT, &[0, 9])]
        );
        // The unspecified source and the other family's are left out.
        for from in ["0.0.0.0:0", "[::]:0", "[2001:db8::1]:0"] {
            let bytes = request(from.parse().unwrap(), "192.0.2.2:9".parse().unwrap(), 0);
            assert_eq!(attributes(&bytes[ROUTE..]).len(), 3, "{from}");
        }
    }
}
