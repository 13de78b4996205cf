//! What an end says that nobody reads.

use crate::kit::unread::unread;
use crate::kit::{Process, Result, until};
use crate::stream::transfer;
use crate::world::{INNER, RIGHT, World};
use nix::sys::signal::Signal;

const BYTES: u64 = 500_000;

/// Neither sentences nor figures that find no place hold up packets, or the end of the process.
pub(crate) fn nobody_reads() -> Result {
    let world = World::new()?;
    let _listener = world.listen("0.0.0.0:4433")?;
    let ((stdout, _out), (stderr, _err)) = (unread()?, unread()?);
    let mut command = world.command(INNER[0], &["--peer", &format!("{RIGHT}:4433")]);
    command.stdout(stdout).stderr(stderr);
    let mut dialer = Process(world.left.run(|| Ok(command.spawn()))??);
    let is_up = || world.left.ip("address show dev mend0\n").is_ok().then_some(());
    until("the interface", is_up)?;
    for _ in 0..3 {
        dialer.signal(Signal::SIGUSR1)?;
        transfer(&world, BYTES)?;
    }
    dialer.signal(Signal::SIGTERM)?;
    assert!(dialer.wait()?.success());
    Ok(())
}
