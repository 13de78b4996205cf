//! The air interface: what it is, and how it is called.

use super::error::GatewayError;
use crate::device::reinjection::Reinjection;
use crate::{netlink, sys};
use airmend_proto::LinkType;
use std::fs;

/// The highest priority of an 802.11 access category (voice), as Linux takes it from a socket:
/// 256 and above are user priorities (cfg80211).
const WIRELESS_VOICE: u32 = 256 + 6;
/// `TC_PRIO_CONTROL`: the first band of pfifo_fast and of whatever has the usual priority map.
const CONTROL: u32 = 7;

/// Kinds of interfaces that hand their packets to others.
const STACKED: [&str; 6] = ["bond", "bridge", "ipvlan", "macvlan", "team", "vlan"];

/// An interface that packets can be mended on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: i32,
    pub(super) link_type: LinkType,
}

impl Interface {
    /// Finds the interface in the calling thread's network namespace.
    pub(super) fn find(name: &str) -> Result<Self, GatewayError> {
        let index = sys::interface_index(name).map_err(|error| match error.raw_os_error() {
            Some(libc::ENODEV) => GatewayError::NoInterface { name: name.to_owned() },
            _ => GatewayError::Interface { name: name.to_owned(), source: error },
        })?;
        let kind = sys::hardware_type(name)
            .map_err(|source| GatewayError::Interface { name: name.to_owned(), source })?;
        let link_type = match kind {
            libc::ARPHRD_ETHER => LinkType::Ethernet,
            libc::ARPHRD_NONE | libc::ARPHRD_PPP | ARPHRD_RAWIP => LinkType::Ip,
            libc::ARPHRD_LOOPBACK => {
                return Err(GatewayError::Loopback { name: name.to_owned() });
            }
            kind => return Err(GatewayError::LinkType { name: name.to_owned(), kind }),
        };
        Ok(Self { name: name.to_owned(), index, link_type })
    }

    /// Creates the device through which packets are returned, which also keeps other gateways off
    /// this interface.
    pub(super) fn claim(&self) -> Result<Reinjection, GatewayError> {
        Reinjection::create(self.index, self.link_type).map_err(|source| {
            match source.raw_os_error() {
                Some(libc::EBUSY) => GatewayError::Occupied { name: self.name.clone() },
                _ => GatewayError::Reinjection(source),
            }
        })
    }

    /// Learns the name that it has by now; returns the one before, if that was another.
    pub(super) fn rename(&mut self) -> Option<String> {
        let name = sys::interface_name(self.index).ok().filter(|name| *name != self.name)?;
        Some(std::mem::replace(&mut self.name, name))
    }

    /// Whether the interface is up: packets can leave.
    pub(super) fn is_up(&self) -> bool {
        sys::interface_is_up(&self.name).unwrap_or(false)
    }

    /// The kind of the interface, if its packets wait in a queue of an interface below it.
    pub(super) fn stacked(&self) -> Option<String> {
        let index = self.index as u32;
        let kind = netlink::kind(index).filter(|kind| STACKED.contains(&kind.as_str()))?;
        (!netlink::has_queue(index)).then_some(kind)
    }

    /// The highest priority that this kind of interface honours.
    pub(super) fn highest_priority(&self) -> u32 {
        if self.is_wireless() { WIRELESS_VOICE } else { CONTROL }
    }

    /// Whether it is one of 802.11.
    pub(super) fn is_wireless(&self) -> bool {
        fs::exists(format!("/sys/class/net/{}/phy80211", self.name)).unwrap_or(false)
    }

    /// Whether it is one of a modem that carries bare IP packets or PPP.
    pub(super) fn is_modem(&self) -> bool {
        let kind = sys::hardware_type(&self.name);
        kind.is_ok_and(|kind| matches!(kind, libc::ARPHRD_PPP | ARPHRD_RAWIP))
    }
}

/// Modems that carry bare IP packets.
const ARPHRD_RAWIP: u16 = 519;
