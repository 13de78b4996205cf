//! Pairs of virtual Ethernet interfaces.

use super::interface::{HOST_MAC, disable_offloads, no_link_local};
use super::iproute::ip;
use super::namespace::Namespace;
use super::sysctl::set_required;
use crate::device::packet::PacketDevice;
use crate::lab::config::MTU;
use crate::lab::error::LabError;
use std::io;

/// A pair of interfaces: `end` in the calling thread's namespace, opened as a port, and `peer` in
/// another one, which is to be set up.
pub(super) fn open_veth(
    end: &str,
    peer: &str,
    namespace: &Namespace,
) -> Result<PacketDevice, LabError> {
    set_required("net.ipv6.conf.all.disable_ipv6", 1).or_else(|error| match error {
        // A kernel without IPv6.
        LabError::Sysctl { source, .. } if source.kind() == io::ErrorKind::NotFound => Ok(()),
        error => Err(error),
    })?;
    let [a, b, c, d, e, f] = HOST_MAC;
    ip(&format!(
        "link add {end} mtu {MTU} type veth peer name {peer} mtu {MTU} \
         address {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} netns {path}\n\
         link set {end} {no_link_local} arp off\n\
         link set {end} up\n",
        path = namespace.path().display(),
        no_link_local = no_link_local(),
    ))?;
    disable_offloads(end)?;
    PacketDevice::open(end, HOST_MAC).map_err(LabError::PacketDevice)
}
