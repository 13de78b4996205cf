//! A stream that nobody reads, and that is full.

use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

/// The end of it for a process, and the one that must be kept.
pub(crate) fn unread() -> io::Result<(Stdio, UnixStream)> {
    let (kept, mut full) = UnixStream::pair()?;
    full.set_nonblocking(true)?;
    // The last bytes one by one, so that not even a short line finds room.
    for size in [4_096, 1] {
        while write(&mut full, size)? {}
    }
    full.set_nonblocking(false)?;
    Ok((OwnedFd::from(full).into(), kept))
}

/// Whether there was room.
fn write(full: &mut UnixStream, size: usize) -> io::Result<bool> {
    match full.write(&vec![b'x'; size]) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}
