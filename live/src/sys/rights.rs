//! Open files that go from one process to another over a Unix socket; see `unix(7)`, `SCM_RIGHTS`.

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, cmsg_space, recvmsg, sendmsg,
};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::os::unix::net::{UnixDatagram, UnixStream};

/// An open file that this process was started with, once more; it is another one's until then.
pub fn inherited(number: RawFd) -> io::Result<File> {
    // SAFETY: whoever starts a process with a file says its number and leaves it open; it is only
    // duplicated here, which fails where there is none.
    unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned().map(File::from)
}

/// What one message brings at most; the kernel closes what is more.
const MAX_FILES: usize = 4;

/// Sends a datagram with an open file to where the socket is connected.
pub fn send_file(socket: &UnixDatagram, bytes: &[u8], file: BorrowedFd<'_>) -> io::Result<()> {
    let numbers = [file.as_raw_fd()];
    let rights = [ControlMessage::ScmRights(&numbers)];
    let flags = MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(bytes)], &rights, flags, None)?;
    Ok(())
}

/// Sends bytes with files; returns how many bytes went.
pub(crate) fn send_files(stream: &UnixStream, bytes: &[u8], files: &[&File]) -> io::Result<usize> {
    let numbers: Vec<RawFd> = files.iter().map(|file| file.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&numbers)];
    let fd = stream.as_raw_fd();
    Ok(sendmsg::<()>(fd, &[IoSlice::new(bytes)], &rights, MsgFlags::MSG_NOSIGNAL, None)?)
}

/// Receives bytes, and the files that came with them.
pub(crate) fn receive_files(
    stream: &UnixStream,
    buffer: &mut [u8],
) -> io::Result<(usize, Vec<File>)> {
    let mut space = vec![0; cmsg_space::<[RawFd; MAX_FILES]>()];
    let mut buffers = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut buffers, Some(&mut space), flags)?;
    let mut files = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has just opened these for this process; nobody else has them.
            files.extend(numbers.into_iter().map(|fd| unsafe { File::from_raw_fd(fd) }));
        }
    }
    Ok((message.bytes, files))
}
