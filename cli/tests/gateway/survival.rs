//! What becomes of transfers when the gateway does not do its work.

use crate::daemon::{Daemon, repairs};
use crate::transfer::{Plan, Progress, transfer};
use crate::world::{AIR, Result, Shape, WIRED, World};
use std::thread;
use std::time::{Duration, Instant};

/// What is asserted; what is wanted is in the line that is printed. A loaded machine has gaps of
/// its own.
const LONGEST_GAP: Duration = Duration::from_millis(500);
/// How long after an event gaps are looked for.
const AFTERWARDS: Duration = Duration::from_millis(700);

/// Prints and judges the longest gaps of both directions around an event.
fn judge_gaps(world: &World, event: Instant, what: &str, wanted: &str) {
    for (cable, towards) in [(WIRED, "the fixed host"), (AIR, "the mobile host")] {
        let before = world.cables.longest_gap(cable, event - AFTERWARDS, event);
        let after = world.cables.longest_gap(cable, event, event + AFTERWARDS);
        println!(
            "{what}: longest gap towards {towards} {:.1} ms, before it {:.1} ms (wanted {wanted})",
            after.as_secs_f64() * 1e3,
            before.as_secs_f64() * 1e3,
        );
        assert!(after <= LONGEST_GAP, "{after:?} towards {towards}");
    }
}

pub(crate) fn killed() -> Result {
    let world = World::new(Shape::default())?;
    let daemon = Daemon::start(&world.base, "air0", &[])?;
    let plan = Plan::mixed();
    let mut killed_at = None;
    let took = transfer(&world, &plan, |progress: &Progress| {
        progress.reach(&plan, 0.4)?;
        println!("{} repairs before", repairs(&daemon.status()?));
        daemon.kill()?;
        killed_at = Some(Instant::now());
        assert!(progress.done() < 20 && progress.received() < plan.bytes(), "in the middle");
        thread::sleep(AFTERWARDS);
        Ok(())
    })?;
    println!("20 transfers took {:.1} s", took.as_secs_f64());
    judge_gaps(&world, killed_at.ok_or("not killed")?, "kill -9", "at most 60 ms");
    Ok(())
}
