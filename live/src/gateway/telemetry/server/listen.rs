//! Sockets that clients connect to.

use super::error::ServerError;
use crate::sock_diag::peer_user;
use ipnet::IpNet;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::{Uid, geteuid};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The mode of the socket: its user and its group may connect.
const MODE: u32 = 0o660;

/// A socket that accepts clients without waiting for them.
#[derive(Debug)]
pub(super) enum Listener {
    Unix(UnixListener),
    /// With the network from which other machines may connect.
    Tcp(TcpListener, Option<IpNet>),
}

impl Listener {
    pub(super) fn accept(&self) -> io::Result<ClientStream> {
        Ok(match self {
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                ClientStream::Unix(stream)
            }
            Self::Tcp(listener, from) => {
                let (stream, client) = listener.accept()?;
                if !may_connect(client.ip(), from.as_ref()) {
                    return Err(ErrorKind::ConnectionAborted.into());
                }
                stream.set_nonblocking(false)?;
                ClientStream::Tcp(stream)
            }
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener, _) => listener.as_fd(),
        }
    }
}

/// The connection of a client.
#[derive(Debug)]
pub(super) enum ClientStream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl ClientStream {
    /// Sets the timeout of the next read or write.
    pub(super) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout);
        match self {
            Self::Unix(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Self::Tcp(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
        }
    }

    /// The user at the other end; `None` where the kernel does not tell.
    pub(super) fn user(&self) -> Option<Uid> {
        match self {
            Self::Unix(stream) => {
                let peer = getsockopt(stream, PeerCredentials).ok()?;
                Some(Uid::from_raw(peer.uid()))
            }
            Self::Tcp(stream) => peer_user(stream),
        }
    }

    /// The same connection once more.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
        })
    }

    /// Ends the connection, also for a thread that reads or writes.
    pub(super) fn shut_down(&self) {
        // A client that has gone needs no end.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// Whether every user of this machine, or another machine, can be at the other end.
    pub(super) fn is_public(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// Whether the other end may tell the gateway something: root, or the gateway's own user.
    pub(super) fn is_trusted(&self) -> bool {
        !self.is_public() && self.user().is_some_and(|user| user.is_root() || user == geteuid())
    }

    /// Reads and writes do not block from now on.
    pub(super) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_nonblocking(true),
            Self::Tcp(stream) => stream.set_nonblocking(true),
        }
    }
}

impl Read for ClientStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for ClientStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The name of a Unix socket, which is removed when this is dropped, unless it is another one's by
/// then; and the directories that were made for it.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
    /// They go after the name.
    _made: MadeDirectories,
}

/// Directories that were made here, the deepest one first. They go with this, unless others use
/// them.
#[derive(Debug)]
struct MadeDirectories(Vec<PathBuf>);

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        let _ = self.0.iter().try_for_each(fs::remove_dir);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on a Unix socket.
pub(super) fn unix(path: &Path) -> Result<(Listener, SocketFile), ServerError> {
    make_room(path)?;
    let bind = || {
        let missing = path.ancestors().skip(1).take_while(|directory| !directory.exists());
        let made = MadeDirectories(missing.map(Path::to_owned).collect());
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let listener = UnixListener::bind(path)?;
        let identity = identity(path)?;
        let file = SocketFile { path: path.to_owned(), identity, _made: made };
        fs::set_permissions(path, Permissions::from_mode(MODE))?;
        listener.set_nonblocking(true)?;
        Ok((Listener::Unix(listener), file))
    };
    bind().map_err(|source| ServerError::Listen { address: path.display().to_string(), source })
}

/// Listens on an address of this machine, for itself and for what is in this network.
pub(super) fn tcp(address: SocketAddr, from: Option<IpNet>) -> Result<Listener, ServerError> {
    let bind = || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Listener::Tcp(listener, from))
    };
    bind().map_err(|source| ServerError::Listen { address: address.to_string(), source })
}

/// Where both families are listened to, an IPv4 address comes mapped to IPv6.
fn may_connect(client: IpAddr, from: Option<&IpNet>) -> bool {
    let client = client.to_canonical();
    client.is_loopback() || from.is_some_and(|network| network.contains(&client))
}

/// Removes a socket that nobody listens at any more.
fn make_room(path: &Path) -> Result<(), ServerError> {
    let listen_error = |source| ServerError::Listen { address: path.display().to_string(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(listen_error(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(ServerError::NoSocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(ServerError::Taken(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(listen_error)
        }
        Err(error) => Err(listen_error(error)),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_and_a_network_may_connect() {
        let may = |client: &str, from: &str| {
            may_connect(client.parse().unwrap(), from.parse().ok().as_ref())
        };
        assert!(may("127.3.2.1", "") && may("::1", "10.0.5.0/24"));
        assert!(may("10.0.5.9", "10.0.5.0/24") && may("::ffff:10.0.5.9", "10.0.5.0/24"));
        assert!(may("fd00::7", "fd00::/64"));
        for (client, from) in [("10.0.6.1", "10.0.5.0/24"), ("10.0.5.9", ""), ("fd00::7", "::/128")]
        {
            assert!(!may(client, from), "{client} {from}");
        }
    }
}
