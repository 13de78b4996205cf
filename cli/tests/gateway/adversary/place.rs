//! A gateway between an honest pair of hosts and strangers on both sides of it.
//!
//! ```text
//! fixed ── 20 Mb/s, 20 ms ── base ── hub ── 1 Gb/s, 2 ms, losses ── mobile
//! strangers, wired ───────────┘        └─────────────────────────── strangers, air
//! ```
//!
//! The honest flow's bottleneck is before the gateway and its losses are beyond the hub, so that
//! what strangers send takes the gateway's time and memory and not the honest flow's air.

use crate::cable::{Cables, Ends, Quality};
use crate::hostile::mac;
use crate::kit::Result;
use crate::kit::raw::open_end;
use crate::transfer::Hosts;
use crate::world::{fixed_address, forwarding, pair, quiet};
use airmend_live::lab::Namespace;
use nix::unistd::write;
use std::fs;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The honest flow's bits per second.
const RATE_BPS: u64 = 20_000_000;
const WIRED_DELAY: Duration = Duration::from_millis(20);
/// Twice the bandwidth-delay product.
const WIRED_QUEUE: usize = 150;
const AIR_BPS: u64 = 1_000_000_000;
const AIR_DELAY: Duration = Duration::from_millis(2);

/// Addresses of strangers, for which nobody answers.
pub(super) const STRANGE_FIXED: [u8; 4] = [10, 77, 9, 66];
pub(super) const STRANGE_MOBILE: [u8; 4] = [10, 77, 2, 66];

/// The machines.
pub(super) struct Place {
    pub(super) base: Namespace,
    fixed: Namespace,
    mobiles: [Namespace; 1],
    pub(super) strangers: Strangers,
    _others: [Namespace; 3],
    _cables: Cables,
}

/// The side from which a frame comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Wired,
    Air,
}

/// What strangers can do: send frames from both sides, and look at the wire of the honest flow.
pub(super) struct Strangers {
    wired: OwnedFd,
    air: OwnedFd,
    /// Link addresses of the base station, at the wire and at the air.
    pub(super) base: [[u8; 6]; 2],
    /// What passes the base station's interface towards the honest fixed host.
    pub(super) wire: OwnedFd,
}

impl Strangers {
    /// Sends a frame; false if there was no room for it.
    pub(super) fn send(&self, side: Side, frame: &[u8]) -> bool {
        let end = match side {
            Side::Wired => &self.wired,
            Side::Air => &self.air,
        };
        write(end, frame).is_ok()
    }
}

impl Place {
    /// With so many losses on the air, in both directions.
    pub(super) fn new(loss: f64, seed: u64) -> Result<Self> {
        let [fixed, base, mobile, ether, hub, strange] = [(); 6].map(|()| Namespace::new());
        let (fixed, base, mobile) = (fixed?, base?, mobile?);
        let (ether, hub, strange) = (ether?, hub?, strange?);
        for namespace in [&ether, &hub, &strange] {
            quiet(namespace)?;
        }
        for (near, far) in [
            ((&ether, "host0"), (&mobile, "eth0")),
            ((&ether, "host1"), (&fixed, "eth0")),
            ((&ether, "station1"), (&base, "wired0")),
            ((&ether, "station0"), (&hub, "out")),
            ((&hub, "in"), (&base, "air0")),
            ((&hub, "bad"), (&strange, "air")),
            ((&strange, "wired"), (&base, "wired1")),
        ] {
            pair(near, far)?;
        }
        hub.ip("link add br0 type bridge\nlink set br0 up\nlink set in master br0 up\n\
             link set out master br0 up\nlink set bad master br0 up\n")?;
        strange.ip("link set air up promisc on\nlink set wired up promisc on\n")?;
        ether.ip("link set host0 up promisc on\nlink set host1 up promisc on\n\
             link set station0 up promisc on\nlink set station1 up promisc on\n")?;
        route(&fixed, &base, &mobile)?;
        for (address, interface) in [(STRANGE_FIXED, "wired1"), (STRANGE_MOBILE, "air0")] {
            let address = address.map(|byte| byte.to_string()).join(".");
            let neighbour = format!("{address} dev {interface} lladdr 02:00:00:00:00:02");
            base.ip(&format!("neighbour add {neighbour}\n"))?;
        }
        let end = |namespace: &Namespace, interface: &str| -> Result<OwnedFd> {
            let open = || Ok(open_end(interface).map_err(|error| error.to_string()));
            Ok(namespace.run(open)??)
        };
        let ends = |number| -> Result<Ends> {
            let host = end(&ether, &format!("host{number}"))?;
            Ok(Ends { host, station: end(&ether, &format!("station{number}"))? })
        };
        let perfect = Quality {
            rate_bps: RATE_BPS,
            delay: WIRED_DELAY,
            queue_frames: WIRED_QUEUE,
            ..Quality::default()
        };
        let lossy = Quality { rate_bps: AIR_BPS, delay: AIR_DELAY, loss, ..Quality::default() };
        let strangers = Strangers {
            wired: end(&strange, "wired")?,
            air: end(&strange, "air")?,
            base: [mac(&base, "wired1")?, mac(&base, "air0")?],
            wire: end(&base, "wired0")?,
        };
        let cables = Cables::start(vec![(ends(0)?, lossy), (ends(1)?, perfect)], seed);
        let (mobiles, others) = ([mobile], [ether, hub, strange]);
        Ok(Self { base, fixed, mobiles, strangers, _others: others, _cables: cables })
    }

    /// The honest ones.
    pub(super) fn hosts(&self) -> Hosts<'_> {
        let addresses = [false, true].map(fixed_address);
        Hosts { fixed: &self.fixed, addresses, mobiles: &self.mobiles }
    }
}

/// A network for the fixed host, for the mobiles, and for strangers at the wire, whose sources
/// nobody checks.
fn route(fixed: &Namespace, base: &Namespace, mobile: &Namespace) -> Result {
    base.run(|| Ok(forwarding()))??;
    base.run(|| {
        for name in ["all", "default", "wired0", "wired1", "air0"] {
            fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "0").ok();
        }
        Ok(())
    })?;
    for (interface, net) in [("wired0", 1), ("air0", 2), ("wired1", 9)] {
        base.ip(&format!(
            "link set {interface} up\naddress add 10.77.{net}.1/24 dev {interface}\n"
        ))?;
    }
    for (host, net) in [(fixed, 1), (mobile, 2)] {
        host.ip(&format!(
            "link set lo up\nlink set eth0 up\naddress add 10.77.{net}.2/24 dev eth0\n\
             route add default via 10.77.{net}.1\n",
        ))?;
    }
    Ok(())
}
