//! What a gateway says that nobody reads.

use crate::daemon::{command, socket, status};
use crate::kit::unread::unread;
use crate::kit::{Process, Result, until};
use crate::transfer::{Plan, transfer};
use crate::world::{Shape, World};
use airmend_live::lab::Namespace;
use nix::sys::signal::Signal;

/// Its loop goes on: it answers, and ends when it is told to.
pub(crate) fn nobody_reads() -> Result {
    let base = Namespace::new()?;
    base.ip("link set lo up\nlink add air0 type veth peer name other\nlink set air0 up\n")?;
    let (socket, (stderr, _kept)) = (socket(), unread()?);
    let mut command = command("air0", &socket, &[]);
    let mut gateway = Process(base.spawn(command.stderr(stderr))?);
    let answers = || status(&socket).ok();
    until("an answer", answers)?;
    for _ in 0..3 {
        // It reads its configuration again, and says so.
        gateway.signal(Signal::SIGHUP)?;
        until("an answer after SIGHUP", answers)?;
    }
    let (exit, _) = gateway.end()?;
    assert!(exit.success());
    std::fs::remove_file(&socket).ok();
    Ok(())
}

/// The agent panics, and what is said of that finds no place: the gateway goes on.
pub(crate) fn panicked_and_nobody_reads() -> Result {
    if !cfg!(debug_assertions) {
        println!("only a debug build panics when it is asked to");
        return Ok(());
    }
    let world = World::new(Shape::default())?;
    let (socket, (stdout, _out), (stderr, _err)) = (socket(), unread()?, unread()?);
    let mut command = command("air0", &socket, &[]);
    command.env("AIRMEND_PANIC_AFTER", "500").stdout(stdout).stderr(stderr);
    let mut gateway = Process(world.base.spawn(&mut command)?);
    let panics = || status(&socket).ok()?["counters"]["agent_panics"].as_u64();
    until("an answer", panics)?;
    transfer(&world, &Plan::mixed(), |_| {
        until("the panic", || panics().filter(|panics| *panics > 0)).map(drop)
    })?;
    gateway.signal(Signal::SIGTERM)?;
    assert!(gateway.wait()?.success());
    std::fs::remove_file(&socket).ok();
    Ok(())
}
