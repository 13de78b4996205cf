//! Filters and queueing disciplines of other programs at the air interface.

use crate::accidents::{left_in, reinjection};
use crate::changes::goes_on;
use crate::daemon::Daemon;
use crate::kit::{Result, until};
use crate::transfer::{Plan, transfer};
use crate::world::{AIR, Shape, World};

const CLSACT: &[&str] = &["--attach", "clsact"];
const DIRECTIONS: [&str; 2] = ["ingress", "egress"];

fn tc(world: &World, commands: &str) -> Result {
    world.at_base("tc", &["-batch", "-"], commands).map(drop)
}

/// Another program's filters: they see every packet, hand a copy of it to a device where it ends,
/// and let no filter after them see it.
fn filters_on_air(world: &World, priority: u16) -> Result {
    world.base.ip("link add sink0 type veth peer name sink1\n\
         link set sink0 up\nlink set sink1 up\n")?;
    let filter = |direction: &str| {
        format!(
            "filter add dev air0 {direction} protocol all prio {priority} u32 match u32 0 0 \
             action mirred egress mirror dev sink0\n"
        )
    };
    tc(world, &DIRECTIONS.map(filter).concat())
}

/// What `tc` shows of them, and how many packets each has seen.
fn shown(world: &World) -> Result<[(String, u64); 2]> {
    let show = |direction| -> Result<(String, u64)> {
        let filters = world.at_base("tc", &["filter", "show", "dev", "air0", direction], "")?;
        let counted =
            world.at_base("tc", &["-s", "filter", "show", "dev", "air0", direction], "")?;
        let sent = counted.lines().find_map(|line| line.trim().strip_prefix("Sent "));
        let packets = sent.and_then(|sent| sent.split_whitespace().nth(2));
        Ok((filters, packets.map_or(Ok(0), str::parse)?))
    };
    Ok([show(DIRECTIONS[0])?, show(DIRECTIONS[1])?])
}

/// Filters that were there before the gateway see what they saw before, each packet once, and
/// nobody takes them away.
pub(crate) fn filters_of_others() -> Result {
    filters_with(&[])
}

pub(crate) fn filters_of_others_with_clsact() -> Result {
    filters_with(CLSACT)
}

fn filters_with(flags: &[&str]) -> Result {
    for priority in [10, 1, 60_000] {
        let world = World::new(Shape::default())?;
        tc(&world, "qdisc add dev air0 clsact\n")?;
        filters_on_air(&world, priority)?;
        let before = shown(&world)?;
        let daemon = Daemon::start(&world.base, "air0", flags)?;
        // Where they come first, they decide what the gateway sees, and it says so.
        let has_clsact = daemon.said().iter().any(|line| line.contains("attach=\"clsact\""));
        let is_first = priority == 1 && has_clsact;
        transfer(&world, &Plan::lasting(4), |progress| match is_first {
            true => progress.reach(2_000_000),
            false => daemon.mends_most(|| world.cables.carried(AIR).1),
        })?;
        let said = daemon.said();
        daemon.end()?;
        let after = shown(&world)?;
        let seen = [0, 1].map(|n| after[n].1 - before[n].1);
        println!("the others' filters saw {seen:?} packets");
        assert!(seen.iter().all(|packets| *packets > 500), "{seen:?}");
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before.0, after.0);
        }
        assert_eq!(left_in(&world.base)?.len(), 1, "the others' clsact");
        assert_eq!(said.iter().any(|line| line.contains("has priority 1")), is_first, "{said:?}");
    }
    Ok(())
}

/// The clsact that a gateway has added goes with it, even if the gateway was killed meanwhile; but
/// not one that was there before, or that somebody else has come to use.
pub(crate) fn goes_with_us() -> Result {
    let world = World::new(Shape::default())?;
    Daemon::start(&world.base, "air0", CLSACT)?.end()?;
    assert_eq!(left_in(&world.base)?, [""; 0]);
    Daemon::start(&world.base, "air0", CLSACT)?.kill()?;
    assert_eq!(left_in(&world.base)?.len(), 1, "of one that was killed");
    Daemon::start(&world.base, "air0", CLSACT)?.end()?;
    assert_eq!(left_in(&world.base)?, [""; 0]);
    Daemon::start(&world.base, "air0", CLSACT)?.kill()?;
    // One that does not use clsact takes it away, too.
    Daemon::start(&world.base, "air0", &[])?.end()?;
    assert_eq!(left_in(&world.base)?, [""; 0]);

    let daemon = Daemon::start(&world.base, "air0", CLSACT)?;
    filters_on_air(&world, 10)?;
    daemon.end()?;
    assert_eq!(left_in(&world.base)?.len(), 1, "others use it");
    assert!(shown(&world)?.iter().all(|(filters, _)| filters.contains("mirred")));
    tc(&world, "qdisc del dev air0 clsact\nqdisc add dev air0 clsact\n")?;
    Daemon::start(&world.base, "air0", CLSACT)?.kill()?;
    Daemon::start(&world.base, "air0", CLSACT)?.end()?;
    assert_eq!(left_in(&world.base)?.len(), 1, "it was there before, though empty");
    Ok(())
}

/// Somebody takes clsact away, with the gateway's programs in it: it comes back, with a word.
pub(crate) fn deleted() -> Result {
    let world = World::new(Shape::default())?;
    let daemon = Daemon::start(&world.base, "air0", CLSACT)?;
    goes_on(&world, &daemon, "clsact deleted", || tc(&world, "qdisc del dev air0 clsact\n"))?;
    goes_on(&world, &daemon, "filters deleted", || tc(&world, "filter del dev air0 ingress\n"))?;
    // The device through which packets are returned has one, too.
    goes_on(&world, &daemon, "the reinjection device's clsact deleted", || {
        tc(&world, &format!("qdisc del dev {} clsact\n", reinjection(&world.base)?))
    })?;
    let warnings = || daemon.said().iter().filter(|line| line.contains("attached again")).count();
    until("the third warning", || (warnings() >= 3).then_some(()))?;
    assert_eq!(warnings(), 3, "{:?}", daemon.said());
    assert!(shown(&world)?.iter().all(|(filters, _)| filters.contains("bpf")), "there again");
    tc(&world, "filter del dev air0 egress\n")?;
    let is_back = || shown(&world).ok()?[1].0.contains("bpf").then_some(());
    until("the filter at the egress", is_back)?;
    daemon.end()?;
    assert_eq!(left_in(&world.base)?, [""; 0]);
    Ok(())
}

/// The same beside filters of others; with tcx it is nothing to the gateway.
pub(crate) fn of_others_deleted() -> Result {
    let world = World::new(Shape::default())?;
    tc(&world, "qdisc add dev air0 clsact\n")?;
    filters_on_air(&world, 10)?;
    let daemon = Daemon::start(&world.base, "air0", &[])?;
    goes_on(&world, &daemon, "clsact deleted", || tc(&world, "qdisc del dev air0 clsact\n"))?;
    goes_on(&world, &daemon, "clsact added", || filters_added(&world))?;
    let seen = shown(&world)?.map(|(_, packets)| packets);
    assert!(seen.iter().all(|packets| *packets > 100), "{seen:?}");
    daemon.end()?;
    assert_eq!(left_in(&world.base)?.len(), 1);
    Ok(())
}

fn filters_added(world: &World) -> Result {
    world.base.ip("link del sink0\n")?;
    // Without tcx the gateway has added one again.
    tc(world, "qdisc replace dev air0 clsact\n")?;
    filters_on_air(world, 10)
}

/// The older `ingress` has the hook that the gateway needs, and stays.
pub(crate) fn ingress_qdisc() -> Result {
    let world = World::new(Shape::default())?;
    tc(&world, "qdisc add dev air0 ingress\n")?;
    let daemon = Daemon::start(&world.base, "air0", CLSACT)?;
    transfer(&world, &Plan::lasting(4), |_| daemon.mends_most(|| world.cables.carried(AIR).1))?;
    daemon.end()?;
    let qdiscs = world.at_base("tc", &["qdisc", "show", "dev", "air0"], "")?;
    assert!(qdiscs.contains("qdisc ingress"), "{qdiscs}");
    Ok(())
}
