//! A TCP stream across the link, every byte checked.

use crate::kit::bytes::{patient, receive, send};
use crate::kit::{Result, until};
use crate::world::{INNER, World};
use airmend_live::lab::Namespace;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const PORT: u16 = 5001;

/// Sends `bytes` from the left to the right; `meanwhile` is called with the bytes received so far
/// before it has all arrived, and once it is.
pub(crate) fn transfer(
    world: &World,
    bytes: u64,
    meanwhile: impl FnOnce(&dyn Fn() -> u64) -> Result,
) -> Result {
    stream([&world.left, &world.right], INNER[1].parse()?, bytes, meanwhile)
}

/// The same between any two hosts, to this address of the second.
pub(crate) fn stream(
    [from, to]: [&Namespace; 2],
    address: IpAddr,
    bytes: u64,
    meanwhile: impl FnOnce(&dyn Fn() -> u64) -> Result,
) -> Result {
    let listener = to.run(|| Ok(TcpListener::bind((address, PORT))))??;
    let sender = until("a connection", || {
        from.run(|| Ok(TcpStream::connect((address, PORT)).ok())).ok().flatten()
    })?;
    let (receiver, _) = listener.accept()?;
    [&sender, &receiver].into_iter().try_for_each(patient)?;
    let received = AtomicU64::new(0);
    thread::scope(|scope| {
        let sending = scope.spawn(|| send(sender, 0, bytes).map_err(|error| error.to_string()));
        let receiving = scope
            .spawn(|| receive(receiver, 0, bytes, &received).map_err(|error| error.to_string()));
        let done = meanwhile(&|| received.load(Ordering::Relaxed));
        let join = |handle: thread::ScopedJoinHandle<'_, _>| match handle.join() {
            Ok(result) => result,
            Err(_) => Err("a panic".to_owned()),
        };
        let results = [join(sending), join(receiving)];
        for result in results {
            result?;
        }
        done
    })
}
