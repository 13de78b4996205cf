//! What becomes of transfers when the gateway does not do its work.

use crate::daemon::{Daemon, command, repairs, socket};
use crate::kit::{Result, has_steady_clock, until};
use crate::transfer::{Plan, transfer};
use crate::world::{AIR, Shape, World};
use nix::sys::signal::Signal;
use std::thread;
use std::time::{Duration, Instant};

/// How long after an event gaps are looked for.
const AFTERWARDS: Duration = Duration::from_millis(700);
/// Within this time mending begins after an event.
const SOON: Duration = Duration::from_secs(1);
/// The bytes after which something happens.
const MIDDLE: u64 = 2_000_000;

/// Prints the longest gaps of both directions around an event, and judges them where the machine
/// has none of its own.
fn judge_gaps(world: &World, event: Instant, what: &str, wanted: Duration) {
    for (cable, towards) in [(world.wired(), "the fixed host"), (AIR, "the mobile host")] {
        let before = world.cables.longest_gap(cable, event - AFTERWARDS, event);
        let after = world.cables.longest_gap(cable, event, event + AFTERWARDS);
        println!(
            "{what}: longest gap towards {towards} {:.1} ms, before {:.1} ms (wanted {wanted:?})",
            after.as_secs_f64() * 1e3,
            before.as_secs_f64() * 1e3,
        );
        assert!(!has_steady_clock() || after <= wanted, "{after:?} towards {towards}");
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
    let mut killed_at = None;
    let took = transfer(&world, &Plan::mixed(), |progress| {
        progress.reach(MIDDLE)?;
        println!("{} repairs before", repairs(&daemon.status()?));
        daemon.kill()?;
        killed_at = Some(Instant::now());
        thread::sleep(AFTERWARDS);
        progress.more(MIDDLE / 2)
    })?;
    println!("20 transfers took {:.1} s", took.as_secs_f64());
    judge_gaps(&world, killed_at.ok_or("not killed")?, "kill -9", Duration::from_millis(60));
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
    transfer(&world, &Plan::mixed(), |progress| {
        progress.reach(MIDDLE)?;
        daemon.kill()?;
        let begin = Instant::now();
        let daemon = Daemon::start(&world.base, "air0", &[])?;
        let started = begin.elapsed();
        daemon.mended(1)?;
        let mended = begin.elapsed();
        println!("restart: at work after {started:.1?}, first repair after {mended:.1?}");
        assert!(!has_steady_clock() || mended < SOON, "{mended:?}");
        daemon.mends_most(|| world.cables.carried(AIR).1)?;
        daemon.end().map(drop)
    })?;
    Ok(())
}

/// SIGSTOP: the dead man's switch lets everything pass; SIGCONT: mending goes on.
pub(crate) fn stopped() -> Result {
    let world = World::new(Shape::default())?;
    let daemon = Daemon::start(&world.base, "air0", &[])?;
    let mut stopped_at = None;
    transfer(&world, &Plan::mixed(), |progress| {
        progress.reach(MIDDLE)?;
        let before = repairs(&daemon.status()?);
        daemon.signal(Signal::SIGSTOP)?;
        stopped_at = Some(Instant::now());
        thread::sleep(AFTERWARDS);
        daemon.signal(Signal::SIGCONT)?;
        let begin = Instant::now();
        daemon.mended(before + 20)?;
        println!("SIGCONT: 20 repairs more after {:.1?}", begin.elapsed());
        assert!(!has_steady_clock() || begin.elapsed() < SOON, "{:?}", begin.elapsed());
        Ok(())
    })?;
    judge_gaps(&world, stopped_at.ok_or("not stopped")?, "SIGSTOP", Duration::from_millis(100));
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
    if !cfg!(debug_assertions) {
        println!("only a debug build panics when it is asked to");
        return Ok(());
    }
    transfer(&world, &Plan::mixed(), |progress| {
        let panics = || daemon.status().ok()?["counters"]["agent_panics"].as_u64();
        until("the panic", || panics().filter(|panics| *panics > 0))?;
        progress.more(MIDDLE / 2)?;
        assert_eq!(panics(), Some(1));
        Ok(())
    })?;
    let said = daemon.said();
    let lines = said.iter().filter(|line| line.contains("the agent panicked"));
    assert_eq!(lines.count(), 1, "{said:?}");
    daemon.end()?;
    Ok(())
}

/// A gateway that starts amid transfers knows nothing of them, and mends their later losses.
pub(crate) fn started_late() -> Result {
    let world = World::new(Shape::default())?;
    transfer(&world, &Plan::mixed(), |progress| {
        progress.reach(MIDDLE / 2)?;
        let daemon = Daemon::start(&world.base, "air0", &[])?;
        daemon.mends_most(|| world.cables.carried(AIR).1)?;
        daemon.end().map(drop)
    })?;
    Ok(())
}
