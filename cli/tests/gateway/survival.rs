//! What becomes of transfers when the gateway does not do its work.

use crate::daemon::{Daemon, command, repairs, socket};
use crate::kit::Result;
use crate::transfer::{Plan, transfer};
use crate::world::{AIR, Shape, World};
use nix::sys::signal::Signal;
use std::thread;
use std::time::{Duration, Instant};

/// What is asserted; what is wanted is in the line that is printed. A loaded machine has gaps of
/// its own.
const LONGEST_GAP: Duration = Duration::from_millis(500);
/// How long after an event gaps are looked for.
const AFTERWARDS: Duration = Duration::from_millis(700);
/// Asserted for what is wanted within a second.
const SOON: Duration = Duration::from_secs(3);
/// The share of all bytes after which something happens.
const MIDDLE: f64 = 0.4;

/// Prints and judges the longest gaps of both directions around an event.
fn judge_gaps(world: &World, event: Instant, what: &str, wanted: &str) {
    for (cable, towards) in [(world.wired(), "the fixed host"), (AIR, "the mobile host")] {
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

/// `kill -9` amid 20 transfers: none breaks, and the kernel forwards at once.
pub(crate) fn killed() -> Result {
    killed_with(&[])
}

/// The same where the programs stay in the kernel: it is the heartbeat that ends diverting.
pub(crate) fn killed_with_clsact() -> Result {
    killed_with(&["--attach", "clsact"])
}

fn killed_with(flags: &[&str]) -> Result {
    let world = World::new(Shape::default())?;
    let daemon = Daemon::start(&world.base, "air0", flags)?;
    let filters = || world.at_base("tc", &["filter", "show", "dev", "air0", "ingress"], "");
    let plan = Plan::mixed();
    let mut killed_at = None;
    let took = transfer(&world, &plan, |progress| {
        progress.reach(&plan, MIDDLE)?;
        println!("{} repairs before", repairs(&daemon.status()?));
        daemon.kill()?;
        killed_at = Some(Instant::now());
        assert!(progress.received() < plan.bytes() / 10 * 9, "killed in the middle");
        thread::sleep(AFTERWARDS);
        Ok(())
    })?;
    println!("20 transfers took {:.1} s", took.as_secs_f64());
    judge_gaps(&world, killed_at.ok_or("not killed")?, "kill -9", "at most 60 ms");
    if !flags.is_empty() {
        let count = || Ok::<_, Box<dyn std::error::Error>>(filters()?.matches("handle").count());
        assert_eq!(count()?, 1, "clsact's program stays");
        let again = Daemon::start(&world.base, "air0", flags)?;
        assert_eq!(count()?, 1, "the old one is cleaned away");
        again.end()?;
        assert_eq!(count()?, 0, "and so is the new one");
    }
    Ok(())
}

/// A gateway that is killed and started again mends the flows that it finds.
pub(crate) fn restarted() -> Result {
    let world = World::new(Shape::default())?;
    let daemon = Daemon::start(&world.base, "air0", &[])?;
    let plan = Plan::mixed();
    let mut figures = None;
    transfer(&world, &plan, |progress| {
        progress.reach(&plan, MIDDLE)?;
        daemon.kill()?;
        let begin = Instant::now();
        let daemon = Daemon::start(&world.base, "air0", &[])?;
        let started = begin.elapsed();
        daemon.mended(1)?;
        let mended = begin.elapsed();
        println!("restart: at work after {started:.1?}, first repair after {mended:.1?}");
        assert!(mended < SOON, "wanted within a second: {mended:?}");
        progress.reach(&plan, 1.0)?;
        figures = Some(daemon.end()?);
        Ok(())
    })?;
    println!("{} repairs after the restart", figures.as_ref().map_or(0, repairs));
    Ok(())
}

/// SIGSTOP: the dead man's switch lets everything pass; SIGCONT: mending goes on.
pub(crate) fn stopped() -> Result {
    let world = World::new(Shape::default())?;
    let daemon = Daemon::start(&world.base, "air0", &[])?;
    let plan = Plan::mixed();
    let mut stopped_at = None;
    transfer(&world, &plan, |progress| {
        progress.reach(&plan, MIDDLE)?;
        let before = repairs(&daemon.status()?);
        daemon.signal(Signal::SIGSTOP)?;
        stopped_at = Some(Instant::now());
        thread::sleep(AFTERWARDS);
        assert!(progress.received() < plan.bytes(), "stopped in the middle");
        daemon.signal(Signal::SIGCONT)?;
        let begin = Instant::now();
        daemon.mended(before + 20)?;
        println!("SIGCONT: 20 repairs more after {:.1?}", begin.elapsed());
        assert!(begin.elapsed() < SOON, "wanted within a second: {:?}", begin.elapsed());
        Ok(())
    })?;
    judge_gaps(&world, stopped_at.ok_or("not stopped")?, "SIGSTOP", "at most 100 ms");
    let heartbeat_timeouts = daemon.end()?["heartbeat_timeouts"].as_u64();
    assert!(heartbeat_timeouts >= Some(1), "{heartbeat_timeouts:?}");
    Ok(())
}

/// A bug in the agent: it is replaced, everything passes, and that is reported once.
pub(crate) fn panicked() -> Result {
    let world = World::new(Shape::default())?;
    let socket = socket();
    let mut command = command("air0", &socket, &[]);
    command.env("AIRMEND_PANIC_AFTER", "1500");
    let daemon = Daemon::launch(&world.base, command, socket)?;
    transfer(&world, &Plan::mixed(), |_| Ok(()))?;
    if !cfg!(debug_assertions) {
        println!("only a debug build panics when it is asked to");
        return Ok(());
    }
    let panics = daemon.status()?["counters"]["agent_panics"].as_u64();
    assert_eq!(panics, Some(1));
    let said = daemon.said();
    let lines = said.iter().filter(|line| line.contains("the agent panicked"));
    assert_eq!(lines.count(), 1, "{said:?}");
    daemon.end()?;
    Ok(())
}

/// A gateway that starts amid transfers knows nothing of them, and mends their later losses.
pub(crate) fn started_late() -> Result {
    let world = World::new(Shape::default())?;
    let plan = Plan::mixed();
    transfer(&world, &plan, |progress| {
        progress.reach(&plan, 0.2)?;
        let daemon = Daemon::start(&world.base, "air0", &[])?;
        let before = world.cables.carried(AIR).1;
        progress.reach(&plan, 1.0)?;
        let lost = world.cables.carried(AIR).1 - before;
        let mended = repairs(&daemon.end()?);
        println!("started in the middle: {mended} repairs of {lost} losses since");
        assert!(mended > lost / 2, "{mended} of {lost}");
        Ok(())
    })?;
    Ok(())
}
