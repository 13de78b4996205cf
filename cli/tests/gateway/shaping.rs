//! A queue of the gateway's own, in front of a modem with a FIFO of 70 frames.

use crate::daemon::{Daemon, default_command, socket};
use crate::kit::{Result, until};
use crate::ping::median_ping;
use crate::transfer::{Plan, Progress, transfer};
use crate::world::{MODEM_BPS, Shape, World};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes after which a transfer's beginning is over.
const BEGINNING: u64 = 3_500_000;

/// What was measured during a part of a transfer.
#[derive(Clone, Copy, Debug)]
struct Measured {
    goodput_bps: f64,
    /// The median round trip between the hosts, past the modem's queue.
    ping: Duration,
}

/// With a rate of the operator's: the goodput stays, and the modem's queue is short.
pub(crate) fn shaped() -> Result {
    let world = world()?;
    let [without, with] = [&[][..], &["--shape", "9.5mbit"]].map(|flags| -> Result<Measured> {
        let daemon = start(&world, flags)?;
        let measured = measured_transfer(&world)?;
        println!("{flags:?}: {measured:?}");
        daemon.end()?;
        Ok(measured)
    });
    let (without, with) = (without?, with?);
    assert!(with.goodput_bps >= 0.9 * without.goodput_bps, "{without:?} {with:?}");
    assert!(with.ping <= without.ping / 2, "{without:?} {with:?}");
    Ok(())
}

/// The rate is found, and followed when the modem becomes slower and faster.
pub(crate) fn shaped_auto() -> Result {
    let world = world()?;
    let daemon = start(&world, &[])?;
    let without = measured_transfer(&world)?;
    daemon.end()?;

    let daemon = start(&world, &["--shape", "auto"])?;
    transfer(&world, &Plan::lasting(1), |progress| {
        progress.reach(BEGINNING)?;
        let full = measure(&world, progress, Duration::from_secs(3))?;
        println!("without {without:?}, with {full:?} at {:?} b/s", rate(&daemon)?);
        assert!(full.goodput_bps >= 0.9 * without.goodput_bps, "{without:?} {full:?}");
        assert!(full.ping <= without.ping / 2, "{without:?} {full:?}");

        world.change_modem(MODEM_BPS / 2)?;
        let took = reached(&daemon, |rate| rate <= 1.02 * MODEM_BPS as f64 / 2.0)?;
        thread::sleep(Duration::from_secs(1));
        let half = measure(&world, progress, Duration::from_secs(3))?;
        println!("half the rate: {half:?} after {took:?}");
        assert!(took <= Duration::from_secs(5), "{took:?}");
        assert!(half.goodput_bps >= 0.9 * without.goodput_bps / 2.0, "{without:?} {half:?}");
        // The modem's queue would be twice as long in time.
        assert!(half.ping <= without.ping, "{without:?} {half:?}");

        world.change_modem(MODEM_BPS)?;
        let took = reached(&daemon, |rate| rate >= 0.9 * MODEM_BPS as f64)?;
        println!("the whole rate again after {took:?}");
        assert!(took <= Duration::from_secs(20), "{took:?}");
        Ok(())
    })?;
    daemon.end()?;
    Ok(())
}

/// The queue goes with the gateway, and that of a killed one with the next start.
pub(crate) fn ends() -> Result {
    let world = world()?;
    let root = || world.at_base("tc", &["qdisc", "show", "dev", "air0", "root"], "");
    let before = root()?;
    for is_killed in [false, true] {
        let daemon = start(&world, &["--shape", "5mbit"])?;
        assert!(root()?.contains("htb 6d65:"), "{}", root()?);
        assert!((rate(&daemon)?.unwrap_or(0.0) - 5e6).abs() < 1.0);
        match is_killed {
            false => drop(daemon.end()?),
            true => {
                daemon.kill()?;
                assert!(root()?.contains("htb 6d65:"), "a killed gateway leaves it");
                start(&world, &[])?.end()?;
            }
        }
        assert_eq!(root()?, before);
    }
    Ok(())
}

/// An administrator's queue is not replaced, and one that somebody puts in place of ours stays.
pub(crate) fn spares_others() -> Result {
    let world = world()?;
    let tc = |arguments: &[&str]| world.at_base("tc", arguments, "");
    tc(&["qdisc", "add", "dev", "air0", "root", "handle", "5:", "pfifo", "limit", "77"])?;
    let refused = start(&world, &["--shape", "auto"]).err().ok_or("it was not refused")?;
    let sentence = refused.to_string();
    assert!(sentence.contains("pfifo") && sentence.contains("leave --shape out"), "{sentence}");
    tc(&["qdisc", "del", "dev", "air0", "root"])?;

    let daemon = start(&world, &["--shape", "5mbit"])?;
    tc(&["qdisc", "replace", "dev", "air0", "root", "handle", "5:", "pfifo", "limit", "77"])?;
    until("a warning", || {
        daemon
            .said()
            .iter()
            .any(|line| line.contains("has removed the gateway's queue"))
            .then_some(())
    })?;
    assert_eq!(rate(&daemon)?, None);
    daemon.end()?;
    let root = tc(&["qdisc", "show", "dev", "air0", "root"])?;
    assert!(root.contains("pfifo 5:"), "{root}");
    Ok(())
}

fn world() -> Result<World> {
    let world = World::new(Shape { loss: 0.0, has_modem: true, ..Shape::default() })?;
    // Every namespace may have Reno, and the machine's default may be BBR.
    let reno = || fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno");
    world.fixed.run(|| Ok(reno()))??;
    Ok(world)
}

fn start(world: &World, flags: &[&str]) -> Result<Daemon> {
    let socket = socket();
    let mut command = default_command("air0", &socket);
    command.args(flags);
    Daemon::launch(&world.base, command, socket)
}

/// The present rate, in bits per second.
fn rate(daemon: &Daemon) -> Result<Option<f64>> {
    Ok(daemon.status()?["shape"]["rate_bps"].as_f64())
}

/// How long it takes until the rate is like that.
fn reached(daemon: &Daemon, is_reached: impl Fn(f64) -> bool) -> Result<Duration> {
    let begin = Instant::now();
    until("the rate", || rate(daemon).ok().flatten().filter(|rate| is_reached(*rate)))?;
    Ok(begin.elapsed())
}

/// A transfer without its beginning.
fn measured_transfer(world: &World) -> Result<Measured> {
    let mut measured = None;
    transfer(world, &Plan::lasting(1), |progress| {
        progress.reach(BEGINNING)?;
        measured = Some(measure(world, progress, Duration::from_secs(3))?);
        Ok(())
    })?;
    Ok(measured.ok_or("nothing was measured")?)
}

/// Goodput and ping for so long.
fn measure(world: &World, progress: &Progress, time: Duration) -> Result<Measured> {
    let (begin, received) = (Instant::now(), progress.received());
    let ping = median_ping(&world.fixed, &world.mobiles[0], time)?;
    let bits = 8.0 * (progress.received() - received) as f64;
    Ok(Measured { goodput_bps: bits / begin.elapsed().as_secs_f64(), ping })
}
