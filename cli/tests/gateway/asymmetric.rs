//! A route on which data passes the gateway and acknowledgments do not.

use crate::daemon::Daemon;
use crate::kit::{Result, airmend, until};
use crate::transfer::{Plan, transfer};
use crate::world::{AIR, Shape, World, veth};
use std::fs;

/// What the mobile host sends reaches the base station by another interface than the air's.
fn with_another_way_back(loss: f64) -> Result<World> {
    let world = World::new(Shape { loss, ..Shape::default() })?;
    let mobile = &world.mobiles[0];
    veth((&world.base, "back0"), (mobile, "back"))?;
    let any_way = || -> std::io::Result<()> {
        ["all", "back0"].into_iter().try_for_each(|name| {
            fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "0")
        })
    };
    world.base.run(|| Ok(any_way()))??;
    world.base.ip("link set back0 up\naddress add 10.77.99.1/24 dev back0\n")?;
    mobile.ip("link set back up\naddress add 10.77.99.2/24 dev back\n\
         route replace default via 10.77.99.1 dev back src 10.77.2.2\n")?;
    Ok(world)
}

/// The gateway says that it does not see what is lost, and not that nothing is.
pub(crate) fn acknowledged_elsewhere() -> Result {
    let world = with_another_way_back(0.02)?;
    let daemon = Daemon::start(&world.base, "air0", &[])?;
    transfer(&world, &Plan::lasting(2), |progress| {
        until("unanswered flows", || {
            let status = daemon.status().ok()?;
            (status["flows_unanswered"].as_u64() == Some(2)).then_some(())
        })?;
        let lost = world.cables.carried(AIR).1;
        until("losses", || (world.cables.carried(AIR).1 >= lost + 10).then_some(()))?;
        assert!(progress.received() > 0);
        let said = airmend().args(["status", "--socket"]).arg(daemon.socket()).output()?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        for words in ["loss unknown", "2 flows of which no acknowledgment passes here"] {
            assert!(said.contains(words), "no {words:?} in {said}");
        }
        Ok(())
    })?;
    let status = daemon.end()?;
    assert_eq!(status["air_losses"], 0, "{status}");
    Ok(())
}
