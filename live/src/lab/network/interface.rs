//! The names of interfaces, and what is switched off on each of them.

use crate::lab::error::LabError;
use crate::sys::{self, Offload};
use std::path::Path;

/// The interface of a host. All hosts have the same MAC address: with ARP off, a host's kernel
/// addresses every frame to its own interface, so a frame of one host is right for the other
/// unchanged.
pub(crate) const INTERFACE: &str = "eth0";
pub(crate) const HOST_MAC: [u8; 6] = [0x02, 0x61, 0x69, 0x72, 0x00, 0x01];
/// The interface of a forwarding kernel towards the mobile hosts.
pub(crate) const AIR: &str = "air0";
/// The interface of a forwarding kernel towards the fixed hosts.
pub(crate) const WIRED: &str = "wired0";

/// The words of `ip link` by which an interface gives itself no link-local address; a kernel
/// without IPv6 knows them not.
pub(crate) fn no_link_local() -> &'static str {
    if Path::new("/proc/sys/net/ipv6").exists() { "addrgenmode none" } else { "" }
}

/// Switches segmentation and checksum offload off.
pub(super) fn disable_offloads(interface: &str) -> Result<(), LabError> {
    Offload::ALL.into_iter().try_for_each(|offload| {
        sys::disable_offload(interface, offload)
            .map_err(LabError::socket("switching segmentation offload off"))
    })
}
