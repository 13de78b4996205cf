//! A child process in another network namespace, which does not outlive its parent.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Starts `command` in `namespace`, before ordinary processes if this user may ask for that. The
/// kernel kills it (SIGKILL) when the calling thread ends, however that happens.
pub(crate) fn spawn_inside(command: &mut Command, namespace: &File) -> io::Result<Child> {
    let namespace = namespace.as_raw_fd();
    // SAFETY: between fork and exec the closure makes system calls only, all of which are
    // async-signal-safe and have no memory arguments; the descriptor is open until `spawn` returns.
    unsafe {
        command.pre_exec(move || {
            super::request_real_time().ok();
            super::check(libc::setns(namespace, libc::CLONE_NEWNET)).map(drop)
        });
    }
    spawn_mortal(command)
}

/// Starts `command`. The kernel kills it (SIGKILL) when the calling thread ends, however that
/// happens.
pub(crate) fn spawn_mortal(command: &mut Command) -> io::Result<Child> {
    let parent = std::process::id();
    // SAFETY: as above.
    unsafe {
        command.pre_exec(move || {
            super::check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            // The parent may have ended before that.
            match libc::getppid().cast_unsigned() == parent {
                true => Ok(()),
                false => Err(io::ErrorKind::NotFound.into()),
            }
        });
    }
    command.spawn()
}
