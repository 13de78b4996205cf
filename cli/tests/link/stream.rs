//! A TCP stream across the link, every byte checked.

use crate::world::{INNER, PATIENCE, Result, World, until};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
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
    let listener = world.right.run(|| Ok(TcpListener::bind((INNER[1], PORT))))??;
    let sender = until("a connection", || {
        world.left.run(|| Ok(TcpStream::connect((INNER[1], PORT)).ok())).ok().flatten()
    })?;
    let (receiver, _) = listener.accept()?;
    for stream in [&sender, &receiver] {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
    }
    let received = AtomicU64::new(0);
    thread::scope(|scope| {
        let sending = scope.spawn(|| send(sender, bytes).map_err(|error| error.to_string()));
        let receiving =
            scope.spawn(|| receive(receiver, bytes, &received).map_err(|error| error.to_string()));
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

/// The byte at this offset: neighbours differ, and so do packets.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn send(mut stream: TcpStream, bytes: u64) -> Result {
    let mut offset = 0;
    while offset < bytes {
        let end = bytes.min(offset + 65_536);
        let block: Vec<u8> = (offset..end).map(byte).collect();
        stream.write_all(&block)?;
        offset = end;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    // The other end closes when it has everything.
    match stream.read(&mut [0])? {
        0 => Ok(()),
        _ => Err("the receiver has nothing to say".into()),
    }
}

fn receive(mut stream: TcpStream, bytes: u64, received: &AtomicU64) -> Result {
    let mut block = vec![0; 65_536];
    let mut offset = 0;
    loop {
        let length = stream.read(&mut block)?;
        if length == 0 {
            break;
        }
        for (value, at) in block.iter().take(length).zip(offset..) {
            if *value != byte(at) {
                return Err(format!("the byte at offset {at} is wrong").into());
            }
        }
        offset += length as u64;
        received.store(offset, Ordering::Relaxed);
    }
    if offset == bytes { Ok(()) } else { Err(format!("{offset} of {bytes} bytes").into()) }
}
