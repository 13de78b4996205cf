//! VLAN devices and bonds above the air interface, which need modules that not every machine has.

use crate::daemon::Daemon;
use crate::kit::Result;
use crate::places::mends_at;
use crate::transfer::Plan;
use crate::world::{Shape, World, run};
use airmend_live::lab::Namespace;

/// The frames at the base station are tagged, and a device above each interface has the addresses.
fn with_vlans() -> Result<World> {
    let world = World::new(Shape { vlan: Some(7), ..Shape::default() })?;
    for (interface, net) in [("wired0", 1), ("air0", 2)] {
        world.base.ip(&format!(
            "address flush dev {interface}\n\
             link add link {interface} name {interface}.7 type vlan id 7\n\
             link set {interface}.7 up\n\
             address add 10.77.{net}.1/24 dev {interface}.7\n",
        ))?;
    }
    Ok(world)
}

/// The air interface is the only one of a bond, which has its address.
fn with_bond() -> Result<World> {
    let world = World::new(Shape::default())?;
    world.base.ip("address flush dev air0\nlink set air0 down\n\
         link add bond0 type bond mode active-backup miimon 100\n\
         link set air0 master bond0\nlink set bond0 up\n\
         address add 10.77.2.1/24 dev bond0\n")?;
    Ok(world)
}

/// Whether a gateway has warned that it is above the queue.
fn warns(said: &[String]) -> bool {
    said.iter().any(|line| line.contains("the queue is in the interface below this one"))
}

/// Transfers are mended, and where the queue is elsewhere that is said.
fn mends(world: &World, interface: &str, is_above_the_queue: bool) -> Result {
    let said = mends_at(world, interface, &Plan::lasting(4), interface)?;
    assert_eq!(warns(&said), is_above_the_queue, "{said:?}");
    Ok(())
}

pub(crate) fn below_a_vlan() -> Result {
    mends(&with_vlans()?, "air0", false)
}

pub(crate) fn on_a_vlan() -> Result {
    mends(&with_vlans()?, "air0.7", true)
}

pub(crate) fn below_a_bond() -> Result {
    mends(&with_bond()?, "air0", false)
}

pub(crate) fn on_a_bond() -> Result {
    mends(&with_bond()?, "bond0", true)
}

/// The same warning on any machine; a bridge may have a queue of its own, too.
pub(crate) fn above_the_queue() -> Result {
    let base = Namespace::new()?;
    base.ip("link add br0 type bridge\nlink set br0 up\n")?;
    for (is_warned, command) in [(true, "qdisc show\n"), (false, "qdisc add dev br0 root pfifo\n")]
    {
        run(&base, "tc", &["-batch", "-"], command)?;
        let daemon = Daemon::start(&base, "br0", &[])?;
        let said = daemon.said();
        assert_eq!(warns(&said), is_warned, "{said:?}");
        daemon.end()?;
    }
    Ok(())
}
