//! The virtual interface as the tunnel keeps it: its MTU, its addresses and its routes.

use super::carrier::IPV6_MIN_MTU;
use super::config::{DeviceConfig, TunConfig};
use super::error::TunnelError;
use super::initial_window::{is_another, is_link_local};
use super::routing::Network;
use crate::route::{
    add_address, add_blackhole, add_route, addresses, remove_address, remove_blackhole,
    remove_route, route, routes,
};
use crate::sys;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The least MTU of IPv4 (RFC 791 §3.2).
const MIN_MTU: usize = 68;

/// The interface.
#[derive(Debug)]
pub(super) struct Interface {
    name: String,
    /// That of a virtual interface. A LAN's keeps its MTU and its addresses.
    index: Option<u32>,
    tun: TunConfig,
    /// The MTU that does not follow the path.
    fixed: Option<u32>,
    /// The longest packet that fitted one datagram when the MTU was chosen.
    fits: usize,
    mtu: u32,
}

impl Interface {
    /// The interface that the device has opened, with the MTU of its kind.
    pub(super) fn new(config: &DeviceConfig) -> io::Result<Self> {
        let name = config.name().to_owned();
        let (fits, own) = (0, sys::interface_mtu(&name)?);
        Ok(match config {
            DeviceConfig::Tun(tun) => {
                let index = Some(sys::interface_index(&name)?.cast_unsigned());
                let (tun, fixed) = (tun.clone(), tun.mtu);
                Self { name, index, tun, fixed, fits, mtu: own }
            }
            DeviceConfig::Bridge { .. } => {
                let tun = TunConfig::default();
                Self { name, index: None, tun, fixed: Some(own), fits, mtu: own }
            }
        })
    }

    /// Gives it its addresses and routes. One that was kept open has addresses and routes of
    /// before, perhaps others.
    pub(super) fn set_up(&self) -> Result<(), TunnelError> {
        let Some(index) = self.index else { return Ok(()) };
        for (address, prefix) in addresses(index).unwrap_or_default() {
            if !self.tun.addresses.contains(&(address, prefix)) {
                remove_address(index, address, prefix).ok();
            }
        }
        for route in routes(index).unwrap_or_default() {
            if route.is_added && !self.tun.routes.contains(&route.network) {
                remove_route(index, route.network).ok();
            }
        }
        self.tun.addresses.iter().try_for_each(|address| self.add_address(index, *address))?;
        self.tun.routes.iter().try_for_each(|network| self.add_route(index, *network))
    }

    /// Other addresses, routes and another MTU from now on.
    pub(super) fn reload(&mut self, config: &DeviceConfig) -> Result<(), TunnelError> {
        let (DeviceConfig::Tun(tun), Some(index)) = (config, self.index) else { return Ok(()) };
        let is_new = |new: &Network| !self.tun.addresses.contains(new);
        let mut addresses = tun.addresses.iter().filter(|new| is_new(new));
        addresses.try_for_each(|address| self.add_address(index, *address))?;
        let before = std::mem::replace(&mut self.tun, tun.clone());
        // Blackholes of what is no longer routed, or shall have none any more.
        for &network in &before.routes {
            let stays = tun.routes.contains(&network);
            if !stays {
                remove_route(index, network).ok();
            }
            if before.has_blackholes && !(stays && tun.has_blackholes) {
                remove_blackhole(network).ok();
            }
        }
        tun.routes.iter().try_for_each(|network| self.add_route(index, *network))?;
        if before.sets_initial_windows && !tun.sets_initial_windows {
            self.reset_initial_windows(index);
        }
        // Somebody may have taken it already.
        for (address, prefix) in before.addresses {
            if !tun.addresses.contains(&(address, prefix)) {
                remove_address(index, address, prefix).ok();
            }
        }
        if self.fixed != tun.mtu {
            self.fixed = tun.mtu;
            let fits = std::mem::take(&mut self.fits);
            let name = self.name.clone();
            self.follow(fits).map_err(|source| TunnelError::Device { interface: name, source })?;
        }
        Ok(())
    }

    fn reset_initial_windows(&self, index: u32) {
        let routes = routes(index).unwrap_or_default();
        for route in routes.iter().filter(|route| route.initial_window > 0) {
            route.set_initial_window(0).ok();
        }
    }

    fn add_address(&self, index: u32, (address, prefix): Network) -> Result<(), TunnelError> {
        add_address(index, address, prefix).or_else(|source| {
            // No lack of rights, which is EPERM.
            let is_off = matches!(
                source.raw_os_error(),
                Some(libc::EACCES | libc::EOPNOTSUPP | libc::EAFNOSUPPORT)
            );
            if source.raw_os_error() == Some(libc::EEXIST) {
                return Ok(());
            }
            if address.is_ipv6() && is_off {
                return Err(TunnelError::NoIpv6(format!("--address {address}/{prefix}")));
            }
            let interface = self.name.clone();
            Err(TunnelError::DeviceAddress { interface, address, prefix, source })
        })
    }

    /// The route, and what has its packets while the interface is not there.
    fn add_route(&self, index: u32, network: Network) -> Result<(), TunnelError> {
        let black = || if self.tun.has_blackholes { add_blackhole(network) } else { Ok(()) };
        add_route(index, network).and_then(|()| black()).map_err(|source| {
            let ((address, prefix), interface) = (network, self.name.clone());
            TunnelError::DeviceRoute { interface, address, prefix, source }
        })
    }

    /// What a process that is killed leaves, so that nothing goes another way.
    pub(super) fn remove_blackholes(&self) {
        if self.tun.has_blackholes {
            self.tun.routes.iter().for_each(|network| drop(remove_blackhole(*network)));
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Whether it is that of a LAN.
    pub(super) fn is_lan(&self) -> bool {
        self.index.is_none()
    }

    /// Whether this is its index.
    pub(super) fn is(&self, index: Option<u32>) -> bool {
        index.is_some() && index == self.index
    }

    /// Packets of this length fit one datagram: the MTU follows. True if it is another one now.
    pub(super) fn follow(&mut self, fits: usize) -> io::Result<bool> {
        if fits == self.fits {
            return Ok(false);
        }
        self.fits = fits;
        let mtu = self.fixed.unwrap_or_else(|| match fits.max(MIN_MTU) as u32 {
            // Below that Linux takes all of IPv6 away; longer packets cross in parts.
            mtu if mtu < IPV6_MIN_MTU && self.uses_ipv6() => IPV6_MIN_MTU,
            mtu => mtu,
        });
        let is_new = mtu != self.mtu;
        if is_new {
            sys::set_interface_mtu(&self.name, mtu)?;
            self.mtu = mtu;
        }
        Ok(is_new)
    }

    /// Gives it back those of its addresses and routes that somebody took, the kernel perhaps.
    /// While IPv6 is off or the interface is down or gone, that does not succeed.
    pub(super) fn put_back(&self) {
        let Some(index) = self.index else { return };
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        for &(address, prefix) in &self.tun.addresses {
            if !route(any, (address, 0).into()).is_ok_and(|route| route.is_local) {
                add_address(index, address, prefix).ok();
            }
        }
        let present = routes(index).unwrap_or_default();
        let is_there = |network: &Network| {
            present.iter().any(|route| route.is_added && route.network == *network)
        };
        for &network in self.tun.routes.iter().filter(|network| !is_there(network)) {
            self.add_route(index, network).ok();
        }
    }

    /// Connections of this host begin with the window that `wanted` has for a network behind the
    /// interface; for the network of its addresses, which may be that of several peers, it is asked
    /// without one. Returns the windows that are others now.
    pub(super) fn set_initial_windows(
        &self,
        wanted: impl Fn(Option<IpAddr>) -> u32,
    ) -> Vec<(Network, u32)> {
        let Some(index) = self.index.filter(|_| self.tun.sets_initial_windows) else {
            return Vec::new();
        };
        let mut set = Vec::new();
        for route in routes(index).unwrap_or_default() {
            let segments = wanted(route.is_added.then_some(route.network.0));
            if is_another(segments, route.initial_window)
                && !is_link_local(route.network.0)
                && route.set_initial_window(segments).is_ok()
            {
                set.push((route.network, segments));
            }
        }
        set
    }

    fn uses_ipv6(&self) -> bool {
        let routes = || File::open("/proc/thread-self/net/ipv6_route").map(BufReader::new);
        self.tun.addresses.iter().any(|(address, _)| address.is_ipv6())
            || routes().is_ok_and(|routes| has_ipv6_route(routes, &self.name))
    }
}

/// Whether one of these lines, which the kernel prints, is an IPv6 route or an address of the
/// interface other than those that every interface has: link-local ones and multicast.
fn has_ipv6_route(lines: impl BufRead, interface: &str) -> bool {
    lines.lines().map_while(Result::ok).any(|line| {
        let is_usual = ["fe8", "ff"].iter().any(|prefix| line.starts_with(prefix));
        !is_usual && line.split_whitespace().next_back() == Some(interface)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_or_an_address_is_a_use_of_ipv6_and_what_all_interfaces_have_is_none() {
        let line = |to: &str, interface: &str| {
            let zeros = "0".repeat(32);
            let numbers = "00000100 00000001 00000000 00000001";
            format!("{to:0<32} 40 {zeros} 00 {zeros} {numbers} {interface:>8}\n")
        };
        let usual = [line("fe80", "mend0"), line("ff", "mend0"), line("", "lo")].concat();
        let has = |more: &str| has_ipv6_route((usual.clone() + more).as_bytes(), "mend0");
        assert!(!has("") && !has(&line("20010db8", "eth0")) && !has(&line("fd09", "mend01")));
        assert!(has(&line("20010db8", "mend0")) && has(&line("", "mend0")));
    }
}
