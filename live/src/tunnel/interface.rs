//! The virtual interface as the tunnel keeps it: its MTU, and the addresses that it was given.

use super::carrier::IPV6_MIN_MTU;
use super::config::DeviceConfig;
use crate::route::{add_address, remove_address, route};
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
    addresses: Vec<(IpAddr, u8)>,
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
            DeviceConfig::Tun { addresses, mtu, .. } => {
                let index = sys::interface_index(&name)?.cast_unsigned();
                let (index, addresses) = (Some(index), addresses.clone());
                Self { name, index, addresses, fixed: *mtu, fits, mtu: own }
            }
            DeviceConfig::Bridge { .. } => {
                Self { name, index: None, addresses: vec![], fixed: Some(own), fits, mtu: own }
            }
        })
    }

    /// Other addresses and another MTU from now on.
    pub(super) fn reload(&mut self, config: &DeviceConfig) -> io::Result<()> {
        let (DeviceConfig::Tun { addresses, mtu, .. }, Some(index)) = (config, self.index) else {
            return Ok(());
        };
        for &(address, prefix) in addresses.iter().filter(|new| !self.addresses.contains(new)) {
            add_address(index, address, prefix)?;
        }
        for &(address, prefix) in self.addresses.iter().filter(|old| !addresses.contains(old)) {
            // Somebody may have taken it already.
            remove_address(index, address, prefix).ok();
        }
        self.addresses.clone_from(addresses);
        if self.fixed != *mtu {
            self.fixed = *mtu;
            let fits = std::mem::take(&mut self.fits);
            self.follow(fits)?;
        }
        Ok(())
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

    /// Gives it back those of its addresses that somebody took, the kernel perhaps. While IPv6
    /// is off or the interface is gone, that does not succeed.
    pub(super) fn put_back_addresses(&self) {
        let Some(index) = self.index else { return };
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        for &(address, prefix) in &self.addresses {
            if !route(any, (address, 0).into()).is_ok_and(|route| route.is_local) {
                add_address(index, address, prefix).ok();
            }
        }
    }

    fn uses_ipv6(&self) -> bool {
        let routes = || File::open("/proc/thread-self/net/ipv6_route").map(BufReader::new);
        self.addresses.iter().any(|(address, _)| address.is_ipv6())
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
