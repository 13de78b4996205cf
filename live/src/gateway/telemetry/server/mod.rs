//! The telemetry server: HTTP on a Unix socket, and for metrics on an address of this machine.
//!
//! The server has its own threads. They ask the gateway's loop for a [`Status`] only when a client
//! sends a request, and at most ten times a second; text is made here. Everything has a bound:
//! clients, their time, and the size of what they send.

mod client;
mod error;
mod exposition;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod http;
mod listen;
mod places;
mod reported;
mod request;
#[cfg(test)]
mod tests;

pub use error::ServerError;
pub use reported::Reported;
pub use request::Request;

use crate::gateway::{MetricsAddress, privileges};
use client::Responder;
use listen::{ClientStream, Listener, SocketFile};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use places::Places;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Clients of Unix sockets that are served at the same time.
const MAX_CLIENTS: usize = 16;
/// Those of a TCP address, which any user may be: they take no place from who may ask for the
/// status.
const MAX_PUBLIC_CLIENTS: usize = 8;
/// A client's thread needs little.
const STACK_BYTES: usize = 256 << 10;
/// The pause of accepting clients when the process has no descriptor left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(200);

/// The addresses of the telemetry server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The Unix socket for `airmend status` and `airmend top`. What it belongs to may read all.
    pub socket: PathBuf,
    /// A further address of the metrics, for Prometheus. Over TCP, every user can connect: so
    /// there is no status there, which names hosts.
    pub metrics: Option<MetricsAddress>,
}

/// The server; dropping it ends the server and removes its sockets.
#[derive(Debug)]
pub struct Server {
    requests: Receiver<Request>,
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
    /// Removed when they are dropped.
    _files: Vec<SocketFile>,
}

impl Server {
    /// Listens and starts to accept clients. A socket that a dead gateway left is replaced.
    ///
    /// # Errors
    /// An address cannot be used.
    pub fn start(config: &ServerConfig) -> Result<Self, ServerError> {
        let (socket, file) = listen::unix(&config.socket)?;
        let mut listeners = vec![socket];
        let mut files = vec![file];
        match &config.metrics {
            Some(MetricsAddress::Unix(path)) => {
                let (socket, file) = listen::unix(path)?;
                listeners.push(socket);
                files.push(file);
            }
            Some(MetricsAddress::Tcp { address, from }) => {
                listeners.push(listen::tcp(*address, *from)?);
            }
            None => {}
        }
        let (stop, stopped) = UnixStream::pair().map_err(ServerError::Thread)?;
        let (sender, requests) = sync_channel(MAX_CLIENTS + MAX_PUBLIC_CLIENTS);
        let responder = Arc::new(Responder::new(sender));
        let thread = thread::Builder::new()
            .name("status".into())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // What hostile clients talk to must not be able to do anything.
                if privileges::drop_all().is_ok() {
                    accept(&listeners, &stopped, &responder);
                }
            })
            .map_err(ServerError::Thread)?;
        Ok(Self { requests, stop, thread: Some(thread), _files: files })
    }

    /// The next request. The loop calls this at every turn: it costs some nanoseconds.
    pub fn poll(&mut self) -> Option<Request> {
        self.requests.try_recv().ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.write_all(b"!");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Gives each client a thread of its own until `stopped` can be read.
fn accept(listeners: &[Listener], stopped: &UnixStream, responder: &Arc<Responder>) {
    let (places, public) = (Places::new(MAX_CLIENTS), Places::new(MAX_PUBLIC_CLIENTS));
    loop {
        let fds = listeners.iter().map(AsFd::as_fd).chain([stopped.as_fd()]);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        if poll(&mut fds, PollTimeout::NONE).is_err_and(|error| error != nix::Error::EINTR) {
            return;
        }
        let mut is_ready = fds.iter().map(|fd| fd.any().unwrap_or(false));
        for listener in listeners {
            if is_ready.next() != Some(true) {
                continue;
            }
            match listener.accept() {
                Ok(stream) if stream.is_public() => serve(stream, &public, responder),
                Ok(stream) => serve(stream, &places, responder),
                Err(error) if is_passing(&error) => {}
                Err(_) => thread::sleep(EXHAUSTED_PAUSE),
            }
        }
        if is_ready.next() == Some(true) {
            return;
        }
    }
}

/// A client that has gone before it was accepted; the next one is unaffected.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | ConnectionAborted | Interrupted)
}

fn serve(mut stream: ClientStream, places: &Arc<Places>, responder: &Arc<Responder>) {
    let clone = stream.try_clone().ok();
    let Some(place) = places.take(stream.user(), clone) else {
        http::refuse_without_waiting(&mut stream);
        return;
    };
    let responder = Arc::clone(responder);
    // Without a thread the client finds its connection closed.
    let _ = thread::Builder::new()
        .name("status-client".into())
        .stack_size(STACK_BYTES)
        .spawn(move || responder.serve(&mut stream, &place));
}
