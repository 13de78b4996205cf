//! What happens to the air interface while it is at work.

use crate::daemon::{Daemon, repairs};
use crate::kit::Result;
use crate::transfer::{Plan, transfer};
use crate::world::{Shape, World};
use std::thread;
use std::time::Duration;

/// Losses that must be mended after each change.
const ENOUGH: u64 = 20;

/// A transfer that such a change does not end, and a gateway that mends after it.
fn lives_on(what: &str, change: impl FnOnce(&World) -> Result) -> Result {
    let world = World::new(Shape::default())?;
    let daemon = Daemon::start(&world.base, "air0", &[])?;
    goes_on(&world, &daemon, what, || change(&world))?;
    daemon.end()?;
    Ok(())
}

/// The same in a world that is there already.
pub(crate) fn goes_on(
    world: &World,
    daemon: &Daemon,
    what: &str,
    change: impl FnOnce() -> Result,
) -> Result {
    transfer(world, &Plan::lasting(4), |progress| {
        progress.reach(3_000_000)?;
        let before = repairs(&daemon.status()?);
        change()?;
        let after = daemon.mended(before + ENOUGH)?;
        println!("{what}: {before} repairs before, {after} already");
        Ok(())
    })?;
    Ok(())
}

pub(crate) fn down_and_up() -> Result {
    lives_on("down and up", |world| {
        world.base.ip("link set air0 down\n")?;
        thread::sleep(Duration::from_millis(300));
        Ok(world.base.ip("link set air0 up\n")?)
    })
}

/// Smaller, so that packets in the cache are too long, and as large as before.
pub(crate) fn other_mtu() -> Result {
    lives_on("MTU 1300", |world| {
        world.base.ip("link set air0 mtu 1300\n")?;
        thread::sleep(Duration::from_millis(500));
        Ok(world.base.ip("link set air0 mtu 1500\n")?)
    })
}

pub(crate) fn other_address() -> Result {
    lives_on("address change", |world| {
        world.base.ip("address del 10.77.2.1/24 dev air0\naddress add 10.77.2.9/24 dev air0\n")?;
        Ok(world.mobiles[0].ip("route replace default via 10.77.2.9\n")?)
    })
}
