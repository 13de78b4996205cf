//! A TCP stream across the link, every byte checked.

use crate::kit::bytes::{Amount, patient, receive, send};
use crate::kit::{Result, until};
use crate::world::{INNER, World};
use airmend_live::lab::Namespace;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const PORT: u16 = 5001;

/// Sends so many bytes from the left to the right.
pub(crate) fn transfer(world: &World, bytes: u64) -> Result {
    stream(world.hosts(), INNER[1].parse()?, bytes)
}

/// The same between any two hosts, to this address of the second.
pub(crate) fn stream(hosts: [&Namespace; 2], address: IpAddr, bytes: u64) -> Result {
    run(hosts, address, Some(bytes), |_| Ok(()))
}

/// Sends until `meanwhile` is over, which is called with what tells the bytes received so far:
/// however slow the machine, all that happens in the middle of the stream.
pub(crate) fn lasting(
    hosts: [&Namespace; 2],
    address: IpAddr,
    meanwhile: impl FnOnce(&dyn Fn() -> u64) -> Result,
) -> Result {
    run(hosts, address, None, meanwhile)
}

/// A stream to this port until it is told to stop; the bytes that have arrived are added up, and
/// not compared.
pub(crate) fn until_stopped(
    [from, to]: [&Namespace; 2],
    address: IpAddr,
    port: u16,
    received: &AtomicU64,
    stop: &AtomicBool,
) -> Result {
    let listener = to.run(|| Ok(TcpListener::bind((address, port))))??;
    let mut sender = until("a connection", || {
        from.run(|| Ok(TcpStream::connect((address, port)).ok())).ok().flatten()
    })?;
    let (mut receiver, _) = listener.accept()?;
    [&sender, &receiver].into_iter().try_for_each(patient)?;
    thread::scope(|scope| {
        scope.spawn(move || {
            let bytes = [7; 1 << 14];
            while !stop.load(Ordering::Relaxed) && sender.write_all(&bytes).is_ok() {}
        });
        let mut bytes = vec![0; 1 << 16];
        loop {
            match receiver.read(&mut bytes)? {
                0 => return Ok(()),
                length => received.fetch_add(length as u64, Ordering::Relaxed),
            };
        }
    })
}

fn run(
    [from, to]: [&Namespace; 2],
    address: IpAddr,
    bytes: Option<u64>,
    meanwhile: impl FnOnce(&dyn Fn() -> u64) -> Result,
) -> Result {
    let listener = to.run(|| Ok(TcpListener::bind((address, PORT))))??;
    let sender = until("a connection", || {
        from.run(|| Ok(TcpStream::connect((address, PORT)).ok())).ok().flatten()
    })?;
    let (receiver, _) = listener.accept()?;
    [&sender, &receiver].into_iter().try_for_each(patient)?;
    let (received, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let amount = bytes.map_or(Amount::Until(&is_over), Amount::Bytes);
    thread::scope(|scope| {
        let sending = scope.spawn(|| send(sender, 0, amount).map_err(|error| error.to_string()));
        let receiving =
            scope.spawn(|| receive(receiver, 0, &received).map_err(|error| error.to_string()));
        let done = meanwhile(&|| received.load(Ordering::Relaxed));
        is_over.store(true, Ordering::Relaxed);
        let join = |handle: thread::ScopedJoinHandle<'_, _>| match handle.join() {
            Ok(result) => result,
            Err(_) => Err("a panic".to_owned()),
        };
        let [sent, received] = [join(sending), join(receiving)];
        assert_eq!(sent?, received?, "bytes of the stream");
        done
    })
}
