//! Where a gateway can be: on several interfaces, behind a firewall, on a bridge.

use crate::daemon::{Daemon, repairs};
use crate::kit::Result;
use crate::transfer::{Plan, Progress, transfer};
use crate::world::{AIR, Shape, World, run};
use std::fs;
use std::thread;

/// Transfers beside a gateway, which mends most of what they lose.
fn mends(world: &World, plan: &Plan, what: &str) -> Result {
    mends_at(world, "air0", plan, what).map(drop)
}

/// The same with the gateway on this interface; what it said.
pub(crate) fn mends_at(
    world: &World,
    interface: &str,
    plan: &Plan,
    what: &str,
) -> Result<Vec<String>> {
    let daemon = Daemon::start(&world.base, interface, &[])?;
    println!("{what}");
    transfer(world, plan, |_| daemon.mends_most(|| world.cables.carried(AIR).1))?;
    let said = daemon.said();
    daemon.end()?;
    Ok(said)
}

/// The agent of 1995 runs in the gateway as the modern one does, on copies of what has left. Of the
/// losses of senders with SACK it repairs only some (docs/modern-snoop.md).
pub(crate) fn with_snoop95() -> Result {
    let world = World::new(Shape { loss: 0.02, ..Shape::default() })?;
    for attach in ["auto", "clsact"] {
        let flags = ["--agent", "snoop95", "--attach", attach];
        let daemon = Daemon::start(&world.base, "air0", &flags)?;
        let before = world.cables.carried(AIR).0;
        let took = transfer(&world, &Plan::equal(4, 500_000), |_| Ok(()))?;
        let carried = world.cables.carried(AIR).0 - before;
        let status = daemon.end()?;
        let copied = status["packets"]["data_copied"].as_u64().ok_or("no data_copied")?;
        let repairs = repairs(&status);
        println!(
            "snoop95 by {attach}: {copied} of {carried} frames copied, {repairs} repairs, \
             {took:.1?}"
        );
        assert!(repairs > 0 && copied + repairs >= carried * 9 / 10, "{status}");
    }
    Ok(())
}

pub(crate) fn over_ipv6() -> Result {
    let world = World::new(Shape::default())?;
    let plan = Plan { is_ipv6: true, ..Plan::lasting(4) };
    mends(&world, &plan, "IPv6")
}

/// The air interface is a port of a bridge, and has no address.
pub(crate) fn on_a_bridge() -> Result {
    let world = World::new(Shape { is_bridge: true, ..Shape::default() })?;
    mends(&world, &Plan::lasting(4), "bridge, IPv4")?;
    let plan = Plan { is_ipv6: true, ..Plan::lasting(2) };
    mends(&world, &plan, "bridge, IPv6")
}

/// Frames with an 802.1Q tag, as a bridge hands them on.
pub(crate) fn in_a_vlan() -> Result {
    let world = World::new(Shape { is_bridge: true, vlan: Some(7), ..Shape::default() })?;
    mends(&world, &Plan::lasting(4), "VLAN")
}

/// Super-packets arrive, and leave as they are.
pub(crate) fn with_offloads() -> Result {
    let world = World::new(Shape { has_offloads: true, ..Shape::default() })?;
    let sent = || -> Result<u64> {
        let read = || Ok(fs::read_to_string("/proc/thread-self/net/dev"));
        let text = world.base.run(read)??;
        let line = text.lines().find_map(|line| line.trim().strip_prefix("air0:"));
        // The tenth figure: packets sent.
        Ok(line.and_then(|line| line.split_whitespace().nth(9)).ok_or("no air0")?.parse()?)
    };
    let before = sent()?;
    mends(&world, &Plan::lasting(4), "GSO")?;
    let (packets, frames) = (sent()? - before, world.cables.carried(AIR).0);
    println!("{frames} frames left in {packets} packets");
    assert!(packets < frames / 10 * 9, "there were super-packets");
    Ok(())
}

/// Each gateway mends what leaves through its own interface, and only one can be on each.
pub(crate) fn two_gateways() -> Result {
    let world = World::new(Shape { mobiles: 2, ..Shape::default() })?;
    let first = Daemon::start(&world.base, "air0", &[])?;
    let second = Daemon::start(&world.base, "air1", &[])?;
    let refused = Daemon::start(&world.base, "air0", &[]).err().ok_or("two on one interface")?;
    let refused = refused.to_string();
    assert!(refused.contains("another airmend gateway mends air0 already"), "{refused}");
    assert_eq!(refused.lines().count(), 1, "{refused}");
    // The same names and numbers in another world are other interfaces.
    let other = World::new(Shape { mobiles: 2, ..Shape::default() })?;
    Daemon::start(&other.base, "air0", &[])?.end()?;
    let gateways = [first, second];
    thread::scope(|scope| {
        let both = (0..).zip(&gateways).map(|(mobile, gateway)| {
            let (world, plan) = (&world, Plan { mobile, ..Plan::lasting(4) });
            scope.spawn(move || {
                let mends =
                    |_: &Progress| gateway.mends_most(|| world.cables.carried(AIR + mobile).1);
                transfer(world, &plan, mends).map_err(|error| format!("air{mobile}: {error}"))
            })
        });
        let both: Vec<_> = both.collect();
        both.into_iter().try_for_each(|one| one.join().map_err(|_| "a panic".to_owned())?.map(drop))
    })?;
    gateways.into_iter().try_for_each(|gateway| gateway.end().map(drop))
}

/// What a home router does: masquerade, and let in only what belongs to a connection. Whatever
/// connection tracking holds for invalid is dropped at every hook. Repairs pass none of them.
const FIREWALL: &str = r#"
table inet router {
    chain prerouting {
        type filter hook prerouting priority 0;
        ct state invalid counter drop
    }
    chain output {
        type filter hook output priority 0;
        ct state invalid counter drop
    }
    chain leaving {
        type filter hook postrouting priority 0;
        ct state invalid counter drop
    }
    chain forward {
        type filter hook forward priority 0; policy drop;
        ct state invalid counter drop
        ct state established,related accept
        iifname "air0" ct state new accept
    }
    chain postrouting {
        type nat hook postrouting priority 100;
        oifname "wired0" masquerade
    }
}
"#;

pub(crate) fn behind_nat_and_firewall() -> Result {
    let world = World::new(Shape::default())?;
    if let Err(why) = world.at_base("nft", &["-f", "-"], FIREWALL) {
        println!("not tested, since this machine has no nftables: {why}");
        return Ok(());
    }
    // Only the base station's own address can be answered.
    run(&world.fixed, "ip", &["route", "del", "default"], "")?;
    mends(&world, &Plan::lasting(6), "NAT and firewall")?;
    let rules = world.at_base("nft", &["list", "ruleset"], "")?;
    for invalid in rules.lines().filter(|line| line.contains("invalid")) {
        println!("the firewall says: {}", invalid.trim());
    }
    Ok(())
}
