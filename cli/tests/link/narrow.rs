//! Paths that are narrower than the interfaces at their ends: a cable between two routers.

use crate::interface::{self, INNER6, both_families, shown};
use crate::kit::{Result, until};
use crate::stream::{lasting, stream, transfer};
use crate::world::{INNER, Link, World};
use crate::{BYTES, count, ended};
use airmend_live::lab::Namespace;
use std::fs;

/// The cable between the routers carries this.
const NARROW: u32 = 1300;
/// UDP and IP headers, and Noise, over IPv4 and over IPv6.
const TUNNEL: [u32; 2] = [8 + 20 + 28, 8 + 40 + 28];
const FAR_END: [&str; 2] = ["198.51.2.2:4433", "[fd02::2]:4433"];

/// The MTU of interfaces whose packets fit the cable, with what the link protocol adds.
fn inner_mtu(family: usize, arq: &str) -> u32 {
    let frame = if arq == "tulip" { 22 } else { 38 };
    NARROW - TUNNEL[family] - frame
}

/// The routers; they go with the value.
struct Routers {
    near: Namespace,
    far: Namespace,
}

impl Routers {
    fn new(world: &World, mtu: u32) -> Result<Self> {
        let (near, far) = (Namespace::new()?, Namespace::new()?);
        near.ip(&format!(
            "link add narrow type veth peer name narrow netns {}\n",
            far.path().display()
        ))?;
        set_up(&far, &world.right, [2, 1])
            .and_then(|()| set_up(&near, &world.left, [1, 2]))
            .map_err(|error| format!("the routers: {error}"))?;
        let routers = Self { near, far };
        routers.set_mtu(mtu)?;
        Ok(routers)
    }

    fn set_mtu(&self, mtu: u32) -> Result {
        for router in [&self.near, &self.far] {
            router.ip(&format!("link set narrow mtu {mtu}\n"))?;
        }
        Ok(())
    }

    /// Every datagram forbids it, also those that leave many at a time.
    fn assert_fragmented_nothing(&self) -> Result {
        for router in [&self.near, &self.far] {
            let figures = router.run(|| Ok(fs::read_to_string("/proc/thread-self/net/snmp")))??;
            let mut ip = figures.lines().filter_map(|line| line.strip_prefix("Ip: "));
            let names = ip.next().unwrap_or_default().split(' ');
            let mut named = names.zip(ip.next().unwrap_or_default().split(' '));
            assert_eq!(named.find(|(name, _)| *name == "FragCreates"), Some(("FragCreates", "0")));
        }
        Ok(())
    }

    /// What the routers have to say by ICMP finds no route any more.
    fn silence(&self) -> Result {
        for router in [&self.near, &self.far] {
            router.ip("rule add iif lo ipproto icmp blackhole pref 1\n")?;
        }
        Ok(())
    }
}

/// A router, with the host at its side; both families.
fn set_up(router: &Namespace, host: &Namespace, [number, other]: [u8; 2]) -> Result {
    router.ip(&format!(
        "link add host type veth peer name wide netns {}\n\
         link set host up\naddress add 198.51.{number}.1/24 dev host\n\
         address add fd0{number}::1/64 dev host nodad\n",
        host.path().display()
    ))?;
    host.ip(&format!(
        "link set wide up\naddress add 198.51.{number}.2/24 dev wide\n\
         route add 198.51.0.0/16 via 198.51.{number}.1\n\
         address add fd0{number}::2/64 dev wide nodad\n\
         route add fd00::/8 via fd0{number}::1\n"
    ))?;
    router.ip(&format!(
        "link set narrow up\naddress add 203.0.113.{number}/24 dev narrow\n\
         route add 198.51.{other}.0/24 via 203.0.113.{other}\n\
         address add fd09::{number}/64 dev narrow nodad\n\
         route add fd0{other}::/64 via fd09::{other}\n"
    ))?;
    let forward = || {
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1")
    };
    Ok(router.run(|| Ok(forward()))??)
}

/// Waits until the interfaces of these ends have the MTU that the path allows.
fn settled(ends: &[&Namespace], mtu: u32) -> Result {
    for end in ends {
        until(&format!("an MTU of {mtu}"), || (interface::mtu(end).ok()? == mtu).then_some(()))?;
    }
    Ok(())
}

/// Both ends of a link across the routers.
fn ends(world: &World, to: &str) -> Result<[Link; 2]> {
    Ok([world.listen("[::]:4433")?, world.dial(to)?])
}

fn end_well(links: [Link; 2]) -> Result<u64> {
    let mut fragmented = 0;
    for link in links {
        let figures = ended(link)?;
        assert_eq!(count(&figures, "send_errors"), 0, "{figures}");
        fragmented += count(&figures, "fragmented");
    }
    Ok(fragmented)
}

fn follows(family: usize, arq: &'static str) -> Result {
    let world = World::with(arq)?;
    let routers = Routers::new(&world, NARROW)?;
    let links = ends(&world, FAR_END[family])?;
    transfer(&world, BYTES)?;
    settled(&[&world.left, &world.right], inner_mtu(family, arq))?;
    transfer(&world, BYTES)?;
    end_well(links)?;
    routers.assert_fragmented_nothing()
}

/// The routers tell that their cable is narrow.
pub(crate) fn narrow_path(arq: &'static str) -> Result {
    follows(0, arq)
}

pub(crate) fn narrow_path_over_ipv6() -> Result {
    follows(1, "tulip")
}

/// IPv6 inside needs an MTU of 1280, which the cable does not carry in one datagram.
pub(crate) fn narrow_path_with_ipv6_inside(family: usize) -> Result {
    let world = World::new()?;
    let routers = Routers::new(&world, NARROW)?;
    let links = both_families(&world, FAR_END[family])?;
    transfer(&world, BYTES)?;
    settled(&[&world.left, &world.right], 1280)?;
    stream(world.hosts(), INNER6[1].parse()?, BYTES)?;
    transfer(&world, BYTES)?;
    settled(&[&world.left, &world.right], 1280)?;
    assert!(end_well(links)? > 0, "packets of 1280 bytes crossed in parts");
    routers.assert_fragmented_nothing()
}

/// The routers say nothing.
pub(crate) fn narrow_path_without_icmp() -> Result {
    let world = World::new()?;
    let routers = Routers::new(&world, NARROW)?;
    routers.silence()?;
    let links = ends(&world, FAR_END[0])?;
    transfer(&world, BYTES)?;
    settled(&[&world.left, &world.right], inner_mtu(0, "tulip"))?;
    let route = shown(&world.left, "route get 198.51.2.2")?;
    assert!(!route.contains("mtu"), "the kernel has not been told: {route}");
    end_well(links)?;
    routers.assert_fragmented_nothing()
}

/// The cable becomes narrow while frames for the wide one are under way, and nobody says so.
pub(crate) fn path_narrows_without_icmp(arq: &'static str) -> Result {
    let world = World::with(arq)?;
    let routers = Routers::new(&world, 1500)?;
    routers.silence()?;
    let links = ends(&world, FAR_END[0])?;
    lasting(world.hosts(), INNER[1].parse()?, |received| {
        until("the beginning", || (received() > BYTES).then_some(()))?;
        routers.set_mtu(NARROW)?;
        let narrow = received();
        until("as much again", || (received() > narrow + BYTES).then_some(()))
    })?;
    // The other end sends nothing that is long.
    settled(&[&world.left], inner_mtu(0, arq))?;
    let fragmented = end_well(links)?;
    assert!(fragmented > 0, "frames for the wide cable crossed the narrow one in parts");
    routers.assert_fragmented_nothing()
}
