//! What a gateway says that nobody reads.

use crate::daemon::{command, socket};
use crate::kit::unread::unread;
use crate::kit::{Process, Result, airmend, until};
use airmend_live::lab::Namespace;
use nix::sys::signal::Signal;

/// Its loop goes on: it answers, and ends when it is told to.
pub(crate) fn nobody_reads() -> Result {
    let base = Namespace::new()?;
    base.ip("link set lo up\nlink add air0 type veth peer name other\nlink set air0 up\n")?;
    let (socket, (stderr, _kept)) = (socket(), unread()?);
    let mut command = command("air0", &socket, &[]);
    let mut gateway = Process(base.spawn(command.stderr(stderr))?);
    let mut answers = || {
        let mut status = airmend();
        status.args(["status", "--json", "--socket"]).arg(&socket);
        status.output().is_ok_and(|output| output.status.success()).then_some(())
    };
    until("an answer", &mut answers)?;
    for _ in 0..3 {
        // It reads its configuration again, and says so.
        gateway.signal(Signal::SIGHUP)?;
        until("an answer after SIGHUP", &mut answers)?;
    }
    let (status, _) = gateway.end()?;
    assert!(status.success());
    std::fs::remove_file(&socket).ok();
    Ok(())
}
