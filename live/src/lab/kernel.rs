//! A base station whose kernel forwards: a namespace with an interface on each side, and the queue
//! where a radio has it, in the interface to the air.

use super::config::{Hop, LabConfig};
use super::error::LabError;
use super::iproute::{self, ip, tc};
use super::links::lookahead;
use super::middle::KernelPorts;
use super::namespace::Namespace;
use super::topology::{MTU, Pair, disable_offloads, open_veth, set, set_required};
use std::fmt::Write as _;
use std::net::IpAddr;

/// The interface towards the mobile hosts, and the one towards the fixed hosts.
pub(crate) const AIR: &str = "air0";
const WIRED: &str = "wired0";
/// The queue's class for repairs, as a priority (`SO_PRIORITY`) and as `tc` write it.
pub(crate) const FAST_CLASS: &str = "1:1";
/// The class of everything else.
const CLASS: &str = "1:2";

/// A kernel that forwards between the two hops.
pub(crate) struct Kernel {
    /// Where it does.
    pub(crate) namespace: Namespace,
    /// What joins its interfaces to the loop.
    pub(crate) ports: KernelPorts,
}

impl Kernel {
    /// Sets it up for the hosts of `pairs`; the loop's ports are opened in the namespace `station`.
    pub(crate) fn create(
        config: &LabConfig,
        station: &Namespace,
        pairs: &[Pair],
    ) -> Result<Self, LabError> {
        let namespace = Namespace::new()?;
        let port = |end: &str, peer| station.run(|| open_veth(end, peer, &namespace));
        let ports = KernelPorts {
            wired: Box::new(port("wired", WIRED)?),
            air: Box::new(port("air", AIR)?),
        };
        namespace.run(|| {
            set_up_forwarding(config, pairs)?;
            [WIRED, AIR].into_iter().try_for_each(disable_offloads)?;
            tc(&air_queue(config.air, config.queue_frames))
        })?;
        Ok(Self { namespace, ports })
    }
}

/// Frames that the queue to the air has dropped, of the calling thread's namespace.
pub(crate) fn air_queue_drops() -> Result<u64, LabError> {
    let said = iproute::run("tc", &["-s", "-j", "qdisc", "show", "dev", AIR], "")?;
    let queues: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
    let drops = |queue: &serde_json::Value| {
        // Of the root only: it counts what its classes drop, each of which has a queue as well.
        (queue["root"] == true).then(|| queue["drops"].as_u64())?
    };
    let drops = queues.as_array().and_then(|queues| queues.iter().find_map(drops));
    drops.ok_or(LabError::Interfaces(said))
}

/// Packets come addressed to the interface's MAC address and leave to that of the host, which is
/// the same one: nobody needs to be asked for it.
fn set_up_forwarding(config: &LabConfig, pairs: &[Pair]) -> Result<(), LabError> {
    if config.ipv6 {
        set_required("net.ipv6.conf.all.forwarding", 1)?;
    } else {
        // No router solicitations and multicast reports among the measured packets.
        set("net.ipv6.conf.all.disable_ipv6", "1").ok();
        set_required("net.ipv4.ip_forward", 1)?;
    }
    let mut commands = String::new();
    for interface in [WIRED, AIR] {
        let _ = writeln!(commands, "link set {interface} addrgenmode none arp off up");
    }
    for Pair { fixed, mobile } in pairs {
        for (host, interface) in [(fixed, WIRED), (mobile, AIR)] {
            let bits = if matches!(host.address, IpAddr::V4(_)) { 32 } else { 128 };
            let _ = writeln!(commands, "route add {}/{bits} dev {interface}", host.address);
        }
    }
    ip(&commands)
}

/// The queue of a radio: frames leave at the air's rate, repairs before everything else.
///
/// - HTB picks the class whose handle is the packet's priority, or else the default.
/// - The classes may borrow all of the parent's rate and have next to none of their own: whenever
///   the parent may send, the first in priority does.
/// - It sends ahead as much as a radio of the in-line path is handed ahead, so that a late timer
///   leaves no gap on the air: a bucket of one frame lets two go back to back.
/// - A frame of the laboratory's air is an IP packet, and HTB is told not to count Ethernet's 14
///   bytes.
fn air_queue(hop: Hop, queue_frames: usize) -> String {
    let ahead = hop.rate_bps as f64 * lookahead(hop).as_secs_f64() / 8.0;
    let bucket = (ahead as u64).saturating_sub(u64::from(MTU)).max(u64::from(MTU));
    let Hop { rate_bps, .. } = hop;
    let class = format!("htb ceil {rate_bps} burst {bucket} cburst {bucket} quantum {MTU}");
    let mut commands = format!(
        "qdisc add dev {AIR} root handle 1: stab overhead -14 htb default 2\n\
         class add dev {AIR} parent 1: classid 1:3 {class} rate {rate_bps}\n",
    );
    for (prio, id) in [FAST_CLASS, CLASS].into_iter().enumerate() {
        let _ = writeln!(
            commands,
            "class add dev {AIR} parent 1:3 classid {id} {class} rate 8 prio {prio}\n\
             qdisc add dev {AIR} parent {id} pfifo limit {queue_frames}",
        );
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_bucket_holds_what_a_link_is_handed_ahead() {
        let bucket = |rate_bps| {
            let commands = air_queue(Hop { rate_bps, delay: Duration::ZERO }, 7);
            assert_eq!(commands.matches("pfifo limit 7").count(), 2);
            let words: Vec<&str> = commands.split(' ').collect();
            let at = words.iter().position(|word| *word == "burst");
            at.and_then(|at| words.get(at + 1)?.parse().ok())
        };
        // Two frames, of which HTB lets the second go for nothing; or a millisecond.
        assert_eq!(bucket(1_000_000), Some(1_500));
        assert_eq!(bucket(20_000_000), Some(1_500));
        assert_eq!(bucket(100_000_000), Some(11_000));
    }
}
