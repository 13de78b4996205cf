//! The way from the fixed host to the machine's own network: a pair of interfaces, and NAT at both
//! of its ends.
//!
//! The fixed host is a NAT router, so that the machine needs no route to the laboratory's
//! addresses, which may be those of a real LAN. The machine's own NAT is for what comes in from
//! the pair: without the pair, after `kill -9` too, it matches nothing.
//!
//! A program that relays connections, such as `pasta`, needs no root, but ends each connection
//! itself: data would then cross the hop by its TCP and not by that of the server.

use super::host::Host;
use super::interface::INTERFACE;
use super::iproute::{ip, run};
use super::sysctl::{has_ipv6, set_required};
use crate::lab::config::{LabConfig, MTU};
use crate::lab::error::LabError;
use nix::net::if_::if_nametoindex;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The machine's end of the pair.
const END: &str = "airmend-outside";
/// The fixed host's.
const PEER: &str = "outside";
/// The table of nftables.
const TABLE: &str = "airmend_outside";

/// The addresses, and what differs with their family.
struct Family {
    machine: IpAddr,
    fixed: IpAddr,
    bits: u8,
    anywhere: &'static str,
    nft: &'static str,
    forwarding: &'static str,
}

const IPV4: Family = Family {
    // RFC 2544 keeps these addresses for measurements.
    machine: IpAddr::V4(Ipv4Addr::new(198, 18, 77, 1)),
    fixed: IpAddr::V4(Ipv4Addr::new(198, 18, 77, 2)),
    bits: 30,
    anywhere: "0.0.0.0/0",
    nft: "ip",
    forwarding: "net.ipv4.conf.all.forwarding",
};

const IPV6: Family = Family {
    machine: IpAddr::V6(Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 1)),
    fixed: IpAddr::V6(Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 2)),
    bits: 64,
    anywhere: "::/0",
    nft: "ip6",
    forwarding: "net.ipv6.conf.all.forwarding",
};

/// The way out, which is removed with this value.
pub(crate) struct Outside {
    family: &'static Family,
}

impl Outside {
    /// Joins the calling thread's network namespace, that of the machine, to the fixed host.
    pub(crate) fn open(config: &LabConfig, fixed: &Host, mobile: &Host) -> Result<Self, LabError> {
        if config.ipv6 && !has_ipv6() {
            return Err(LabError::NoIpv6("in the machine's network, which --outside joins"));
        }
        let family = if config.ipv6 { &IPV6 } else { &IPV4 };
        // The kernel gives the name to one laboratory: only that one removes it.
        let made = ip(&format!(
            "link add {END} mtu {MTU} type veth peer name {PEER} mtu {MTU} netns {path}\n",
            path = fixed.namespace.path().display(),
        ));
        if made.is_err() && if_nametoindex(END).is_ok() {
            return Err(LabError::Config(
                "another laboratory reaches the network of this machine: one at a time can",
            ));
        }
        made?;
        let outside = Self { family };
        outside.set_up_machine(config)?;
        let Family { machine, fixed: address, bits, anywhere, nft, .. } = family;
        let congestion = config.cc.name();
        fixed.namespace.run(|| {
            set_required(family.forwarding, 1)?;
            ip(&format!(
                "address add {address}/{bits}{nodad} dev {PEER}\n\
                 link set {PEER} up\n\
                 route add default via {machine} congctl {congestion}\n",
                nodad = outside.nodad(),
            ))?;
            replace_table(nft, &masquerade(&format!("oifname {PEER}")))
        })?;
        mobile
            .namespace
            .ip(&format!("route add {anywhere} dev {INTERFACE} congctl {congestion}\n"))?;
        Ok(outside)
    }

    /// The address by which the hosts reach the machine itself.
    pub(crate) fn machine(&self) -> IpAddr {
        self.family.machine
    }

    /// The setting that keeps the machine from forwarding: then only itself can be reached.
    pub(crate) fn unforwarded(&self) -> Option<&'static str> {
        let path = format!("/proc/sys/{}", self.family.forwarding.replace('.', "/"));
        let forwards = fs::read_to_string(path).is_ok_and(|value| value.trim() != "0");
        (!forwards).then_some(self.family.forwarding)
    }

    fn set_up_machine(&self, config: &LabConfig) -> Result<(), LabError> {
        let Family { machine, fixed, bits, nft, .. } = self.family;
        ip(&format!(
            "address add {machine}/{bits}{nodad} dev {END}\n\
             link set {END} up\n\
             route add {fixed} dev {END} congctl {congestion}\n",
            nodad = self.nodad(),
            congestion = config.cc.name(),
        ))?;
        // Whoever routes packets for the fixed host to this machine does not reach it.
        let answers_only = format!(
            "chain in {{ type filter hook forward priority 0; \
             oifname {END} ct state != {{ established, related }} drop; }}"
        );
        replace_table(nft, &(masquerade(&format!("iifname {END}")) + &answers_only))
    }

    /// Duplicate addresses cannot be: there are two interfaces, and both are ours.
    fn nodad(&self) -> &'static str {
        if self.family.machine.is_ipv6() { " nodad" } else { "" }
    }
}

/// A chain that gives packets which match the address of the interface by which they leave.
fn masquerade(matches: &str) -> String {
    format!("chain out {{ type nat hook postrouting priority 100; {matches} masquerade; }}\n")
}

/// A table of these chains, in the place of one that a laboratory has left which was killed.
fn replace_table(family: &str, chains: &str) -> Result<(), LabError> {
    let table = format!("table {family} {TABLE}");
    let rules = format!("add {table}\ndelete {table}\n{table} {{\n{chains}\n}}\n");
    run("nft", &["-f", "-"], &rules).map(drop)
}

impl Drop for Outside {
    fn drop(&mut self) {
        // Either may be missing where the setting up has failed.
        ip(&format!("link delete {END}\n")).ok();
        run("nft", &["delete", "table", self.family.nft, TABLE], "").ok();
    }
}
