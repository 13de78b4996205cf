//! What a gateway says that nobody reads.

use crate::daemon::{command, socket, status};
use crate::kit::unread::unread;
use crate::kit::{Process, Result, until};
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
